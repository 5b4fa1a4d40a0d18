"""Everything about a solved agreement in one record, which `solve` prints and the console sends."""

from typing import Any

from fedaccord.agreement.certificate import Certificate
from fedaccord.agreement.worth import worth
from fedaccord.game.social_optimum import SocialOptimum, price_of_anarchy
from fedaccord.record import jsonable


def solution_record(
    certificate: Certificate, optimum: SocialOptimum, exists_from: float | None
) -> dict[str, Any]:
    """The consortium, its equilibrium, the agreement with its certificate, and its worth.

    `exists_from` is the discount factor above which an agreement exists, if there is one.
    """
    equilibrium = certificate.agreement.equilibrium
    return {
        "consortium": equilibrium.consortium.to_dict(),
        "equilibrium": equilibrium.to_dict(),
        "agreement": agreement_record(certificate, exists_from),
        "certificate": {
            "holds": certificate.holds,
            "worst_client": certificate.worst_client,
            "slack": jsonable(certificate.slack[certificate.worst]),
            "assumptions": list(certificate.assumptions),
            "under_laws": jsonable(certificate.under_laws),
            "under_fresh_laws": jsonable(certificate.under_fresh_laws),
            "over_ranges": jsonable(certificate.over_ranges),
        },
        "law": equilibrium.consortium.law.to_dict(),
        "worth": worth(certificate).to_dict(),
        "social_optimum": {
            "total": optimum.total,
            "total_cost": jsonable(optimum.cost.sum()),
            "price_of_anarchy": jsonable(price_of_anarchy(equilibrium, optimum)),
        },
    }


def agreement_record(certificate: Certificate, exists_from: float | None) -> dict[str, Any]:
    """The agreement and what its certificate found, in the order in which json.md lists them."""
    record = certificate.agreement.to_dict()
    audits = jsonable(certificate.audit_probability)
    found = zip(record["clients"], jsonable(certificate.threshold), audits, strict=True)
    for row, threshold, audit in found:
        row["threshold"], row["audit_probability"] = threshold, audit
    facts = {
        "smallest_discount_factor": jsonable(certificate.smallest_discount_factor),
        "exists_from": exists_from,
    }
    place = list(record).index("reason")
    fields = list(record.items())
    return dict([*fields[:place], *facts.items(), *fields[place:]])

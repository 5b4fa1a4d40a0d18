"""Everything about a solved agreement in one record, which `solve` prints and the console sends."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from fedaccord.agreement.agreement import Agreement, agreement_on
from fedaccord.agreement.certificate import Certificate, certify
from fedaccord.agreement.coalition import Coalition, find_coalition
from fedaccord.agreement.punishment import Reversion
from fedaccord.agreement.worth import worth
from fedaccord.game.social_optimum import SocialOptimum, price_of_anarchy
from fedaccord.record import jsonable


def solution_record(
    certificate: Certificate,
    optimum: SocialOptimum,
    exists_from: float | None,
    *,
    alternatives: Mapping[str, Agreement] | None = None,
    sentences: Mapping[str, Sequence[str]] | None = None,
) -> dict[str, Any]:
    """The consortium, its equilibrium, the agreement with its certificate, and its worth.

    Args:
        certificate: Of the agreement.
        optimum: The social optimum.
        exists_from: The discount factor above which an agreement exists, if there is one.
        alternatives: Other agreements of the same consortium, by name, if any were looked for.
        sentences: What people are told, by part, if they are.
    """
    told: dict[str, Any] = {}
    if alternatives is not None:
        told["alternatives"] = [
            alternative_record(name, other) for name, other in alternatives.items()
        ]
    if sentences is not None:
        told["sentences"] = {part: list(said) for part, said in sentences.items()}
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
            "would_slip_if_one_is_out": slipping_if_one_is_out(certificate),
        },
        "law": equilibrium.consortium.law.to_dict(),
        "worth": worth(certificate).to_dict(),
        "social_optimum": {
            "total": optimum.total,
            "total_cost": jsonable(optimum.cost.sum()),
            "price_of_anarchy": jsonable(price_of_anarchy(equilibrium, optimum)),
        },
        "coalition": coalition_record(group_that_would_go(certificate)),
        **told,
    }


def group_that_would_go(certificate: Certificate) -> Coalition | None:
    """The group that would do better on its own for good, if suspension is all that it risks."""
    agreement = certificate.agreement
    proved = agreement.exists and certificate.holds
    if not proved or isinstance(agreement.punishment, Reversion):
        return None
    return find_coalition(agreement)


def all_would_keep_to(group: Coalition) -> bool:
    """Whether the profile of a group of everyone would hold as an agreement."""
    agreement = group.agreement
    other = agreement_on(agreement.consortium, group.contributions, agreement.punishment)
    return certify(other).holds


def coalition_record(group: Coalition | None) -> dict[str, Any] | None:
    """A group that would do better on its own, or all of them with another profile."""
    if group is None:
        return None
    everyone = len(group.members) == group.agreement.consortium.size
    holds = all_would_keep_to(group) if everyone else None
    return {**group.to_dict(), "everyone": everyone, "holds": holds}


def slipping_if_one_is_out(certificate: Certificate) -> list[str]:
    """Who would slip while another client is suspended."""
    agreement, keeps = certificate.agreement, certificate.keeps_if_one_is_out
    proved = agreement.exists and certificate.holds
    if keeps is None or not proved or isinstance(agreement.punishment, Reversion):
        return []
    return [agreement.consortium.names[n] for n in np.flatnonzero(~keeps).tolist()]


def alternative_record(name: str, agreement: Agreement) -> dict[str, Any]:
    """Another agreement of the same consortium, in a few numbers."""
    return {
        "name": name,
        "exists": agreement.exists,
        "reason": agreement.reason,
        "punishment": jsonable(agreement.punishment),
        "objective": agreement.objective,
        "margin": agreement.margin,
        "total": agreement.total,
        "total_cost": jsonable(agreement.cost.sum()),
        "saving_per_slot": jsonable(agreement.saving.sum()),
    }


def agreement_record(certificate: Certificate, exists_from: float | None) -> dict[str, Any]:
    """The agreement and what its certificate found, in the order in which json.md lists them."""
    record = certificate.agreement.to_dict()
    consortium = certificate.agreement.consortium
    more = {
        "threshold": certificate.threshold,
        "audit_probability": certificate.audit_probability,
        "samples": consortium.samples,
        "discount_factor": consortium.discount_factor,
    }
    for name, values in more.items():
        for row, value in zip(record["clients"], jsonable(values), strict=True):
            row[name] = value
    facts = {
        "smallest_discount_factor": jsonable(certificate.smallest_discount_factor),
        "exists_from": exists_from,
    }
    place = list(record).index("reason")
    fields = list(record.items())
    return dict([*fields[:place], *facts.items(), *fields[place:]])

"""What `--format json` prints: the records of the library, put together for each command."""

import json
from typing import TYPE_CHECKING, Any

from fedaccord.record import jsonable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fedaccord.agreement.certificate import Certificate
    from fedaccord.game.social_optimum import SocialOptimum
    from fedaccord.mechanisms.comparison import MechanismComparison
    from fedaccord.summaries.match import Account
    from fedaccord.training.comparison import Estimate
    from fedaccord.trials.trial import Trial

_INDENTED = 1000
"""Largest number of clients (or slots) for which JSON is indented: Python indents slowly."""


def to_json(record: dict[str, Any], length: int) -> str:
    """The record as strict JSON, indented unless it is long."""
    indent = 2 if length <= _INDENTED else None
    return json.dumps(record, indent=indent, allow_nan=False)


def solution_record(
    certificate: "Certificate", optimum: "SocialOptimum", exists_from: float | None
) -> dict[str, Any]:
    """What `solve` prints."""
    from fedaccord.game.social_optimum import price_of_anarchy

    equilibrium = certificate.agreement.equilibrium
    return {
        "consortium": equilibrium.consortium.to_dict(),
        "equilibrium": equilibrium.to_dict(),
        "agreement": _agreement(certificate, exists_from),
        "certificate": {
            "holds": certificate.holds,
            "worst_client": certificate.worst_client,
            "slack": jsonable(certificate.slack[certificate.worst]),
        },
        "social_optimum": {
            "total": optimum.total,
            "total_cost": jsonable(optimum.cost.sum()),
            "price_of_anarchy": jsonable(price_of_anarchy(equilibrium, optimum)),
        },
    }


def certificate_record(certificate: "Certificate") -> dict[str, Any]:
    """What `certify` prints."""
    return {
        "consortium": certificate.agreement.consortium.to_dict(),
        "certificate": certificate.to_dict(),
    }


def match_record(
    account: "Account", certificate: "Certificate", exists_from: float | None
) -> dict[str, Any]:
    """What `play` prints."""
    return {
        "agreement": _agreement(certificate, exists_from),
        **account.match.to_dict(),
        "shortest_punishment": account.shortest_punishment,
    }


def training_record(comparison: "Trial", skew: float | None) -> dict[str, Any]:
    """What `train` prints."""
    from fedaccord.summaries.training import training_notes

    return comparison.to_dict() | {"notes": training_notes(comparison), "skew": skew}


def comparison_record(
    comparison: "MechanismComparison", accuracy: "Mapping[str, Estimate]"
) -> dict[str, Any]:
    """What `compare` prints, with the accuracies that were measured, if any."""
    record = comparison.to_dict()
    for mechanism in record["mechanisms"]:
        mechanism["accuracy"] = jsonable(accuracy.get(mechanism["name"]))
    return record


def _agreement(certificate: "Certificate", exists_from: float | None) -> dict[str, Any]:
    """The agreement and what its certificate found, in the order in which json.md lists them."""
    record = certificate.agreement.to_dict()
    for row, threshold in zip(record["clients"], jsonable(certificate.threshold), strict=True):
        row["threshold"] = threshold
    found = {
        "smallest_discount_factor": jsonable(certificate.smallest_discount_factor),
        "exists_from": exists_from,
    }
    place = list(record).index("reason")
    fields = list(record.items())
    return dict([*fields[:place], *found.items(), *fields[place:]])

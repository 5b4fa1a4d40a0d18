"""What `--format json` prints: plain records, strict JSON, in a fixed order of fields."""

import json
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fedaccord.agreement.certificate import Certificate
    from fedaccord.game.consortium import Consortium
    from fedaccord.game.equilibrium import Equilibrium
    from fedaccord.game.social_optimum import SocialOptimum
    from fedaccord.mechanisms.compare import Entry, MechanismComparison
    from fedaccord.numbers import FloatArray
    from fedaccord.repeated.recorder import Event
    from fedaccord.summaries.match import Account
    from fedaccord.training.comparison import Estimate, ProfileScore
    from fedaccord.training.course import SlotRecord
    from fedaccord.trials.trial import Trial

_INDENTED = 1000
"""Clients (or slots) up to which JSON is indented: Python indents slowly."""


def to_json(record: dict[str, Any], length: int) -> str:
    """The record as strict JSON, which has no word for infinite."""
    indent = 2 if length <= _INDENTED else None
    return json.dumps(record, indent=indent, allow_nan=False)


def solution_record(
    certificate: "Certificate", optimum: "SocialOptimum", exists_from: float | None
) -> dict[str, Any]:
    """What `solve` prints."""
    equilibrium = certificate.agreement.equilibrium
    return {
        "consortium": _consortium(equilibrium.consortium),
        "equilibrium": _equilibrium(equilibrium),
        "agreement": _agreement(certificate, exists_from),
        "certificate": _verdict(certificate),
        "social_optimum": _social_optimum(optimum, equilibrium),
    }


def certificate_record(certificate: "Certificate") -> dict[str, Any]:
    """What `certify` prints."""
    agreement = certificate.agreement
    return {
        "consortium": _consortium(agreement.consortium),
        "certificate": {
            **_verdict(certificate),
            "smallest_discount_factor": _finite(certificate.smallest_discount_factor),
            "punishment_slots": agreement.punishment_slots,
            "punishment_is_equilibrium": bool(certificate.punishment_holds.all()),
            "clients": _rows(
                name=list(agreement.consortium.names),
                contribution=_list(agreement.profile),
                cost_equilibrium=_list(certificate.cost_equilibrium),
                cost_agreement=_list(certificate.cost_agreement),
                cost_deviation=_list(certificate.cost_deviation),
                deviation=_list(certificate.deviation),
                threshold=_list(certificate.threshold),
                slack=_list(certificate.slack),
                keeps=certificate.keeps.tolist(),
            ),
        },
    }


def match_record(
    account: "Account", certificate: "Certificate", exists_from: float | None
) -> dict[str, Any]:
    """What `play` prints."""
    match = account.match
    return {
        "agreement": _agreement(certificate, exists_from),
        "slots": match.slots,
        "phases": list(match.phases),
        "totals": _list(match.totals),
        "events": [_event(event) for event in match.events],
        "clients": _rows(
            name=list(match.agreement.consortium.names),
            discounted_cost=_list(match.discounted_cost),
            discounted_cost_if_kept=_list(match.discounted_cost_if_kept),
        ),
        "noise": match.noise,
        "dropout": match.dropout,
        "tolerance": match.tolerance,
        "seed": match.seed,
        "false_alarms": match.false_alarms,
        "missed_deviations": match.missed_deviations,
        "absences": match.absences,
        "false_alarm_cost": _finite(match.false_alarm_cost.sum()),
        "missed_deviation_cost": _finite(match.missed_deviation_cost.sum()),
        "shortest_punishment": account.shortest_punishment,
    }


def training_record(comparison: "Trial", skew: float | None) -> dict[str, Any]:
    """What `train` prints."""
    from fedaccord.summaries.training import training_notes

    return {
        "dataset": comparison.course.model.dataset.name,
        "task": comparison.course.model.task.name,
        "engine": comparison.engine,
        "scale": comparison.course.scale,
        "profiles": [_profile_score(score) for score in comparison.scores],
        "runs": [
            {
                "profile": run.profile,
                "seed": run.seed,
                "slots": [_slot(record) for record in run.slots],
            }
            for run in comparison.runs
        ],
        "notes": training_notes(comparison),
        "skew": skew,
    }


def _profile_score(score: "ProfileScore") -> dict[str, Any]:
    return {
        "profile": score.profile,
        "total": score.total,
        "loss": _estimate(score.loss),
        "accuracy": _estimate(score.accuracy),
        "accuracy_gain": _estimate(score.accuracy_gain),
    }


def _estimate(estimate: "Estimate") -> dict[str, float | None]:
    return {"mean": _finite(estimate.mean), "half_width": _finite(estimate.half_width)}


def _slot(record: "SlotRecord") -> dict[str, Any]:
    return {
        "slot": record.slot,
        "phase": record.phase,
        "total": record.total,
        "rounds": [
            {"round": k, "loss": _finite(score.loss), "accuracy": score.accuracy}
            for k, score in enumerate(record.rounds, start=1)
        ],
        "test_loss": _finite(record.final.loss),
        "test_accuracy": record.final.accuracy,
    }


def _event(event: "Event") -> dict[str, Any]:
    lasted = int(event.lasted) if np.isfinite(event.lasted) else None
    return event._asdict() | {"lasted": lasted}


def _consortium(consortium: "Consortium") -> dict[str, Any]:
    samples = float(consortium.samples.sum())
    return {
        "name": consortium.name,
        "clients": consortium.size,
        "rounds": int(consortium.rounds),
        "samples": int(samples) if samples.is_integer() else samples,
    }


def _equilibrium(equilibrium: "Equilibrium") -> dict[str, Any]:
    return {
        "case": equilibrium.case,
        "unique": equilibrium.unique,
        "total": equilibrium.total,
        "critical_client": equilibrium.critical_client,
        "free_riders": equilibrium.free_riders,
        "total_cost": _finite(equilibrium.cost.sum()),
        "clients": _rows(
            name=list(equilibrium.consortium.names),
            contribution=_list(equilibrium.profile),
            role=[str(role) for role in equilibrium.roles],
            cost=_list(equilibrium.cost),
        ),
    }


def _agreement(certificate: "Certificate", exists_from: float | None) -> dict[str, Any]:
    agreement = certificate.agreement
    return {
        "kind": agreement.kind,
        "exists": agreement.exists,
        "total": agreement.total,
        "ratio": agreement.ratio,
        "free_riders": agreement.free_riders,
        "free_riders_removed": agreement.free_riders_removed,
        "first_converted": agreement.first_converted,
        "first_converted_by": agreement.first_converted_by,
        "level": agreement.level,
        "largest_level": agreement.largest_level,
        "smallest_discount_factor": _finite(certificate.smallest_discount_factor),
        "exists_from": exists_from,
        "reason": agreement.reason,
        "objective": agreement.objective,
        "margin": agreement.margin,
        "whole_samples": agreement.whole_samples,
        "punishment_slots": agreement.punishment_slots,
        "total_cost": _finite(agreement.cost.sum()),
        "clients": _rows(
            name=list(agreement.consortium.names),
            contribution=_list(agreement.profile),
            role=[str(role) for role in agreement.roles],
            cost=_list(agreement.cost),
            saving=_list(agreement.saving),
            threshold=_list(certificate.threshold),
        ),
    }


def _verdict(certificate: "Certificate") -> dict[str, Any]:
    return {
        "holds": certificate.holds,
        "worst_client": certificate.worst_client,
        "slack": _finite(certificate.slack[certificate.worst]),
    }


def _social_optimum(optimum: "SocialOptimum", equilibrium: "Equilibrium") -> dict[str, Any]:
    from fedaccord.game.social_optimum import price_of_anarchy

    return {
        "total": optimum.total,
        "total_cost": _finite(optimum.cost.sum()),
        "price_of_anarchy": _finite(price_of_anarchy(equilibrium, optimum)),
    }


def _rows(**columns: list[Any]) -> list[dict[str, Any]]:
    """One record a client."""
    fields = list(columns)
    return [dict(zip(fields, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _list(values: "FloatArray") -> list[float | None]:
    plain: list[float | None] = values.tolist()
    if np.isfinite(values).all():
        return plain
    return [_finite(value) for value in values]


def _finite(value: float) -> float | None:
    """The number, or None for what JSON can't say."""
    return float(value) if np.isfinite(value) else None


def comparison_record(
    comparison: "MechanismComparison", accuracy: "Mapping[str, Estimate]"
) -> dict[str, Any]:
    """What `compare` prints; `accuracy` is what was measured, if anything was."""
    return {
        "consortium": _consortium(comparison.consortium),
        "price_of_anarchy": _finite(comparison.price_of_anarchy),
        "mechanisms": [_mechanism(entry, accuracy.get(entry.name)) for entry in comparison.entries],
    }


def _mechanism(entry: "Entry", accuracy: "Estimate | None") -> dict[str, Any]:
    outcome = entry.outcome
    return {
        "name": entry.name,
        "contributors": outcome.contributors,
        "partial_contributors": outcome.partial_contributors,
        "free_riders": outcome.free_riders,
        "total": outcome.total,
        "total_cost": _finite(entry.total_cost),
        "payments": outcome.paid,
        "paid_from_outside": outcome.paid_from_outside,
        "worst_client": entry.worst_client,
        "worst_saving": _finite(entry.worst_saving),
        "self_enforcing": entry.self_enforcing,
        "enforced_by": outcome.enforced_by,
        "survives_private_information": outcome.survives_private_information,
        "private_information": outcome.private_information,
        "accuracy": None if accuracy is None else _estimate(accuracy),
        "notes": list(outcome.notes),
    }

"""What a punishment does to each client, and how much that weighs; from the cost function alone."""

from typing import NamedTuple

import numpy as np

from fedaccord.agreement.agreement import Agreement
from fedaccord.agreement.punishment import Reversion, Suspension
from fedaccord.agreement.search import (
    best_alone,
    best_deviation,
    cost_of,
    saving_of,
    total_of,
)
from fedaccord.numbers import BoolArray, FloatArray

TOLERANCE = 1e-9
"""By how much a condition may fail and still count as met, relative to the cost of the samples
that the client decides on: those agreed, those contributed in a punishment, and those of the
deviation. The largest agreements leave many clients exactly indifferent, so without a tolerance
rounding would decide; a billionth of that cost is far below what anyone could act on. A client
that is asked for nothing needs no tolerance: it cannot contribute less."""


class Threat(NamedTuple):
    """What a punishment does to each client."""

    contribution: FloatArray
    """What it contributes meanwhile."""
    saving: FloatArray
    """F_n(punishment) - F_n(agreement), without cancellation."""
    cost: FloatArray
    """F_n meanwhile."""
    can_leave: bool
    """Whether a client can bring the punishment upon itself although it is asked for nothing."""
    holds: BoolArray
    """Whether carrying out the punishment is what is best for it."""


def threat_of(agreement: Agreement) -> Threat:
    """What the agreement's punishment does to each client.

    Where no agreement exists nobody is punished: the equilibrium holds by itself.
    """
    punishment = agreement.punishment
    if isinstance(punishment, Reversion) or not agreement.exists:
        return _reversion(agreement)
    suspension = _suspension(agreement, punishment)
    if not punishment.or_reversion:
        return suspension
    reversion = _reversion(agreement)
    harsher = reversion.saving > suspension.saving
    return suspension._replace(
        contribution=np.where(harsher, reversion.contribution, suspension.contribution),
        saving=np.where(harsher, reversion.saving, suspension.saving),
        cost=np.where(harsher, reversion.cost, suspension.cost),
        holds=reversion.holds if harsher.any() else suspension.holds,
    )


def _reversion(agreement: Agreement) -> Threat:
    """The equilibrium, which must be one: nobody may gain by leaving it."""
    consortium, profile = agreement.consortium, agreement.equilibrium.profile
    total = total_of(consortium, profile)
    left, gain = best_deviation(consortium, profile, total)
    return Threat(
        contribution=profile,
        saving=saving_of(consortium, agreement.profile, profile, total),
        cost=cost_of(consortium, profile, total),
        can_leave=False,
        holds=gain <= TOLERANCE * consortium.cost_per_sample * (profile + left),
    )


def _suspension(agreement: Agreement, punishment: Suspension) -> Threat:
    """Being alone, with the old model if that is better, and perhaps without the fees."""
    consortium, profile = agreement.consortium, agreement.profile
    alone = best_alone(consortium)
    reached = consortium.quality * alone
    saving = saving_of(consortium, profile, alone, reached)
    cost = cost_of(consortium, alone, reached)
    kept = punishment.model_keeps * total_of(consortium, profile)
    if kept > 0:
        using, worth = np.zeros_like(profile), np.full_like(profile, kept)
        cost = np.minimum(cost, cost_of(consortium, using, worth))
        saving = np.minimum(saving, saving_of(consortium, profile, using, worth))
    if punishment.fees_saved:
        fees = consortium.communication_cost + consortium.server_fee
        saving, cost = saving - fees, cost - fees
    return Threat(alone, saving, cost, can_leave=True, holds=np.ones(consortium.size, dtype=bool))


def worth_of(discount_factor: FloatArray, slots: int | None) -> FloatArray:
    """delta + delta^2 + ... + delta^T: the weight of losing 1 in each slot of the punishment."""
    for_ever = discount_factor / (1.0 - discount_factor)
    if slots is None:
        return np.asarray(for_ever)
    if slots == 0:
        return np.zeros_like(discount_factor)
    with np.errstate(divide="ignore"):
        return np.asarray(for_ever * -np.expm1(slots * np.log(discount_factor)))

"""Whether an agreement holds for every law that the loss may follow, from the cost function alone.

Under each law the clients are examined as in `certify`: the best deviation and what a client would
do alone are searched for. If the punishment is reversion, it is the equilibrium under that law: its
total is found by bisection, and the profile is checked to be an equilibrium.

Contributing more than agreed pays under some laws for some clients. That is no slip; they are
counted apart.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from fedaccord.agreement.agreement import Agreement
from fedaccord.agreement.loss import slope_of
from fedaccord.agreement.punishment import Reversion, Suspension
from fedaccord.agreement.search import best_alone, best_deviation, lost_by, total_of
from fedaccord.agreement.threats import TOLERANCE, worth_of
from fedaccord.game.consortium import Consortium
from fedaccord.game.law import ARRAYS, Law
from fedaccord.game.law_rows import rows_of
from fedaccord.numbers import BoolArray, FloatArray
from fedaccord.record import Record


@dataclass(frozen=True, eq=False, repr=False)
class HeldUnder(Record):
    """For each law (row) and client: whether it keeps to the agreement, and with what slack."""

    agreement: Agreement
    keeps: BoolArray
    slack: FloatArray
    """Its discount factor less the smallest one at which it would keep to the agreement."""
    gives_more: BoolArray
    """Whether it would contribute more than agreed, which helps everybody."""

    @cached_property
    def held(self) -> int:
        """Under how many laws everyone keeps to the agreement."""
        return int(self.keeps.all(axis=1).sum())

    @property
    def laws(self) -> int:
        """How many laws there are."""
        return len(self.keeps)

    @property
    def worst(self) -> tuple[int, int]:
        """The law, and the client, with the least slack."""
        law, client = divmod(int(np.argmin(self.slack)), self.slack.shape[1])
        return law, client

    def _facts(self) -> dict[str, Any]:
        law, client = self.worst
        return {
            "laws": self.laws,
            "held": self.held,
            "worst_law": law,
            "worst_client": self.agreement.consortium.names[client],
            "slack": self.slack[law, client],
            "would_give_more": int(self.gives_more.any(axis=0).sum()),
        }


def held_under(agreement: Agreement, laws: Law) -> HeldUnder:
    """Examine an agreement under each of the laws, which are rows (see `law_rows`)."""
    laws = rows_of(laws)
    height, width = laws.value.shape[1], agreement.consortium.size
    stacked = _stacked(agreement.consortium, laws)
    profile = np.tile(agreement.profile, height)
    total = total_of(agreement.consortium, agreement.profile)
    deviation, gain = best_deviation(stacked, profile, total)
    punished, saving, proper = _punishment(agreement, stacked, profile, total, (height, width))
    allowed = TOLERANCE * stacked.cost_per_sample * (profile + punished + deviation)
    more = (gain > allowed) & (deviation > profile)
    gain = np.where(more | (gain <= allowed), 0.0, gain)
    worth = worth_of(stacked.discount_factor, agreement.punishment.slots)
    deterred = (gain - worth * saving) / (1.0 + worth) <= allowed
    can_leave = (profile > 0) | (not isinstance(agreement.punishment, Reversion))
    keeps = (deterred | (profile == 0)) & ~((saving < -allowed) & can_leave) & proper
    slack = _slack(agreement, stacked, gain, saving)
    shape = (height, width)
    return HeldUnder(agreement, keeps.reshape(shape), slack.reshape(shape), more.reshape(shape))


def _stacked(consortium: Consortium, laws: Law) -> Consortium:
    """Every client once for each law, as one long consortium in which each has its own law."""
    height, width = laws.value.shape[1], consortium.size
    arrays: dict[str, Any] = {
        name: np.repeat(getattr(laws, name)[:, :, 0], width, axis=1) for name in ARRAYS
    }
    law = Law(**arrays, floor=np.repeat(laws.floor[:, 0], width), kind="personal")
    columns = ("valuation", "cost_per_sample", "samples", "discount_factor", "communication_cost")
    tiled: dict[str, Any] = {
        name: np.tile(getattr(consortium, name), height) for name in (*columns, "quality")
    }
    fee = consortium.server_fee
    return Consortium(**tiled, rounds=consortium.rounds, server_fee=fee, law=law)


def _punishment(
    agreement: Agreement,
    stacked: Consortium,
    profile: FloatArray,
    total: np.float64,
    shape: tuple[int, int],
) -> tuple[FloatArray, FloatArray, BoolArray]:
    """What each contributes while punished, what the agreement saves it, and if that is proper."""
    punishment, proper = agreement.punishment, np.ones(profile.shape, dtype=bool)
    if isinstance(punishment, Reversion):
        return _reversion(stacked, profile, total, shape)
    alone = best_alone(stacked)
    saving = _saving(stacked, profile, total, alone, stacked.quality * alone)
    if punishment.model_keeps:
        old = np.full_like(profile, punishment.model_keeps * total)
        saving = np.minimum(saving, _saving(stacked, profile, total, np.zeros_like(profile), old))
    if punishment.fees_saved:
        saving = saving - stacked.communication_cost - stacked.server_fee
    if isinstance(punishment, Suspension) and punishment.or_reversion:
        other, stake, holds = _reversion(stacked, profile, total, shape)
        alone, proper = np.where(stake > saving, other, alone), holds | (stake <= saving)
        saving = np.maximum(saving, stake)
    return alone, saving, proper


def _reversion(
    stacked: Consortium, profile: FloatArray, total: np.float64, shape: tuple[int, int]
) -> tuple[FloatArray, FloatArray, BoolArray]:
    """The equilibrium of each law, checked to be one."""
    given = _selfish(stacked, shape)
    selfish = given.ravel() / stacked.quality
    before = np.broadcast_to(given.sum(axis=1, keepdims=True), shape).ravel()
    left, gain = best_deviation(stacked, selfish, before)
    proper = gain <= TOLERANCE * stacked.cost_per_sample * (selfish + left)
    return selfish, _saving(stacked, profile, total, selfish, before), proper


def _selfish(stacked: Consortium, shape: tuple[int, int]) -> FloatArray:
    """What each gives at the equilibrium of its law, in samples of quality 1.

    Those to whom one more sample is worth its cost at a total X give all they have, or less if that
    would be more than X: the largest X that they can reach together is the equilibrium's total.
    """
    most = (stacked.samples * stacked.quality).reshape(shape)

    def willing(total: FloatArray) -> BoolArray:
        at = np.broadcast_to(total, shape).ravel()
        gained = stacked.valuation * stacked.quality * slope_of(stacked.law, at)
        return np.asarray(gained > stacked.cost_per_sample).reshape(shape)

    low, high = np.zeros((shape[0], 1)), most.sum(axis=1, keepdims=True)
    for _ in range(_STEPS):
        middle = 0.5 * (low + high)
        reached = (most * willing(middle)).sum(axis=1, keepdims=True) >= middle
        low, high = np.where(reached, middle, low), np.where(reached, high, middle)
    surely = willing(high)
    given = most * surely
    undecided = most * (willing(low) & ~surely)
    left = np.clip(low - given.sum(axis=1, keepdims=True), 0.0, None)
    room = undecided.sum(axis=1, keepdims=True)
    return np.asarray(given + undecided * (left / np.where(room > 0, room, np.inf)))


def _saving(
    stacked: Consortium,
    profile: FloatArray,
    total: np.float64,
    before: FloatArray,
    total_before: FloatArray,
) -> FloatArray:
    """What the agreement saves in a slot against `before` in another total."""
    better = lost_by(stacked, total_before, total)
    return np.asarray(better - stacked.cost_per_sample * (profile - before))


def _slack(
    agreement: Agreement, stacked: Consortium, gain: FloatArray, saving: FloatArray
) -> FloatArray:
    """Discount factor less threshold, for a punishment without end or of T slots.

    For T slots the threshold is where delta + ... + delta^T is gain / saving, found by bisection.
    """
    low, high = np.zeros_like(gain), np.full_like(gain, np.nextafter(1.0, 0.0))
    slots = agreement.punishment.slots
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        enough = worth_of(middle, slots) * saving >= gain
        low, high = np.where(enough, low, middle), np.where(enough, middle, high)
    threshold = np.where(gain > 0, high, np.where(saving < 0, 1.0, 0.0))
    return np.asarray(stacked.discount_factor - threshold)


_HALVINGS = 50
"""Bisection steps that determine a threshold to 1e-15."""

_STEPS = 100
"""Bisection steps that determine a total to the last bit, even one far below all samples."""

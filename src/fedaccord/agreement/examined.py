"""Clients of many types at once, examined as in `certify`, from the cost function alone.

A client's type is its numbers and the law that it goes by. Types come as one long consortium: row
after row, each row has every client once. The best deviation and what a client would do alone are
searched for. If the punishment is reversion, it is the equilibrium of each row: its total is found
by bisection, and the profile is checked to be an equilibrium.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from fedaccord.agreement.agreement import Agreement
from fedaccord.agreement.loss import slope_of
from fedaccord.agreement.punishment import Reversion, Suspension
from fedaccord.agreement.search import best_alone, best_deviation, lost_by, total_of
from fedaccord.agreement.slips import Slips, best_slips
from fedaccord.agreement.threats import TOLERANCE
from fedaccord.agreement.watch import Watch, watch_of
from fedaccord.game.consortium import Consortium
from fedaccord.numbers import BoolArray, FloatArray

_STEPS = 100
"""Bisection steps that determine a total to the last bit, even one far below all samples."""


class Examined(NamedTuple):
    """For each row and client: whether it keeps to the agreement, and with what slack."""

    keeps: BoolArray
    slack: FloatArray
    """Its discount factor less the smallest one at which it would keep to the agreement."""
    gives_more: BoolArray
    """Whether it would contribute more than agreed, which helps everybody."""
    least_audit: FloatArray
    """The smallest probability of an audit that keeps it to the agreement; more than 1: none."""


class Selfish(NamedTuple):
    """What each contributes at the equilibrium, and the total, in samples of quality 1."""

    given: FloatArray
    total: FloatArray


def examine(
    agreement: Agreement,
    types: Consortium,
    shape: tuple[int, int],
    selfish: Selfish | None = None,
) -> Examined:
    """Examine every client of every row (`shape`: rows, clients).

    `selfish` is the equilibrium that each reverts to; unless given, that of its row.
    """
    found = _tempted(agreement, types, shape, selfish)
    _, slips, watch, saving, _ = found.faced
    delta = types.discount_factor
    threshold = np.minimum(watch.threshold(slips, saving), 1.0)
    threshold = np.where((slips.gain > 0) | (saving >= 0), threshold, 1.0)
    audit = np.where(found.unwilling, np.inf, watch.least_audit(delta, slips, saving))
    audit = np.where(np.tile(agreement.profile, shape[0]) > 0, audit, 0.0)
    return Examined(
        found.keeps.reshape(shape),
        (delta - threshold).reshape(shape),
        found.gives_more.reshape(shape),
        audit.reshape(shape),
    )


def keeps_to(
    agreement: Agreement,
    types: Consortium,
    shape: tuple[int, int],
    selfish: Selfish | None = None,
) -> BoolArray:
    """Whether each client of each row keeps to the agreement: less work than all of `examine`."""
    return _tempted(agreement, types, shape, selfish).keeps.reshape(shape)


class Faced(NamedTuple):
    """What clients weigh up: what tempts each of them to slip against what that costs it."""

    types: Consortium
    """Every client once, or row after row of all of them."""
    slips: Slips
    """The best slips, without those that gain no more than rounding."""
    watch: Watch
    saving: FloatArray
    """What the agreement saves each against a slot of the punishment."""
    against_reversion: FloatArray | None
    """The same against reversion, where suspension gives way to that if it is harsher."""


def face(
    agreement: Agreement,
    types: Consortium,
    shape: tuple[int, int],
    selfish: Selfish | None = None,
) -> Faced:
    """What each client of each row weighs up, which tells how much milder a threat would do."""
    return _tempted(agreement, types, shape, selfish).faced


class _Tempted(NamedTuple):
    """What each client weighs up, and whether it keeps to the agreement."""

    faced: Faced
    unwilling: BoolArray
    """Whether it would rather be punished, or not take part."""
    gives_more: BoolArray
    keeps: BoolArray


def _tempted(
    agreement: Agreement, types: Consortium, shape: tuple[int, int], selfish: Selfish | None
) -> _Tempted:
    profile = np.tile(agreement.profile, shape[0])
    total = total_of(agreement.consortium, agreement.profile)
    slips = best_slips(types, profile, total, agreement.monitoring)
    watch = watch_of(agreement, shape[0])

    def before() -> Selfish:
        return selfish_play(types, shape) if selfish is None else selfish

    threat = _punishment(agreement, types, profile, total, before)
    decided = profile + threat.contribution + slips.deviation
    allowed = TOLERANCE * types.cost_per_sample * decided
    tempted = slips.tempting > allowed
    more = tempted & (slips.deviation > profile)
    slips = slips.only(tempted & ~more)
    deterred = watch.excess(types.discount_factor, slips, threat.saving) <= allowed
    can_leave = (profile > 0) | (not isinstance(agreement.punishment, Reversion))
    unwilling = (threat.saving < -allowed) & can_leave
    keeps = (deterred | (profile == 0)) & ~unwilling & threat.proper
    faced = Faced(types, slips, watch, threat.saving, threat.against_reversion)
    return _Tempted(faced, unwilling, more, keeps)


class _Threat(NamedTuple):
    """What each contributes while punished, what the agreement saves it, and if it is proper."""

    contribution: FloatArray
    saving: FloatArray
    proper: BoolArray
    """Whether carrying out the punishment is what is best for it."""
    against_reversion: FloatArray | None = None
    """What the agreement saves against reversion, if that may take the place of suspension."""


def _punishment(
    agreement: Agreement,
    types: Consortium,
    profile: FloatArray,
    total: np.float64,
    selfish: Callable[[], Selfish],
) -> _Threat:
    """What the punishment does to each."""
    punishment = agreement.punishment
    if isinstance(punishment, Reversion):
        return _reversion(types, profile, total, selfish())
    alone = best_alone(types)
    saving = _saving(types, profile, total, alone, types.quality * alone)
    if punishment.model_keeps:
        old = np.full_like(profile, punishment.model_keeps * total)
        saving = np.minimum(saving, _saving(types, profile, total, np.zeros_like(profile), old))
    if punishment.fees_saved:
        saving = saving - types.communication_cost - types.server_fee
    threat = _Threat(alone, saving, np.ones(profile.shape, dtype=bool))
    if not (isinstance(punishment, Suspension) and punishment.or_reversion):
        return threat
    other = _reversion(types, profile, total, selfish())
    harsher = other.saving > saving
    return _Threat(
        np.where(harsher, other.contribution, alone),
        np.maximum(saving, other.saving),
        other.proper | ~harsher,
        other.saving,
    )


def _reversion(
    types: Consortium, profile: FloatArray, total: np.float64, selfish: Selfish
) -> _Threat:
    """The equilibrium, checked to be one."""
    given = selfish.given / types.quality
    left, gain = best_deviation(types, given, selfish.total)
    proper = gain <= TOLERANCE * types.cost_per_sample * (given + left)
    return _Threat(given, _saving(types, profile, total, given, selfish.total), proper)


def selfish_play(types: Consortium, shape: tuple[int, int]) -> Selfish:
    """The equilibrium of each row.

    Those to whom one more sample is worth its cost at a total X give all they have, or less if that
    would be more than X: the largest X that they can reach together is the equilibrium's total.
    """
    most = (types.samples * types.quality).reshape(shape)
    valuation, price = (types.valuation * types.quality).reshape(shape), types.cost_per_sample
    price = price.reshape(shape)

    def willing(total: FloatArray) -> BoolArray:
        if types.law.is_personal:
            return is_willing(types, np.broadcast_to(total, shape).ravel()).reshape(shape)
        return np.asarray(valuation * slope_of(types.law, total) > price)

    def reached(total: FloatArray) -> BoolArray:
        return np.asarray((most * willing(total)).sum(axis=1, keepdims=True) >= total)

    low, high = halved(reached, np.zeros((shape[0], 1)), most.sum(axis=1, keepdims=True))
    surely = willing(high)
    given = most * surely
    undecided = most * (willing(low) & ~surely)
    left = np.clip(low - given.sum(axis=1, keepdims=True), 0.0, None)
    room = undecided.sum(axis=1, keepdims=True)
    given = given + undecided * (left / np.where(room > 0, room, np.inf))
    total = np.broadcast_to(given.sum(axis=1, keepdims=True), shape)
    return Selfish(given.ravel(), total.ravel())


def halved(
    reached: Callable[[FloatArray], BoolArray], low: FloatArray, high: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Between which two neighbours from `low` to `high` a total is no longer reached."""
    for _ in range(_STEPS):
        middle = 0.5 * (low + high)
        if ((middle <= low) | (middle >= high)).all():
            break
        still = reached(middle)
        low, high = np.where(still, middle, low), np.where(still, high, middle)
    return low, high


def is_willing(types: Consortium, total: FloatArray) -> BoolArray:
    """Whether one more sample is worth its cost to each at its total."""
    gained = types.valuation * types.quality * slope_of(types.law, total)
    return np.asarray(gained > types.cost_per_sample)


def _saving(
    types: Consortium,
    profile: FloatArray,
    total: np.float64,
    before: FloatArray,
    total_before: FloatArray,
) -> FloatArray:
    """What the agreement saves in a slot against `before` in another total."""
    better = lost_by(types, total_before, total)
    return np.asarray(better - types.cost_per_sample * (profile - before))

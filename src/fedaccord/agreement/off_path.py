"""Whether clients keep their amounts while others are suspended.

While somebody is out, the others keep their amounts and train on less together. The threat must
hold then, too, or a slip of one client would lead to slips of others. A client that slips while
the active clients contribute Y together is out for L slots; had it kept its amount, those who are
out now would have returned by then. With all of them out for as long as possible, which is worst
for the client, it keeps its amount if

    gain(Y)  <=  (delta + ... + delta^(L-1)) (V - f(Y))  +  delta^L (V - f(T)),

f(Y) being its cost while the total is Y. If not every slip is seen, the right side counts less, as
in `watch`. Where that fails, those who are left play the equilibrium among themselves instead, and
nobody is judged: that needs no threat. So it does not decide whether
the agreement holds, but what a slip costs the innocent.
"""

import numpy as np

from fedaccord.agreement.agreement import Agreement
from fedaccord.agreement.search import lost_by
from fedaccord.agreement.slips import best_slips
from fedaccord.agreement.threats import TOLERANCE, Threat, worth_of
from fedaccord.agreement.watch import watch_of
from fedaccord.numbers import BoolArray, FloatArray

_MOST_PAIRS = 2**18
"""Pairs of clients that are examined one by one where a bound for all of them is not enough."""


def keeps_if_one_is_out(agreement: Agreement, threat: Threat) -> BoolArray:
    """Whether each client keeps its amount whichever one other client is out.

    First all others are bounded at once: the gain grows with the total, so it is taken with the
    smallest amount missing, and the cost with the largest one. If that is not enough for some
    client, every other amount is examined by itself, unless they are very many: then False means
    "not proved".
    """
    profile = agreement.consortium.quality * agreement.profile
    if profile.size == 1:
        return np.ones(1, dtype=bool)
    total, smallest, largest = profile.sum(), *_of_others(profile)
    keeps = _keeps(agreement, threat, total - largest, total - smallest)
    amounts, count = np.unique(profile, return_counts=True)
    if keeps.all() or amounts.size * profile.size > _MOST_PAIRS:
        return keeps
    keeps[:] = True
    for amount, clients in zip(amounts, count, strict=True):
        left = np.full_like(profile, total - amount)
        itself = (profile == amount) & (clients == 1)
        keeps &= itself | _keeps(agreement, threat, left, left)
    return keeps


def keeps_if_all_are_out(agreement: Agreement, threat: Threat) -> BoolArray:
    """Whether each client keeps its amount if it is the only one that is not out."""
    own = agreement.consortium.quality * agreement.profile
    return _keeps(agreement, threat, own, own)


def _of_others(profile: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The smallest and the largest amount of each client's others."""
    ordered = np.sort(profile)
    smallest, largest = np.full_like(profile, ordered[0]), np.full_like(profile, ordered[-1])
    smallest[np.argmin(profile)], largest[np.argmax(profile)] = ordered[1], ordered[-2]
    return smallest, largest


def _keeps(agreement: Agreement, threat: Threat, low: FloatArray, high: FloatArray) -> BoolArray:
    """Whether each client keeps its amount whatever total from `low` to `high` is left."""
    consortium, profile = agreement.consortium, agreement.profile
    delta, slots = consortium.discount_factor, agreement.punishment.slots
    worth = worth_of(delta, slots)
    last = np.zeros_like(delta) if slots is None else delta**slots
    before = np.zeros_like(delta)
    if slots != 1:
        before = worth_of(delta, None if slots is None else slots - 1)
    slips = best_slips(consortium, profile, high, agreement.monitoring)
    slips = slips.only(slips.deviation < profile)  # contributing more is not a slip
    dearer = lost_by(consortium, low, (consortium.quality * profile).sum())
    with np.errstate(invalid="ignore"):  # 0 times infinity, for a client that would have no model
        meanwhile = np.where(before > 0, before * (threat.saving - dearer), 0.0)
    lost = meanwhile + last * threat.saving
    decided = profile + threat.contribution + slips.deviation
    allowed = TOLERANCE * consortium.cost_per_sample * decided
    # what is lost counts as much less as the punishment does, since not every slip is seen
    watch = watch_of(agreement)
    seen = np.divide(watch.weight(delta), worth, out=np.zeros_like(worth), where=worth > 0)
    gain = watch.gained(delta, slips)
    return np.asarray((gain - seen * lost <= allowed * (1.0 + worth)) | (profile == 0))

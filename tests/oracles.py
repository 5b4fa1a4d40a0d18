"""A slow implementation of the game, straight from the paper, for tests to compare with.

Nothing here calls a solver or shares a formula with one. Amounts and costs are in units of a
client's own cost per sample: F_n / E_n = r_n / sqrt(X G) + x_n, without common terms (eq. 5).
"""

import numpy as np

from fedaccord.game.consortium import Consortium
from fedaccord.numbers import BoolArray, FloatArray


def pulls(consortium: Consortium) -> FloatArray:
    """r_n / sqrt(G): the accuracy part of the cost is this over sqrt(X)."""
    return np.asarray(
        consortium.valuation / consortium.cost_per_sample / np.sqrt(float(consortium.rounds))
    )


def accuracy_gained(
    pull: FloatArray, before: FloatArray, after: FloatArray, change: FloatArray | None = None
) -> FloatArray:
    """pull/sqrt(before) - pull/sqrt(after), without cancellation.

    `change` is after - before where that is known better than by subtraction.
    """
    change = after - before if change is None else change
    roots = np.sqrt(before), np.sqrt(after)
    with np.errstate(divide="ignore", invalid="ignore"):
        gained = pull * change / (roots[0] * roots[1] * (roots[0] + roots[1]))
    return np.where(change == 0, 0.0, gained)


def slip_gain(
    pull: FloatArray, amount: FloatArray, others: FloatArray, slip: FloatArray
) -> FloatArray:
    """What contributing `slip` instead of `amount` saves in a slot."""
    gained = accuracy_gained(pull, others + amount, others + slip, slip - amount)
    return np.asarray(gained + amount - slip)


def best_slip_gain(pull: FloatArray, amount: FloatArray, others: FloatArray) -> FloatArray:
    """The most that contributing less than `amount` saves in one slot.

    A cost that is convex in the slip is lowest at 0, at `amount`, or where its derivative is 0.
    """
    flat = (pull / 2.0) ** (2.0 / 3.0) - others
    slips = (np.zeros_like(amount), np.clip(flat, 0.0, amount))
    gains = [slip_gain(pull, amount, others, np.broadcast_to(s, amount.shape)) for s in slips]
    return np.asarray(np.maximum(np.max(gains, axis=0), 0.0))


def gain_by_more(
    pull: FloatArray, amount: FloatArray, others: FloatArray, samples: FloatArray
) -> FloatArray:
    """The most that contributing more than `amount` saves in a slot, which is not punished."""
    more = np.clip((pull / 2.0) ** (2.0 / 3.0) - others, amount, samples)
    return np.asarray(np.maximum(slip_gain(pull, amount, others, more), 0.0))


def excess(consortium: Consortium, profile: FloatArray, alone: FloatArray) -> FloatArray:
    """(1 - delta) gain - delta saving: positive for clients that would deviate (Theorem 5).

    The gain from contributing more counts in full, since it is made in every slot; a client that
    contributes nothing cannot slip. `profile` may be many profiles, one per row; `alone` is the
    punishment.
    """
    pull, delta = pulls(consortium), consortium.discount_factor
    total = profile.sum(axis=-1, keepdims=True)
    others = total - profile
    gain = best_slip_gain(pull, profile, others)
    saved = accuracy_gained(pull, np.full_like(total, alone.sum()), total)
    slips = (1.0 - delta) * gain - delta * (saved + alone - profile)
    slips = np.where(profile > 0, slips, -np.inf)
    more = gain_by_more(pull, profile, others, consortium.samples)
    return np.asarray(np.where(more > 0, more, slips))


def enforceable(
    consortium: Consortium, profile: FloatArray, alone: FloatArray, tolerance: float
) -> BoolArray:
    """Whether all clients keep to each of the profiles, to `tolerance` of their own amounts."""
    allowed = tolerance * (profile + alone)
    return np.asarray((excess(consortium, profile, alone) <= allowed).all(axis=-1))


def largest_amounts(
    consortium: Consortium, alone: FloatArray, totals: FloatArray, halvings: int = 60
) -> FloatArray:
    """u_n(T), one row per total: the largest amounts that the condition allows.

    The interval [0, D_n] is scanned from above on a grid for the first amount that holds, and the
    edge is then bisected: this assumes nothing about the condition's shape beyond the grid.
    """
    pull, delta, samples = pulls(consortium), consortium.discount_factor, consortium.samples
    total = totals[:, np.newaxis]
    most = np.minimum(samples, total)
    saved = accuracy_gained(pull, np.full_like(total, alone.sum()), total)

    def holds(amount: FloatArray) -> BoolArray:
        gain = best_slip_gain(pull, amount, total - amount)
        over = (1.0 - delta) * gain - delta * (saved + alone - amount)
        return np.asarray(over <= 1e-13 * (amount + alone))

    steps = 128
    low, high = np.zeros_like(most), most.copy()
    found = np.zeros(most.shape, dtype=bool)
    for k in range(steps, -1, -1):
        amount = most * (k / steps)
        fresh = ~found & holds(amount)
        low = np.where(fresh, amount, low)
        high = np.where(fresh, np.minimum(most, most * ((k + 1) / steps)), high)
        found |= fresh
    for _ in range(halvings):
        middle = 0.5 * (low + high)
        fine = holds(middle)
        low, high = np.where(fine, middle, low), np.where(fine, high, middle)
    return np.where(holds(high), high, low)


def whole_profiles(samples: FloatArray) -> FloatArray:
    """Every profile of whole samples in which anyone contributes, one per row."""
    amounts = [np.arange(data + 1.0) for data in samples]
    grid = np.stack(np.meshgrid(*amounts, indexing="ij"), axis=-1)
    return grid.reshape(-1, samples.size)[1:]

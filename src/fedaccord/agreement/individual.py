"""The individual agreement: an amount for each client, and the largest enforceable total.

An agreement of total T exists if and only if the u_n(T) that clients keep to (see `bounds`) add up
to T or more. For positive discount factors they are continuous in T, so at the largest such T every
client is at its bound; a client with a discount factor of 0 contributes all it has up to h_n and
nothing above, so that the total may have to stop at h_n although the bounds would allow more.

If all clients are small, Newton's method on sum u_n(T) - T, started from the sum of all samples,
never steps over the largest root. Otherwise see `intervals`.
"""

import numpy as np

from fedaccord.agreement.bounds import Bounds, is_concave
from fedaccord.agreement.enforcement import ScaledGame
from fedaccord.agreement.intervals import by_halving, by_halving_for_all
from fedaccord.numbers import SUMS_DIFFER, BoolArray, FloatArray

_MOST_STEPS = 200
"""Far more than Newton's method takes; it stops when a step is within rounding."""
_SETTLED = 1e-15
"""Relative: a few units in the last place, below which a step is rounding."""

_FLATTEST = 1e-12
"""The smallest derivative that a step in T is computed with, where the root is nearly double."""

_AT_MARGIN = 1e-9
"""A client this close (relative) to the margin takes up all that is added, as the critical one."""


def largest_profiles(game: ScaledGame) -> FloatArray:
    """The profile of the largest enforceable total of each row, or else the equilibrium."""
    concave = is_concave(game)
    if concave.all():
        return _from_above(game)
    profile = game.equilibrium.copy()
    if concave.any():
        profile[concave] = _from_above(game.rows(concave))
    profile[~concave] = by_halving(game.rows(~concave))
    return profile


def smallest_common_discount_factor(game: ScaledGame) -> float:
    """The discount factor above which an individual agreement exists if all clients have it.

    Just above S, client n takes up to a share s_n of what is added, and no larger share further
    up; so an agreement exists if the shares of all clients with samples left add up to more than 1.
    With b_n, what a sample is worth to it at S, the share is delta b / (1 - (1 - delta) b) under
    reversion. Under suspension it has no limit for delta > 0, but it is b where nobody may be worse
    off than at the equilibrium. NaN: there is none.
    """
    left = game.equilibrium < game.samples
    worth = np.minimum(game.worth[left], 1.0)
    if not game.reverts and not game.nobody_worse:
        return 0.0 if worth.size and game.pull.size > 1 else float("nan")
    at_margin = worth > 1.0 - _AT_MARGIN
    if at_margin.any():  # the critical client takes all of it, any other one some more
        return 0.0 if worth.size > 1 else float("nan")
    if worth.sum() <= 1.0:
        return float("nan")
    if not game.reverts:
        return 0.0
    low, high = 0.0, 1.0
    for _ in range(100):
        middle = 0.5 * (low + high)
        shares = middle * worth / (1.0 - (1.0 - middle) * worth)
        low, high = (middle, high) if shares.sum() <= 1.0 else (low, middle)
    return high


def _from_above(game: ScaledGame) -> FloatArray:
    """The largest profile of rows whose clients are all small.

    Most clients may contribute all they have. So the largest total is first computed with only
    those clients bounded for which that is known to be too much; then all clients for which it is
    too much at that total are bounded, too. The totals decrease until they reach the largest
    enforceable one.
    """
    bounds = Bounds(game)
    total = game.samples.sum(axis=-1, keepdims=True)
    bounded = np.zeros(game.pull.shape, dtype=bool)
    profile = game.samples.copy()
    while True:
        too_much = bounds.below_all(total) & ~bounded
        if not too_much.any():
            break
        bounded |= too_much
        total, profile[bounded] = _newton(game, bounded, total, profile[bounded])
    nowhere = total <= game.start * (1.0 + SUMS_DIFFER)
    return np.where(nowhere, game.equilibrium, profile)


def _newton(
    game: ScaledGame, bounded: BoolArray, total: FloatArray, guess: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """The largest root of the concave sum u_n(T) - T, by Newton's method from above.

    Only the `bounded` clients have bounds, the others contribute all they have. Returns the
    totals, and the amounts of the bounded clients, which start from `guess`.
    """
    row = np.nonzero(bounded)[0]
    height = len(total)
    bounds = Bounds(game.each(lambda values: values[bounded]))
    fixed = np.where(bounded, 0.0, game.samples).sum(axis=-1)
    level, least = total[:, 0], game.start[:, 0]
    amount, slope = bounds.with_slope(level[row], guess)
    for _ in range(_MOST_STEPS):
        short = level - fixed - np.bincount(row, amount, height)
        fall = short / np.maximum(1.0 - np.bincount(row, slope, height), _FLATTEST)
        lower = np.clip(level - fall, least, level)
        step, level = level - lower, lower
        if (step <= _SETTLED * level).all():
            break
        amount, slope = bounds.with_slope(level[row], amount - slope * step[row])
    return level[:, np.newaxis], amount


def largest_profile_for_all(game: ScaledGame) -> FloatArray:
    """The profile of the largest total that is enforceable in every row, for the same clients.

    The rows are what may be true, for instance laws of the loss that all fit the measurements. A
    client's bound is then the least of its bounds: T - u_n and all that `_reach` uses hold for
    each of them, so the same search works. The equilibrium of the first row if there is none.
    """
    if len(game.pull) == 1:
        return np.asarray(largest_profiles(game)[0])
    return by_halving_for_all(game)

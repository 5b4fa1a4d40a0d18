"""What each client of an individual agreement keeps to, given the total.

Given the total T, a client's condition (see `enforcement`) involves only its own amount x. It
holds on [0, u_n(T)]: for h_n < T,

    (1 - delta) gain(x) + delta x - delta stake_n(T) <= 0,

where the stake is what a client that contributes nothing saves against the punishment:
x*_n + a_n (L(S) - L(T)) under reversion, V_n - a_n L(T) under suspension. The left side is concave
in x with a derivative of at least delta, so Newton's method converges to its only root u_n from the
left. A client with h_n >= T prefers to contribute all it has: u_n = D_n. Where nobody may be worse
off than at the equilibrium, u_n is at most the client's lead, x*_n + a_n (L(S) - L(T)).

A client is *small* if L'' falls by no more than a factor 1 - delta over its samples, from Z on: Z
is the largest of h_n and the least total that a slip can leave, S under reversion and S - D_n under
suspension. Its u_n is concave and increasing in T, because L'' is log-convex.

If an audit checks only some samples, the gain is another function; see `checked_bounds`.
"""

from collections.abc import Callable

import numpy as np

from fedaccord.agreement.checked_bounds import (
    checked_root,
    is_concave_if_checked,
    is_linear,
    linear_slope,
)
from fedaccord.agreement.enforcement import ScaledGame
from fedaccord.numbers import BoolArray, FloatArray

_MOST_STEPS = 200
"""Far more than Newton's method takes; it stops when a step is within rounding."""
_SETTLED = 1e-15
"""Relative: a few units in the last place, below which a step is rounding."""

_USUAL_STEPS = 8
"""Newton's method hardly ever takes more; after these, one that falls a little has settled."""
_ROUNDED = 1e-13
"""Relative: a fall by less is rounding. Where the condition is nearly flat, steps go far beyond the
root and come back, so that amounts fall by more; an amount is then right to a tenth of `SOLVED`."""

_FLAT = 1e-300
"""Stands for a derivative of 0, which is possible only for a discount factor of 0."""

_TOGETHER = 16_384
"""How many clients' bounds are computed at once: as many as stay in a core's cache."""


class Bounds:
    """u_n(T): the most that each client keeps to when all clients together contribute T.

    Totals of any shape will do that broadcasts against the clients' numbers.
    """

    def __init__(self, game: ScaledGame) -> None:
        """Keep what does not depend on T."""
        self.game = game
        self.impatience = 1.0 - game.patience
        self.weight = self.impatience * game.pull

    def at(self, total: FloatArray) -> FloatArray:
        """u_n(T)."""
        return self.with_slope(total)[0]

    def with_slope(
        self, total: FloatArray, start: FloatArray | None = None
    ) -> tuple[FloatArray, FloatArray]:
        """u_n(T), starting from the guess `start` if given, and du_n/dT where u_n is below D_n."""
        game = self.game
        stake, most = game.stake(total), np.minimum(game.samples, total)
        amount, at_kept = self._root(total, game.patience * stake, most, start)
        free = (amount > 0) & (amount < most) & (at_kept < 1.0)
        steep = game.pull * game.law.slope(total)
        slope = np.divide(steep - at_kept, 1.0 - at_kept, out=np.zeros_like(steep), where=free)
        if is_linear(game):
            slope = np.where(free, linear_slope(game, total, amount), 0.0)
        eager = game.satiation >= total
        if game.nobody_worse:
            lead = game.lead(total)
            led = (lead < amount) & ~eager
            amount, slope = np.where(led, lead, amount), np.where(led, steep, slope)
        if not game.steady:  # one that would rather be punished rules the total out
            amount = np.where(self._rather_punished(total, stake), -np.inf, amount)
        return amount, slope

    def between(self, low: FloatArray, high: FloatArray) -> FloatArray:
        """An upper bound on u_n(T) for T from `low` to `high`; it is u_n(T) if they are equal.

        The gain of a deviation grows with T, so it is taken at the lower end; the stake is taken
        at its largest.
        """
        game = self.game
        stake, most = game.stake(high, low), np.minimum(game.samples, high)
        amount, _ = self._root(low, game.patience * stake, most)
        if game.nobody_worse:
            amount = np.where(game.satiation >= low, amount, np.minimum(amount, game.lead(high)))
        if not game.steady:
            amount = np.where(self._rather_punished(high, stake), -np.inf, amount)
        return amount

    def _rather_punished(self, total: FloatArray, stake: FloatArray) -> BoolArray:
        """Who prefers being punished to what it would contribute: all it has, or even nothing.

        Its stake may be an upper bound for lower totals, too.
        """
        eager, most = self.game.satiation >= total, np.minimum(self.game.samples, total)
        return np.asarray(stake < np.where(eager, most, 0.0))

    def _root(
        self,
        total: FloatArray,
        allowance: FloatArray,
        most: FloatArray,
        start: FloatArray | None = None,
    ) -> tuple[FloatArray, FloatArray]:
        """Where the condition's left side is 0, at most `most`; also (1 - delta) b after a slip.

        From any guess, the first step of Newton's method lands left of the root (or beyond the
        most, which then is the answer); from there it increases monotonically. An amount that falls
        a little nevertheless is as close as rounding allows, and may go up and down for ever.
        """
        if self.game.samples_checked is not None:
            return checked_root(self.game, total, allowance, most), np.zeros_like(self.weight)
        eager = self.game.satiation >= total
        amount = most if start is None else np.clip(start, 0.0, most)
        fell = np.zeros(amount.shape, dtype=bool)
        for taken in range(_MOST_STEPS):
            value, kept = self._excess(amount, total, allowance)
            at_kept = self.weight * self.game.law.slope(kept)
            with np.errstate(over="ignore"):
                step = value / np.maximum(1.0 - at_kept, _FLAT)
            after = np.minimum(np.maximum(amount - step, 0.0), most)
            after = np.where(eager, most, after)
            settled = np.abs(after - amount) <= _SETTLED * after
            if taken >= _USUAL_STEPS:
                fell |= (after < amount) & (amount - after <= _ROUNDED * amount)
                settled |= fell
            amount = after
            if settled.all():
                break
        return amount, at_kept

    def below_all(self, total: FloatArray) -> BoolArray:
        """Whether u_n(T) < D_n: asking for all its samples would be too much."""
        game = self.game
        most, allowance = np.minimum(game.samples, total), game.patience * game.stake(total)
        if game.samples_checked is None:
            excess, _ = self._excess(most, total, allowance)
        else:
            excess = self.impatience * game.gain(most, total) + game.patience * most - allowance
        if game.nobody_worse:
            excess = np.maximum(excess, most - game.lead(total))
        return np.asarray((excess > game.sliver(most)) & (game.satiation < total))

    def _excess(
        self, amount: FloatArray, total: FloatArray, allowance: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """The left side of the condition, and the total after a deviation."""
        game = self.game
        kept = np.maximum(total - amount, game.satiation)
        less = np.minimum(amount, total - game.satiation)
        # (1 - delta) (less - a fall) + delta x - allowance, step by step in one array: most of the
        # time is spent here
        excess = game.law.fall(kept, less, total)
        excess *= self.weight
        np.subtract(self.impatience * less, excess, out=excess)
        excess += game.patience * amount
        excess -= allowance
        return excess, kept


def least_bounds(game: ScaledGame, total: FloatArray | float) -> FloatArray:
    """u_n(T) in each row, computed for as many clients at once as fit in a cache."""
    width, at_once = game.pull.shape[-1], max(1, _TOGETHER // len(game.pull))
    at = np.reshape(total, (-1, 1))
    parts = [slice(n, n + at_once) for n in range(0, width, at_once)]
    if len(parts) == 1:
        return Bounds(game).at(at)
    return np.concatenate([Bounds(game.clients(part)).at(at) for part in parts], axis=-1)


def bounds_at_all(game: ScaledGame, totals: FloatArray) -> FloatArray:
    """The least u_n(T) of all rows at each of many totals, which become the rows of the result."""
    at_once = max(1, _TOGETHER // game.pull.shape[-1])
    columns = [totals[n : n + at_once, np.newaxis] for n in range(0, totals.size, at_once)]
    each = [Bounds(game.rows(np.array([row]))) for row in range(len(game.pull))]
    return np.concatenate(
        [np.min([bounds.at(column) for bounds in each], axis=0) for column in columns]
    )


def steepest(
    bounds: Bounds,
    low: FloatArray,
    at_low: FloatArray,
    high: FloatArray,
    at_high: FloatArray,
) -> FloatArray:
    """An upper bound on du_n/dT between two totals; 0 if u_n is all samples at the lower one.

    With B = a m(T) and k = (1 - delta) a m(Y), m the slope of the law and Y = T - u_n the total
    after a deviation, u_n' = (B - k) / (1 - k). B and k decrease in T, and u_n' increases in B and
    decreases in k. With spot checks u_n' is at most B.
    """
    game = bounds.game
    if game.samples_checked is not None:
        steep = np.clip(game.pull * game.law.slope(low), 0.0, 1.0)
        return np.where(at_low >= game.samples, 0.0, steep)
    kept = np.maximum(high - at_high, game.satiation)
    at_kept = bounds.weight * game.law.slope(kept)
    rise = game.pull * game.law.slope(low) - at_kept
    with np.errstate(over="ignore"):
        slope = np.clip(rise / np.maximum(1.0 - at_kept, _FLAT), 0.0, 1.0)
    return np.where(at_low >= game.samples, 0.0, slope)


def is_concave(game: ScaledGame) -> BoolArray:
    """In which rows all bounds are known to be concave and increasing in T."""
    if game.samples_checked is not None:
        return np.asarray(is_concave_if_checked(game).all(axis=-1) & game.steady)
    return np.asarray(_falls_little(game, game.law.bend).all(axis=-1) & game.steady)


def is_rising(game: ScaledGame) -> BoolArray:
    """Which clients' bounds are known to increase with T."""
    if game.samples_checked is not None:
        return is_concave_if_checked(game) & game.steady
    return _falls_little(game, game.law.slope) & game.steady


def _falls_little(game: ScaledGame, of: Callable[[FloatArray], FloatArray]) -> BoolArray:
    """Whether a derivative of the law falls by a factor of at most 1 - delta over the samples."""
    left = game.equilibrium_total if game.reverts else game.lowest - game.samples
    lowest = np.maximum(game.satiation, left)
    return np.asarray(of(lowest + game.samples) >= (1.0 - game.patience) * of(lowest))

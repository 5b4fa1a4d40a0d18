"""Tiers: who trains on more gets a better model.

Each client has a weight w_n and a level x_n / w_n, and its model is trained on

    Y_n = sum over m of w_m min(x_m / w_m, x_n / w_n),

what all clients have trained on up to its own level. With weights 1 levels are numbers of samples,
with the data sizes as weights they are shares of the data. The clients at the highest level get the
model trained on everything. Where samples count by their quality q_n, amounts and weights are q_n
times what they are in samples, which changes no level.

In one slot Y_n is concave in a client's own level, so its cost is convex in it. That makes its best
level easy to search for, and the search below needs nothing but the cost function (eq. 5).

>>> access(np.array([1.0, 2.0, 3.0]), np.ones(3)).tolist()
[3.0, 5.0, 6.0]
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fedaccord.game.consortium import Consortium
from fedaccord.numbers import SUMS_DIFFER, BoolArray, FloatArray

_HALVINGS = 64
"""Levels down to 2^-64 of the highest possible are tried."""
_GOLDEN = (np.sqrt(5.0) - 1.0) / 2.0
_GOLDEN_STEPS = 45
"""Each step leaves 0.62 of the bracket, all of them 4e-10: less than a billionth of the amount."""


def access(contributions: FloatArray, weights: FloatArray) -> FloatArray:
    """Y_n: how many samples each client's model is trained on."""
    return _Tiers(contributions, weights).up_to(contributions / weights)


def same_model(one: FloatArray, other: FloatArray) -> BoolArray:
    """Whether two models are trained on the same samples: as many, up to rounding."""
    return np.asarray(np.abs(one - other) <= SUMS_DIFFER * np.maximum(one, other))


@dataclass(frozen=True)
class _Tiers:
    """What all clients together train on up to any level."""

    contributions: FloatArray
    weights: FloatArray

    @cached_property
    def levels(self) -> FloatArray:
        """The level of each client."""
        return np.asarray(self.contributions / self.weights)

    @cached_property
    def _sorted(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Ascending levels; before each, what lower clients give, and the weight of the rest."""
        order = np.argsort(self.levels)
        given = np.append(0.0, self.contributions[order].cumsum())
        left = np.append(self.weights[order][::-1].cumsum()[::-1], 0.0)
        return self.levels[order], given, left

    def up_to(self, level: FloatArray) -> FloatArray:
        """The sum over all clients of w_m min(level of m, level)."""
        levels, given, left = self._sorted
        below = np.searchsorted(levels, level)
        return np.asarray(given[below] + level * left[below])


def best_level(
    consortium: Consortium, contributions: FloatArray, weights: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """The contribution that saves each client most in one slot, and how much, by search.

    All others stay at their levels; what a client gets follows from its own.
    """
    quality = consortium.quality
    search = _Search(consortium, _Tiers(quality * contributions, quality * weights))
    return search.best()


@dataclass(frozen=True)
class _Search:
    """All clients, each searching for its best level while the others stay where they are."""

    consortium: Consortium
    tiers: _Tiers

    @cached_property
    def now(self) -> FloatArray:
        """What each client's model is trained on."""
        return self.tiers.up_to(self.tiers.levels)

    def gain(self, level: FloatArray) -> FloatArray:
        """What each client saves in a slot if it alone moves to `level`, without cancellation."""
        tiers, consortium = self.tiers, self.consortium
        own = tiers.weights * np.maximum(level - tiers.levels, 0.0)
        then = tiers.up_to(level) + own
        better = consortium.valuation * consortium.law.fall(self.now, then - self.now, then)
        price = consortium.cost_per_sample / consortium.quality
        dearer = price * tiers.weights * (level - tiers.levels)
        return np.where(level == tiers.levels, 0.0, better - dearer)

    def best(self) -> tuple[FloatArray, FloatArray]:
        """The best contribution and its gain; to stay (a gain of 0) is always possible.

        The highest level is halved repeatedly, so that the best is found whatever its size; then a
        golden-section search continues between the neighbours of the best one.
        """
        quality = self.consortium.quality
        highest = self.consortium.samples * quality / self.tiers.weights
        best = highest, self.gain(highest)
        for k in range(1, _HALVINGS + 1):
            level = highest * 0.5**k
            best = _better(best, (level, self.gain(level)))
        level = self._golden(0.5 * best[0], np.minimum(2.0 * best[0], highest))
        stay = self.tiers.levels, np.zeros_like(highest)
        level, gain = _better(stay, _better(best, (level, self.gain(level))))
        return np.asarray(level * self.tiers.weights / quality), gain

    def _golden(self, low: FloatArray, high: FloatArray) -> FloatArray:
        """The level between `low` and `high` that gains most."""
        for _ in range(_GOLDEN_STEPS):
            width = _GOLDEN * (high - low)
            left, right = high - width, low + width
            leftwards = self.gain(left) >= self.gain(right)
            low, high = np.where(leftwards, low, left), np.where(leftwards, right, high)
        return np.asarray(0.5 * (low + high))


def _better(
    one: tuple[FloatArray, FloatArray], other: tuple[FloatArray, FloatArray]
) -> tuple[FloatArray, FloatArray]:
    """The better of two levels of each client, and its gain."""
    more = other[1] > one[1]
    return np.where(more, other[0], one[0]), np.where(more, other[1], one[1])

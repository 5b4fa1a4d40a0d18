"""Whole samples: the totals at which everyone keeps to a whole amount, and the profiles.

At a whole total T, client n keeps to every whole amount up to u_n(T) rounded down, or with
h_n >= T to all it has (see `bounds`). Those with h_n >= T > S have no more than S together.
So a whole profile of total T exists if and only if the bounds, rounded down, add up to T or more.

The feasible totals need not be contiguous: as T increases by one sample, the amount lost to
rounding goes up and down. Therefore whole intervals of totals are ruled out: over [low, high] the
bounds, each at its largest and rounded down, add up to some M. Then no total of the interval above
M is feasible, and none at all if M < low. What is left is cut into pieces and examined again, in
the order in which the totals are wanted (`whole_numbers`). For an interval of one total, M is
exact. So exactly the feasible totals are found, and the search needs no cut-off; intervals much
longer than the amount lost to rounding are ruled out at once.
"""

from collections.abc import Callable, Iterator

import numpy as np

from fedaccord.agreement.bounds import Bounds, is_rising, least_bounds, steepest
from fedaccord.agreement.enforcement import WORTHWHILE, ScaledGame
from fedaccord.numbers import BoolArray, FloatArray

_BLOCK = 16_384
"""How many clients are processed at once: as many as stay in a core's cache."""

_PIECES = 16
"""How many pieces an interval is cut into."""

_ROUNDED_UP = 1e-13
"""Relative: a bound this close below a whole number is that number. Bounds are roots that Newton's
method finds to a few 1e-15; the condition's own rounding moves them by some 1e-14."""


def lowest_worthwhile(game: ScaledGame) -> float:
    """The smallest whole total that is worthwhile as an agreement in every row."""
    return float(np.floor(game.start.max() * (1.0 + WORTHWHILE))) + 1.0


def largest_whole_profile(game: ScaledGame, profile: FloatArray) -> FloatArray:
    """The largest profile of whole samples, given the largest real-valued one.

    Rows are games of the same clients, which must keep to it in all of them. The equilibrium of the
    first if no whole profile is worthwhile as an agreement.
    """
    totals = whole_totals(game, lowest_worthwhile(game), float(np.floor(profile.sum())))
    total = next(totals, None)
    if total is None:
        return game.equilibrium[:1]
    most = round_down(least_bounds(game, total).min(axis=0, keepdims=True))
    return without(most, float(most.sum()) - total, game.satiation[:1] < total)


def whole_totals(
    game: ScaledGame, low: float, high: float, *, upwards: bool = False
) -> Iterator[float]:
    """The whole totals from `low` to `high` that are feasible in every row, the largest first.

    With `upwards` the smallest first. `low` must be more than the equilibrium's total.
    """
    rows = [_Ceilings(game.rows(np.array([k]))) for k in range(len(game.pull))]

    def highest(lows: FloatArray, highs: FloatArray) -> FloatArray:
        amounts = [row.over(lows, highs) for row in rows]
        return np.asarray(np.min(amounts, axis=0).sum(axis=-1))

    return whole_numbers(highest, low, high, game.pull.size, upwards=upwards)


def whole_numbers(
    highest: Callable[[FloatArray, FloatArray], FloatArray],
    low: float,
    high: float,
    clients: int,
    *,
    upwards: bool = False,
) -> Iterator[float]:
    """The whole numbers from `low` to `high` that `highest` does not rule out, the largest first.

    For intervals, given by their ends, `highest` returns the number above which nothing in each is
    feasible: less than its lower end if nothing is. For intervals of one number it must be exact.
    It processes `clients` numbers for each interval.
    """
    at_once = max(1, _BLOCK // clients)
    pieces = max(2, min(_PIECES, at_once))
    few = max(1, at_once // pieces)
    lows, highs = np.array([low]), np.array([high])
    sure = np.zeros(1, dtype=bool)
    while lows.size and low <= high:
        if sure[0]:
            yield float(lows[0])
            lows, highs, sure = lows[1:], highs[1:], sure[1:]
            continue
        cut_lows, cut_highs = _cut(lows[:few], highs[:few], pieces, upwards)
        now = slice(0, at_once)  # with very many clients only the first piece is examined
        most = highest(cut_lows[now], cut_highs[now])
        alive = np.ones(cut_lows.size, dtype=bool)
        alive[now] = most >= cut_lows[now]
        certain = np.zeros(cut_lows.size, dtype=bool)
        certain[now] = alive[now] & (cut_lows[now] == cut_highs[now])
        cut_highs[now] = np.minimum(cut_highs[now], most)
        lows = np.concatenate([cut_lows[alive], lows[few:]])
        highs = np.concatenate([cut_highs[alive], highs[few:]])
        sure = np.concatenate([certain[alive], sure[few:]])


def _cut(
    lows: FloatArray, highs: FloatArray, pieces: int, upwards: bool
) -> tuple[FloatArray, FloatArray]:
    """Intervals of whole numbers, each cut into `pieces` (or into single numbers), in order."""
    count = highs - lows + 1.0
    parts = np.arange(1, pieces + 1) / pieces
    ends = lows[:, np.newaxis] + (np.floor(count[:, np.newaxis] * parts) - 1.0)
    ends[:, -1] = highs
    starts = np.empty_like(ends)
    starts[:, 0] = lows
    # beyond 2^53 the next whole number that a float can hold is more than 1 away
    starts[:, 1:] = np.maximum(ends[:, :-1] + 1.0, np.nextafter(ends[:, :-1], np.inf))
    if not upwards:
        starts, ends = starts[:, ::-1], ends[:, ::-1]
    some = starts <= ends
    return starts[some], ends[some]


class _Ceilings:
    """Upper limits on one row's bounds, rounded down, over intervals of totals.

    Some clients' bounds are known to increase with T. For the others see `bounds`: under
    reversion a free rider's grows at most in proportion to T - S, that of a client that contributes
    all it has at the equilibrium decreases and then increases, and that of one in between grows at
    most at its steepest rate.
    """

    def __init__(self, game: ScaledGame) -> None:
        large = ~is_rising(game)[0]
        self.is_large = large
        self.rising = Bounds(game.clients(~large))
        self.large = Bounds(game.clients(large)) if large.any() else None

    def over(self, lows: FloatArray, highs: FloatArray) -> FloatArray:
        """One row of clients for each interval."""
        low, high = lows[:, np.newaxis], highs[:, np.newaxis]
        if self.large is None:
            return round_down(self.rising.at(high))
        most = np.empty((lows.size, self.is_large.size))
        most[:, ~self.is_large] = round_down(self.rising.at(high))
        most[:, self.is_large] = round_down(self._largest(self.large, low, high))
        return most

    def _largest(self, bounds: Bounds, low: FloatArray, high: FloatArray) -> FloatArray:
        game = bounds.game
        if not game.reverts or game.samples_checked is not None:
            between = bounds.between(low, high)
            return np.where(low == high, bounds.at(low), between)
        at_low, at_high = bounds.at(low), bounds.at(high)
        start = game.equilibrium_total
        by_ray = at_low * ((high - start) / (low - start))
        by_slope = at_low + steepest(bounds, low, at_low, high, at_high) * (high - low)
        largest = np.where(
            game.equilibrium == 0,
            by_ray,
            np.where(game.equilibrium >= game.samples, np.maximum(at_low, at_high), by_slope),
        )
        return np.minimum(largest, game.samples)


def round_down(bounds: FloatArray) -> FloatArray:
    """Bounds rounded down to whole numbers; 6.9999999999999 stands for 7."""
    return np.floor(bounds * (1.0 + _ROUNDED_UP))


def without(profile: FloatArray, surplus: float, willing: BoolArray) -> FloatArray:
    """Take a surplus off the `willing` clients, the largest first, if possible down to 1 each."""
    if surplus == 0.0:
        return profile
    for spared in (1.0, 0.0):
        room = np.where(willing, np.maximum(profile - spared, 0.0), 0.0)
        order = np.argsort(-room, axis=-1, kind="stable")
        taken = np.take_along_axis(room, order, axis=-1)
        before = taken.cumsum(axis=-1) - taken
        less = np.empty_like(profile)
        np.put_along_axis(less, order, np.clip(surplus - before, 0.0, taken), axis=-1)
        profile, surplus = profile - less, surplus - float(less.sum())
    return profile

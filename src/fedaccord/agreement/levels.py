"""Uniform agreements: the levels that every client keeps to, for a given set of converted clients.

In terms of the level z, with the total T increasing in z:

- a converted client's threshold increases with z until z reaches its own samples, then decreases;
- a contributor's condition can fail only beyond the total at which the law's slope m is 1 - delta
  of that at h, and hardly beyond its peak, where m(T) = (1 - delta) m(T - x): its excess first
  decreases, then increases to the peak, then decreases, because m is log-convex.

So each client rules out an interval of levels whose lower edge a bisection finds exactly, and
stepping down from edge to edge ends at the largest level. A bisection on the largest threshold of
all clients would not do: contributors' thresholds are not monotone in z.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fedaccord.agreement.enforcement import ScaledGame
from fedaccord.agreement.whole import whole_numbers
from fedaccord.numbers import BoolArray, FloatArray

_INSET = 1.0 / 64.0
"""A bracket is never cut closer to its ends than this fraction of its width, so that after a good
guess at most that fraction is left, at best after two cuts."""

_NARROW = 2e-14
"""Relative width at which a bracket is closed: a cut by `_INSET` would no longer be inside it."""

_NOTHING = 1e-18
"""Relative to where the search began: a level below this is 0."""

_TRIED = 1_024
"""Levels that are tried where it is not known which ones a client rules out."""

_MOST_STEPS = 200
"""Far more than are needed."""

_HALVINGS = 64
"""Enough to find a total on a logarithmic scale to a few digits of the last."""


@dataclass(frozen=True)
class Ladder:
    """The profile and its total at every level, for the converted clients of each row.

    The total is linear in the level between one converted client's samples and the next one's.
    """

    game: ScaledGame
    converted: BoolArray
    kept: FloatArray
    """What the clients that are not converted contribute."""
    count: npt.NDArray[np.int64]
    """How many are converted, as a column."""
    caps: FloatArray
    """The converted clients' samples, ascending, after a 0 and one more for each of the others."""
    total_at_caps: FloatArray

    @classmethod
    def build(cls, game: ScaledGame, converted: BoolArray, kept: FloatArray) -> "Ladder":
        """Sort the converted clients by their samples and add up the total at each."""
        samples = np.where(converted, game.samples, 0.0)
        caps = np.concatenate([np.zeros_like(samples[:, :1]), np.sort(samples, axis=-1)], axis=-1)
        going_on = np.arange(caps.shape[-1] - 1, 0, -1)  # how many have more than the last cap
        risen = np.zeros_like(caps)
        np.cumsum(np.diff(caps, axis=-1) * going_on, axis=-1, out=risen[:, 1:])
        return cls(
            game=game,
            converted=converted,
            kept=kept,
            count=converted.sum(axis=-1, keepdims=True),
            caps=caps,
            total_at_caps=kept.sum(axis=-1, keepdims=True) + risen,
        )

    def rows(self, chosen: BoolArray) -> "Ladder":
        """Only the chosen rows."""
        if chosen.all():
            return self
        return Ladder(
            self.game.rows(chosen),
            self.converted[chosen],
            self.kept[chosen],
            self.count[chosen],
            self.caps[chosen],
            self.total_at_caps[chosen],
        )

    @property
    def top(self) -> FloatArray:
        """The most samples that any converted client has."""
        return self.caps[:, -1:]

    def profile(self, level: FloatArray) -> FloatArray:
        """Converted clients at the level or at all they have, the others as `kept`."""
        return np.where(self.converted, np.minimum(level, self.game.samples), self.kept)

    def highest(self, lows: FloatArray, highs: FloatArray) -> FloatArray:
        """For intervals of levels of one row, their upper ends; less than the lower if ruled out.

        The condition is easiest with the client's own contribution and the others' at the lower
        end, and the total at the upper one: a client that deviates even then always does.
        """
        game = self.game
        least, most = self.profile(lows[:, np.newaxis]), self.profile(highs[:, np.newaxis])
        total, lowest = most.sum(axis=-1, keepdims=True), least.sum(axis=-1, keepdims=True)
        others = lowest - least
        slip = np.clip(game.satiation - others, 0.0, least)
        after = others + slip
        gain = least - slip - game.pull * game.law.fall(after, total - after, total)
        if game.samples_checked is not None:  # a tiny shortfall is seen k times as rarely
            steep = game.pull * game.law.slope(lowest)
            gain = np.maximum(
                gain, (1.0 - game.late) * least * (1.0 - steep) / game.samples_checked
            )
        stake = game.stake(total, lowest)
        excess = game.weighed(gain, stake - least, least, total)
        slips = (excess > game.sliver(least)) & (least > 0)
        single = (lows == highs)[:, np.newaxis]
        slips = np.where(single, game.broken(least, total), slips)
        return np.where(slips.any(axis=-1), lows - 1.0, highs)

    def client(self, position: npt.NDArray[np.int64]) -> "Rung":
        """One client of each row."""
        row = np.arange(len(position))[:, np.newaxis]
        converted, kept = self.converted[row, position], self.kept[row, position]
        return Rung(self.game.along(position), converted, kept)

    def edge(self, rung: "Rung", level: FloatArray) -> FloatArray:
        """The lower edge of the levels that one client of each row rules out, `level` being one.

        First between which two clients' samples it lies, then where between them. At the edge
        itself the client keeps to the agreement, in floating point, too.
        """
        end = np.where(rung.converted, np.minimum(level, rung.game.samples), level)
        low = self.caps.shape[-1] - 1 - self.count  # a cap of 0
        high = (self.caps < end).sum(axis=-1, keepdims=True)
        while (high - low > 1).any():
            middle = (low + high) // 2
            cap, total = self._at_cap(middle)
            bad = rung.excess(cap, total) > 0
            low, high = np.where(bad, low, middle), np.where(bad, middle, high)
        start, total = self._at_cap(low)
        stop = np.minimum(self._at_cap(np.minimum(low + 1, self.caps.shape[-1] - 1))[0], end)
        steep = self.caps.shape[-1] - 1 - low
        return _last_fine(lambda z: rung.excess(z, total + steep * (z - start)), start, stop)

    def total(self, level: FloatArray) -> FloatArray:
        """The total at a level."""
        rank = np.maximum((self.caps < level).sum(axis=-1, keepdims=True) - 1, 0)
        start, total = self._at_cap(rank)
        return np.asarray(total + (self.caps.shape[-1] - 1 - rank) * (level - start))

    def _at_cap(self, rank: npt.NDArray[np.int64]) -> tuple[FloatArray, FloatArray]:
        """The samples of the client of this rank by samples, and the total at that level."""
        row = np.arange(len(rank))[:, np.newaxis]
        return self.caps[row, rank], self.total_at_caps[row, rank]


class Rung:
    """One client of each row, and how far its condition fails at a level."""

    def __init__(self, game: ScaledGame, converted: BoolArray, kept: FloatArray) -> None:
        self.game = game
        self.converted = converted
        self.kept = kept
        self.peak = np.where(converted, np.inf, np.maximum(self._peak(), game.equilibrium_total))

    def _peak(self) -> FloatArray:
        """Where m(T) = (1 - delta) m(T - x), for a client that contributes x at any level.

        With one term it is x / (1 - k) - shift, k = (1 - delta)^(1 / (exponent + 1)). With several,
        m(T) / m(T - x) increases with T, so halving the totals on a logarithmic scale finds it.
        """
        game, kept, law = self.game, self.kept, self.game.law
        with np.errstate(divide="ignore", invalid="ignore"):
            if len(law.terms) == 1:
                term = law.terms[0]
                shrink = (1.0 - game.patience) ** (1.0 / (term.exponent + 1.0))
                return np.asarray(kept / (1.0 - shrink) - term.shift)
            impatience = 1.0 - game.patience
            low, high = kept.copy(), np.full_like(kept, np.finfo(np.float64).max) ** 0.5
            for _ in range(_HALVINGS):
                middle = np.sqrt(low * high)
                harder = law.slope(middle) < impatience * law.slope(middle - kept)
                low, high = np.where(harder, middle, low), np.where(harder, high, middle)
            return np.where(kept > 0, low, 0.0)

    def excess(self, level: FloatArray, total: FloatArray) -> FloatArray:
        """By how much its condition fails beyond rounding, made monotone where it is above 0.

        Beyond its peak, a contributor's excess counts as that at the peak.
        """
        contribution = np.where(self.converted, np.minimum(level, self.game.samples), self.kept)
        excess = self.game.excess(contribution, np.minimum(total, self.peak))
        return np.asarray(excess - self.game.sliver(contribution))


def _last_fine(
    excess: Callable[[FloatArray], FloatArray], low: FloatArray, high: FloatArray
) -> FloatArray:
    """The largest level from `low` to `high` before the excess becomes positive.

    The bracket is cut where a straight line between its ends crosses 0, but not too close to
    either end, so that both ends converge (regula falsi).
    """
    end, at_low, at_high = high, excess(low), excess(high)
    low = np.where(at_high <= 0, high, low)
    for _ in range(_MOST_STEPS):
        width = high - low
        rise = at_high - at_low
        share = np.divide(-at_low, rise, out=np.full_like(rise, 0.5), where=rise > 0)
        middle = low + width * np.minimum(np.maximum(share, _INSET), 1.0 - _INSET)
        at_middle = excess(middle)
        bad = at_middle > 0
        high, at_high = np.where(bad, middle, high), np.where(bad, at_middle, at_high)
        low, at_low = np.where(bad, low, middle), np.where(bad, at_low, at_middle)
        if (high - low <= _NARROW * high + _NOTHING * end).all():
            break
    return low


def largest_enforceable_level(ladder: Ladder, top: FloatArray) -> FloatArray:
    """The largest level up to `top` that every client of the row keeps to."""
    if not ladder.game.steady or ladder.game.samples_checked is not None:
        return _by_trial(ladder, top)
    level = top.copy()
    some, which = ladder, np.arange(len(top))
    while which.size:
        at = level[which]
        profile = some.profile(at)
        excess = some.game.excess(profile, some.total(at)) - some.game.sliver(profile)
        worst = np.argmax(excess, axis=-1)[:, np.newaxis]
        slips = ((np.take_along_axis(excess, worst, axis=-1) > 0) & (at > 0))[:, 0]
        some, which, at, worst = some.rows(slips), which[slips], at[slips], worst[slips]
        if which.size:
            edge = some.edge(some.client(worst), at)
            level[which] = np.minimum(edge, at * (1.0 - _NARROW))
    return level


def _by_trial(ladder: Ladder, top: FloatArray) -> FloatArray:
    """The same where nothing is known about which levels a client rules out, row by row.

    The largest of many levels that every client keeps to, and then by bisection up to the next one.
    """
    levels = np.zeros_like(top)
    for row, most in enumerate(top[:, 0].tolist()):
        one = ladder.rows(np.arange(len(top)) == row)

        def kept(tried: FloatArray, one: Ladder = one) -> BoolArray:
            return np.asarray(one.highest(tried, tried) >= tried)

        grid = np.linspace(0.0, most, _TRIED + 1)
        found = np.flatnonzero(kept(grid[1:]))
        if found.size:
            low, high = grid[found[-1] + 1], grid[min(found[-1] + 2, _TRIED)]
            while high - low > _NARROW * high:
                middle = 0.5 * (low + high)
                low, high = (middle, high) if kept(np.array([middle])).all() else (low, middle)
            levels[row] = low
    return levels


def largest_whole_level(ladder: "Ladder") -> FloatArray:
    """The largest whole level of each row that every client keeps to; 0 if there is none.

    With the others' contributions rounded down, the total at levels close to 0 is less than the
    equilibrium's, so a client may rule those out, too. Therefore nothing is assumed here about
    which levels it rules out: intervals of levels are excluded if the condition fails at best.
    """
    levels = np.zeros((len(ladder.kept), 1))
    for row, top in enumerate(ladder.top[:, 0].tolist()):
        one = ladder.rows(np.arange(len(levels)) == row)
        levels[row] = next(whole_numbers(one.highest, 1.0, top, one.kept.size), 0.0)
    return levels


def kept_by_all(ladder: Ladder, game: ScaledGame, levels: FloatArray) -> BoolArray:
    """Which levels of a ladder with one row nobody slips from, whichever row of `game` is true."""
    profiles = ladder.profile(levels[:, np.newaxis])
    totals = profiles.sum(axis=-1, keepdims=True)
    fine = np.ones(levels.shape, dtype=bool)
    for row in range(len(game.pull)):
        one = game.rows(np.array([row]))
        fine[fine] &= ~one.slips(profiles[fine], totals[fine]).any(axis=-1)
    return fine


def largest_level_for_all(
    ladder: Ladder, game: ScaledGame, top: FloatArray, *, whole: bool
) -> FloatArray:
    """The largest level up to `top` that nobody slips from, whichever row of `game` is true.

    Nothing is assumed about which levels a client rules out: many are tried, and then those up to
    the next one by bisection.
    """
    most = top.item()
    grid = np.linspace(0.0, most, _TRIED + 1)[1:]
    if whole:
        grid = np.unique(np.floor(grid[grid >= 1.0]))
    last = _last_kept(ladder, game, grid)
    if last < 0:
        return np.zeros((1, 1))
    low, high = float(grid[last]), float(grid[min(last + 1, grid.size - 1)])
    while high - low > (1.0 if whole else _NARROW * high):
        middle = 0.5 * (low + high)
        middle = float(np.floor(middle)) if whole else middle
        good = bool(kept_by_all(ladder, game, np.array([middle])).all())
        low, high = (middle, high) if good else (low, middle)
    return np.array([[low]])


def _last_kept(ladder: Ladder, game: ScaledGame, grid: FloatArray) -> int:
    """Position of the highest level of the grid that nobody slips from; -1 if there is none.

    One is tried at first, from the top, then twice as many at once, and so on: very often it is the
    first, and each objective that is searched for asks many times.
    """
    end, few = grid.size, 1
    while end > 0:
        start = max(0, end - few)
        found = np.flatnonzero(kept_by_all(ladder, game, grid[start:end]))
        if found.size:
            return start + int(found[-1])
        end, few = start, 2 * few
    return -1

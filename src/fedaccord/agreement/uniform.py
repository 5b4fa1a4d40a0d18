"""The uniform agreement: one level for every converted client (Theorems 3-4, Algorithm 2).

With S the equilibrium's total, R its free riders and ratios ascending, both theorems say the
same: client l, the first with r_n > B_n = 2 sqrt(G S^3) / (R - n + 1), and all c = R - l + 1
free riders from it on can be converted, at any level up to x_th at which l still gains.

Algorithm 2 then wants the largest level that every client keeps to. In terms of the level z,
with the total T rising in z:

- a converted client's threshold rises with z until z reaches its own data, and falls after;
- a contributor's condition can only fail for T between h/k and beyond its peak at
  x/(1 - k), k = (1 - delta)^(2/3): first it falls, then rises to the peak, then falls.

So each client forbids an interval of levels whose lower edge a bisection finds exactly, and
stepping down from edge to edge ends at the largest level. A plain bisection on the largest
threshold would not: contributors' thresholds are not monotone in z.

With unequal data a client that has little may be carried along: a low level asks it for its part
and high ones for no more than it has, so levels can hold far above 0 where those close to it do
not. Whoever is to be the first converted must keep on at one end or the other; of those clients
the first with a level at which all keep on is the first *feasible* one.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fedaccord.agreement.enforcement import WORTHWHILE, ScaledGame, root_difference
from fedaccord.agreement.whole import whole_numbers
from fedaccord.game.filling import TIE
from fedaccord.numbers import BoolArray, FloatArray

_INSET = 1.0 / 64.0
"""How far from its ends a bracket is cut at least: at most that share of it is left of a good
guess, at best after two cuts."""

_NARROW = 2e-14
"""Relative width at which a bracket is closed: cut by _INSET it would hold no number inside."""

_NOTHING = 1e-18
"""Of where the search began: a level below that is 0."""

_MOST_STEPS = 200
"""Far more than are needed."""

_TOGETHER = 131_072
"""How many clients are looked at at once when one first client after another is tried."""


@dataclass(frozen=True)
class UniformRows:
    """For each row: who is converted, and how far they can and will go. Columns of one."""

    converted: BoolArray
    level: FloatArray
    """x_cc^os, the largest level that every client keeps to; 0 when there is none."""
    largest_level: FloatArray
    """x_l^th, the largest level at which the first converted client still gains."""
    first: FloatArray
    """Position of client l; -1 when no free rider would gain however patient."""
    profile: FloatArray
    """x^os: converted clients at the level, everyone else as at the equilibrium."""


def solve_uniform_rows(
    game: ScaledGame, *, feasible_first: bool = False, whole: bool = False
) -> UniformRows:
    """Algorithm 2 for every row.

    `feasible_first` converts from the first client for which the clients' patience allows a
    level, instead of the paper's client l, which does not look at patience. `whole` asks for a
    whole level, and of everyone else for what it gives at the equilibrium, rounded down.
    """
    converted, first = _feasible(game, whole) if feasible_first else _converted(game, _gains(game))
    largest = _largest_level(_Ladder.build(game, converted, game.alone), first)
    kept = np.floor(game.alone) if whole else game.alone
    ladder = _Ladder.build(game, converted, kept)
    level = _whole_levels(ladder) if whole else largest_enforceable_level(ladder, largest)
    return UniformRows(converted, level, largest, first, ladder.profile(level))


def _whole_levels(ladder: "_Ladder") -> FloatArray:
    """The largest whole level of each row that every client keeps to; 0 if there is none.

    With the others' contributions rounded down levels close to 0 give less than the equilibrium's
    total, so a client may forbid those, too. Therefore nothing is taken for granted here about
    which levels it forbids: intervals of levels are ruled out by what the condition is at best.
    """
    levels = np.zeros((len(ladder.kept), 1))
    for row, top in enumerate(ladder.top[:, 0].tolist()):
        one = ladder.rows(np.arange(len(levels)) == row)
        levels[row] = next(whole_numbers(one.highest, 1.0, top, one.kept.size), 0.0)
    return levels


def smallest_common_discount_factor(
    game: ScaledGame, *, feasible_first: bool = False
) -> FloatArray:
    """The discount factor above which a uniform agreement exists, if all clients had the same.

    At a level just above 0 client n's threshold is (1 - b_n) / ((c - 1) b_n) with
    b_n = (h_n / S)^1.5. It rises with the level as long as the client has more than that, so
    with equal data below it there is none; with unequal data there may be. NaN: never.
    """
    order, count, worth = _ranked_free_riders(game)
    others = _converted_from(order, count) - 1.0
    with np.errstate(divide="ignore", invalid="ignore"):
        least = np.where(others > 0, (1.0 - worth) / (others * worth), np.inf)
    if feasible_first:
        best = least.min(axis=-1, keepdims=True)
    else:
        _, first = _converted(game, _gains(game))
        rank = np.argmax(order == first, axis=-1, keepdims=True)
        best = np.where(first >= 0, np.take_along_axis(least, rank, axis=-1), np.inf)
    return np.where(best < 1.0, np.maximum(best, 0.0), np.nan)


def _ranked_free_riders(game: ScaledGame) -> tuple[npt.NDArray[np.int64], FloatArray, FloatArray]:
    """Clients by ascending ratio with free riders first, their number, and b_n in that order."""
    free = game.alone == 0
    order = np.argsort(np.where(free, game.pull, np.inf), axis=-1, kind="stable")
    worth = np.where(free, (game.satiation / game.alone_total) ** 1.5, 0.0)
    count = free.sum(axis=-1, keepdims=True).astype(np.float64)
    return order, count, np.take_along_axis(worth, order, axis=-1)


def _converted_from(order: npt.NDArray[np.int64], count: FloatArray) -> FloatArray:
    """c = R - n + 1 for each rank n: how many are converted when n is the first."""
    return np.asarray(count - np.arange(order.shape[-1]), dtype=np.float64)


def _gains(game: ScaledGame) -> BoolArray:
    """By rank, whether r_n > B_n (eq. 10 and 14), by more than rounding."""
    order, count, worth = _ranked_free_riders(game)
    return np.asarray(worth * _converted_from(order, count) > 1.0 + TIE)


def _converted(game: ScaledGame, gains: BoolArray) -> tuple[BoolArray, FloatArray]:
    """Who is converted, and the position of the first: the first rank that gains (client l)."""
    order, _, _ = _ranked_free_riders(game)
    start = np.argmax(gains, axis=-1, keepdims=True)
    found = gains.any(axis=-1, keepdims=True)
    ranks = np.empty_like(order)
    np.put_along_axis(ranks, order, np.arange(order.shape[-1])[np.newaxis], axis=-1)
    converted = found & (ranks >= start) & (game.alone == 0)
    first = np.where(found, np.take_along_axis(order, start, axis=-1), -1)
    return converted, first.astype(np.float64)


def _feasible(game: ScaledGame, whole: bool) -> tuple[BoolArray, FloatArray]:
    """Who is converted when the first is the first feasible one, and its position."""
    here, throughout = _keeps_near_nothing(game)
    converted, first = _converted(game, throughout)
    if not whole and (game.samples == game.samples[:, :1]).all():
        return converted, first  # with equal data what does not hold near 0 holds nowhere
    could_be = here | _keeps_at_the_top(game)
    for row in range(len(converted)):
        one = game.rows(np.arange(len(converted)) == row)
        converted[row], first[row] = _first_of(one, np.flatnonzero(could_be[row]), whole)
    return converted, first


def _keeps_near_nothing(game: ScaledGame) -> tuple[BoolArray, BoolArray]:
    """By rank, whether it keeps on at a level just above 0 if converted first; whether all do.

    Client n needs more than (1/b - 1)/delta others beside it.
    """
    order, count, worth = _ranked_free_riders(game)
    together = _converted_from(order, count)
    patience = np.take_along_axis(game.patience, order, axis=-1)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        need = np.where(worth < 1.0, (1.0 / worth - 1.0) / patience, 0.0)
    need = np.where(together > 0, need, -np.inf)
    hardest = np.maximum.accumulate(need[:, ::-1], axis=-1)[:, ::-1]
    some = together > 0
    return some & (together - 1.0 > need), some & (together - 1.0 > hardest)


def _keeps_at_the_top(game: ScaledGame) -> BoolArray:
    """By rank, whether it keeps on when it and all above it give all they have.

    A client's condition gets harder with the level and then easier: one that keeps on neither
    there nor near 0 does so at no level.
    """
    order, count, _ = _ranked_free_riders(game)
    some = _converted_from(order, count) > 0
    pull, satiation, data, patience, alone = (
        np.take_along_axis(values, order, axis=-1)
        for values in (game.pull, game.satiation, game.samples, game.patience, game.alone)
    )
    ranked = ScaledGame(pull, satiation, data, patience, alone, game.alone_total)
    given = np.where(some, data, 0.0)[:, ::-1].cumsum(axis=-1)[:, ::-1]
    excess = ranked.excess(data, game.alone_total + given)
    return np.asarray(some & (excess <= ranked.sliver(data)))


def _first_of(
    game: ScaledGame, candidates: npt.NDArray[np.int64], whole: bool
) -> tuple[BoolArray, float]:
    """The first rank of one row from which there is a level worth the name, if any.

    A few are tried at first, then twice as many at once, and so on.
    """
    kept = np.floor(game.alone) if whole else game.alone
    order, _, _ = _ranked_free_riders(game)
    ranks = np.empty_like(order)
    ranks[0, order[0]] = np.arange(order.size)
    tried, few = 0, 1
    while tried < candidates.size:
        starts = candidates[tried : tried + few, np.newaxis]
        converted = (ranks >= starts) & (game.alone == 0)
        same = game.rows(np.zeros(len(starts), dtype=np.int64))
        ladder = _Ladder.build(same, converted, np.repeat(kept, len(starts), axis=0))
        level = _whole_levels(ladder) if whole else largest_enforceable_level(ladder, ladder.top)
        enough = ladder.total(level) > game.alone_total * (1.0 + WORTHWHILE)
        if enough.any():
            n = int(np.argmax(enough))
            return converted[n], float(order[0, starts[n, 0]])
        tried, few = tried + few, max(1, min(2 * few, _TOGETHER // order.size))
    return np.zeros(order.size, dtype=bool), -1.0


@dataclass(frozen=True)
class _Ladder:
    """The profile and its total at every level, for the converted clients of each row.

    The total rises in a straight line between one converted client's data and the next's.
    """

    game: ScaledGame
    converted: BoolArray
    kept: FloatArray
    """What the clients that are not converted contribute."""
    count: npt.NDArray[np.int64]
    """How many are converted, a column."""
    caps: FloatArray
    """What the converted clients have, ascending, after a 0 for each of the others."""
    total_at_caps: FloatArray

    @classmethod
    def build(cls, game: ScaledGame, converted: BoolArray, kept: FloatArray) -> "_Ladder":
        """Sort the converted clients by their data and add up what each level gives."""
        caps = np.sort(np.where(converted, game.samples, 0.0), axis=-1)
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

    def rows(self, chosen: BoolArray) -> "_Ladder":
        """Only the chosen rows."""
        if chosen.all():
            return self
        return _Ladder(
            self.game.rows(chosen),
            self.converted[chosen],
            self.kept[chosen],
            self.count[chosen],
            self.caps[chosen],
            self.total_at_caps[chosen],
        )

    @property
    def top(self) -> FloatArray:
        """The most that any converted client has."""
        return self.caps[:, -1:]

    def profile(self, level: FloatArray) -> FloatArray:
        """Converted clients at the level or at all they have, the others as they were."""
        return np.where(self.converted, np.minimum(level, self.game.samples), self.kept)

    def highest(self, lows: FloatArray, highs: FloatArray) -> FloatArray:
        """For intervals of levels of one row, their upper ends; below the lower if ruled out.

        The condition is at its best with the client's own contribution and the others' at the
        lower end, and the total at the upper one: whoever slips even then slips throughout.
        """
        game = self.game
        least, most = self.profile(lows[:, np.newaxis]), self.profile(highs[:, np.newaxis])
        total = most.sum(axis=-1, keepdims=True)
        others = least.sum(axis=-1, keepdims=True) - least
        slip = np.clip(game.satiation - others, 0.0, least)
        after = others + slip
        gain = least - slip - game.pull * root_difference(after, total, total - after)
        excess = (1.0 - game.patience) * gain - game.patience * game.saving(least, total)
        slips = (excess > game.sliver(least)) & (least > 0)
        single = (lows == highs)[:, np.newaxis]
        slips = np.where(single, game.broken(least, total), slips)
        return np.where(slips.any(axis=-1), lows - 1.0, highs)

    def client(self, position: npt.NDArray[np.int64]) -> "_Rung":
        """One client of each row."""

        def pick(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
            return np.take_along_axis(values, position, axis=-1)

        game = self.game
        one = ScaledGame(
            pick(game.pull),
            pick(game.satiation),
            pick(game.samples),
            pick(game.patience),
            pick(game.alone),
            game.alone_total,
        )
        return _Rung(one, pick(self.converted), pick(self.kept))

    def edge(self, rung: "_Rung", level: FloatArray) -> FloatArray:
        """The lower edge of the levels that one client of each row forbids, `level` among them.

        First between which two clients' data it lies, then where between them. At the edge
        itself the client keeps on, in floating point too.
        """
        end = np.where(rung.converted, np.minimum(level, rung.game.samples), level)
        low = self.caps.shape[-1] - 1 - self.count  # a cap of 0: someone always contributes
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
        """What the client of this rank in data has, and the total when that is the level."""
        return (
            np.take_along_axis(self.caps, rank, axis=-1),
            np.take_along_axis(self.total_at_caps, rank, axis=-1),
        )


class _Rung:
    """One client of each row, and what it thinks of a level."""

    def __init__(self, game: ScaledGame, converted: BoolArray, kept: FloatArray) -> None:
        self.game = game
        self.converted = converted
        self.kept = kept
        shrink = (1.0 - game.patience) ** (2.0 / 3.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            peak = np.maximum(kept / (1.0 - shrink), game.alone_total)
        self.peak = np.where(converted, np.inf, peak)

    def excess(self, level: FloatArray, total: FloatArray) -> FloatArray:
        """How far its condition fails, less rounding, made monotone where it is above 0.

        From its peak on a contributor counts as being as bad off as at the peak.
        """
        contribution = np.where(self.converted, np.minimum(level, self.game.samples), self.kept)
        excess = self.game.excess(contribution, np.minimum(total, self.peak))
        return np.asarray(excess - self.game.sliver(contribution))


def _last_fine(
    excess: Callable[[FloatArray], FloatArray], low: FloatArray, high: FloatArray
) -> FloatArray:
    """The largest level from `low` to `high` before the excess gets above 0.

    Where a straight line between the ends would cross 0, but some way into the bracket, so
    that both ends close in.
    """
    end, at_low, at_high = high, excess(low), excess(high)
    low = np.where(at_high <= 0, high, low)
    for _ in range(_MOST_STEPS):
        width = high - low
        rise = at_high - at_low
        share = np.divide(-at_low, rise, out=np.full_like(rise, 0.5), where=rise > 0)
        middle = low + width * np.clip(share, _INSET, 1.0 - _INSET)
        at_middle = excess(middle)
        bad = at_middle > 0
        high, at_high = np.where(bad, middle, high), np.where(bad, at_middle, at_high)
        low, at_low = np.where(bad, low, middle), np.where(bad, at_low, at_middle)
        if (high - low <= _NARROW * high + _NOTHING * end).all():
            break
    return low


def _largest_level(ladder: _Ladder, first: FloatArray) -> FloatArray:
    """x_l^th: closed form while nobody runs out of data before it, else by bisection.

    The paper's implicit eq. 13 and 17 is a quadratic in w = sqrt(S + c x); written so that
    nothing cancels when x is small.
    """
    game = ladder.game
    nobody = first < 0
    rung = ladder.client(np.where(nobody, 0, first).astype(np.int64))
    one = rung.game
    root = np.sqrt(game.alone_total)
    reach = np.sqrt(game.alone_total + 4.0 * one.pull * ladder.count / root)
    over = (2.0 * one.pull * ladder.count / root - 4.0 * game.alone_total) / (reach + 3.0 * root)
    closed = over * (over + 2.0 * root) / np.maximum(ladder.count, 1)
    level = np.minimum(closed, ladder.top)
    lowest = np.where(ladder.converted, game.samples, np.inf).min(axis=-1, keepdims=True)
    uneven = ~nobody & (lowest < ladder.top)
    if uneven.any():
        patient = one.with_patience(np.full_like(one.patience, np.nextafter(1.0, 0.0)))
        gaining = _Rung(patient, rung.converted, rung.kept)
        # once it gives all it has it gains from whatever more the others give
        still = gaining.excess(ladder.top, ladder.total(ladder.top)) <= 0
        capped = ~still & (level > lowest)
        edge = ladder.edge(gaining, one.samples) if capped.any() else level
        level = np.where(uneven & still, ladder.top, np.where(uneven & capped, edge, level))
    return np.where(nobody, 0.0, level)


def largest_enforceable_level(ladder: _Ladder, top: FloatArray) -> FloatArray:
    """The largest level up to `top` at which every client of the row keeps on."""
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

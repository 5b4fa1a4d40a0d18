"""The largest enforceable total by bounding the sum of all bounds over intervals of totals.

It takes no client to be small (see `bounds`). Intervals of totals are discarded or halved, from the
top: T - u_n(T) never falls, so that u_n can be bounded over an interval by what it is at the ends.
"""

from collections.abc import Generator, Iterable, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from fedaccord.agreement.bounds import Bounds, least_bounds, steepest
from fedaccord.agreement.enforcement import ScaledGame
from fedaccord.numbers import FloatArray

_SETTLED = 1e-15
"""Relative: a few units in the last place, below which a step is rounding."""

_NEXT_TO_NOTHING = 1e-7
"""Totals this close above the equilibrium's are not searched: a tenth of `WORTHWHILE`. If nobody
trains at the equilibrium, it is relative to all samples."""

_CLOSED = 4e-15
"""Relative width at which an interval of totals counts as a point."""


def by_halving(game: ScaledGame) -> FloatArray:
    """The largest profile of each row, by bounding sum u_n(T) over intervals of T, from the top."""
    everything = game.samples.sum(axis=-1).tolist()
    lowest = [_lowest(*row) for row in zip(game.start[:, 0].tolist(), everything, strict=True)]
    found = _run([_search(*ends) for ends in zip(lowest, everything, strict=True)], _Rows(game))
    profile = game.equilibrium.copy()
    for row, ends in enumerate(found):
        if ends is not None:
            profile[row] = _profile(game.rows(np.array([row])), *ends)[0]
    return profile


def by_halving_for_all(game: ScaledGame) -> FloatArray:
    """The largest profile that is enforceable in every row, for the same clients; one row of it."""
    everything = game.samples[0].sum().item()
    [found] = _run([_search(_lowest(game.start.max().item(), everything), everything)], _Laws(game))
    return np.asarray(game.equilibrium[0] if found is None else _profile(game, *found)[0])


def _lowest(start: float, everything: float) -> float:
    """The smallest total that is searched, given the equilibrium's and that of all samples."""
    return start * (1.0 + _NEXT_TO_NOTHING) if start > 0 else _NEXT_TO_NOTHING * everything


class _End:
    """An end of an interval of totals, and everyone's bound there."""

    def __init__(self, total: float, rows: FloatArray) -> None:
        self.total = total
        self.rows = rows
        """The bounds in each row that is about the same clients."""
        self.amounts = rows.min(axis=0, keepdims=True)
        self.short = total - float(self.amounts.sum())


_Interval: TypeAlias = tuple[_End, _End]


def _search(lowest: float, highest: float) -> Generator[float | _Interval, Any, _Interval | None]:
    """Look for the largest enforceable total, asking for what it needs to know.

    It yields a total to be told the bounds there (an `_End`), and an interval to be told how far up
    in it sum u_n(T) can reach T. Returns an interval that is closed: the total is its lower end.
    """
    low = yield lowest
    high = yield highest
    pending = [(low, high)]
    while pending:
        low, high = pending.pop()
        while low.total < high.total:
            if high.short <= _SETTLED * high.total:
                return high, high
            reach = yield low, high
            if reach <= low.total:
                break
            if high.total - low.total <= _CLOSED * high.total:
                if low.short <= 0:
                    return low, high
                break
            middle = yield 0.5 * (low.total + min(high.total, reach))
            if reach < high.total:
                high = yield reach
            pending.append((low, middle))
            low = middle
    return None


def _run(
    searches: list[Generator[float | _Interval, Any, _Interval | None]], told_by: "_Rows | _Laws"
) -> list[_Interval | None]:
    """Run the searches of all rows side by side: what they ask for is computed together."""
    found: list[_Interval | None] = [None] * len(searches)
    asked = {row: next(search) for row, search in enumerate(searches)}
    while asked:
        totals = {row: what for row, what in asked.items() if isinstance(what, float)}
        intervals = {row: what for row, what in asked.items() if not isinstance(what, float)}
        answers = (told_by.ends(totals) if totals else {}) | (
            told_by.reaches(intervals) if intervals else {}
        )
        asked = {}
        for row in sorted(answers):
            try:
                asked[row] = searches[row].send(answers[row])
            except StopIteration as stop:
                found[row] = stop.value
    return found


class _Rows:
    """Answers the searches of rows that are games of their own."""

    def __init__(self, game: ScaledGame) -> None:
        self.game = game

    def ends(self, asked: dict[int, float]) -> dict[int, _End]:
        """The bounds at the totals that are asked for."""
        bounds = least_bounds(self._of(asked), np.array(list(asked.values())))
        rows = zip(asked.items(), bounds, strict=True)
        return {row: _End(total, bound[np.newaxis]) for (row, total), bound in rows}

    def reaches(self, asked: dict[int, _Interval]) -> dict[int, float]:
        """How far up in each interval the bounds can add up to the total."""
        lows, highs = zip(*asked.values(), strict=True)
        reach = _reach(self._of(asked), _Ends.of(lows), _Ends.of(highs))
        return dict(zip(asked, reach.tolist(), strict=True))

    def _of(self, asked: Iterable[int]) -> ScaledGame:
        chosen = np.fromiter(asked, np.int64)  # ascending
        return self.game if chosen.size == len(self.game.pull) else self.game.rows(chosen)


class _Laws:
    """Answers the one search for clients that must keep to it in every row.

    For each client only the row counts that bounds it at an interval's lower end.
    """

    def __init__(self, game: ScaledGame) -> None:
        self.game = game

    def ends(self, asked: dict[int, float]) -> dict[int, _End]:
        """The bounds at the total that is asked for."""
        return {n: _End(total, least_bounds(self.game, total)) for n, total in asked.items()}

    def reaches(self, asked: dict[int, _Interval]) -> dict[int, float]:
        """How far up in the interval the bounds can add up to the total."""
        [(low, high)] = asked.values()
        row = np.argmin(low.rows, axis=0)[np.newaxis]
        game = self.game.each(lambda values: np.take_along_axis(values, row, axis=0))
        low, high = (
            _End(one.total, np.take_along_axis(one.rows, row, axis=0)) for one in (low, high)
        )
        return {0: _reach(game, _Ends.of([low]), _Ends.of([high])).item()}


class _Ends(NamedTuple):
    """Ends of intervals, one per row: their totals as a column, and everyone's bounds."""

    total: FloatArray
    rows: FloatArray

    @classmethod
    def of(cls, ends: Sequence[_End]) -> "_Ends":
        """From ends with one row each."""
        totals = np.array([[end.total] for end in ends])
        return cls(totals, np.concatenate([end.rows for end in ends]))


def _profile(game: ScaledGame, low: _End, high: _End) -> FloatArray:
    """The profile at the largest total, where the bounds add up to it or to more.

    If somebody would rather be punished above it, all who are willing to contribute less do.
    """
    if np.isfinite(high.amounts).all():
        return fitted(low.amounts, high.amounts, low.total)
    least = np.where(game.satiation[:1] >= low.total, low.amounts, 0.0)
    return fitted(low.amounts, least, low.total)


def _reach(game: ScaledGame, low: _Ends, high: _Ends) -> FloatArray:
    """Totals in the intervals above which sum u_n(T) < T; at or below the lower end: everywhere.

    Under reversion, a free rider's u_n grows at most in proportion to T - S (along a ray from the
    equilibrium its threshold increases); a contributor's, which decreases and then increases, is
    largest at one of the ends; that of a client in between grows at most at the rate `steepest`. So
    sum u_n(T) is at most fixed + rate (T - low).
    """
    bounds = Bounds(game)
    if not game.reverts:
        return _reach_alone(bounds, low, high)
    free, full = game.equilibrium == 0, game.equilibrium >= game.samples
    rate = np.where(full, 0.0, steepest(bounds, low.total, low.rows, high.total, high.rows))
    ray = low.rows / (low.total - game.equilibrium_total)
    rate = np.where(free, ray, rate)
    largest = np.maximum(low.rows, high.rows)
    if game.samples_checked is not None:  # of a contributor's u_n less is known then
        largest = bounds.between(low.total, high.total)
    fixed = np.where(full, largest, low.rows)
    return _last_below_line(fixed.sum(axis=-1), rate.sum(axis=-1), low, high)


def _reach_alone(bounds: Bounds, low: _Ends, high: _Ends) -> FloatArray:
    """The same under suspension, where the equilibrium plays no part.

    Each client's u_n is bounded by itself, and grows at most at the rate `steepest` (what an old
    model is worth grows no faster than the loss falls), or at that of its lead. It jumps where a
    client that rules out lower totals stops doing so.
    """
    game = bounds.game
    reach = np.minimum(high.total[:, 0], bounds.between(low.total, high.total).sum(axis=-1))
    jumps = (low.rows < 0).any(axis=-1)
    rate = steepest(bounds, low.total, low.rows, high.total, high.rows)
    if game.nobody_worse:
        # whichever of both binds it at the lower end bounds it further up, too
        led = (game.lead(low.total) <= low.rows) & (low.rows < game.samples)
        lead = np.minimum(game.pull * game.law.slope(low.total), 1.0)
        rate = np.where(led, lead, rate)
    fixed = np.maximum(low.rows, 0.0).sum(axis=-1)
    by_line = _last_below_line(fixed, rate.sum(axis=-1), low, high)
    return np.asarray(np.where(jumps, reach, np.minimum(reach, by_line)))


def _last_below_line(fixed: FloatArray, rate: FloatArray, low: _Ends, high: _Ends) -> FloatArray:
    """Above which total of each interval fixed + rate (T - low) is less than T."""
    start, end = low.total[:, 0], high.total[:, 0]
    meets = (fixed - rate * start) / np.where(rate < 1.0, 1.0 - rate, 1.0)
    throughout = np.where(fixed + rate * (end - start) >= end, end, start)
    return np.where(rate < 1.0, np.minimum(end, meets), throughout)


def fitted(upper: FloatArray, lower: FloatArray, total: float) -> FloatArray:
    """The mixture of two profiles that adds up to `total`; a bound may jump between them."""
    spread = float((upper - lower).sum())
    if spread <= 0.0:
        return upper
    share = np.clip((total - float(lower.sum())) / spread, 0.0, 1.0)
    return np.asarray(lower + share * (upper - lower))

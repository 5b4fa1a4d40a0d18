"""The individual agreement: an amount for each client, and the largest enforceable total.

Given the total T, a client's condition (see `enforcement`) involves only its own amount x. It
holds on [0, u_n(T)]: for h_n < T,

    (1 - delta) gain(x) + delta x - delta stake_n(T) <= 0,

where the stake is what a client that contributes nothing saves against the punishment:
x*_n + a_n (L(S) - L(T)) under reversion, V_n - a_n L(T) under suspension. The left side is concave
in x with a derivative of at least delta, so Newton's method converges to its only root u_n from the
left. A client with h_n >= T prefers to contribute all it has: u_n = D_n. An agreement of total T
exists if and only if the u_n add up to T or more. For positive discount factors the u_n are
continuous in T, so at the largest such T every client is at its bound; a client with a discount
factor of 0 contributes all it has up to h_n and nothing above, so that the total may have to stop
at h_n although the bounds would allow more. Where nobody may be worse off than at the equilibrium,
u_n is at most the client's lead, x*_n + a_n (L(S) - L(T)).

A client is *small* if L'' falls by no more than a factor 1 - delta over its samples, from Z on: Z
is the largest of h_n and the least total that a slip can leave, S under reversion and S - D_n under
suspension. Its u_n is concave and increasing in T, because L'' is log-convex. If all clients are
small, Newton's method on sum u_n(T) - T, started from the sum of all samples, never steps over the
largest root. Otherwise intervals of T are bounded, and discarded or halved, from the top.
"""

from collections.abc import Callable, Generator, Iterable, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from fedaccord.agreement.enforcement import ScaledGame
from fedaccord.numbers import SUMS_DIFFER, BoolArray, FloatArray

_MOST_STEPS = 200
"""Far more than Newton's method takes; it stops when a step is within rounding."""
_SETTLED = 1e-15
"""Relative: a few units in the last place, below which a step is rounding."""

_FLAT = 1e-300
"""Stands for a derivative of 0, which is possible only for a discount factor of 0."""

_FLATTEST = 1e-12
"""The smallest derivative that a step in T is computed with, where the root is nearly double."""

_NEXT_TO_NOTHING = 1e-7
"""Totals this close above the equilibrium's are not searched: a tenth of `WORTHWHILE`. If nobody
trains at the equilibrium, it is relative to all samples."""

_AT_MARGIN = 1e-9
"""A client this close (relative) to the margin takes up all that is added, as the critical one."""

_CLOSED = 4e-15
"""Relative width at which an interval of totals counts as a point."""

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
        most, which then is the answer); from there it increases monotonically.
        """
        eager = self.game.satiation >= total
        amount = most if start is None else np.clip(start, 0.0, most)
        for _ in range(_MOST_STEPS):
            value, kept = self._excess(amount, total, allowance)
            at_kept = self.weight * self.game.law.slope(kept)
            with np.errstate(over="ignore"):
                step = value / np.maximum(1.0 - at_kept, _FLAT)
            after = np.clip(amount - step, 0.0, most)
            after = np.where(eager, most, after)
            done = bool((np.abs(after - amount) <= _SETTLED * after).all())
            amount = after
            if done:
                break
        return amount, at_kept

    def below_all(self, total: FloatArray) -> BoolArray:
        """Whether u_n(T) < D_n: asking for all its samples would be too much."""
        game = self.game
        most = np.minimum(game.samples, total)
        excess, _ = self._excess(most, total, game.patience * game.stake(total))
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


def largest_profiles(game: ScaledGame) -> FloatArray:
    """The profile of the largest enforceable total of each row, or else the equilibrium."""
    concave = is_concave(game)
    if concave.all():
        return _from_above(game)
    profile = game.equilibrium.copy()
    if concave.any():
        profile[concave] = _from_above(game.rows(concave))
    profile[~concave] = _by_halving(game.rows(~concave))
    return profile


def is_concave(game: ScaledGame) -> BoolArray:
    """In which rows all bounds are known to be concave and increasing in T."""
    return np.asarray(_falls_little(game, game.law.bend).all(axis=-1) & game.steady)


def is_rising(game: ScaledGame) -> BoolArray:
    """Which clients' bounds are known to increase with T."""
    return _falls_little(game, game.law.slope) & game.steady


def _falls_little(game: ScaledGame, of: Callable[[FloatArray], FloatArray]) -> BoolArray:
    """Whether a derivative of the law falls by a factor of at most 1 - delta over the samples."""
    left = game.equilibrium_total if game.reverts else game.equilibrium_total - game.samples
    lowest = np.maximum(game.satiation, left)
    return np.asarray(of(lowest + game.samples) >= (1.0 - game.patience) * of(lowest))


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
    everything = game.samples[0].sum().item()
    [found] = _run([_search(_lowest(game.start.max().item(), everything), everything)], _Laws(game))
    return np.asarray(game.equilibrium[0] if found is None else _profile(game, *found)[0])


def least_bounds(game: ScaledGame, total: FloatArray | float) -> FloatArray:
    """u_n(T) in each row, computed for as many clients at once as fit in a cache."""
    width, at_once = game.pull.shape[-1], max(1, _TOGETHER // len(game.pull))
    at = np.reshape(total, (-1, 1))
    parts = [slice(n, n + at_once) for n in range(0, width, at_once)]
    if len(parts) == 1:
        return Bounds(game).at(at)
    return np.concatenate([Bounds(game.clients(part)).at(at) for part in parts], axis=-1)


def _by_halving(game: ScaledGame) -> FloatArray:
    """The largest profile of each row, by bounding sum u_n(T) over intervals of T, from the top."""
    everything = game.samples.sum(axis=-1).tolist()
    lowest = [_lowest(*row) for row in zip(game.start[:, 0].tolist(), everything, strict=True)]
    found = _run([_search(*ends) for ends in zip(lowest, everything, strict=True)], _Rows(game))
    profile = game.equilibrium.copy()
    for row, ends in enumerate(found):
        if ends is not None:
            profile[row] = _profile(game.rows(np.array([row])), *ends)[0]
    return profile


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
        return _fitted(low.amounts, high.amounts, low.total)
    least = np.where(game.satiation[:1] >= low.total, low.amounts, 0.0)
    return _fitted(low.amounts, least, low.total)


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
    fixed = np.where(full, np.maximum(low.rows, high.rows), low.rows)
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
        lead = game.pull * game.law.slope(low.total)
        rate = np.where(low.rows >= game.samples, 0.0, np.maximum(rate, np.minimum(lead, 1.0)))
    fixed = np.maximum(low.rows, 0.0).sum(axis=-1)
    by_line = _last_below_line(fixed, rate.sum(axis=-1), low, high)
    return np.asarray(np.where(jumps, reach, np.minimum(reach, by_line)))


def _last_below_line(fixed: FloatArray, rate: FloatArray, low: _Ends, high: _Ends) -> FloatArray:
    """Above which total of each interval fixed + rate (T - low) is less than T."""
    start, end = low.total[:, 0], high.total[:, 0]
    meets = (fixed - rate * start) / np.where(rate < 1.0, 1.0 - rate, 1.0)
    throughout = np.where(fixed + rate * (end - start) >= end, end, start)
    return np.where(rate < 1.0, np.minimum(end, meets), throughout)


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
    decreases in k.
    """
    game = bounds.game
    kept = np.maximum(high - at_high, game.satiation)
    at_kept = bounds.weight * game.law.slope(kept)
    rise = game.pull * game.law.slope(low) - at_kept
    with np.errstate(over="ignore"):
        slope = np.clip(rise / np.maximum(1.0 - at_kept, _FLAT), 0.0, 1.0)
    return np.where(at_low >= game.samples, 0.0, slope)


def _fitted(upper: FloatArray, lower: FloatArray, total: float) -> FloatArray:
    """The mixture of two profiles that adds up to `total`; a bound may jump between them."""
    spread = float((upper - lower).sum())
    if spread <= 0.0:
        return upper
    share = np.clip((total - float(lower.sum())) / spread, 0.0, 1.0)
    return np.asarray(lower + share * (upper - lower))

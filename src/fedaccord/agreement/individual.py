"""The individual agreement: an amount for each client, and the largest enforceable total.

Given the total T, a client's condition (see `enforcement`) involves only its own amount x. It
holds on [0, u_n(T)]: for h_n < T,

    (1 - delta) gain(x) + delta x - delta stake_n(T) <= 0,

where the stake is what a client that contributes nothing saves against the punishment:
x*_n + a_n (1/sqrt(S) - 1/sqrt(T)) under reversion, V_n - a_n / sqrt(T) under suspension. The left
side is concave in x with a derivative of at least delta, so Newton's method converges to its only
root u_n from the left. A client with h_n >= T prefers to contribute all it has: u_n = D_n. An
agreement of total T exists if and only if the u_n add up to T or more. For positive discount
factors the u_n are continuous in T, so at the largest such T every client is at its bound; a client
with a discount factor of 0 contributes all it has up to h_n and nothing above, so that the total
may have to stop at h_n although the bounds would allow more. Where nobody may be worse off than at
the equilibrium, u_n is at most the client's lead, x*_n + a_n (1/sqrt(S) - 1/sqrt(T)).

A client that has at most a share 1 - (1 - delta)^0.4 of the equilibrium's total is *small*:
its u_n is concave and increasing in T. If all clients are small, Newton's method on sum u_n(T) - T,
started from the sum of all samples, never steps over the largest root. Otherwise intervals of T
are bounded, and discarded or halved, from the top.
"""

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
"""Totals this close above the equilibrium's are not searched: a tenth of `WORTHWHILE`."""

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
        steep = 0.5 * game.pull / (total * np.sqrt(total))
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
            value, root_kept, kept = self._excess(amount, total, allowance)
            at_kept = 0.5 * self.weight / (kept * root_kept)
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
        excess, _, _ = self._excess(most, total, game.patience * game.stake(total))
        if game.nobody_worse:
            excess = np.maximum(excess, most - game.lead(total))
        return np.asarray((excess > game.sliver(most)) & (game.satiation < total))

    def _excess(
        self, amount: FloatArray, total: FloatArray, allowance: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """The left side of the condition, and the total after a deviation with its square root."""
        game = self.game
        kept = np.maximum(total - amount, game.satiation)
        less = np.minimum(amount, total - game.satiation)
        root, root_kept = np.sqrt(total), np.sqrt(kept)
        # (1 - delta) less (1 - a / (root root_kept (root + root_kept))) + delta x - allowance,
        # step by step in one array: most of the time is spent here
        excess = root_kept + root
        excess *= root_kept
        excess *= root
        np.divide(self.weight, excess, out=excess)
        np.subtract(self.impatience, excess, out=excess)
        excess *= less
        excess += game.patience * amount
        excess -= allowance
        return excess, root_kept, kept


def largest_profiles(game: ScaledGame) -> FloatArray:
    """The profile of the largest enforceable total of each row, or else the equilibrium."""
    concave = is_concave(game)
    if concave.all():
        return _from_above(game)
    profile = game.equilibrium.copy()
    if concave.any():
        profile[concave] = _from_above(game.rows(concave))
    for row in np.flatnonzero(~concave):
        chosen = np.zeros(concave.shape, dtype=bool)
        chosen[row] = True
        profile[row] = _by_halving(game.rows(chosen))[0]
    return profile


def is_concave(game: ScaledGame) -> BoolArray:
    """In which rows all bounds are known to be concave and increasing in T."""
    share = 1.0 - (1.0 - game.patience) ** 0.4
    small = game.samples <= share * game.equilibrium_total
    return np.asarray(small.all(axis=-1) & game.steady)


def smallest_common_discount_factor(game: ScaledGame) -> float:
    """The discount factor above which an individual agreement exists if all clients have it.

    Just above S, client n takes up to a share s_n of what is added, and no larger share further
    up; so an agreement exists if the shares of all clients with samples left add up to more than 1.
    With b = (h_n / S)^1.5 the share is delta b / (1 - (1 - delta) b) under reversion. Under
    suspension it has no limit for delta > 0, but it is b where nobody may be worse off than at the
    equilibrium. NaN: there is none.
    """
    left = game.equilibrium < game.samples
    worth = np.minimum((game.satiation[left] / game.start.item()) ** 1.5, 1.0)
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


def _by_halving(game: ScaledGame) -> FloatArray:
    """The largest total of one row by bounding sum u_n(T) over intervals of T, from the top."""
    bounds = Bounds(game)
    width = game.pull.shape[-1]
    some = [Bounds(game.clients(slice(n, n + _TOGETHER))) for n in range(0, width, _TOGETHER)]

    def end(total: float) -> _End:
        at = np.array([[total]])
        return _End(total, np.concatenate([part.at(at) for part in some], axis=-1))

    lowest = game.start.item() * (1.0 + _NEXT_TO_NOTHING)
    pending = [(end(lowest), end(game.samples.sum().item()))]
    while pending:
        low, high = pending.pop()
        while low.total < high.total:
            if high.short <= _SETTLED * high.total:
                return _fitted(high.amounts, high.amounts, high.total)
            reach = _reach(bounds, low, high)
            if reach <= low.total:
                break
            if high.total - low.total <= _CLOSED * high.total:
                if low.short <= 0:
                    return _closed(game, low, high)
                break
            middle = end(0.5 * (low.total + min(high.total, reach)))
            if reach < high.total:
                high = end(reach)
            pending.append((low, middle))
            low = middle
    return game.equilibrium


class _End:
    """An end of an interval of totals, and everyone's bound there."""

    def __init__(self, total: float, amounts: FloatArray) -> None:
        self.total = total
        self.amounts = amounts
        self.short = total - float(amounts.sum())


def _closed(game: ScaledGame, low: _End, high: _End) -> FloatArray:
    """The profile at the largest total, where the bounds add up to it or to more.

    If somebody would rather be punished above it, all who are willing to contribute less do.
    """
    if np.isfinite(high.amounts).all():
        return _fitted(low.amounts, high.amounts, low.total)
    least = np.where(game.satiation >= low.total, low.amounts, 0.0)
    return _fitted(low.amounts, least, low.total)


def _reach(bounds: Bounds, low: _End, high: _End) -> float:
    """A total in the interval above which sum u_n(T) < T; at or below its lower end: everywhere.

    Under reversion, a free rider's u_n grows at most in proportion to T - S (along a ray from the
    equilibrium its threshold increases); a contributor's, which decreases and then increases, is
    largest at one of the ends; that of a client in between grows at most at the rate `steepest`.
    So sum u_n(T) <= fixed + rate (T - S).
    """
    game = bounds.game
    if not game.reverts:
        return _reach_alone(bounds, low, high)
    start = game.start.item()
    free, full = game.equilibrium == 0, game.equilibrium >= game.samples
    ray = low.amounts[free].sum() / (low.total - start)
    fixed = np.maximum(low.amounts, high.amounts)[full].sum()
    between = ~free & ~full
    steep = steepest(bounds, low.total, low.amounts, high.total, high.amounts)[between].sum()
    fixed += low.amounts[between].sum() - steep * (low.total - start)
    return _last_below_line(float(fixed), float(ray + steep), start, low, high)


def _reach_alone(bounds: Bounds, low: _End, high: _End) -> float:
    """The same under suspension, where the equilibrium plays no part.

    Each client's u_n is bounded by itself, and grows at most at the rate `steepest` (what an old
    model is worth only falls with T), or at that of its lead. It jumps where a client that rules
    out lower totals stops doing so.
    """
    game, ends = bounds.game, (np.array([[low.total]]), np.array([[high.total]]))
    reach = min(high.total, float(bounds.between(*ends).sum()))
    if (low.amounts < 0).any():
        return reach
    rate = steepest(bounds, low.total, low.amounts, high.total, high.amounts)
    if game.nobody_worse:
        lead = 0.5 * game.pull / low.total**1.5
        rate = np.where(low.amounts >= game.samples, 0.0, np.maximum(rate, np.minimum(lead, 1.0)))
    fixed = float(low.amounts.sum())
    return min(reach, _last_below_line(fixed, float(rate.sum()), low.total, low, high))


def _last_below_line(fixed: float, rate: float, start: float, low: _End, high: _End) -> float:
    """Above which total of the interval fixed + rate (T - start) is less than T."""
    if rate < 1.0:
        return min(high.total, (fixed - rate * start) / (1.0 - rate))
    return high.total if fixed + rate * (high.total - start) >= high.total else low.total


def steepest(
    bounds: Bounds,
    low: FloatArray | float,
    at_low: FloatArray,
    high: FloatArray | float,
    at_high: FloatArray,
) -> FloatArray:
    """An upper bound on du_n/dT between two totals; 0 if u_n is all samples at the lower one.

    With B = a / 2T^1.5 and k = (1 - delta) a / 2Y^1.5, Y = T - u_n the total after a deviation,
    u_n' = (B - k) / (1 - k). B and k decrease in T, and u_n' increases in B and decreases in k.
    """
    game = bounds.game
    kept = np.maximum(high - at_high, game.satiation)
    at_kept = 0.5 * bounds.weight / (kept * np.sqrt(kept))
    rise = 0.5 * game.pull / (low * np.sqrt(low)) - at_kept
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

"""The objective "least total cost".

An individual agreement has a total T and amounts x_n up to the bounds u_n(T) that each client keeps
to (see `bounds`).
Clients whose satiation point is T or more contribute all they have, which is best for them and for
everyone. As long as no client is a large part of the total this is a convex problem, and the best
total is found by searching in one variable. Otherwise a grid of totals is evaluated first, and the
search goes on around the best of them.
The level of a uniform agreement is found in the same way.

In whole samples the best profile of a given total is found just as exactly: the bounds are
rounded down. The total is then the best of the feasible whole totals next to the real-valued one,
100 on either side: if there are no more than that, no profile is better.
"""

from collections.abc import Callable
from itertools import islice

import numpy as np

from fedaccord.agreement.bounds import Bounds, bounds_at_all, is_concave, least_bounds
from fedaccord.agreement.enforcement import WORTHWHILE, ScaledGame
from fedaccord.agreement.whole import lowest_worthwhile, round_down, whole_totals
from fedaccord.game.cost import cost
from fedaccord.game.equilibrium import Equilibrium
from fedaccord.game.social_optimum import solve_social_optimum
from fedaccord.numbers import SUMS_DIFFER, BoolArray, FloatArray

_GRID = 65
"""Totals evaluated before the search narrows down."""

_HUGE = 1e150
"""More than any total cost that is compared with it."""

NEXT_TO_IT = 100
"""Whole totals evaluated on either side of the best real-valued one."""


def total_cost(equilibrium: Equilibrium) -> Callable[[FloatArray], float]:
    """The loss of a profile for the objective "least total cost"."""
    return lambda profile: float(cost(equilibrium.consortium, profile).sum())


class _Choice:
    """One consortium's bounds at any total: who contributes all anyway, and how much others may."""

    def __init__(self, equilibrium: Equilibrium, game: ScaledGame, largest: FloatArray) -> None:
        self.equilibrium = equilibrium
        self.consortium = equilibrium.consortium
        self.game = game
        self.largest = largest
        self._known: dict[float, FloatArray] = {}

    def foresee(self, totals: FloatArray) -> None:
        """Compute the bounds at many totals at once, which is quicker than one after another."""
        if totals.size:
            self._known = dict(zip(totals.tolist(), bounds_at_all(self.game, totals), strict=True))

    def at(self, total: float, whole: bool) -> tuple[BoolArray, FloatArray]:
        """Who contributes all it has anyway, and u_n(T), rounded down if `whole`."""
        most = self._known.get(total)
        if most is None:
            most = least_bounds(self.game, total).min(axis=0)
        return self.consortium.satiation >= total, round_down(most) if whole else most

    def best(
        self,
        share_out: Callable[[float, bool], FloatArray | None],
        loss_of: Callable[[FloatArray], float],
        whole: bool,
    ) -> FloatArray:
        """The profile of least loss among those that `share_out` returns for each total."""

        def loss(total: float) -> float:
            profile = share_out(total, False)
            return np.inf if profile is None else loss_of(profile)

        start, end = float(self.game.start.max()), float(self.largest.sum())
        convex = bool(is_concave(self.game).all())
        total = best_between(loss, start, end, convex=convex, foresee=self.foresee)
        if not whole:
            profile = share_out(total, False)
            return self.largest if profile is None else profile
        totals = self._whole_totals_next_to(total)
        self.foresee(np.array(totals))
        shared = [share_out(near, True) for near in totals]
        found = [profile for profile in shared if profile is not None]
        return min(found, key=loss_of, default=self.equilibrium.profile)

    def _whole_totals_next_to(self, total: float) -> list[float]:
        low, high = lowest_worthwhile(self.game), float(np.floor(self.largest.sum()))
        here = max(float(np.floor(total)), low - 1.0)
        below = whole_totals(self.game, low, here)
        above = whole_totals(self.game, here + 1.0, high, upwards=True)
        return [*islice(below, NEXT_TO_IT), *islice(above, NEXT_TO_IT)]


def least_cost_profile(
    equilibrium: Equilibrium, game: ScaledGame, largest: FloatArray, *, whole: bool = False
) -> FloatArray:
    """The enforceable profile of least total cost: the cheapest samples first.

    Clients of equal cost contribute the same fraction of their bounds; in whole samples, where
    that is impossible, they are filled up in their order. If everyone keeps to the social optimum,
    that is the answer.
    """
    optimum = solve_social_optimum(equilibrium.consortium)
    if _kept(game, optimum.profile) and (not whole or _is_whole(optimum.profile)):
        return optimum.profile
    if not whole and _still_falling(equilibrium, game, largest):
        return largest
    choice = _Choice(equilibrium, game, largest)
    prices, group = np.unique(equilibrium.consortium.cost_per_sample, return_inverse=True)

    def share_out(total: float, whole: bool) -> FloatArray | None:
        eager, most = choice.at(total, whole)
        wanted = total - float(most[eager].sum())
        offer = np.where(eager, 0.0, most)
        if not -SUMS_DIFFER * total <= wanted <= offer.sum() * (1.0 + SUMS_DIFFER):
            return None
        if whole:
            order = np.argsort(group, kind="stable")
            given = np.empty_like(offer)
            given[order] = _filled(wanted, offer[order])
        else:
            capacity = np.bincount(group, offer, prices.size).astype(np.float64)
            room = _filled(wanted, capacity)
            share = np.divide(room, capacity, out=np.zeros_like(room), where=capacity > 0)
            given = share[group] * offer
        return np.where(eager, most, given)

    loss_of = total_cost(equilibrium)
    if not whole and equilibrium.total < optimum.total <= largest.sum():
        other = share_out(optimum.total, False)  # as cheap, where samples cost the same
        if other is not None and loss_of(other) <= optimum.cost.sum() * (1.0 + SUMS_DIFFER):
            return other
    return choice.best(share_out, loss_of, whole)


def _kept(game: ScaledGame, profile: FloatArray) -> bool:
    """Whether everyone keeps to a profile that asks for more than the equilibrium."""
    total = np.array([[profile.sum()]])
    if total.item() <= game.start.max() * (1.0 + WORTHWHILE) or (profile > game.samples).any():
        return False
    amounts = profile[np.newaxis]
    gives_more = game.rows(np.array([0])).gives_more(amounts, total).any()
    return not gives_more and not game.slips(amounts, total).any()


def _still_falling(equilibrium: Equilibrium, game: ScaledGame, largest: FloatArray) -> bool:
    """Whether the total cost still falls at the largest total: nothing less is cheaper then.

    It is convex in T. One sample more saves everyone's valuation times the slope of the law, makes
    room for u_n' of each client's samples, and the dearest ones that are used make up the rest.
    """
    if len(game.pull) > 1 or not is_concave(game).all():
        return False
    consortium, total = equilibrium.consortium, np.array([[largest.sum()]])
    _, slope = Bounds(game).with_slope(total, largest[np.newaxis])
    willing = consortium.satiation < total[0]
    dearest = consortium.cost_per_sample.max(where=willing & (largest > 0), initial=0.0)
    room = float((consortium.cost_per_sample - dearest) @ np.where(willing, slope[0], 0.0))
    saved = float((consortium.valuation * consortium.law.slope(total.item())).sum())
    return bool(saved >= dearest + room)


def _is_whole(profile: FloatArray) -> bool:
    return bool((profile == np.floor(profile)).all())


def _filled(wanted: float, capacity: FloatArray) -> FloatArray:
    """Fill the capacities in order until `wanted` is reached."""
    return np.clip(wanted - (capacity.cumsum() - capacity), 0.0, capacity)


def best_between(
    loss: Callable[[float], float],
    low: float,
    high: float,
    *,
    convex: bool = False,
    foresee: Callable[[FloatArray], None] | None = None,
) -> float:
    """Where the loss is least above `low` and up to `high`.

    Unless it is known to be convex, a grid is evaluated first, and then searched around its best.
    `foresee` is told the grid before.
    """
    from scipy.optimize import minimize_scalar  # takes half a second to import, rarely needed

    grid = np.array([high]) if convex else np.linspace(low, high, _GRID)[1:]
    if foresee is not None:
        foresee(grid)
    losses = [loss(float(total)) for total in grid]
    n = int(np.argmin(losses))
    start, end = low, high
    if not convex:
        start, end = (grid[n - 1] if n > 0 else low), grid[min(n + 1, grid.size - 1)]
    if start == end or losses[n] == np.inf:
        return float(grid[n])
    worst = _HUGE if convex else max(value for value in losses if value < np.inf)

    def finite(total: float) -> float:
        """Something large where there is no profile: the search needs finite numbers."""
        return min(loss(total), worst)

    close = minimize_scalar(
        finite, bounds=(start, end), method="bounded", options={"xatol": 1e-9 * high}
    )
    return float(close.x) if close.fun < losses[n] else float(grid[n])

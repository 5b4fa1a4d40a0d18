"""Objectives of an individual agreement other than the most data: least total cost, fairest.

Both choose a total T and amounts x_n up to the bounds u_n(T) that each client keeps to (see
`individual`). Clients whose satiation point is T or more contribute all they have, which is best
for them and for everyone. As long as no client is a large part of the total this is a convex
problem, so the best total is found by evaluating a grid of totals and then searching closely
around the best of them.

In whole samples the best profile of a given total is found just as exactly: the bounds are
rounded down. The total is then the best of the feasible whole totals next to the real-valued one,
100 on either side: if there are no more than that, no profile is better.
"""

from collections.abc import Callable
from itertools import islice

import numpy as np

from fedaccord.agreement.enforcement import ScaledGame
from fedaccord.agreement.individual import Bounds
from fedaccord.agreement.whole import lowest_worthwhile, round_down, whole_totals, without
from fedaccord.game.cost import accuracy_loss, cost
from fedaccord.game.equilibrium import Equilibrium
from fedaccord.numbers import SUMS_DIFFER, BoolArray, FloatArray

_GRID = 65
"""Totals evaluated before the search narrows down."""

_HALVINGS = 60
"""Bisection steps that determine a saving to the last bit."""

_NEXT_TO_IT = 100
"""Whole totals evaluated on either side of the best real-valued one."""


class _Choice:
    """One consortium's bounds at any total: who contributes all anyway, and how much others may."""

    def __init__(self, equilibrium: Equilibrium, game: ScaledGame, largest: FloatArray) -> None:
        self.equilibrium = equilibrium
        self.consortium = equilibrium.consortium
        self.game = game
        self.bounds = Bounds(game)
        self.largest = largest

    def at(self, total: float, whole: bool) -> tuple[BoolArray, FloatArray]:
        """Who contributes all it has anyway, and u_n(T), rounded down if `whole`."""
        most = self.bounds.at(np.array([[total]]))[0]
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

        total = _best_total(loss, self.equilibrium.total, float(self.largest.sum()))
        if not whole:
            profile = share_out(total, False)
            return self.largest if profile is None else profile
        shared = [share_out(near, True) for near in self._whole_totals_next_to(total)]
        found = [profile for profile in shared if profile is not None]
        return min(found, key=loss_of, default=self.equilibrium.profile)

    def _whole_totals_next_to(self, total: float) -> list[float]:
        low, high = lowest_worthwhile(self.game), float(np.floor(self.largest.sum()))
        here = max(float(np.floor(total)), low - 1.0)
        below = whole_totals(self.game, low, here)
        above = whole_totals(self.game, here + 1.0, high, upwards=True)
        return [*islice(below, _NEXT_TO_IT), *islice(above, _NEXT_TO_IT)]


def least_cost_profile(
    equilibrium: Equilibrium, game: ScaledGame, largest: FloatArray, *, whole: bool = False
) -> FloatArray:
    """The enforceable profile of least total cost: the cheapest samples first.

    Clients of equal cost contribute the same fraction of their bounds; in whole samples, where
    that is impossible, they are filled up in their order.
    """
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

    return choice.best(share_out, lambda x: float(cost(choice.consortium, x).sum()), whole)


def _filled(wanted: float, capacity: FloatArray) -> FloatArray:
    """Fill the capacities in order until `wanted` is reached."""
    return np.clip(wanted - (capacity.cumsum() - capacity), 0.0, capacity)


def fairest_profile(
    equilibrium: Equilibrium, game: ScaledGame, largest: FloatArray, *, whole: bool = False
) -> FloatArray:
    """The enforceable profile whose smallest relative saving, 1 - F_n/F_n(x*), is largest."""
    choice = _Choice(equilibrium, game, largest)
    consortium = equilibrium.consortium
    before = equilibrium.cost

    def share_out(total: float, whole: bool) -> FloatArray | None:
        """Amounts that reach the best smallest saving at this total."""
        eager, most = choice.at(total, whole)
        fixed = (
            consortium.valuation * accuracy_loss(total, consortium.rounds)
            + consortium.communication_cost
            + consortium.server_fee
        )

        def affordable(saving: float) -> FloatArray:
            left = ((1.0 - saving) * before - fixed) / consortium.cost_per_sample
            amounts = np.where(eager, most, np.clip(left, 0.0, most))
            return round_down(amounts) if whole else amounts

        given = np.where(eager, most, 0.0)
        high = float(np.min((before - fixed - consortium.cost_per_sample * given) / before))
        low = 0.0
        if most.sum() < total * (1.0 - SUMS_DIFFER) or most[eager].sum() > total or high < 0.0:
            return None
        if affordable(high).sum() < total:
            for _ in range(_HALVINGS):
                middle = 0.5 * (low + high)
                enough = affordable(middle).sum() >= total
                low, high = (middle, high) if enough else (low, middle)
        else:
            low = high
        amounts = affordable(low)
        if whole:
            surplus = float(amounts.sum()) - total
            return without(amounts, surplus, ~eager) if surplus >= 0 else None
        rest = float(amounts[~eager].sum())
        scale = (total - float(most[eager].sum())) / rest if rest > 0 else 1.0
        return np.where(eager, most, min(max(scale, 0.0), 1.0) * amounts)

    def loss(profile: FloatArray) -> float:
        return -float(np.min(1.0 - cost(consortium, profile) / before))

    return choice.best(share_out, loss, whole)


def _best_total(loss: Callable[[float], float], low: float, high: float) -> float:
    """The total between the equilibrium's, `low`, and the largest, `high`, of least loss."""
    from scipy.optimize import minimize_scalar  # takes half a second to import, rarely needed

    grid = np.linspace(low, high, _GRID)[1:]  # at `low` itself there is no agreement
    losses = [loss(float(total)) for total in grid]
    n = int(np.argmin(losses))
    around = (float(grid[max(n - 1, 0)]), float(grid[min(n + 1, grid.size - 1)]))
    if around[0] == around[1] or losses[n] == np.inf:
        return float(grid[n])
    worst = max(value for value in losses if value < np.inf)

    def finite(total: float) -> float:
        """The worst loss where there is no profile: the search needs finite numbers."""
        return min(loss(total), worst)

    close = minimize_scalar(finite, bounds=around, method="bounded", options={"xatol": 1e-9 * high})
    return float(close.x) if close.fun < losses[n] else float(grid[n])

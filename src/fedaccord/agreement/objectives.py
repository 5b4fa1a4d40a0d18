"""Other things to want of an individual agreement than the most data.

Both objectives choose a total T and amounts x_n up to the bounds u_n(T) that each client
keeps to (see `individual`). Clients whose satiation point is T or more give all they have,
which suits them and everyone. While no client is a large part of the total the choice is a
convex problem, so the best total is found by looking at a grid of totals and then closely
around the best of them.
"""

from collections.abc import Callable

import numpy as np

from fedaccord.agreement.enforcement import ScaledGame
from fedaccord.agreement.individual import Bounds
from fedaccord.game.arrays import BoolArray, FloatArray
from fedaccord.game.cost import accuracy_loss, cost
from fedaccord.game.equilibrium import Equilibrium

_GRID = 65
"""Totals looked at before the search closes in."""

_HALVINGS = 60
"""Of the range of savings: to the last bit."""


class _Choice:
    """One consortium's bounds at any total: who gives all anyway, and what others may give."""

    def __init__(self, equilibrium: Equilibrium, game: ScaledGame) -> None:
        self.equilibrium = equilibrium
        self.consortium = equilibrium.consortium
        self.bounds = Bounds(game)

    def at(self, total: float) -> tuple[BoolArray, FloatArray]:
        """Clients that give all they have anyway, and u_n(T)."""
        most = self.bounds.at(np.array([[total]]))[0]
        return self.consortium.satiation >= total, most


def least_cost_profile(
    equilibrium: Equilibrium, game: ScaledGame, largest: FloatArray
) -> FloatArray:
    """The enforceable profile of least total cost: the cheapest samples first."""
    choice = _Choice(equilibrium, game)
    prices, group = np.unique(equilibrium.consortium.cost_per_sample, return_inverse=True)

    def fill(total: float) -> FloatArray | None:
        eager, most = choice.at(total)
        wanted = total - float(most[eager].sum())
        offer = np.where(eager, 0.0, most)
        capacity = np.bincount(group, weights=offer, minlength=prices.size)
        before = capacity.cumsum() - capacity
        if not -1e-12 * total <= wanted <= capacity.sum() * (1.0 + 1e-12):
            return None
        room = np.clip(wanted - before, 0.0, capacity)
        share = np.divide(room, capacity, out=np.zeros_like(room), where=capacity > 0)
        return np.where(eager, most, share[group] * offer)

    def loss(total: float) -> float:
        profile = fill(total)
        return np.inf if profile is None else float(cost(choice.consortium, profile).sum())

    best = _best_total(loss, equilibrium.total, float(largest.sum()))
    profile = fill(best)
    return largest if profile is None else profile


def fairest_profile(equilibrium: Equilibrium, game: ScaledGame, largest: FloatArray) -> FloatArray:
    """The enforceable profile whose smallest relative saving, 1 - F_n/F_n(x*), is largest."""
    choice = _Choice(equilibrium, game)
    consortium = equilibrium.consortium
    before = equilibrium.cost

    def share_out(total: float) -> tuple[float, FloatArray] | None:
        """The best smallest saving at this total, and amounts that reach it."""
        eager, most = choice.at(total)
        fixed = (
            consortium.valuation * accuracy_loss(total, consortium.rounds)
            + consortium.communication_cost
            + consortium.server_fee
        )

        def affordable(saving: float) -> FloatArray:
            left = ((1.0 - saving) * before - fixed) / consortium.cost_per_sample
            return np.where(eager, most, np.clip(left, 0.0, most))

        given = np.where(eager, most, 0.0)
        high = float(np.min((before - fixed - consortium.cost_per_sample * given) / before))
        low = 0.0
        if most.sum() < total * (1.0 - 1e-12) or most[eager].sum() > total or high < 0.0:
            return None
        if affordable(high).sum() < total:
            for _ in range(_HALVINGS):
                middle = 0.5 * (low + high)
                enough = affordable(middle).sum() >= total
                low, high = (middle, high) if enough else (low, middle)
        else:
            low = high
        amounts = affordable(low)
        rest = float(amounts[~eager].sum())
        scale = (total - float(most[eager].sum())) / rest if rest > 0 else 1.0
        return low, np.where(eager, most, min(max(scale, 0.0), 1.0) * amounts)

    def loss(total: float) -> float:
        shared = share_out(total)
        return np.inf if shared is None else -shared[0]

    best = share_out(_best_total(loss, equilibrium.total, float(largest.sum())))
    return largest if best is None else best[1]


def _best_total(loss: Callable[[float], float], low: float, high: float) -> float:
    """The total between the equilibrium's, `low`, and the largest, `high`, of least loss."""
    from scipy.optimize import minimize_scalar  # half a second to import, and seldom needed

    grid = np.linspace(low, high, _GRID)[1:]  # at `low` itself there is no agreement
    losses = [loss(float(total)) for total in grid]
    n = int(np.argmin(losses))
    around = (float(grid[max(n - 1, 0)]), float(grid[min(n + 1, grid.size - 1)]))
    if around[0] == around[1] or losses[n] == np.inf:
        return float(grid[n])
    worst = max(value for value in losses if value < np.inf)

    def finite(total: float) -> float:
        """Where there is no profile, as bad as the worst: the search does sums with losses."""
        return min(loss(total), worst)

    close = minimize_scalar(finite, bounds=around, method="bounded", options={"xatol": 1e-9 * high})
    return float(close.x) if close.fun < losses[n] else float(grid[n])

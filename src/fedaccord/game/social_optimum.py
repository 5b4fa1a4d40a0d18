"""The profile of least total cost, and the price of anarchy.

The total cost is sum F_n = sum rho_n A(X) + sum E_n x_n + ..., so the cheapest samples (by quality)
come first, until the next one costs more than it saves all clients together: client n's samples are
worth their cost while X is below the point at which the slope of sum rho_n A is E_n / q_n, with the
paper's law (sum rho / (2 sqrt(G) E_n))^(2/3).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from fedaccord.checks import check_type
from fedaccord.game.consortium import Consortium
from fedaccord.game.cost import cost
from fedaccord.game.equilibrium import Equilibrium
from fedaccord.game.filling import fill
from fedaccord.numbers import FloatArray
from fedaccord.record import Columns, Record, Tables


@dataclass(frozen=True, eq=False, repr=False)
class SocialOptimum(Record):
    """The profile of least total cost. Clients may be better off deviating from it."""

    consortium: Consortium
    profile: FloatArray
    total: float

    @cached_property
    def cost(self) -> FloatArray:
        """F_n of each client."""
        return cost(self.consortium, self.profile, self.total)

    def _facts(self) -> dict[str, Any]:
        return {"total": self.total, "total_cost": self.cost.sum()}

    def _tables(self) -> Tables:
        return {"clients": self._clients}

    def _clients(self) -> Columns:
        return {
            "name": self.consortium.names,
            "contribution": self.profile,
            "cost": self.cost,
        }


def solve_social_optimum(consortium: Consortium) -> SocialOptimum:
    """The profile that minimises the sum of all costs; clients of equal cost share equally."""
    check_type("consortium", consortium, Consortium)
    everyone = consortium.law.together(consortium.valuation)
    with np.errstate(over="ignore"):  # samples that cost next to nothing are worth it at any total
        points = everyone.stop(consortium.quality / consortium.cost_per_sample)
    worth = consortium.samples * consortium.quality
    filling = fill(points[np.newaxis], worth[np.newaxis])
    profile = consortium.in_samples(filling.profile[0])
    profile.flags.writeable = False
    return SocialOptimum(consortium, profile, float(filling.total.item()))


def price_of_anarchy(equilibrium: Equilibrium, optimum: SocialOptimum) -> float:
    """The total cost at the equilibrium, divided by the least possible total cost."""
    return float(equilibrium.cost.sum() / optimum.cost.sum())

"""The stage game's Nash equilibrium: what selfish clients do in one slot (Theorems 1 and 2).

Client n's cost falls with the total up to its satiation point h_n. So clients with h_n above
the total contribute all their samples, those below contribute nothing, and those at it share the
rest. If a law is finite without data and nobody's first sample pays, the equilibrium is that
nobody trains.

>>> from fedaccord.game.paper import paper_consortium
>>> equilibrium = solve_equilibrium(paper_consortium())
>>> equilibrium.case, equilibrium.critical_client, equilibrium.free_riders
('I', 'client-50', 49)
>>> round(equilibrium.total, 1)
505063.3
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from fedaccord.checks import check_type
from fedaccord.game.consortium import Consortium
from fedaccord.game.cost import cost
from fedaccord.game.filling import fill
from fedaccord.game.roles import Role, roles
from fedaccord.numbers import FloatArray
from fedaccord.record import Columns, Record, Tables


@dataclass(frozen=True, eq=False, repr=False)
class Equilibrium(Record):
    """x*: what every client contributes when each considers only itself and only one slot."""

    consortium: Consortium
    profile: FloatArray
    total: float
    """X*, what the law sees of it, unique even where the profile is not."""
    unique: bool
    """False if tied clients could share the rest in other ways, too (Theorem 2)."""
    case: str | None
    """Theorem 1's case, "I" or "II", or "all" when everyone contributes everything; None when
    data sizes differ, for which the theorem has no cases."""
    critical: tuple[int, ...]
    """Positions of the clients at the margin: the critical client k of case I, or a tie."""

    @cached_property
    def effective(self) -> Equilibrium:
        """The same equilibrium, counted in samples of quality 1."""
        consortium = self.consortium.effective
        if consortium is self.consortium:
            return self
        return replace(self, consortium=consortium, profile=self.profile * self.consortium.quality)

    @property
    def critical_client(self) -> str | None:
        """The name of the client at the margin, the first of them in a tie."""
        return self.consortium.names[self.critical[0]] if self.critical else None

    @cached_property
    def free_riders(self) -> int:
        """How many clients contribute nothing."""
        return int((self.profile == 0).sum())

    @cached_property
    def roles(self) -> tuple[Role, ...]:
        """The role of each client."""
        return roles(self.profile, self.consortium.samples)

    @cached_property
    def cost(self) -> FloatArray:
        """F_n(x*) of each client."""
        return cost(self.consortium, self.profile, self.total)

    def _facts(self) -> dict[str, Any]:
        return {
            "case": self.case,
            "unique": self.unique,
            "total": self.total,
            "critical_client": self.critical_client,
            "free_riders": self.free_riders,
            "total_cost": self.cost.sum(),
        }

    def _tables(self) -> Tables:
        return {"clients": self._clients}

    def _clients(self) -> Columns:
        return {
            "name": self.consortium.names,
            "contribution": self.profile,
            "role": [str(role) for role in self.roles],
            "cost": self.cost,
        }


def solve_equilibrium(consortium: Consortium) -> Equilibrium:
    """The Nash equilibrium of one slot, in O(N log N), for any data sizes."""
    check_type("consortium", consortium, Consortium)
    worth = consortium.counted(consortium.samples)
    filling = fill(consortium.satiation[np.newaxis], worth[np.newaxis])
    total, share = float(filling.total.item()), float(filling.share.item())
    critical = np.flatnonzero(filling.at_margin[0])
    profile = consortium.in_samples(filling.profile[0])
    profile.flags.writeable = False
    return Equilibrium(
        consortium=consortium,
        profile=profile,
        total=total,
        unique=critical.size <= 1 or share in (0.0, 1.0),
        case=_case(consortium, profile, critical.size > 0) if consortium.equal_samples else None,
        critical=tuple(critical.tolist()),
    )


def _case(consortium: Consortium, profile: FloatArray, someone_critical: bool) -> str:
    """Theorem 1's two cases, or the one that it leaves out."""
    if someone_critical:
        return "I"
    return "all" if (profile == consortium.samples).all() else "II"


def best_response(consortium: Consortium, others: npt.ArrayLike) -> FloatArray:
    """What each client would contribute if the others contribute `others` together (Lemma 1).

    `others` counts samples of quality 1.
    """
    wanted = (consortium.satiation - np.asarray(others, dtype=np.float64)) / consortium.quality
    result: FloatArray = np.clip(wanted, 0.0, consortium.samples)
    return result

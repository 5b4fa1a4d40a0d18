"""What a consortium signs: a profile, and the punishment that enforces it."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from math import inf
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from fedaccord.agreement.monitoring import BELIEVED, Monitoring
from fedaccord.agreement.punishment import Punishment, PunishmentName, Reversion, as_punishment
from fedaccord.game.alone import alone_cost
from fedaccord.game.consortium import Consortium
from fedaccord.game.cost import cost
from fedaccord.game.equilibrium import Equilibrium, solve_equilibrium
from fedaccord.game.law import Law
from fedaccord.game.ranges import Ranges
from fedaccord.game.roles import Role, roles
from fedaccord.numbers import SUMS_DIFFER, BoolArray, FloatArray, as_profile
from fedaccord.record import Columns, Record, Tables

Kind = Literal["uniform", "individual", "given"]
SolvedKind = Literal["individual", "uniform"]
Objective = Literal["fair share", "most data", "least total cost"]
FirstConverted = Literal["paper", "feasible"]

KEPT = 1e-9
"""A contribution this close (relative) to the agreed one is the agreed one. What a client trains
on and what it was told pass through files and messages; a billionth is far below one sample."""
USUAL_MARGIN = 0.01
"""For the agreement of a consortium's file: discount factors are known to two decimals at best."""


@dataclass(frozen=True, eq=False, repr=False)
class Agreement(Record):
    """A profile that each client keeps to in every slot, and what follows if one does not.

    An Agreement only states this; `certify` proves whether it holds.
    """

    equilibrium: Equilibrium
    """What selfish clients do: what everyone reverts to after a slip if that is the punishment."""
    profile: FloatArray
    """x^coop, what each client is asked to contribute in every slot."""
    kind: Kind
    exists: bool = True
    """False if no agreement of this kind asks for more than the equilibrium."""
    reason: str | None = None
    """Why there is none, if there is none."""
    objective: Objective | None = None
    first_converted: str | None = None
    """Uniform: client l, the first free rider that is converted."""
    first_converted_by: FirstConverted | None = None
    """Uniform: whether client l is the paper's, or the first one that patience allows."""
    level: float | None = None
    """Uniform: x^os, what each converted client contributes (or all it has); with qualities, in
    samples of quality 1."""
    largest_level: float | None = None
    """Uniform: x_l^th, the level up to which client l gains at all."""
    margin: float = 0.0
    """By how much the clients' discount factors may be lower than stated."""
    whole_samples: bool = False
    """Whether all contributions are whole numbers."""
    punishment: Punishment = field(default_factory=Reversion)
    """What follows a deviation; the paper's is reversion for ever."""
    monitoring: Monitoring = BELIEVED
    """How a deviation is seen; by default for certain, before the next slot."""
    nobody_worse: bool = False
    """Whether it was asked for that no client pays more than at the equilibrium."""
    laws: Law | None = None
    """Laws of the loss, as rows, that it was made to hold for besides the consortium's own."""
    ranges: Ranges | None = None
    """Ranges of the clients' numbers that it was made to hold for throughout."""

    def __post_init__(self) -> None:
        """Take the usual punishment of a kind if only its name is given."""
        object.__setattr__(self, "punishment", as_punishment(self.punishment))

    @property
    def robust(self) -> bool:
        """Whether it was made to hold for more than the numbers as stated and the fitted law."""
        return self.laws is not None or self.ranges is not None

    @property
    def consortium(self) -> Consortium:
        """Whose agreement it is."""
        return self.equilibrium.consortium

    @cached_property
    def total(self) -> float:
        """X^coop: all samples that are trained on in a slot, each counted by its quality."""
        return self.consortium.total_of(self.profile)

    @property
    def ratio(self) -> float:
        """R_d: the total divided by the equilibrium's; infinite if nobody trains there."""
        before = self.equilibrium.total
        if before > 0:
            return self.total / before
        return inf if self.total > 0 else 1.0

    @cached_property
    def free_riders(self) -> int:
        """How many clients contribute nothing."""
        return int((self.profile == 0).sum())

    @property
    def free_riders_removed(self) -> int:
        """N_f: how many fewer free riders than at the equilibrium."""
        return self.equilibrium.free_riders - self.free_riders

    @cached_property
    def roles(self) -> tuple[Role, ...]:
        """The role of each client."""
        return roles(self.profile, self.consortium.samples, self.equilibrium.profile)

    @cached_property
    def cost(self) -> FloatArray:
        """F_n of each client in a slot in which all keep to the agreement."""
        return cost(self.consortium, self.profile, self.total)

    @property
    def saving(self) -> FloatArray:
        """What each client saves per slot compared with the equilibrium."""
        return self.equilibrium.cost - self.cost

    @cached_property
    def alone_cost(self) -> FloatArray:
        """V_n: what a slot would cost each client on its own."""
        return alone_cost(self.consortium)

    @cached_property
    def worse_than_equilibrium(self) -> BoolArray:
        """Which clients pay more than at the equilibrium, beyond rounding."""
        decided = self.profile + self.equilibrium.profile
        rounding = SUMS_DIFFER * np.abs(self.equilibrium.cost)  # a saving is a difference of costs
        return -self.saving > KEPT * self.consortium.cost_per_sample * decided + rounding

    _headline: ClassVar = ("kind", "exists", "total", "ratio", "free_riders", "punishment")

    def _facts(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "exists": self.exists,
            "total": self.total,
            "ratio": self.ratio,
            "free_riders": self.free_riders,
            "free_riders_removed": self.free_riders_removed,
            "first_converted": self.first_converted,
            "first_converted_by": self.first_converted_by,
            "level": self.level,
            "largest_level": self.largest_level,
            "reason": self.reason,
            "objective": self.objective,
            "margin": self.margin,
            "whole_samples": self.whole_samples,
            "punishment": self.punishment,
            "monitoring": self.monitoring,
            "nobody_worse": self.nobody_worse,
            "robust": self.robust,
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
            "saving": self.saving,
            "worse_than_equilibrium": self.worse_than_equilibrium,
            "alone_cost": self.alone_cost,
        }


def agreement_on(
    consortium: Consortium,
    profile: npt.ArrayLike,
    punishment: Punishment | PunishmentName = "reversion",
    monitoring: Monitoring = BELIEVED,
) -> Agreement:
    """An agreement on any profile, for instance one written by hand.

    Args:
        consortium: The clients.
        profile: What each client is asked to contribute in every slot.
        punishment: What follows a deviation, or the name of its kind.
        monitoring: How a deviation is seen; by default for certain, before the next slot.
    """
    monitoring.rates(consortium)  # refuses rates of other clients
    return Agreement(
        equilibrium=solve_equilibrium(consortium),
        profile=as_profile(profile, consortium.samples),
        kind="given",
        punishment=as_punishment(punishment),
        monitoring=monitoring,
    )

"""What a consortium signs: a profile, and the punishment that enforces it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy.typing as npt

from fedaccord.checks import LARGEST_COUNT, check_whole
from fedaccord.game.consortium import Consortium
from fedaccord.game.cost import cost
from fedaccord.game.equilibrium import Equilibrium, solve_equilibrium
from fedaccord.game.roles import Role, roles
from fedaccord.numbers import FloatArray, as_profile
from fedaccord.record import Columns, Record, Tables

Kind = Literal["uniform", "individual", "given"]
Objective = Literal["most data", "least total cost", "fairest"]
FirstConverted = Literal["paper", "feasible"]

KEPT = 1e-9
"""A contribution this close (relative) to the agreed one is the agreed one. What a client trains
on and what it was told pass through files and messages; a billionth is far below one sample."""


@dataclass(frozen=True, eq=False, repr=False)
class Agreement(Record):
    """A profile that each client keeps to in every slot, or everyone reverts to the equilibrium.

    An Agreement only states this; `certify` proves whether it holds.
    """

    equilibrium: Equilibrium
    """What everyone reverts to when someone deviates: the punishment, x^pun."""
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
    """Uniform: x^os, what each converted client contributes (or all it has)."""
    largest_level: float | None = None
    """Uniform: x_l^th, the level up to which client l gains at all."""
    margin: float = 0.0
    """By how much the clients' discount factors may be lower than stated."""
    whole_samples: bool = False
    """Whether all contributions are whole numbers."""
    punishment_slots: int | None = None
    """How many slots a deviation is punished for; None: for ever, as in the paper."""

    def __post_init__(self) -> None:
        """Check the length of the punishment."""
        check_punishment_slots(self.punishment_slots)

    @property
    def consortium(self) -> Consortium:
        """Whose agreement it is."""
        return self.equilibrium.consortium

    @cached_property
    def total(self) -> float:
        """X^coop: all samples that are trained on in a slot."""
        return float(self.profile.sum())

    @property
    def ratio(self) -> float:
        """R_d: the total divided by the equilibrium's."""
        return self.total / self.equilibrium.total

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

    _headline: ClassVar = ("kind", "exists", "total", "ratio", "free_riders", "punishment_slots")

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
            "punishment_slots": self.punishment_slots,
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
        }


def check_punishment_slots(slots: int | None) -> None:
    """Refuse a length that is neither a whole number of slots nor None, for ever."""
    if slots is not None:
        check_whole("punishment_slots", slots, 1, LARGEST_COUNT)


def agreement_on(
    consortium: Consortium, profile: npt.ArrayLike, punishment_slots: int | None = None
) -> Agreement:
    """An agreement on any profile, for instance one written by hand.

    Args:
        consortium: The clients.
        profile: What each client is asked to contribute in every slot.
        punishment_slots: How many slots a deviation is punished for; None: for ever.
    """
    return Agreement(
        equilibrium=solve_equilibrium(consortium),
        profile=as_profile(profile, consortium.samples),
        kind="given",
        punishment_slots=punishment_slots,
    )

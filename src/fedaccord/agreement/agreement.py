"""What a consortium signs: a profile, and the punishment that backs it."""

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
import numpy.typing as npt

from fedaccord.errors import InvalidInput
from fedaccord.game.consortium import LARGEST_COUNT, Consortium
from fedaccord.game.cost import cost
from fedaccord.game.equilibrium import Equilibrium, solve_equilibrium
from fedaccord.game.roles import Role, roles
from fedaccord.numbers import FloatArray, as_profile

Kind = Literal["uniform", "individual", "given"]
Objective = Literal["most data", "least total cost", "fairest"]
FirstConverted = Literal["paper", "feasible"]


@dataclass(frozen=True, eq=False)
class Agreement:
    """A profile that each client is to keep to, slot after slot, on pain of the equilibrium.

    Whether it is worth signing is for `certify` to say: an Agreement only states.
    """

    equilibrium: Equilibrium
    """What everyone reverts to when someone slips: the punishment, x^pun."""
    profile: FloatArray
    """x^coop, what each client is asked to contribute in every slot."""
    kind: Kind
    exists: bool = True
    """False when no agreement of this kind asks for more than the equilibrium."""
    reason: str | None = None
    """Why there is none."""
    objective: Objective | None = None
    first_converted: str | None = None
    """Uniform: client l, the first free rider that is converted."""
    first_converted_by: FirstConverted | None = None
    """Uniform: whether l is the paper's, or the first for which the clients are patient enough."""
    level: float | None = None
    """Uniform: x^os, what each converted client gives (or all it has)."""
    largest_level: float | None = None
    """Uniform: x_l^th, the level up to which client l gains at all."""
    margin: float = 0.0
    """How much less patient than said the clients may be."""
    whole_samples: bool = False
    punishment_slots: int | None = None
    """How long a slip is punished; None: for ever, as in the paper."""

    def __post_init__(self) -> None:
        """A punishment has a length of whole slots, or no end."""
        check_punishment_slots(self.punishment_slots)

    @property
    def consortium(self) -> Consortium:
        """Whose agreement it is."""
        return self.equilibrium.consortium

    @cached_property
    def total(self) -> float:
        """All samples that are trained on in a slot."""
        return float(self.profile.sum())

    @property
    def ratio(self) -> float:
        """R_d: the total against the equilibrium's."""
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
        """F_n of each client in a slot in which all keep to it."""
        return cost(self.consortium, self.profile, self.total)

    @property
    def saving(self) -> FloatArray:
        """What each client saves in a slot against the equilibrium."""
        return self.equilibrium.cost - self.cost


def check_punishment_slots(slots: int | None) -> None:
    """Refuse a length that is no whole number of slots."""
    whole = isinstance(slots, int | np.integer) and not isinstance(slots, bool)
    if slots is not None and not (whole and slots >= 1):
        raise InvalidInput(f"punishment_slots: must be a whole number, 1 or more, got {slots!r}")
    if slots is not None and slots > LARGEST_COUNT:
        raise InvalidInput(f"punishment_slots: must be {LARGEST_COUNT:,} or less, or for ever")


def agreement_on(
    consortium: Consortium, profile: npt.ArrayLike, punishment_slots: int | None = None
) -> Agreement:
    """An agreement on any profile, for instance one written by hand."""
    return Agreement(
        equilibrium=solve_equilibrium(consortium),
        profile=as_profile(profile, consortium.samples),
        kind="given",
        punishment_slots=punishment_slots,
    )

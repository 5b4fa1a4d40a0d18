"""What every mechanism answers: who contributes what, who is paid what, and what holds it up.

A mechanism is anything with a name and a function from a consortium to an `Outcome`. The
equilibrium, both agreements and all that other people would do are mechanisms, so that they
can stand side by side (see `fedaccord.mechanisms.compare`), and the next one is one file.
"""

from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Protocol

import numpy as np
import numpy.typing as npt

from fedaccord.errors import InvalidInput
from fedaccord.game.consortium import Consortium
from fedaccord.game.cost import cost
from fedaccord.game.equilibrium import Equilibrium, solve_equilibrium
from fedaccord.game.roles import Role, roles
from fedaccord.numbers import FloatArray, as_profile, read_only
from fedaccord.record import Columns, Record, Tables

_ROUNDING = 1e-12
"""Payments among clients add up to nothing but for this part of them."""


@dataclass(frozen=True, eq=False, repr=False)
class Outcome(Record):
    """What a mechanism makes of a consortium, in every slot."""

    equilibrium: Equilibrium
    """What the clients would do alone, to compare with."""
    contributions: FloatArray
    """How many samples each client trains on."""
    payments: FloatArray
    """What each client is paid in a slot; below 0: what it pays."""
    enforced_by: str
    """What makes clients keep to it."""
    survives_private_information: bool | None = None
    """Whether it still works when only a client itself knows its valuation and its cost;
    None: nobody has said."""
    private_information: str = "not said"
    """Why, in a few words."""
    notes: tuple[str, ...] = ()
    """What else to know, a sentence each."""

    @property
    def consortium(self) -> Consortium:
        """Whose outcome it is."""
        return self.equilibrium.consortium

    @cached_property
    def total(self) -> float:
        """All samples that are trained on in a slot."""
        return float(self.contributions.sum())

    @cached_property
    def roles(self) -> tuple[Role, ...]:
        """The role of each client, as under an agreement."""
        return roles(self.contributions, self.consortium.samples, self.equilibrium.profile)

    @property
    def contributors(self) -> int:
        """Clients that contribute, converted ones too, but for the partial contributors."""
        converted = self._count[Role.CONVERTED_CONTRIBUTOR]
        return self._count[Role.CONTRIBUTOR] + converted

    @property
    def partial_contributors(self) -> int:
        """Clients that contribute at the equilibrium, and now less than all they have."""
        return self._count[Role.PARTIAL_CONTRIBUTOR]

    @property
    def free_riders(self) -> int:
        """Clients that contribute nothing."""
        return self._count[Role.FREE_RIDER]

    @cached_property
    def _count(self) -> Counter[Role]:
        return Counter(self.roles)

    @cached_property
    def cost(self) -> FloatArray:
        """F_n of each client (eq. 5), before any payment; infinite when nobody contributes."""
        return cost(self.consortium, self.contributions, self.total)

    @property
    def saving(self) -> FloatArray:
        """What each client saves in a slot against the equilibrium, its payment included."""
        return self.equilibrium.cost - self.cost + self.payments

    @property
    def paid(self) -> float:
        """All that is paid to clients."""
        return float(np.maximum(self.payments, 0.0).sum())

    @property
    def paid_from_outside(self) -> float:
        """What clients are paid beyond what clients pay: somebody else's money."""
        balance = float(self.payments.sum())
        return 0.0 if abs(balance) <= _ROUNDING * self.paid else balance

    _headline: ClassVar = ("contributors", "free_riders", "total", "payments", "enforced_by")

    def _facts(self) -> dict[str, Any]:
        return {
            "contributors": self.contributors,
            "partial_contributors": self.partial_contributors,
            "free_riders": self.free_riders,
            "total": self.total,
            "total_cost": self.cost.sum(),
            "payments": self.paid,
            "paid_from_outside": self.paid_from_outside,
            "enforced_by": self.enforced_by,
            "survives_private_information": self.survives_private_information,
            "private_information": self.private_information,
            "notes": self.notes,
        }

    def _tables(self) -> Tables:
        return {"clients": self._clients}

    def _clients(self) -> Columns:
        return {
            "name": self.consortium.names,
            "contribution": self.contributions,
            "role": [str(role) for role in self.roles],
            "payment": self.payments,
            "cost": self.cost,
            "saving": self.saving,
        }


class Mechanism(Protocol):
    """Something that could be done about free riders."""

    @property
    def name(self) -> str:
        """What to call it in a table."""

    def outcome(self, consortium: Consortium) -> Outcome:
        """What it makes of a consortium."""


def outcome_of(
    consortium: Consortium | Equilibrium,
    contributions: npt.ArrayLike,
    *,
    payments: npt.ArrayLike = 0.0,
    enforced_by: str = "nobody",
    survives_private_information: bool | None = None,
    private_information: str = "not said",
    notes: tuple[str, ...] = (),
) -> Outcome:
    """An outcome with these contributions, each checked."""
    equilibrium = (
        consortium if isinstance(consortium, Equilibrium) else solve_equilibrium(consortium)
    )
    samples = equilibrium.consortium.samples
    paid = read_only(payments, samples.size, "payments")
    if not np.isfinite(paid).all():
        n = int(np.argmin(np.isfinite(paid)))
        raise InvalidInput(f"payments[{n}]: must be a number, got {paid[n]}")
    return Outcome(
        equilibrium=equilibrium,
        contributions=as_profile(contributions, samples, "contributions"),
        payments=paid,
        enforced_by=enforced_by,
        survives_private_information=survives_private_information,
        private_information=private_information,
        notes=notes,
    )

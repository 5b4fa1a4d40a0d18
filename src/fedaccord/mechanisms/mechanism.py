"""What every mechanism answers: who contributes what, who is paid what, and what enforces it.

A mechanism is anything with a name and a method that takes a consortium and returns an `Outcome`.
The equilibrium, both agreements and all alternatives are mechanisms, so that they can be compared
(see `fedaccord.mechanisms.comparison`). Other packages can add theirs by an entry point.
"""

from collections import Counter
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Protocol

import numpy as np
import numpy.typing as npt

from fedaccord.agreement.punishment import (
    Punishment,
    PunishmentName,
    as_punishment,
)
from fedaccord.errors import InvalidInput, Problem
from fedaccord.game.alone import alone_cost
from fedaccord.game.consortium import Consortium
from fedaccord.game.cost import cost
from fedaccord.game.equilibrium import Equilibrium, solve_equilibrium
from fedaccord.game.roles import Role, roles
from fedaccord.mechanisms.tiers import access, same_model
from fedaccord.numbers import BoolArray, FloatArray, as_profile, read_only
from fedaccord.record import Columns, Record, Tables

ROUNDING = 1e-12
"""Relative: amounts of money that differ by less are equal. Each is a sum over the clients, with a
rounding error of about 1e-16 for each of them."""


@dataclass(frozen=True, eq=False, repr=False)
class Outcome(Record):
    """What happens in every slot under a mechanism."""

    equilibrium: Equilibrium
    """What selfish clients would do, for comparison."""
    contributions: FloatArray
    """How many samples each client trains on."""
    payments: FloatArray
    """What each client is paid per slot; negative if it pays."""
    enforced_by: str
    """What makes clients keep to it."""
    punishment: Punishment | None = None
    """What follows a slip; None if somebody outside the consortium enforces it instead."""
    tier_weights: FloatArray | None = None
    """With several models, the weight w_n of each client: it gets a model trained on the sum of
    q_m w_m min(x_m / w_m, x_n / w_n) over all clients m, q_m being the quality of their samples.
    None if everyone gets the same model."""
    more_counts: bool = True
    """Whether the model also improves if a client trains on more than it is asked for."""
    truthful: bool | None = None
    """Whether no client gains by misreporting its valuation or its cost; None if that is not
    known."""
    truthful_reason: str = "not said"
    """Why, in a few words."""
    verified: str = "not said"
    """What has to be verified besides what each client trains on: "data sizes" or "nothing"."""
    notes: tuple[str, ...] = ()
    """Further remarks, one sentence each."""

    def with_notes(self, *notes: str) -> "Outcome":
        """The same outcome with these remarks."""
        return replace(self, notes=notes)

    @property
    def consortium(self) -> Consortium:
        """The consortium in question."""
        return self.equilibrium.consortium

    @cached_property
    def total(self) -> float:
        """X: all samples that are trained on per slot, by their quality."""
        return self.consortium.total_of(self.contributions)

    @cached_property
    def roles(self) -> tuple[Role, ...]:
        """The role of each client, as under an agreement."""
        return roles(self.contributions, self.consortium.samples, self.equilibrium.profile)

    @property
    def contributors(self) -> int:
        """Clients that contribute, including converted ones but not partial contributors."""
        converted = self._count[Role.CONVERTED_CONTRIBUTOR]
        return self._count[Role.CONTRIBUTOR] + converted

    @property
    def partial_contributors(self) -> int:
        """Clients that contribute at the equilibrium, and now less than all their data."""
        return self._count[Role.PARTIAL_CONTRIBUTOR]

    @property
    def free_riders(self) -> int:
        """Clients that contribute nothing."""
        return self._count[Role.FREE_RIDER]

    @cached_property
    def _count(self) -> Counter[Role]:
        return Counter(self.roles)

    @cached_property
    def access(self) -> FloatArray:
        """Y_n: how many samples each client's model is trained on; all, if there is one model."""
        if self.tier_weights is None:
            return np.full(self.consortium.size, self.total)
        quality = self.consortium.quality
        return access(quality * self.contributions, quality * self.tier_weights)

    @property
    def models(self) -> int:
        """How many different models are handed out."""
        ascending = np.sort(self.access)
        return 1 + int((~same_model(ascending[:-1], ascending[1:])).sum())

    @cached_property
    def cost(self) -> FloatArray:
        """F_n of each client (eq. 5), before payments; may be infinite if nobody contributes."""
        return cost(self.consortium, self.contributions, self.access)

    @property
    def saving(self) -> FloatArray:
        """What each client saves per slot compared with the equilibrium, including payments."""
        return self.equilibrium.cost - self.cost + self.payments

    @property
    def worse_than_equilibrium(self) -> int:
        """How many clients pay more than at the equilibrium, payments included."""
        return int(self._dearer_than(self.equilibrium.cost).sum())

    @property
    def worse_than_alone(self) -> int:
        """How many clients pay more than if they trained alone, payments included."""
        return int(self.prefers_alone.sum())

    @property
    def prefers_alone(self) -> BoolArray:
        """Whether each client would pay less if it trained alone."""
        return self._dearer_than(alone_cost(self.consortium))

    def _dearer_than(self, other: FloatArray) -> BoolArray:
        return np.asarray(self.cost - self.payments > other * (1.0 + ROUNDING))

    @property
    def paid(self) -> float:
        """The sum of all payments to clients."""
        return float(np.maximum(self.payments, 0.0).sum())

    @property
    def paid_from_outside(self) -> float:
        """The part of the payments that does not come from clients."""
        balance = float(self.payments.sum())
        return 0.0 if abs(balance) <= ROUNDING * self.paid else balance

    @property
    def budget_balanced(self) -> bool:
        """Whether all payments to clients come from clients."""
        return self.paid_from_outside == 0.0

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
            "budget_balanced": self.budget_balanced,
            "worse_than_alone": self.worse_than_alone,
            "worse_than_equilibrium": self.worse_than_equilibrium,
            "enforced_by": self.enforced_by,
            "punishment": self.punishment,
            "truthful": self.truthful,
            "truthful_reason": self.truthful_reason,
            "verified": self.verified,
            "models": self.models,
            "notes": self.notes,
        }

    def _tables(self) -> Tables:
        return {"clients": self._clients}

    def _clients(self) -> Columns:
        return {
            "name": self.consortium.names,
            "contribution": self.contributions,
            "role": [str(role) for role in self.roles],
            "access": self.access,
            "payment": self.payments,
            "cost": self.cost,
            "saving": self.saving,
        }


class Mechanism(Protocol):
    """Something that could be done about free riders."""

    @property
    def name(self) -> str:
        """Its name in tables."""

    def outcome(self, consortium: Consortium) -> Outcome:
        """What happens in a consortium under this mechanism."""


def outcome_of(
    consortium: Consortium | Equilibrium,
    contributions: npt.ArrayLike,
    *,
    payments: npt.ArrayLike = 0.0,
    enforced_by: str = "nobody",
    punishment: Punishment | PunishmentName | None = "reversion",
    tier_weights: npt.ArrayLike | None = None,
    more_counts: bool = True,
    truthful: bool | None = None,
    truthful_reason: str = "not said",
    verified: str = "not said",
    notes: tuple[str, ...] = (),
) -> Outcome:
    """An outcome with these contributions, after checking them; the arguments are its fields."""
    equilibrium = (
        consortium if isinstance(consortium, Equilibrium) else solve_equilibrium(consortium)
    )
    samples = equilibrium.consortium.samples
    return Outcome(
        equilibrium=equilibrium,
        contributions=as_profile(contributions, samples, "contributions"),
        payments=_numbers("payments", payments, samples.size),
        enforced_by=enforced_by,
        punishment=None if punishment is None else as_punishment(punishment),
        tier_weights=None if tier_weights is None else _weights(tier_weights, samples.size),
        more_counts=more_counts,
        truthful=truthful,
        truthful_reason=truthful_reason,
        verified=verified,
        notes=notes,
    )


def _numbers(field: str, given: npt.ArrayLike, size: int) -> FloatArray:
    """One finite number per client."""
    values = read_only(given, size, field)
    return _checked(field, values, np.isfinite(values), "a number")


def _weights(given: npt.ArrayLike, size: int) -> FloatArray:
    """One positive number per client."""
    values = _numbers("tier_weights", given, size)
    return _checked("tier_weights", values, values > 0, "more than 0")


def _checked(field: str, values: FloatArray, right: BoolArray, words: str) -> FloatArray:
    if not right.all():
        n = int(np.argmin(right))
        raise InvalidInput(Problem(field, f"must be {words}, got {values[n]}", f"{field}[{n}]"))
    return values

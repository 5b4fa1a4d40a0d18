"""Mechanisms side by side, on one consortium.

>>> from fedaccord.game.paper import paper_consortium
>>> comparison = compare(paper_consortium())
>>> [(entry.name, entry.self_enforcing) for entry in comparison.entries][:4]
[('equilibrium', True), ('uniform', True), ('individual', True), ('suspension', True)]
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from fedaccord.checks import check_type
from fedaccord.errors import FedaccordError, InvalidInput
from fedaccord.game.consortium import Consortium
from fedaccord.game.equilibrium import Equilibrium, solve_equilibrium
from fedaccord.game.social_optimum import price_of_anarchy, solve_social_optimum
from fedaccord.mechanisms.mechanism import ROUNDING, Mechanism, Outcome
from fedaccord.mechanisms.misreport.compared import largest_gain_by_lying
from fedaccord.mechanisms.simple import ASKS_NOTHING, as_mechanism, mechanism_names
from fedaccord.mechanisms.verdict import Verdict, judge
from fedaccord.record import Columns, Record, Tables, columns_of


@dataclass(frozen=True, eq=False, repr=False)
class ComparedMechanism(Record):
    """The outcome of one mechanism, and whether clients keep to it."""

    name: str
    outcome: Outcome
    verdict: Verdict
    asks_nothing: bool
    """Whether clients are asked for nothing, so that there is nothing to lie about."""

    @cached_property
    def largest_gain_by_lying(self) -> float | None:
        """The largest gain of a client by a false report, divided by what training costs it.

        None if it is not known, 0 if nothing is asked. It takes longer than all the rest.
        """
        return 0.0 if self.asks_nothing else largest_gain_by_lying(self.name, self.outcome)

    @property
    def self_enforcing(self) -> bool:
        """Whether clients keep to it by themselves: nobody outside has to enforce it."""
        return self.verdict.holds

    @property
    def needs_patience(self) -> bool:
        """Whether only the threat of a punishment in later slots could hold it."""
        return self.outcome.punishment is not None and not self.verdict.in_one_slot

    @property
    def total_cost(self) -> float:
        """The cost of a slot for all clients together, before payments."""
        return float(self.outcome.cost.sum())

    @property
    def worst_saving(self) -> float:
        """What the worst-off client saves compared with the equilibrium, including payments."""
        return float(self.outcome.saving.min())

    @property
    def worst_client(self) -> str | None:
        """The name of the worst-off client; None if all save the same."""
        saving = self.outcome.saving
        if np.isinf(saving).all():
            return None
        spread = saving.max() - saving.min()
        if spread <= ROUNDING * float(np.abs(self.outcome.cost).max()):
            return None
        return self.outcome.consortium.names[int(np.argmin(saving))]

    _headline: ClassVar = ("name", "contributors", "free_riders", "total", "self_enforcing")

    def _facts(self) -> dict[str, Any]:
        outcome = self.outcome
        return {
            "name": self.name,
            "contributors": outcome.contributors,
            "partial_contributors": outcome.partial_contributors,
            "free_riders": outcome.free_riders,
            "total": outcome.total,
            "total_cost": self.total_cost,
            "payments": outcome.paid,
            "paid_from_outside": outcome.paid_from_outside,
            "worst_client": self.worst_client,
            "worst_saving": self.worst_saving,
            "self_enforcing": self.self_enforcing,
            "enforced_by": outcome.enforced_by,
            "punishment": outcome.punishment if self.needs_patience else None,
            "needs_patience": self.needs_patience,
            "truthful": outcome.truthful,
            "truthful_reason": outcome.truthful_reason,
            "largest_gain_by_lying": self.largest_gain_by_lying,
            "verified": outcome.verified,
            "budget_balanced": outcome.budget_balanced,
            "worse_than_alone": outcome.worse_than_alone,
            "worse_than_equilibrium": outcome.worse_than_equilibrium,
            "models": outcome.models,
            "accuracy": None,  # unknown until somebody trains a model with these contributions
            "notes": outcome.notes,
        }


@dataclass(frozen=True, eq=False, repr=False)
class MechanismComparison(Record):
    """Several mechanisms for the same consortium."""

    equilibrium: Equilibrium
    entries: tuple[ComparedMechanism, ...]
    price_of_anarchy: float

    @property
    def consortium(self) -> Consortium:
        """The consortium in question."""
        return self.equilibrium.consortium

    def __getitem__(self, name: str) -> ComparedMechanism:
        """The entry of the mechanism called `name`."""
        for entry in self.entries:
            if entry.name == name:
                return entry
        raise KeyError(name)

    def _facts(self) -> dict[str, Any]:
        return {"consortium": self.consortium, "price_of_anarchy": self.price_of_anarchy}

    def _main_facts(self) -> dict[str, Any]:
        return {"mechanisms": len(self.entries), "price_of_anarchy": self.price_of_anarchy}

    def _tables(self) -> Tables:
        return {"mechanisms": self._mechanisms}

    def _mechanisms(self) -> Columns:
        return columns_of([entry._facts() for entry in self.entries])


def compare(
    consortium: Consortium, mechanisms: Iterable[Mechanism | str] | None = None
) -> MechanismComparison:
    """Compare mechanisms: what happens under each, and whether clients keep to it.

    `mechanisms` are names or objects of your own, or one name; by default all built-in ones and
    those of installed packages.
    """
    if isinstance(mechanisms, str):
        mechanisms = [mechanisms]
    if mechanisms is None:
        mechanisms = mechanism_names()
    check_type("mechanisms", mechanisms, Iterable)
    chosen = [as_mechanism(mechanism) for mechanism in mechanisms]
    names = [mechanism.name for mechanism in chosen]
    if not names:
        raise InvalidInput("there must be at least one", field="mechanisms")
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise InvalidInput(f"two are called {twice[0]!r}", field="mechanisms")
    equilibrium = solve_equilibrium(consortium)
    optimum = solve_social_optimum(consortium)
    return MechanismComparison(
        equilibrium=equilibrium,
        entries=tuple(_entry(mechanism, consortium) for mechanism in chosen),
        price_of_anarchy=price_of_anarchy(equilibrium, optimum),
    )


def _entry(mechanism: Mechanism, consortium: Consortium) -> ComparedMechanism:
    outcome: object = mechanism.outcome(consortium)
    if not isinstance(outcome, Outcome):  # it may come from another package
        raise FedaccordError(
            f"mechanism {mechanism.name!r}: outcome() must return an Outcome, as outcome_of makes "
            f"it, got {type(outcome).__name__}"
        )
    asks_nothing = isinstance(mechanism, ASKS_NOTHING)
    return ComparedMechanism(mechanism.name, outcome, judge(outcome), asks_nothing)

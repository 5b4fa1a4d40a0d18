"""What audits an agreement needs: how often each client, how many samples, and what a budget buys.

>>> import fedaccord as fa
>>> agreement = fa.solve_agreement(fa.paper_consortium())
>>> least = least_audits(agreement)
>>> round(least.per_slot, 2), round(float(least.checks.sum()), 2)
(3.73, 3.73)
>>> least.samples_to_check[:3].tolist()
[2.0, 2.0, 1.0]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from fedaccord.agreement.agreement import Agreement
from fedaccord.agreement.audit_budget import audit_costs, solve_with_audits
from fedaccord.agreement.certificate import Certificate, certify
from fedaccord.checks import check_type
from fedaccord.errors import InvalidInput
from fedaccord.numbers import BoolArray, FloatArray
from fedaccord.record import Columns, Record, Tables

_FEW = 8
"""Numbers of samples that are tried one by one; beyond, they are doubled and then halved."""
_MOST_CHECKED = 2**20
"""Samples to check; if these are not enough, hardly any number is."""

BUDGETS = (0.25, 0.5, 1.0, 2.0, 4.0)
"""Audits in a slot for which it is worked out what they buy."""


@dataclass(frozen=True, eq=False, repr=False)
class LeastAudits(Record):
    """For every client: how often it must be audited, so that it keeps to the agreement."""

    certificate: Certificate
    """Of the agreement as it is."""
    costs: FloatArray
    """c_n: what an audit of each client costs."""

    @property
    def agreement(self) -> Agreement:
        """What the clients are to keep to."""
        return self.certificate.agreement

    @property
    def probability(self) -> FloatArray:
        """q_n: the least probability of an audit in a slot; infinite if none is enough."""
        return self.certificate.audit_probability

    @property
    def enough(self) -> bool:
        """Whether there are audits that keep everyone to the agreement."""
        return bool(np.isfinite(self.probability).all())

    @property
    def per_slot(self) -> float:
        """How many audits a slot takes, in the long run."""
        return float(self.probability.sum())

    @property
    def cost(self) -> float:
        """What they cost in a slot."""
        return float(self.costs @ self.probability)

    @cached_property
    def checks(self) -> FloatArray:
        """The least expected number of samples to check in a slot, whatever the scheme.

        Up to 1, checking a single sample with this probability is enough.
        """
        one = replace(self.agreement.monitoring, samples_checked=1)
        return certify(replace(self.agreement, monitoring=one)).least_audit

    @cached_property
    def samples_to_check(self) -> FloatArray:
        """k: how many samples an audit must check so that no partial shortfall pays.

        With the agreement's own audit probabilities. Infinite if no number is enough.
        """
        keeps = self._keeps_if_checked(None)
        least = np.where(keeps, np.nan, np.inf)
        for checked in range(1, _FEW + 1):
            if not np.isnan(least).any():
                return least
            found = np.isnan(least) & self._keeps_if_checked(checked)
            least = np.where(found, checked, least)
        for n in np.flatnonzero(np.isnan(least)).tolist():
            least[n] = self._checks_of(n)
        return least

    def _keeps_if_checked(self, checked: int | None) -> BoolArray:
        monitoring = replace(self.agreement.monitoring, samples_checked=checked)
        return certify(replace(self.agreement, monitoring=monitoring)).keeps

    def _checks_of(self, n: int) -> float:
        """How many checks one client needs that needs many."""
        low, high = _FEW, 2 * _FEW
        while not self._keeps_if_checked(high)[n]:
            low, high = high, 2 * high
            if high > _MOST_CHECKED:
                return np.inf
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self._keeps_if_checked(middle)[n] else (middle, high)
        return float(high)

    _headline: ClassVar = ("enough", "per_slot", "cost")

    def _facts(self) -> dict[str, Any]:
        return {
            "enough": self.enough,
            "per_slot": self.per_slot,
            "cost": self.cost,
            "checks_per_slot": self.checks.sum(),
            "punishment": self.agreement.punishment,
            "monitoring": self.agreement.monitoring,
        }

    def _tables(self) -> Tables:
        return {"clients": self._clients}

    def _clients(self) -> Columns:
        return {
            "name": self.agreement.consortium.names,
            "contribution": self.agreement.profile,
            "audit_probability": self.probability,
            "checks": self.checks,
            "samples_to_check": self.samples_to_check,
            "cost": self.costs * self.probability,
        }


def least_audits(agreement: Agreement | Certificate, costs: npt.ArrayLike = 1.0) -> LeastAudits:
    """How often each client must be audited, so that it keeps to the agreement.

    Args:
        agreement: Any agreement, or its certificate. Its own audit probabilities do not matter;
            the rest of its monitoring does.
        costs: c_n, what an audit of each client costs; for all clients, or one for each.
    """
    check_type("agreement", agreement, Agreement, Certificate)
    certificate = agreement if isinstance(agreement, Certificate) else certify(agreement)
    return LeastAudits(certificate, audit_costs(costs, certificate.agreement.consortium.size))


@dataclass(frozen=True, eq=False, repr=False)
class AuditBudgets(Record):
    """The largest agreement for each of several budgets of audits."""

    budgets: tuple[float, ...]
    agreements: tuple[Agreement, ...]

    @property
    def totals(self) -> FloatArray:
        """Samples in a slot; the equilibrium's where a budget buys nothing."""
        return np.array([agreement.total for agreement in self.agreements])

    def _facts(self) -> dict[str, Any]:
        first = self.agreements[0]
        return {"equilibrium_total": first.equilibrium.total, "punishment": first.punishment}

    def _tables(self) -> Tables:
        return {"budgets": self._budgets}

    def _budgets(self) -> Columns:
        return {
            "audits": self.budgets,
            "exists": [agreement.exists for agreement in self.agreements],
            "total": self.totals,
            "saving": [agreement.saving.sum() for agreement in self.agreements],
        }


def audit_budgets(
    agreement: Agreement, budgets: Sequence[float] = BUDGETS, costs: npt.ArrayLike = 1.0
) -> AuditBudgets:
    """What budgets of audits buy, with an agreement's punishment, margin and evidence.

    Args:
        agreement: An individual agreement of any audits.
        budgets: What all audits of a slot may cost together.
        costs: c_n, what an audit of each client costs; for all clients, or one for each.
    """
    check_type("agreement", agreement, Agreement)
    if agreement.laws is not None:
        wrong = "is possible only for the fitted law alone, not for all that fit the measurements"
        raise InvalidInput(wrong, field="budgets")
    found = [
        solve_with_audits(
            agreement.equilibrium,
            budget,
            costs=costs,
            margin=agreement.margin,
            punishment=agreement.punishment,
            nobody_worse=agreement.nobody_worse,
            monitoring=replace(agreement.monitoring, audit=1.0),
            robust="ranges" if agreement.ranges is not None else False,
        )
        for budget in budgets
    ]
    return AuditBudgets(tuple(map(float, budgets)), tuple(found))

"""The largest total for a budget of audits: sum c_n q_n <= Q, c_n being what an audit costs.

At a total T client n keeps to x samples if it is audited with probability q_n(x) or more, which is
its gain divided by what a punishment costs it (see `weight`). The profile of total T that needs the
fewest audits minimises sum c_n q_n(x_n) over sum x_n = T and 0 <= x_n <= u_n(T), u_n being what it
keeps to if it is audited as often as possible. With one multiplier lambda that is, client by
client, the least c_n q_n(x) - lambda x. For a small client q = (1 - b) x / (w (stake - x)), so that
1 / sqrt(q') is linear in x; for any client it is nearly so, and a few steps of regula falsi solve
c q' = lambda. Sum x_n is nearly linear in 1 / sqrt(lambda) for the same reason.

q_n is not always convex in x: rarely, and only for clients that are a large part of T. Then the
audits that are found are an upper bound on those needed, and the total may be less than the
largest.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from fedaccord.agreement.agreement import Agreement
from fedaccord.agreement.audits_needed import Needed
from fedaccord.agreement.bounds import least_bounds
from fedaccord.agreement.individual import largest_profiles
from fedaccord.agreement.intervals import fitted
from fedaccord.agreement.monitoring import BELIEVED, Monitoring
from fedaccord.agreement.patience import equilibrium_of
from fedaccord.agreement.punishment import Punishment, PunishmentName, as_punishment
from fedaccord.agreement.reasons import TOO_FEW_AUDITS, why_none
from fedaccord.agreement.robust import Terms
from fedaccord.agreement.solve import Robust, in_own_samples, individual_of
from fedaccord.checks import check_number
from fedaccord.errors import InvalidInput
from fedaccord.game.consortium import Consortium
from fedaccord.game.equilibrium import Equilibrium
from fedaccord.numbers import FloatArray, count

_JUST_ABOVE = 1.0 + 1e-5
"""Relative to the equilibrium's total: the smallest total that is looked for."""

_STEPS = 60
"""Far more than regula falsi takes; it stops when a step is within rounding."""
_CLOSE = 1e-10
"""Relative: amounts, multipliers and totals this close are the same. The most tempting part of an
amount is known to some 1e-9, so that nothing here is known much better."""

_ON_EITHER_SIDE = (1.0 - 1e-9, 1.0 + 1e-9)
"""Multipliers next to the one that is found, which differ by more than its error."""

_TO_THE_SAFE_SIDE = 1e-11
"""Relative: audits are this much more frequent than needed, so that rounding breaks nothing."""


def solve_with_audits(
    consortium: Consortium | Equilibrium,
    audits_per_slot: float,
    *,
    costs: npt.ArrayLike = 1.0,
    margin: float = 0.0,
    punishment: Punishment | PunishmentName = "reversion",
    nobody_worse: bool = False,
    monitoring: Monitoring = BELIEVED,
    robust: bool | Robust = True,
) -> Agreement:
    """The individual agreement with the most data for a budget of audits.

    Args:
        consortium: The clients, or their equilibrium if it has been solved already.
        audits_per_slot: What all audits of a slot may cost together; with costs of 1, their
            expected number.
        costs: c_n, what an audit of each client costs; for all clients, or one for each.
        margin: Design for discount factors that are this much lower than stated.
        punishment: What follows a deviation, or the name of its kind.
        nobody_worse: Let no client pay more than at the equilibrium.
        monitoring: How an audit sees a slip; its audit probabilities are the largest possible.
        robust: As in `solve_agreement`; not possible for all laws that fit measurements.

    Returns:
        An `Agreement` whose monitoring has the audit probabilities of each client. Where a client
        is a large part of the total there may be a larger one (see the module).
    """
    check_number("audits_per_slot", audits_per_slot, least=0)
    equilibrium, chosen = equilibrium_of(consortium), as_punishment(punishment)
    effective = equilibrium.effective
    if effective.consortium.law.evidence is not None and robust in (True, "law"):
        wrong = "is possible only for the fitted law alone, not for all that fit the measurements"
        raise InvalidInput(wrong, field="audits_per_slot")
    over_ranges = robust in (True, "ranges")
    terms = Terms(effective, margin, chosen, nobody_worse, over_ranges, monitoring)
    search = _Search(terms, audit_costs(costs, effective.consortium.size))
    found = search.largest(audits_per_slot)
    exists = found is not None and terms.fitted.worthwhile(found[0])
    profile, rates = found if found is not None and exists else (effective.profile, np.zeros(0))
    return Agreement(
        equilibrium=equilibrium,
        profile=in_own_samples(np.ascontiguousarray(profile), equilibrium),
        kind="individual",
        exists=exists,
        reason=None if exists else search.why_none(),
        objective="most data",
        margin=margin,
        punishment=chosen,
        monitoring=replace(monitoring, audit=rates) if exists else monitoring,
        nobody_worse=nobody_worse,
        ranges=None if terms.box is None else equilibrium.consortium.ranges,
    )


def audit_costs(given: npt.ArrayLike, size: int) -> FloatArray:
    """What an audit of each client costs, checked."""
    costs = np.asarray(given, dtype=np.float64)
    if costs.ndim > 1 or costs.size not in (1, size):
        wrong = f"must be one number, or one for each of {count(size, 'client')}"
        raise InvalidInput(wrong, field="costs")
    if not (np.isfinite(costs) & (costs >= 0)).all():
        raise InvalidInput("must be 0 or more and finite", field="costs")
    return np.broadcast_to(costs, (size,))


class _Search:
    """The search for the largest total."""

    def __init__(self, terms: Terms, costs: FloatArray) -> None:
        self.terms, self.costs = terms, costs
        self.game = terms.fitted
        self.needed = Needed.under(terms)

    @cached_property
    def _everything(self) -> FloatArray:
        """The largest profile, whatever the audits cost."""
        return np.asarray(largest_profiles(self.game)[0])

    def why_none(self) -> str | None:
        """Why there is no agreement."""
        if self.game.worthwhile(self._everything):
            return TOO_FEW_AUDITS

        def solve(terms: Terms) -> Agreement:
            return individual_of(terms, terms.fitted, False, "most data")

        return why_none(self.terms, solve, solve(self.terms).reason)

    def largest(self, budget: float) -> tuple[FloatArray, FloatArray] | None:
        """The profile of the largest total, and how often each client is audited."""
        if not self.game.worthwhile(self._everything):
            return None
        most = float(self._everything.sum())
        audits = self._audits(self._everything, most)
        if self.costs @ audits <= budget:
            return self._everything, audits
        least = self.game.start.item() * _JUST_ABOVE
        if self._spent(least) > budget:
            return None

        def over(total: float) -> float:
            return min(self._spent(total), 2.0 * budget + 1.0) - budget

        total = _crossing(over, least, most)
        step = _CLOSE
        while total > least and over(total) > 0:
            total, step = max(least, total * (1.0 - step)), 2.0 * step
        profile = self._cheapest(total)
        assert profile is not None
        return profile, self._audits(profile, total)

    def _audits(self, profile: FloatArray, total: float) -> FloatArray:
        audits, _ = self.needed.at(profile, total)
        most = self.terms.monitoring.audits(self.terms.equilibrium.consortium)
        return np.minimum(audits * (1.0 + _TO_THE_SAFE_SIDE), most)

    def _spent(self, total: float) -> float:
        """What the audits of the cheapest profile cost; infinite if there is none."""
        profile = self._cheapest(total)
        return np.inf if profile is None else float(self.costs @ self._audits(profile, total))

    def _cheapest(self, total: float) -> FloatArray | None:
        """The profile of this total that needs the fewest audits; None if nothing holds."""
        most = least_bounds(self.game, total)[0]
        if most.sum() < total or (most < 0).any():
            return None
        steepest = self.costs * self.needed.at(most, total)[1]
        priced = np.isfinite(steepest) & (steepest > 0)
        if not priced.any():
            return fitted(most, np.zeros_like(most), total)

        def beyond(scale: float) -> float:
            return total - float(self._amounts(total, scale, most).sum())

        low = high = 1.0 / np.sqrt(steepest[priced].max())
        while beyond(high) < 0:
            low, high = high, 2.0 * high
        scale = _crossing(beyond, low, high)
        # where q is not convex an amount may jump, and what is between adds up to the total
        upper, lower = (self._amounts(total, scale * side, most) for side in _ON_EITHER_SIDE)
        return fitted(upper, lower, total)

    def _amounts(self, total: float, scale: float, most: FloatArray) -> FloatArray:
        """The least c q(x) - x / scale^2 of each client, for x from 0 to the most."""

        def over(amount: FloatArray) -> FloatArray:
            """sqrt(c) scale - 1 / sqrt(q'), which increases with x where q is convex."""
            steep = self.needed.at(amount, total)[1]
            with np.errstate(divide="ignore"):
                return np.sqrt(self.costs) * scale - 1.0 / np.sqrt(steep)

        inner = _root_of_each(over, most)
        best, best_loss = most, self._loss(most, total, scale)
        for tried in (inner, np.zeros_like(most)):
            loss = self._loss(tried, total, scale)
            better = loss < best_loss
            best, best_loss = np.where(better, tried, best), np.where(better, loss, best_loss)
        return best

    def _loss(self, amount: FloatArray, total: float, scale: float) -> FloatArray:
        audits = self.needed.at(amount, total)[0]
        with np.errstate(invalid="ignore"):
            spent = np.where(self.costs > 0, self.costs * audits, 0.0)
        return spent * scale**2 - amount


def _root_of_each(over: Callable[[FloatArray], FloatArray], most: FloatArray) -> FloatArray:
    """Where increasing functions of [0, most] cross 0, by regula falsi (the Illinois method)."""
    low, high = np.zeros_like(most), most
    at_low, at_high = over(low), over(high)
    inside = (at_low < 0) & (at_high > 0) & np.isfinite(at_low) & np.isfinite(at_high)
    middle = np.where(at_high > 0, low, high)
    at_low, at_high = np.where(inside, at_low, -1.0), np.where(inside, at_high, 1.0)
    for _ in range(_STEPS):
        share = -at_low / (at_high - at_low)
        tried = np.where(inside, low + (high - low) * share, middle)
        moved, middle = np.abs(tried - middle), tried
        if (moved <= _CLOSE * most).all():
            break
        here = np.where(inside, over(middle), -1.0)
        upper = here > 0
        at_low, at_high = np.where(upper, 0.5 * at_low, here), np.where(upper, here, 0.5 * at_high)
        low, high = np.where(upper, low, middle), np.where(upper, middle, high)
    return middle


def _crossing(over: Callable[[float], float], low: float, high: float) -> float:
    """Where an increasing function of one number crosses 0."""
    from scipy.optimize import brentq  # takes half a second to import, rarely needed

    if over(low) >= 0:
        return low
    return high if over(high) <= 0 else float(brentq(over, low, high, xtol=_CLOSE * high))

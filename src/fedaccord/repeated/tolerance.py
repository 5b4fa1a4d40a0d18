"""How large a shortfall to tolerate when contributions are observed with noise.

A small tolerance mistakes honest clients for deviators, and the punishments that follow cost
everyone. A large one lets clients shade: contribute a little less than agreed in every slot, and
hardly ever be caught. In between lies the tolerance that costs least.

A client that contributes (1 - s) of what was agreed triggers an alarm with probability
Phi(((1 - tau) / (1 - s) - 1) / sigma), for a tolerance tau and a normal relative error with
standard deviation sigma. If there is an alarm that concerns it in a slot with probability q, the
expected discounted cost of cooperation is V = F + delta ((1 - q) V + q (P (1 + ... + delta^(T-1)) +
delta^T V)) for a client that pays F in a slot of cooperation and P in each of the T slots of a
punishment. Each client shades as far as it pays while the others keep to the agreement; the cost
of a tolerance is what all pay if all do so.

Under reversion every alarm concerns everyone, and P is the equilibrium's cost. Under suspension
only a client's own alarms concern it, and P is what being alone costs it. A client with alarms of
probability q is then out for a share q w / (1 + q w) of the (discounted) slots, w = delta + ... +
delta^T; the others miss its samples meanwhile.

Absence matters here in one way: an absent client is not observed. What it costs that absent
clients do not train is nearly the same for every tolerance, and is left out.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from fedaccord.agreement.agreement import Agreement
from fedaccord.checks import check_number
from fedaccord.game.alone import alone_contribution
from fedaccord.game.cost import cost
from fedaccord.numbers import SUMS_DIFFER, FloatArray
from fedaccord.record import Columns, Record, Tables
from fedaccord.repeated.aftermath import suspended_cost

_WIDEST = 8.0
"""Tolerances up to this many standard deviations of the error are considered."""

_WIDEST_OF_ALL = 1.0 - 1e-9
"""A tolerance of 1 would accept anything; the largest one considered is just below."""

_GRID = 81
"""Tolerances evaluated, first over the whole range and then around the best."""

_NEARLY_ONE = 1.0 - 2.0**-53
"""The largest probability below 1, so that a logarithm of its complement is finite."""

_CLOSE, _WIDE = np.linspace(-8.0, 4.0, 193), np.linspace(0.0, 1.0, 33)
"""The amounts of shading that clients consider: these many standard deviations of the error above
the tolerance, where an alarm becomes likely, and these fractions of what was agreed."""


@dataclass(frozen=True, eq=False, repr=False)
class Tolerance(Record):
    """The tolerance that costs least, and its consequences."""

    agreement: Agreement
    noise: float
    dropout: float
    tolerance: float
    false_alarm: float
    """Probability of an alarm in a slot in which everyone keeps to the agreement."""
    alarm: float
    """Probability of an alarm in a slot if each client shades as far as it pays."""
    shading: FloatArray
    """By what fraction each client then falls short of the agreement."""
    cost: FloatArray
    """Expected discounted cost of each client for ever, false alarms and shading included."""
    tolerances: FloatArray
    """The tolerances that were evaluated first."""
    total_costs: FloatArray
    """What each of them costs all clients together."""

    @property
    def works(self) -> bool:
        """Whether the clients together are better off than at the equilibrium, noise included."""
        equilibrium = self.agreement.equilibrium
        delta = equilibrium.consortium.discount_factor
        alone = (equilibrium.cost / (1.0 - delta)).sum()
        return bool(self.cost.sum() < alone * (1.0 - SUMS_DIFFER))

    def _facts(self) -> dict[str, Any]:
        return {
            "tolerance": self.tolerance,
            "works": self.works,
            "noise": self.noise,
            "dropout": self.dropout,
            "false_alarm": self.false_alarm,
            "alarm": self.alarm,
        }

    def _tables(self) -> Tables:
        return {"clients": self._clients, "tolerances": self._tolerances}

    def _clients(self) -> Columns:
        return {
            "name": self.agreement.consortium.names,
            "shading": self.shading,
            "cost": self.cost,
        }

    def _tolerances(self) -> Columns:
        return {"tolerance": self.tolerances, "total_cost": self.total_costs}


def find_tolerance(agreement: Agreement, noise: float, dropout: float = 0.0) -> Tolerance:
    """The tolerance that costs the clients least, for a given noise.

    Args:
        agreement: What is to be monitored.
        noise: Standard deviation of the relative error of an observed contribution.
        dropout: Probability that a client is absent from a slot.
    """
    check_number("noise", noise, above=0)
    check_number("dropout", dropout, least=0, below=1)
    watch = _watch(agreement, noise, 1.0 - dropout)
    widest = min(_WIDEST * noise, _WIDEST_OF_ALL)
    coarse = np.linspace(0.0, widest, _GRID)
    totals = np.array([watch.cost(tau)[0].sum() for tau in coarse.tolist()])
    best = int(np.argmin(totals))
    fine = np.linspace(coarse[max(best - 1, 0)], coarse[min(best + 1, _GRID - 1)], _GRID)
    tau = min(fine.tolist(), key=lambda tau: float(watch.cost(tau)[0].sum()))
    expected, shading, alarm = watch.cost(tau)
    return Tolerance(
        agreement=agreement,
        noise=noise,
        dropout=dropout,
        tolerance=tau,
        false_alarm=float(watch.alarm(watch.seen(np.zeros(expected.size), tau))),
        alarm=alarm,
        shading=shading,
        cost=expected,
        tolerances=coarse,
        total_costs=totals,
    )


def _watch(agreement: Agreement, noise: float, present: float) -> _Watch:
    suspends = agreement.punishment.kind == "suspension"
    kind = _WatchBySuspension if suspends else _WatchByReversion
    return kind(agreement, noise, present)


class _Watch(ABC):
    """What clients do, and pay, when they are monitored with noise."""

    def __init__(self, agreement: Agreement, noise: float, present: float) -> None:
        self.agreement, self.noise, self.present = agreement, noise, present
        self.watched = agreement.profile > 0
        self.delta = agreement.consortium.discount_factor

    @property
    @abstractmethod
    def punished(self) -> FloatArray:
        """P of the module's docstring: what a slot of punishment costs each client."""

    @abstractmethod
    def concerned(self, own: FloatArray, seen: FloatArray) -> FloatArray:
        """The probability that an alarm concerns each client, if it is seen with `own`.

        The others are seen with the probabilities `seen`.
        """

    @abstractmethod
    def others_out(self, profile: FloatArray, seen: FloatArray) -> FloatArray:
        """What it costs each client in a slot, on average, that others are out."""

    def seen(self, shading: FloatArray, tau: float) -> FloatArray:
        """The probability that each client triggers an alarm in a slot."""
        from scipy.special import ndtr

        with np.errstate(divide="ignore"):
            margin = ((1.0 - tau) / (1.0 - shading) - 1.0) / self.noise
        return np.asarray(np.where(self.watched, self.present * ndtr(margin), 0.0))

    def alarm(self, seen: FloatArray) -> np.float64:
        """The probability that anyone does."""
        return np.float64(-np.expm1(np.log1p(-np.minimum(seen, _NEARLY_ONE)).sum()))

    def cost(self, tau: float) -> tuple[FloatArray, FloatArray, float]:
        """What each pays for ever if all shade as far as it pays; how far; how likely an alarm."""
        shading = self.shading(tau)
        seen = self.seen(shading, tau)
        profile = (1.0 - shading) * self.agreement.profile
        if profile.sum() == 0:  # nobody would contribute: the agreement is void
            return self.agreement.equilibrium.cost / (1.0 - self.delta), shading, 1.0
        paid = cost(self.agreement.consortium, profile) + self.others_out(profile, seen)
        return self.value(paid, self.concerned(seen, seen)), shading, float(self.alarm(seen))

    def shading(self, tau: float) -> FloatArray:
        """How far it pays each client to shade while the others keep to the agreement."""
        shades = np.unique(np.clip(np.append(tau + self.noise * _CLOSE, _WIDE), 0.0, 1.0))
        less = shades[:, np.newaxis] * self.agreement.profile
        consortium, agreed = self.agreement.consortium, self.agreement.profile
        total = self.agreement.total - consortium.quality * less
        paid = cost(consortium, agreed - less, total)
        honest = self.seen(np.zeros(self.delta.size), tau)
        alarm = self.concerned(self.seen(shades[:, np.newaxis], tau), honest)
        return np.asarray(shades[np.argmin(self.value(paid, alarm), axis=0)])

    def value(self, paid: FloatArray, alarm: FloatArray | np.float64) -> FloatArray:
        """V of the module's docstring, solved for."""
        weight = self.weight(self.delta)
        stays = (1.0 - self.delta) * (1.0 + alarm * weight)
        result: FloatArray = (paid + alarm * weight * self.punished) / stays
        return result

    def weight(self, delta: FloatArray) -> FloatArray:
        """delta + ... + delta^T, for a punishment of T slots."""
        slots = self.agreement.punishment.slots
        back = np.zeros_like(delta) if slots is None else delta**slots
        return np.asarray(delta * (1.0 - back) / (1.0 - delta))


class _WatchByReversion(_Watch):
    """Every alarm concerns everyone."""

    @property
    def punished(self) -> FloatArray:
        """The equilibrium's cost."""
        return self.agreement.equilibrium.cost

    def concerned(self, own: FloatArray, seen: FloatArray) -> FloatArray:
        """That anyone is seen."""
        others_silent = (1.0 - self.alarm(seen)) / (1.0 - np.minimum(seen, _NEARLY_ONE))
        return np.asarray(1.0 - others_silent * (1.0 - own))

    def others_out(self, profile: FloatArray, seen: FloatArray) -> FloatArray:
        """Nobody ever is."""
        del seen
        return np.zeros_like(profile)


class _WatchBySuspension(_Watch):
    """An alarm concerns only the accused."""

    @cached_property
    def punished(self) -> FloatArray:
        """What a slot of suspension costs."""
        return suspended_cost(self.agreement)

    def concerned(self, own: FloatArray, seen: FloatArray) -> FloatArray:
        """That the client itself is seen."""
        del seen
        return own

    def others_out(self, profile: FloatArray, seen: FloatArray) -> FloatArray:
        """The loss without a client's samples, times the share of slots in which it is out.

        That is added up over the others as if only one were out at a time, which is nearly so as
        long as alarms are rare.
        """
        consortium, quality = self.agreement.consortium, self.agreement.consortium.quality
        total = consortium.total_of(profile)
        # nobody needs to do worse than with the smallest amount that a client trains on alone
        fewest = float((quality * alone_contribution(consortium)).min())
        rest = np.maximum(total - quality * profile, min(fewest, total))
        lost = consortium.law.fall(rest, total - rest, np.full_like(rest, total))
        own = self._shares(seen, self.delta) * lost
        if consortium.law.is_personal:
            return consortium.valuation * (self._missed(rest, total, seen) - own)
        distinct, which = np.unique(self.delta, return_inverse=True)
        of_all = np.array([self._shares(seen, delta) @ lost for delta in distinct])[which]
        return consortium.valuation * (of_all - own)

    def _shares(self, seen: FloatArray, delta: FloatArray) -> FloatArray:
        """The (discounted) share of slots in which clients are out."""
        weighed = seen * self.weight(delta)
        return np.asarray(weighed / (1.0 + weighed))

    def _missed(self, rest: FloatArray, total: float, seen: FloatArray) -> FloatArray:
        """What each client loses by its own law, summed over all that may be out."""
        law, result = self.agreement.consortium.law, np.zeros_like(rest)
        for left, often in zip(rest.tolist(), seen.tolist(), strict=True):
            shares = self._shares(np.asarray(often), self.delta)
            result += shares * law.fall(left, total - left)
        return result

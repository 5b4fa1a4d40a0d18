"""What each mechanism makes of reports: everyone's amounts, for many rows of reports at once.

Amounts are in samples of quality 1, like the reports. Agreements are the ones with the most data,
because they depend on ratios, data sizes and discount factors alone; for the least total cost the
members would have to report valuations and costs apart.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from fedaccord.agreement.agreement import Objective, SolvedKind
from fedaccord.agreement.batch import solve_batch
from fedaccord.agreement.punishment import Punishment, Reversion, Suspension
from fedaccord.game.filling import fill
from fedaccord.mechanisms import stopping
from fedaccord.mechanisms.misreport.reports import Field, Reports
from fedaccord.numbers import FloatArray


class Assignment(NamedTuple):
    """What everyone is asked for, in rows; with tiers, the weight of each client."""

    profile: FloatArray
    weights: FloatArray | None = None

    @property
    def total(self) -> FloatArray:
        """X of each row."""
        return np.asarray(self.profile.sum(axis=-1))

    def own(self, client: npt.NDArray[np.int64]) -> FloatArray:
        """The amount of one client in each row."""
        return np.asarray(self.profile[np.arange(client.size), client])

    def access(self, client: npt.NDArray[np.int64]) -> FloatArray:
        """How many samples the model of one client in each row is trained on (see `tiers`)."""
        if self.weights is None:
            return self.total
        levels = self.profile / self.weights
        own = levels[np.arange(client.size), client][:, np.newaxis]
        return np.asarray((self.weights * np.minimum(levels, own)).sum(axis=-1))


@dataclass(frozen=True)
class Rule:
    """A mechanism as a function of reports."""

    name: str
    assign: Callable[[Reports], Assignment]
    asks: tuple[Field, ...]
    """What a client could misreport; what the mechanism verifies, or does not use, is left out."""
    punishment: Punishment | None = None
    """What follows if a client gives less than it is asked for; None: it cannot, or need not."""
    objective: Objective | None = None
    """Agreements: what the amounts are best at."""
    responds: bool = False
    """Whether a client does what is best for it after the reports, while the others do as asked."""
    undercut: bool = False
    """Whether who stops before whom decides, so that reports next to others' are tried."""


def _equilibrium(reports: Reports) -> Assignment:
    """Algorithm 1: the equilibrium, if everyone tells the truth."""
    return Assignment(fill(reports.law.stop(reports.ratio), reports.samples).profile)


def _agreed(kind: SolvedKind, punishment: Punishment) -> Callable[[Reports], Assignment]:
    def assign(reports: Reports) -> Assignment:
        batch = solve_batch(
            valuation=reports.ratio,
            cost_per_sample=1.0,
            samples=reports.samples,
            discount_factor=reports.discount_factor,
            law=reports.law,
            kind=kind,
            punishment=punishment,
        )
        return Assignment(batch.profile)

    return assign


def _clock(reports: Reports) -> Assignment:
    shares = stopping.clock_shares(reports.law, reports.ratio, reports.samples)
    return Assignment(shares.min(axis=-1, keepdims=True) * reports.samples)


def _serial_clock(reports: Reports) -> Assignment:
    shares = stopping.serial_shares(reports.law, reports.ratio, reports.samples)
    return Assignment(shares * reports.samples, weights=reports.samples)


def _fair_exchange(reports: Reports) -> Assignment:
    amounts = stopping.exchanged(reports.law, reports.ratio, reports.samples)
    return Assignment(amounts, weights=np.ones_like(amounts))


_REVERSION, _SUSPENSION = Reversion(), Suspension()
_ALL: tuple[Field, ...] = ("ratio", "samples", "discount_factor")

_MOST: Objective = "most data"

RULES: dict[str, Rule] = {
    rule.name: rule
    for rule in (
        Rule("equilibrium", _equilibrium, ("ratio", "samples"), undercut=True),
        Rule("free equilibrium", _equilibrium, ("ratio", "samples"), responds=True),
        Rule("uniform", _agreed("uniform", _REVERSION), _ALL, _REVERSION, _MOST, undercut=True),
        Rule("individual", _agreed("individual", _REVERSION), _ALL, _REVERSION, _MOST),
        Rule("suspension", _agreed("individual", _SUSPENSION), _ALL, _SUSPENSION, _MOST),
        Rule("clock", _clock, ("ratio",), _SUSPENSION),
        Rule("serial clock", _serial_clock, ("ratio",)),
        Rule("fair exchange", _fair_exchange, ("ratio", "samples")),
    )
}
"""The mechanisms that ask, by name. In the free equilibrium the others contribute what Algorithm 1
says, and the liar what is best for it then."""

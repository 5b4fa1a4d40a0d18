"""The certificate: an independent proof that an agreement holds, or of who would break it.

An agreement is a subgame perfect equilibrium of the repeated game if no client gains by deviating
once (Theorem 5, by the one-stage deviation principle), none by contributing more than agreed, and
none by leaving the punishment. All three are checked here from the cost function (eq. 5) alone:
the best deviation is *searched for* over [0, samples], not taken from Lemma 1, and no intermediate
result of a solver is used. So is what a client would do alone, which suspension is judged by.

A deviation is to contribute less than agreed. Contributing more is not one and is not punished; a
client that gains by it does so in every slot, and no discount factor keeps it to the agreement.

What is shared with the solvers: the records `Consortium`, `Equilibrium` and `Agreement`, and the
profiles that they hold. Importing them loads the modules that solve the equilibrium, but none of
that code is used: whether the punishment is an equilibrium is checked, too.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from fedaccord.agreement.agreement import Agreement
from fedaccord.agreement.assumptions import Margins, assumptions_of, margins_of
from fedaccord.agreement.laws import HeldUnder, held_under
from fedaccord.agreement.loss import is_in_class
from fedaccord.agreement.off_path import keeps_if_all_are_out, keeps_if_one_is_out
from fedaccord.agreement.over_ranges import HeldOver, held_over
from fedaccord.agreement.punishment import Reversion
from fedaccord.agreement.search import best_alone, best_deviation, cost_of, total_of
from fedaccord.agreement.threats import TOLERANCE, Threat, threat_of, worth_of
from fedaccord.checks import check_type
from fedaccord.numbers import BoolArray, FloatArray
from fedaccord.record import Columns, Record, Tables

_HALVINGS = 64
"""Bisection steps that determine a threshold to the last bit."""


@dataclass(frozen=True, eq=False, repr=False)
class Certificate(Record):
    """For every client: its costs, its best deviation, and how patient it must be."""

    agreement: Agreement
    cost_equilibrium: FloatArray
    """F_n at the equilibrium."""
    threat: Threat
    """What the punishment does to each client."""
    cost_agreement: FloatArray
    """F_n when all keep to the agreement."""
    cost_deviation: FloatArray
    """F_n in the slot of its best deviation."""
    deviation: FloatArray
    """What it would contribute in that slot."""
    gain: FloatArray
    """What that saves it in that slot, without cancellation."""
    threshold: FloatArray
    """The smallest discount factor at which it keeps to the agreement (eq. 19); infinite if none
    is enough."""
    slack: FloatArray
    """Its discount factor minus the threshold."""
    keeps: BoolArray
    """Whether it keeps to the agreement."""
    gives_more: BoolArray
    """Whether it does not because contributing more than agreed pays, in every slot."""

    @property
    def holds(self) -> bool:
        """Whether every client keeps to the agreement, and to the punishment.

        An agreement that was made for many laws, or for ranges, must hold for all of them.
        """
        agreement = self.agreement
        if not (self.keeps.all() and self.punishment_holds.all() and self.law_holds):
            return False
        under = self.under_laws if agreement.laws is not None else None
        if under is not None and under.held < under.laws:
            return False
        return agreement.ranges is None or self.over_ranges is None or self.over_ranges.holds

    @cached_property
    def over_ranges(self) -> HeldOver | None:
        """Whether it holds for every combination of numbers within the ranges, if there are any."""
        agreement, ranges = self.agreement, self.agreement.ranges
        if ranges is None:
            ranges = agreement.consortium.ranges
        if ranges is None or not agreement.exists:
            return None
        return held_over(agreement, ranges, agreement.laws)

    @cached_property
    def under_laws(self) -> HeldUnder | None:
        """Under which laws it holds: those it was made for, or that measurements leave open."""
        laws, evidence = self.agreement.laws, self.agreement.consortium.law.evidence
        if laws is None and evidence is not None:
            laws = evidence.resampled
        return (
            None if laws is None or not self.agreement.exists else held_under(self.agreement, laws)
        )

    @cached_property
    def under_fresh_laws(self) -> HeldUnder | None:
        """The same under laws from other random numbers, which it was not made for."""
        evidence = self.agreement.consortium.law.evidence
        if evidence is None or not self.agreement.exists:
            return None
        return held_under(self.agreement, evidence.fresh)

    @property
    def law_holds(self) -> bool:
        """Whether the law of the loss is of the class that the search rests on: convex, falling."""
        return is_in_class(self.agreement.consortium.law)

    @cached_property
    def cost_alone(self) -> FloatArray:
        """V_n: what a slot costs each client if it trains by itself, as well as it can."""
        consortium = self.agreement.consortium
        alone = best_alone(consortium)
        return cost_of(consortium, alone, consortium.quality * alone)

    @property
    def cost_punished(self) -> FloatArray:
        """F_n in a slot of the punishment."""
        return self.threat.cost

    @property
    def saving(self) -> FloatArray:
        """What the agreement saves each client per slot against the punishment."""
        return self.threat.saving

    @property
    def punishment_holds(self) -> BoolArray:
        """Whether each client has nothing to gain by leaving the punishment."""
        return self.threat.holds

    @property
    def participates(self) -> BoolArray:
        """Whether each client pays no more than it would alone."""
        return self.cost_agreement <= self.cost_alone + self._tolerated

    @property
    def nothing_harsher(self) -> BoolArray:
        """Whether no punishment could cost each client more.

        It can train alone whatever the others do, so none costs it more than that.
        """
        return self.cost_punished >= self.cost_alone - self._tolerated

    @property
    def _tolerated(self) -> FloatArray:
        consortium, decided = self.agreement.consortium, self.agreement.profile + self.deviation
        return TOLERANCE * (consortium.cost_per_sample * decided + np.abs(self.cost_alone))

    @cached_property
    def keeps_if_one_is_out(self) -> BoolArray | None:
        """Suspension: whether each client keeps its amount while any one other is out."""
        return None if self._reverts else keeps_if_one_is_out(self.agreement, self.threat)

    @cached_property
    def keeps_if_all_are_out(self) -> BoolArray | None:
        """Suspension: whether each client keeps its amount while all others are out."""
        return None if self._reverts else keeps_if_all_are_out(self.agreement, self.threat)

    @cached_property
    def margins(self) -> Margins:
        """How much weaker than assumed suspension may be."""
        return margins_of(self.agreement, self.gain, self.saving)

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What is assumed and not proved, in sentences, with the margin that each has."""
        if not (self.agreement.exists and self.holds):
            return ()
        return assumptions_of(self.agreement, self.margins)

    @property
    def _reverts(self) -> bool:
        return isinstance(self.agreement.punishment, Reversion) or not self.agreement.exists

    @cached_property
    def worst(self) -> int:
        """Position of the client with the least slack, among those that deviate if any do.

        Of several that differ only by rounding it is the first.
        """
        slack = self.slack if self.keeps.all() else np.where(self.keeps, np.inf, self.slack)
        return int(np.argmax(slack <= slack.min() + TOLERANCE))

    @property
    def worst_client(self) -> str:
        """Name of the client with the least slack."""
        return self.agreement.consortium.names[self.worst]

    @property
    def smallest_discount_factor(self) -> float:
        """delta^th of the agreement: the largest of the clients' thresholds (eq. 20)."""
        return float(self.threshold.max())

    _headline: ClassVar = ("holds", "worst_client", "slack", "smallest_discount_factor")

    def _facts(self) -> dict[str, Any]:
        return {
            "holds": self.holds,
            "worst_client": self.worst_client,
            "slack": self.slack[self.worst],
            "smallest_discount_factor": self.smallest_discount_factor,
            "punishment": self.agreement.punishment,
            "punishment_holds": bool(self.punishment_holds.all()),
            "law_holds": self.law_holds,
            "nothing_harsher": bool(self.nothing_harsher.all()),
            "under_laws": self.under_laws,
            "under_fresh_laws": self.under_fresh_laws,
            "over_ranges": self.over_ranges,
            "keeps_if_one_is_out": _all(self.keeps_if_one_is_out),
            "keeps_if_all_are_out": _all(self.keeps_if_all_are_out),
            "assumptions": self.assumptions,
        }

    def _tables(self) -> Tables:
        return {"clients": self._clients}

    def _clients(self) -> Columns:
        return {
            "name": self.agreement.consortium.names,
            "contribution": self.agreement.profile,
            "cost_equilibrium": self.cost_equilibrium,
            "cost_alone": self.cost_alone,
            "cost_punished": self.cost_punished,
            "cost_agreement": self.cost_agreement,
            "cost_deviation": self.cost_deviation,
            "deviation": self.deviation,
            "threshold": self.threshold,
            "slack": self.slack,
            "keeps": self.keeps,
        }


def certify(agreement: Agreement) -> Certificate:
    """Prove or refute an agreement, from the cost function alone.

    A deviation gains `gain` once and loses `saving` in each slot of the punishment; those slots
    count for delta + delta^2 + ... = `worth`. The client keeps to the agreement if
    gain <= worth * saving and saving is not negative: otherwise even the smallest deviation would
    bring on a punishment that it prefers (and under suspension it would not take part at all).
    The cost is convex in the client's own contribution, so its minimum is on one side: a client
    that gains by contributing more gains by no deviation.

    Args:
        agreement: Any agreement, solved or written by hand.

    Returns:
        A record with one entry per client; `holds` says whether all of them keep to it.
    """
    check_type("agreement", agreement, Agreement)
    consortium, profile = agreement.consortium, agreement.profile
    total = total_of(consortium, profile)
    deviation, gain = best_deviation(consortium, profile, total)
    threat = threat_of(agreement)
    saving, slots = threat.saving, agreement.punishment.slots
    worth = worth_of(consortium.discount_factor, slots)
    allowed = TOLERANCE * consortium.cost_per_sample * (profile + threat.contribution + deviation)
    tempted = gain > allowed
    gives_more = tempted & (deviation > profile)
    asked = profile > 0
    prefers_it = saving < -allowed
    # under reversion, a client that is asked for nothing can do nothing to be punished
    # an agreement for many laws may ask for less than a client would give under one of them
    unhappy = np.zeros_like(gives_more) if agreement.robust else gives_more
    hopeless = unhappy | prefers_it & (asked | threat.can_leave)
    threshold = _threshold(np.where(tempted, gain, 0.0), saving, slots)
    threshold = np.where(hopeless, np.inf, np.where(asked, threshold, 0.0))
    with np.errstate(invalid="ignore"):  # infinite costs, if nobody contributes
        deterred = (gain - worth * saving) / (1.0 + worth) <= allowed
    equilibrium = agreement.equilibrium.profile
    return Certificate(
        agreement=agreement,
        cost_equilibrium=cost_of(consortium, equilibrium, total_of(consortium, equilibrium)),
        threat=threat,
        cost_agreement=cost_of(consortium, profile, total),
        cost_deviation=cost_of(
            consortium,
            deviation,
            np.maximum(total + consortium.quality * (deviation - profile), 0.0),
        ),
        deviation=deviation,
        gain=gain,
        threshold=threshold,
        slack=consortium.discount_factor - threshold,
        keeps=~hopeless & (deterred | ~asked | (gives_more & ~unhappy)),
        gives_more=gives_more,
    )


def _all(keeps: BoolArray | None) -> bool | None:
    return None if keeps is None else bool(keeps.all())


def _threshold(gain: FloatArray, saving: FloatArray, slots: int | None) -> FloatArray:
    """The smallest discount factor at which gain <= worth * saving; infinite if there is none.

    For a punishment without end it is gain / (gain + saving) (eq. 19); for T slots it is the root
    of a polynomial.
    """
    tempted = gain > 0
    if slots is None:
        with np.errstate(invalid="ignore"):  # infinite savings
            stake = gain + saving
        for_ever = np.divide(gain, stake, out=np.full_like(gain, np.inf), where=stake > 0)
        return np.where(tempted, for_ever, 0.0)
    low, high = np.zeros_like(gain), np.full_like(gain, np.nextafter(1.0, 0.0))
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        enough = worth_of(middle, slots) * saving >= gain
        low, high = np.where(enough, low, middle), np.where(enough, middle, high)
    enough_ever = slots * saving > gain
    return np.where(tempted, np.where(enough_ever, high, np.inf), 0.0)

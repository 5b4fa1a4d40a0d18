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
from fedaccord.agreement.examined import Faced
from fedaccord.agreement.laws import HeldUnder, face_under, held_under
from fedaccord.agreement.loss import is_in_class
from fedaccord.agreement.off_path import keeps_if_all_are_out, keeps_if_one_is_out
from fedaccord.agreement.over_ranges import HeldOver, held_over
from fedaccord.agreement.punishment import Reversion, Suspension
from fedaccord.agreement.search import best_alone, cost_of, saving_of, total_of
from fedaccord.agreement.slips import Slips, best_slips
from fedaccord.agreement.threats import TOLERANCE, Threat, threat_of
from fedaccord.agreement.watch import watch_of
from fedaccord.agreement.worst_corners import face_at_corners
from fedaccord.checks import check_type
from fedaccord.numbers import BoolArray, FloatArray
from fedaccord.record import Columns, Record, Tables


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
    slips: Slips
    """That deviation: what it saves, and how likely an audit finds it."""
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

    @property
    def deviation(self) -> FloatArray:
        """What each client would contribute in the slot of its best deviation."""
        return self.slips.deviation

    @property
    def gain(self) -> FloatArray:
        """What that saves it in that slot, without cancellation."""
        return self.slips.gain

    @property
    def audit_probability(self) -> FloatArray:
        """The least with which each client must be audited; infinite if none is enough."""
        least = self.least_audit
        return np.where(least <= 1.0 + TOLERANCE, np.minimum(least, 1.0), np.inf)

    @cached_property
    def least_audit(self) -> FloatArray:
        """The same, but more than 1 where that would be needed.

        All else is as agreed, for all laws and numbers that the agreement was made for. If one
        sample is checked, this is the least expected number of checks of any scheme.
        """
        agreement = self.agreement
        delta, asked = agreement.consortium.discount_factor, agreement.profile > 0
        tempted = self.slips.tempting > self._allowed
        slips = self.slips.only(tempted & asked & ~self.gives_more)
        least = watch_of(agreement).least_audit(delta, slips, self.saving)
        # what is proved for the agreed audits holds for these, where rounding says otherwise
        agreed = agreement.monitoring.audits(agreement.consortium)
        least = np.where(self.keeps, np.minimum(least, agreed), least)
        least = np.where(np.isinf(self.threshold), np.inf, least)
        if agreement.laws is not None and self.under_laws is not None:
            least = np.maximum(least, self.under_laws.least_audit.max(axis=0))
        if agreement.ranges is not None and self.over_ranges is not None:
            least = np.maximum(least, self.over_ranges.least_audit)
        return least

    @property
    def _allowed(self) -> FloatArray:
        return _allowed(self.agreement, self.threat, self.slips)

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
        """How much weaker than assumed suspension may be.

        For all laws and numbers that the agreement was made for.
        """
        agreement = self.agreement
        faced = [self._faced]
        if agreement.laws is not None:
            faced.append(face_under(agreement, agreement.laws))
        if agreement.ranges is not None:
            faced.append(face_at_corners(agreement, agreement.ranges, agreement.laws))
        return margins_of(agreement, faced)

    @property
    def _faced(self) -> Faced:
        """What the clients weigh up with the numbers as stated and the consortium's own law."""
        agreement, reversion = self.agreement, None
        consortium, before = agreement.consortium, agreement.equilibrium.profile
        punishment = agreement.punishment
        if isinstance(punishment, Suspension) and punishment.or_reversion:
            total = total_of(consortium, before)
            reversion = saving_of(consortium, agreement.profile, before, total)
        tempting = (self.slips.tempting > self._allowed) & ~self.gives_more
        slips = self.slips.only(tempting)
        return Faced(consortium, slips, watch_of(agreement), self.saving, reversion)

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
        """Position of the client with the least slack, among those that deviate if any do."""
        everyone = np.ones_like(self.keeps)
        return self.closest(everyone if self.keeps.all() else ~self.keeps, 1)[0]

    def closest(self, among: BoolArray, most: int) -> list[int]:
        """Positions of those among some clients with the least slack, the least first.

        Of several that differ only by rounding the first in the consortium comes first.
        """
        slack, found = np.where(among, self.slack, np.inf), list[int]()
        for _ in range(min(most, int(among.sum()))):
            found.append(int(np.argmax(slack <= slack.min() + TOLERANCE)))
            slack[found[-1]] = np.inf
        return found

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
            "monitoring": self.agreement.monitoring,
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
            "audit_probability": self.audit_probability,
        }


def certify(agreement: Agreement) -> Certificate:
    """Prove or refute an agreement, from the cost function alone.

    A deviation gains `gain` once and loses `saving` in each slot of the punishment; those slots
    count for delta + delta^2 + ..., and for less if not every slip is seen (see `watch`). The
    client keeps to the agreement if the gain is no more than that times the saving, for every
    deviation, and saving is not negative: otherwise even the smallest deviation would
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
    total, delta = total_of(consortium, profile), consortium.discount_factor
    slips = best_slips(consortium, profile, total, agreement.monitoring)
    threat, watch = threat_of(agreement), watch_of(agreement)
    allowed = _allowed(agreement, threat, slips)
    tempted = slips.tempting > allowed
    gives_more = tempted & (slips.deviation > profile)
    asked = profile > 0
    prefers_it = threat.saving < -allowed
    # under reversion, a client that is asked for nothing can do nothing to be punished
    # an agreement for many laws may ask for less than a client would give under one of them
    unhappy = np.zeros_like(gives_more) if agreement.robust else gives_more
    hopeless = unhappy | prefers_it & (asked | threat.can_leave)
    threshold = watch.threshold(slips.only(tempted), threat.saving)
    threshold = np.where(hopeless, np.inf, np.where(asked, threshold, 0.0))
    deterred = watch.excess(delta, slips, threat.saving) <= allowed
    equilibrium = agreement.equilibrium.profile
    return Certificate(
        agreement=agreement,
        cost_equilibrium=cost_of(consortium, equilibrium, total_of(consortium, equilibrium)),
        threat=threat,
        cost_agreement=cost_of(consortium, profile, total),
        cost_deviation=cost_of(
            consortium,
            slips.deviation,
            np.maximum(total + consortium.quality * (slips.deviation - profile), 0.0),
        ),
        slips=slips,
        threshold=threshold,
        slack=delta - threshold,
        keeps=~hopeless & (deterred | ~asked | (gives_more & ~unhappy)),
        gives_more=gives_more,
    )


def _all(keeps: BoolArray | None) -> bool | None:
    return None if keeps is None else bool(keeps.all())


def _allowed(agreement: Agreement, threat: Threat, slips: Slips) -> FloatArray:
    """The gain up to which it is rounding."""
    decided = agreement.profile + threat.contribution + slips.deviation
    return np.asarray(TOLERANCE * agreement.consortium.cost_per_sample * decided)

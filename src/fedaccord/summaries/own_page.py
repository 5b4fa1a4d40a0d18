"""What an agreement means for one member, in words that its director reads.

Of the others only totals are said: nothing here tells what another member has, pays or is asked
for.
"""

from dataclasses import dataclass

import numpy as np

from fedaccord.agreement.certificate import Certificate
from fedaccord.agreement.punishment import Reversion
from fedaccord.agreement.worth import Worth, worth
from fedaccord.game.alone import alone_contribution
from fedaccord.game.cost import cost
from fedaccord.game.money import amounts, money
from fedaccord.numbers import patience, write
from fedaccord.summaries.agreement import none_exists
from fedaccord.summaries.audits import so_many_audits
from fedaccord.summaries.words import in_unit
from fedaccord.summaries.worth import capital, good_news, measure_name, written_measure


@dataclass(frozen=True)
class OwnFact:
    """A line of the table: the same number alone, without an agreement and as agreed."""

    what: str
    alone: str
    without: str
    agreed: str


@dataclass(frozen=True)
class OwnPage:
    """One member's own figures, and what is said about them."""

    name: str
    headline: str
    look: str
    """"good", "doubtful" or "plain"."""
    facts: list[OwnFact]
    asked: list[str]
    saved: list[str]
    if_it_slips: list[str]
    if_others_slip: list[str]
    how_sure: list[str]


def own_page(certificate: Certificate, n: int) -> OwnPage:
    """The page of the client at position n."""
    own = _Own(certificate, worth(certificate), n)
    headline, look = own.headline()
    agreed = certificate.agreement.exists and certificate.holds
    return OwnPage(
        name=own.name,
        headline=headline,
        look=look,
        facts=own.facts(),
        asked=own.asked(),
        saved=own.saved() if agreed else [],
        if_it_slips=own.if_it_slips() if agreed else [],
        if_others_slip=own.if_others_slip() if agreed else [],
        how_sure=own.how_sure() if agreed else [],
    )


class _Own:
    """One client's numbers."""

    def __init__(self, certificate: Certificate, found: Worth, n: int) -> None:
        self.certificate, self.worth, self.n = certificate, found, n
        self.agreement = certificate.agreement
        self.consortium = self.agreement.consortium
        self.name = self.consortium.names[n]
        self.saving = float(found.saving.value[n])

    def money(self, *values: float) -> list[str]:
        currency = self.consortium.currency
        return [money(text, currency) for text in amounts(values, currency)]

    def headline(self) -> tuple[str, str]:
        """The answer in one sentence, and its colour."""
        if good_news(self.agreement):
            return "Everyone already trains on all it has: there is nothing to agree on.", "good"
        if not self.agreement.exists:
            return f"{none_exists(self.agreement)}.", "plain"
        if not self.certificate.holds or self.worth.verdicts is None:
            return "This agreement would not hold; do not sign it.", "doubtful"
        saved = self.money(abs(self.saving))[0]
        if self.agreement.worse_than_equilibrium[self.n]:
            return (
                f"The agreement costs {self.name} {saved} more in a slot than no agreement would, "
                "but less than a model of its own.",
                "doubtful",
            )
        verdict = self.worth.verdicts[self.n]
        if verdict == "not worth it":
            return f"{self.name} saves nothing by this agreement, and loses nothing.", "doubtful"
        year = self._a_year(self.saving)
        look = "good" if verdict == "worth signing" else "doubtful"
        return f"{capital(verdict)}: {self.name} saves {saved} in a slot{year}.", look

    def _a_year(self, amount: float) -> str:
        slots = self.worth.slots_per_year
        return "" if slots is None else f", {self.money(slots * amount)[0]} a year"

    def facts(self) -> list[OwnFact]:
        """Samples, the model and what a slot costs, in the three cases."""
        n, agreement, found = self.n, self.agreement, self.worth
        alone = alone_contribution(self.consortium)
        without = agreement.equilibrium
        trained = write([alone[n], without.profile[n], agreement.profile[n]])
        totals = write([alone[n], without.total, agreement.total])
        sides = (found.alone, found.equilibrium, found.agreed)
        measured = written_measure(found.measure, [float(side.value[n]) for side in sides])
        costs = amounts(
            [agreement.alone_cost[n], without.cost[n], agreement.cost[n]], self.consortium.currency
        )
        rows = {
            "Samples it trains on in a slot": trained,
            "Samples behind the model, of all members": totals,
            f"{capital(measure_name(found.measure))} of its model, by the law": measured,
            f"What a slot costs it, errors included{in_unit(self.consortium)}": costs,
        }
        return [OwnFact(what, *texts) for what, texts in rows.items()]

    def asked(self) -> list[str]:
        """What it is asked to do in every slot."""
        n, agreement = self.n, self.agreement
        amount, before, has = write(
            [agreement.profile[n], agreement.equilibrium.profile[n], self.consortium.samples[n]]
        )
        best = "none" if before == "0" else before
        selfish = f"Without an agreement its best choice would be to train on {best}."
        if before == amount:
            selfish = "It would do the same without an agreement."
        if not agreement.exists:
            return [f"Without an agreement it trains on {before} of its {has} samples in a slot."]
        if agreement.profile[n] == 0:
            return [f"Nothing: it gets the model without training on any of its {has} samples."]
        extra = (agreement.profile[n] - agreement.equilibrium.profile[n]) * float(
            self.consortium.cost_per_sample[n]
        )
        said = [f"To train on {amount} of its {has} samples in every slot. {selfish}"]
        if extra > 0:
            said.append(f"That is {self.money(extra)[0]} more work in a slot.")
        return said

    def saved(self) -> list[str]:
        """What it saves, against no agreement and against being alone."""
        n = self.n
        alone = float(self.agreement.alone_cost[n] - self.agreement.cost[n])
        word = "saves" if self.saving >= 0 else "costs"
        first, second = self.money(abs(self.saving), abs(alone))
        against = "It saves" if alone >= 0 else "It pays"
        more = "" if alone >= 0 else " more"
        said = [
            f"Against no agreement it {word} {first} in a slot{self._a_year(abs(self.saving))}.",
            f"{against} {second}{more} in a slot against a model of its own"
            f"{self._a_year(abs(alone))}.",
        ]
        low, high = self.worth.saving.low, self.worth.saving.high
        if low is not None and high is not None:
            sign = 1.0 if self.saving >= 0 else -1.0  # of what the first sentence says
            ends = self.money(*sorted([sign * float(low[n]), sign * float(high[n])]))
            said.append(
                f"By nine in ten of the laws that fit the measurements, the first of these is "
                f"between {ends[0]} and {ends[1]}."
            )
        if self.worth.better_outside[n]:
            said.append("It would pay less outside the consortium, where there are no fees.")
        return said

    def if_it_slips(self) -> list[str]:
        """What it gains by slipping once, and what that costs it afterwards."""
        n, found = self.n, self.certificate
        if self.agreement.profile[n] == 0:
            return ["It is asked for nothing, so it cannot slip."]
        gain = float(found.cost_agreement[n] - found.cost_deviation[n])
        if gain <= 0:
            return ["It gains nothing by training on less, not even once."]
        gained, lost = self.money(gain, float(found.saving[n]))
        punishment = self.agreement.punishment
        seen = "" if self.agreement.monitoring.is_certain else " if an audit finds it"
        if isinstance(punishment, Reversion):
            then = f"everyone goes back to acting selfishly {punishment.duration}"
        else:
            then = f"it gets no model {punishment.duration} and trains alone"
        return [
            f"At best it would save {gained}, once. From the next slot on{seen}, {then}, "
            f"which costs it {lost} {_each(punishment.slots)}."
        ]

    def if_others_slip(self) -> list[str]:
        """What it risks if it keeps to the agreement and others do not."""
        n, agreement = self.n, self.agreement
        amount = agreement.profile.copy()
        own_total = float(self.consortium.quality[n] * amount[n])
        kept = float(agreement.cost[n])
        said = []
        if isinstance(agreement.punishment, Reversion):
            back = self.money(abs(self.saving))[0]
            then = "no longer saves" if self.saving >= 0 else "no longer pays"
            more = "" if self.saving >= 0 else " more"
            said.append(
                "If another member slips, everyone goes back to acting selfishly "
                f"{agreement.punishment.duration}: it then {then} {back}{more} in a slot."
            )
        else:
            said.append(
                "If another member slips, that member gets no model "
                f"{agreement.punishment.duration}, and the others go on. During that time the "
                "model is trained on less data."
            )
        if own_total > 0 and self.consortium.size > 1:
            worst = float(cost(self.consortium, amount, own_total)[n])
            left, usual = self.money(worst, kept)
            said.append(
                "The worst that can happen in one slot is that it trains as agreed and nobody else "
                f"does: that slot would cost it {left} instead of {usual}."
            )
        return said

    def how_sure(self) -> list[str]:
        """How patient it must be, what was proved, and what the numbers rest on."""
        n, found = self.n, self.certificate
        has = float(self.consortium.discount_factor[n])
        said = [
            f"It keeps to the agreement as long as its discount factor is "
            f"{patience(found.threshold[n])} or more; it stated {patience(has)}, which means that "
            f"100 saved in the next slot are worth {100 * has:.3g} to it now."
        ]
        if self.agreement.profile[n] == 0:
            said = ["It is asked for nothing, so nothing tempts it."]
        said.append(
            "A search for each member's best slip proved that no member gains by slipping"
            f"{_over_ranges(found)}."
        )
        rate = float(found.audit_probability[n])
        if np.isfinite(rate) and rate > 0:
            said.append(
                "This assumes that slips are seen: for this member "
                f"{so_many_audits(rate)} is enough."
            )
        law = self.consortium.law
        measured = (
            "was measured on this model" if law.evidence is not None else "is assumed, not measured"
        )
        said.append(f"How much better a model gets with more data {measured}.")
        return said


def _each(slots: int | None) -> str:
    return "in that slot" if slots == 1 else "in each of these slots"


def _over_ranges(certificate: Certificate) -> str:
    if certificate.agreement.ranges is None:
        return ""
    return ", whatever the numbers are within the ranges that were stated"

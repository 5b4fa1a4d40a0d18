"""The client's half of the protocol: it checks what it is asked, writes it down and answers."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from fedaccord.agreement.own_row import own_row
from fedaccord.protocol import notes
from fedaccord.protocol.messages import (
    FORMAT,
    AskedConsent,
    AskedEquilibrium,
    AskedOffer,
    AskedRank,
    AskedReport,
    AskedSettlement,
    AskedTraining,
    ConsentAnswer,
    Content,
    OfferAnswer,
    Place,
    Placed,
    RankAnswer,
    Refusal,
    ReportAnswer,
    SettlementAnswer,
    Suspended,
    TrainingAnswer,
    part,
    read_question,
)
from fedaccord.protocol.offers import costs_no_more
from fedaccord.protocol.parameters import Arrays, digest, distance
from fedaccord.protocol.standing import can_follow, own_equilibrium
from fedaccord.protocol.terms import MOST, Terms

Trainer = Callable[[int, int, int, Arrays], Arrays]
"""Trains, given the slot, the round, the number of samples, and the global parameters."""
Look = Callable[[], object]
"""Checks that everything that a slot needs is there; an error says what is not."""


@dataclass(frozen=True)
class Private:
    """What only the client itself knows.

    Of all this it reveals its ratio and its samples, and what it saves while it is suspended if the
    terms say that it saves its fees.
    """

    name: str
    valuation: float
    cost_per_sample: float
    samples: int
    discount_factor: float
    communication_cost: float = 0.0
    tells_discount_factor: bool = False
    consents_to_slot: int | None = None
    """The slot whose model it agrees to go back to, if that is proposed."""
    consents_to_return: tuple[str, int] | None = None
    """The suspended client whose early return it agrees to, if that is proposed, and the slot in
    which that one slipped: consent to one suspension is not consent to the next."""
    slips: Mapping[int, int] = field(default_factory=dict)
    """For rehearsals: slots in which it trains on another number of samples than asked."""

    @property
    def ratio(self) -> float:
        """rho/E."""
        return self.valuation / self.cost_per_sample


class Participant:
    """A client that answers."""

    def __init__(
        self,
        private: Private,
        terms: Terms,
        copy: notes.Kept,
        train: Trainer,
        look: Look | None = None,
    ) -> None:
        """`copy` is where it keeps its notes, `train` does the training.

        `look` is called before each report: a client that could not train does not report, either.
        """
        self.private = private
        self.terms = terms
        self.copy = copy
        self._notes = notes.Copy(copy)
        self._train = train
        self._look = look

    def answer(
        self, asked: Mapping[str, Any], parameters: Arrays | None
    ) -> tuple[dict[str, Any], Arrays | None]:
        """The reply to a question of the server's, with parameters after a round of training."""
        place, content = read_question(asked, self.terms)
        self._check_place(place)
        # to train under an agreement it must have accepted an offer, and it was not out then
        if isinstance(content, AskedReport | AskedRank | AskedOffer | AskedEquilibrium):
            self._check_takes_part(place, content)
        trained = None
        answer: Content
        match content:
            case AskedReport():
                answer = self._report(place, content)
            case AskedRank():
                answer = self._rank(place, content)
            case AskedOffer():
                answer = self._offer(place, content)
            case AskedTraining() | AskedEquilibrium():
                answer, trained = self._update(place, content, parameters)
            case AskedSettlement():
                answer = self._settle(place, content, parameters)
            case AskedConsent():
                answer = self._consent(place, content)
        about = {"stage": place.stage, "slot": place.slot, "turn": place.turn, "token": place.token}
        return about | answer.body, trained

    def _check_place(self, place: Place) -> None:
        """Whether there is such a turn, in the newest slot, and the server's ledger continues."""
        terms, stage, slot = self.terms, place.stage, place.slot
        # every new attempt leaves out a client, so there are at most as many attempts as clients
        last = {"offer": len(terms.clients), "train": terms.rounds, "consent": MOST}.get(stage)
        turns = range(1) if last is None else range(1, last + 1)
        if place.turn not in turns:
            raise Refusal(f"there is no turn {place.turn} of {stage} in slot {slot}")
        if slot > place.head.number:  # every slot has at least one entry
            raise Refusal(f"slot {slot} is beyond the server's own ledger")
        newest = self._notes.newest()
        if newest is not None:
            _check_follows(place, newest)
        over = self._notes.recall(notes.Settlement, slot) is not None
        if over and stage not in ("settle", "consent"):
            raise Refusal(f"slot {slot} is settled")

    def _check_takes_part(self, place: Place, asked: Content) -> None:
        """A suspended client takes no part, and nobody is suspended or back without a reason."""
        name, slot = self.private.name, place.slot
        if isinstance(asked, AskedReport):
            if name in asked.suspended:
                raise Refusal(f"it is suspended in slot {slot}, and should not be asked")
            self._check_suspended(place, asked)
        elif self._notes.recall(notes.Report, slot) is None:  # then nothing was checked yet
            nobody = AskedReport(phase="cooperating", suspended={}, returned=[])
            self._check_suspended(place, nobody, only=name)

    def _check_suspended(self, place: Place, told: AskedReport, only: str | None = None) -> None:
        """Whoever was out when the client was last told must be out still, as long as agreed.

        Slots may have been played without this client, so others may have slipped or returned
        since then. But they return early only with its consent, or by terms that it signed.
        """
        settled = self._notes.newest_of(notes.Settlement, before=place.slot)
        if settled is None:
            return
        missed, known = place.slot - settled.slot - 1, settled.suspended
        for name, one in known.items():
            most = self.terms.still("suspension", one.slots_left)
            if most == 0 or name not in self.terms.clients or only not in (None, name):
                continue
            now = told.suspended.get(name)
            if now is None:
                over = most is not None and missed >= most
                if not over and not self._let_return(name, one, settled.slot, told):
                    it = "it" if name == self.private.name else name
                    raise Refusal(f"{it} is suspended in slot {place.slot}, as its own copy says")
            elif now.slipped_in == one.slipped_in and not _counts_down(most, now, missed):
                raise Refusal(f"{name} is suspended for longer or shorter than its own copy says")
        for name, now in told.suspended.items():
            same = name in known and known[name].slipped_in == now.slipped_in
            if now.slipped_in <= settled.slot and not same:
                raise Refusal(f"{name} is suspended for a slip that its own copy does not have")

    def _let_return(self, name: str, out: Suspended, since: int, told: AskedReport) -> bool:
        """Whether a suspension was ended early: its own by the others, another's by all."""
        if name == self.private.name:
            return name in told.returned
        return any(
            (note.returns, note.slipped_in, note.agrees) == (name, out.slipped_in, True)
            for note in self._notes.since(notes.Consent, since)
        )

    def _report(self, place: Place, asked: AskedReport) -> ReportAnswer:
        """(1) Its ratio and its samples; what it reported before in this slot stays its report."""
        if self._look is not None:
            self._look()
        known = self._notes.recall(notes.Report, place.slot)
        if known is not None:
            if not _says(known, asked):
                raise Refusal("the server told something else before (report)")
            return part(ReportAnswer, known)
        private = self.private
        saved = (private.communication_cost + self.terms.server_fee) / private.cost_per_sample
        report = ReportAnswer(
            ratio=private.ratio,
            samples=private.samples,
            discount_factor=private.discount_factor if private.tells_discount_factor else None,
            fees=saved if self.terms.fees_saved else None,
        )
        note = notes.Report(
            **self._at(place),
            **dict(asked),
            **dict(report),
            format=FORMAT,
            terms=self.terms.digest,
        )
        self._notes.write(note)
        return report

    def _rank(self, place: Place, rank: AskedRank) -> RankAnswer:
        """(2) Its own equilibrium contribution (Algorithm 1, lines 4-11)."""
        self._note(notes.Rank, place, rank)
        return RankAnswer(contribution=self._alone(place, rank))

    def _offer(self, place: Place, offer: AskedOffer) -> OfferAnswer:
        """(3) Whether accepting is better for it than refusing: its own row of the certificate."""
        self._note(notes.Offer, place, offer)
        known = self._notes.recall(notes.Answer, place.slot, place.turn)
        if known is not None:
            return part(OfferAnswer, known)
        answer = OfferAnswer(accepts=self._accepts(place, offer))
        self._notes.write(notes.Answer(**self._at(place), **dict(answer)))
        return answer

    def _accepts(self, place: Place, offer: AskedOffer) -> bool:
        """Whether it is as the terms say, and worth accepting with the private numbers."""
        private, terms = self.private, self.terms
        rules = ("agreement", "rounds", "punishment", "punishment_slots", "tolerance")
        if any(getattr(offer, rule) != getattr(terms, rule) for rule in rules):
            return False
        if offer.contribution > min(private.samples, offer.total):
            return False
        row = own_row(
            valuation=private.valuation,
            cost_per_sample=private.cost_per_sample,
            samples=private.samples,
            discount_factor=private.discount_factor,
            contribution=offer.contribution,
            total=offer.total,
            equilibrium_contribution=self._alone(place, offer),
            equilibrium_total=offer.equilibrium_total,
            rounds=terms.rounds,
            law=terms.law_of_loss,
            punishment=terms.after_slip,
            communication_cost=private.communication_cost + terms.server_fee,
        )
        worse = not costs_no_more(row.cost_agreement, row.cost_equilibrium)
        return row.keeps and not (terms.nobody_worse and worse)

    def _update(
        self, place: Place, asked: AskedTraining | AskedEquilibrium, parameters: Arrays | None
    ) -> tuple[TrainingAnswer, Arrays | None]:
        """(4) Train on exactly what was accepted, or on its own equilibrium contribution.

        It trains one model in each round, and writes down which one, what it was told to play,
        and the digest of its update. That exposes a server which claims afterwards that something
        else was to be played, or that another update came back.
        """
        if parameters is None or digest(parameters) != asked.model:
            raise Refusal("the model to train is missing, or another one than was told")
        known = self._trained(place, asked)
        amount = known.samples if known else self._amount(place, asked)
        if amount > self.private.samples:  # absence is not a deviation, and less would be one
            raise Refusal(f"this takes {amount} samples, and it has {self.private.samples} now")
        answer, trained = TrainingAnswer(samples=amount), None
        if amount > 0:
            trained = self._train(place.slot, place.turn, amount, parameters)
        update = None if trained is None else digest(trained)
        if known is None:
            norm = 0.0 if trained is None else distance(trained, parameters)
            told = {**self._at(place), **dict(asked)}
            note = notes.Contribution(**told, **dict(answer), update=update, norm=norm)
            self._notes.write(note)
        elif known.update != update:  # another model would be a second look at its data
            raise Refusal("its training does not come out as it did when it was asked before")
        return answer, trained

    def _trained(
        self, place: Place, asked: AskedTraining | AskedEquilibrium
    ) -> notes.Contribution | None:
        """What it wrote down when it was asked for this round before; the latest one only."""
        last = self._notes.latest(notes.Contribution, place.slot)
        if last is None:
            return None
        if place.turn < last.turn:
            raise Refusal(f"round {place.turn} is over: round {last.turn} was trained")
        again = place.turn == last.turn
        if not _says(last, asked if again else asked.model_copy(update={"model": last.model})):
            raise Refusal("the server told something else before (contribution)")
        return last if again else None

    def _amount(self, place: Place, asked: AskedTraining | AskedEquilibrium) -> int:
        """What to train on: as agreed, or the equilibrium contribution; or the slip rehearsed."""
        if isinstance(asked, AskedEquilibrium):
            amount = int(self._alone(place, asked))
        else:
            amount = self._agreed(place, asked)
        slip = self.private.slips.get(place.slot)
        return amount if slip is None else min(slip, self.private.samples)

    def _agreed(self, place: Place, asked: AskedTraining) -> int:
        """What it accepted (the last offer, if it accepted that), which the server must repeat."""
        last = self._notes.latest(notes.Offer, place.slot)
        answer = last and self._notes.recall(notes.Answer, place.slot, last.turn)
        if not last or not answer or not answer.accepts:
            raise Refusal("this is not what was agreed on")
        if last.contribution != asked.contribution:
            raise Refusal("this is not what was agreed on")
        return last.contribution

    def _settle(
        self, place: Place, settlement: AskedSettlement, parameters: Arrays | None
    ) -> SettlementAnswer:
        """(5) Take note of the verdicts, the next phase, and the model if it is sent one."""
        given = None if parameters is None else digest(parameters)
        if given != settlement.model:
            raise Refusal("the model of the slot is missing, or another one than was told")
        if settlement.verdict == "suspended" and given is not None:
            raise Refusal("a suspended client is sent no model")
        self._note(notes.Settlement, place, settlement)
        return SettlementAnswer()

    def _consent(self, place: Place, proposal: AskedConsent) -> ConsentAnswer:
        """Whether it agrees; what it knows of a model or a suspension must be as it was told."""
        self._check_motion(place, proposal)
        known = self._notes.recall(notes.Consent, place.slot, place.turn)
        if known is not None:
            return part(ConsentAnswer, known)
        private = self.private
        if proposal.returns is None:
            agrees = private.consents_to_slot == proposal.to_slot
        else:
            agrees = private.consents_to_return == (proposal.returns, proposal.slipped_in)
        answer = ConsentAnswer(agrees=agrees)
        self._notes.write(notes.Consent(**self._at(place), **dict(proposal), **dict(answer)))
        return answer

    def _check_motion(self, place: Place, motion: AskedConsent) -> None:
        """Refuse to go back to another model than it was given, or to end what is no suspension.

        It must be decided by the terms that this client signed: they say who is asked.
        """
        if motion.terms != self.terms.digest:
            raise Refusal("it is to be decided by other terms than this client signed")
        if motion.to_slot is not None:
            settled = self._notes.recall(notes.Settlement, motion.to_slot)
            if settled and settled.model not in (None, motion.model):
                raise Refusal(f"this is not the model that slot {motion.to_slot} ended with")
        if motion.returns is not None:
            settled = self._notes.recall(notes.Settlement, place.slot)
            out = settled.suspended.get(motion.returns) if settled else None
            if settled and (out is None or out.slipped_in != motion.slipped_in):
                raise Refusal(
                    f"{motion.returns} is not suspended for that slip, as slot {place.slot} was "
                    "settled"
                )

    def _alone(self, place: Place, told: Placed) -> float:
        """Its own equilibrium contribution, from a place that can follow the one it was told."""
        standing = told.standing
        ranked = self._notes.recall(notes.Rank, place.slot)
        before = ranked.standing if ranked else standing
        if standing.clients > len(self.terms.clients) or standing.rank > standing.clients:
            raise Refusal("there is no such place among the clients")
        if not can_follow(before, standing):
            raise Refusal("this place does not fit the one that the server told before")
        private = self.private
        return own_equilibrium(private.ratio, private.samples, self.terms.law_of_loss, standing)

    def _note(
        self,
        form: type[notes.Rank | notes.Offer | notes.Settlement],
        place: Place,
        told: AskedRank | AskedOffer | AskedSettlement,
    ) -> None:
        """Write down what the server told; it must not tell something else later."""
        known = self._notes.recall(form, place.slot, place.turn)
        if known is None:
            self._notes.write(form(**self._at(place), **dict(told)))
        elif not _says(known, told):
            raise Refusal(f"the server told something else before ({form.kind})")

    def _at(self, place: Place) -> dict[str, Any]:
        """What every note has."""
        return {
            "slot": place.slot,
            "client": self.private.name,
            "turn": place.turn,
            "ledger": place.ledger,
        }


def _check_follows(place: Place, newest: notes.Note) -> None:
    """Neither the slot nor the server's ledger may go back."""
    if place.slot < newest.slot:
        raise Refusal(f"slot {place.slot} is older than slot {newest.slot}, the newest")
    if place.head.number < newest.head.number:
        raise Refusal("the server's ledger is shorter than before")
    if place.head.number == newest.head.number and place.head != newest.head:
        raise Refusal("the server's ledger has another end than before")


def _counts_down(most: int | None, now: Suspended, missed: int) -> bool:
    """Whether a suspension is as long as it can be after some slots; a void one need not count."""
    if most is None or now.slots_left is None:
        return now.slots_left is most
    return most - missed <= now.slots_left <= most


def _says(note: notes.Note, told: Content) -> bool:
    """Whether a note has all of this in it."""
    return all(getattr(note, key) == getattr(told, key) for key in type(told).model_fields)

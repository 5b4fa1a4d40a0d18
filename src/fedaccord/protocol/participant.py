"""The client's half of the protocol: it checks what it is asked, writes it down and answers."""

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from fedaccord.audits.commitment import Commitment, RoundInputs
from fedaccord.errors import InvalidInput
from fedaccord.protocol import notes
from fedaccord.protocol.acceptance import (
    NOT_BY_TERMS,
    Judgement,
    follows_terms,
    judge_offer,
    judge_posted,
)
from fedaccord.protocol.clock import check_step, goes_on, steps_of
from fedaccord.protocol.envelopes import Place, read_question
from fedaccord.protocol.limits import MOST
from fedaccord.protocol.memory import SuspensionMemory
from fedaccord.protocol.messages import (
    FORMAT,
    AskedClock,
    AskedConsent,
    AskedEquilibrium,
    AskedOffer,
    AskedPosted,
    AskedRank,
    AskedReport,
    AskedSettlement,
    AskedTier,
    AskedTraining,
    ClockAnswer,
    ConsentAnswer,
    Content,
    OfferAnswer,
    Placed,
    PresenceAnswer,
    RankAnswer,
    Receipt,
    Refusal,
    ReportAnswer,
    TrainingAnswer,
    part,
)
from fedaccord.protocol.own_statements import OwnStatements
from fedaccord.protocol.parameters import Arrays, digest, distance
from fedaccord.protocol.private import Private
from fedaccord.protocol.roster import Roster, Signer
from fedaccord.protocol.standing import can_follow, own_equilibrium
from fedaccord.protocol.terms import Terms
from fedaccord.signing.keys import Key


class Trainer(Protocol):
    """Trains a client's own steps in a round."""

    def __call__(
        self, slot: int, turn: int, amount: int, parameters: Arrays, *, first: int = 0
    ) -> Arrays:
        """The parameters after training on `amount` samples, from the sample `first` of the slot.

        That is not 0 in the later tiers of a slot: each sample is trained on in one tier.
        """
        ...


Look = Callable[[], object]
"""Checks that everything that a slot needs is there; an error says what is not."""


class AuditedTraining(Protocol):
    """How a client commits and trains where the terms say that training is audited."""

    def commit(self) -> Commitment:
        """What binds it for a slot: its records and its code."""
        ...

    def train(self, inputs: RoundInputs, parameters: Arrays) -> Arrays:
        """The parameters after its part of a round, in which nothing is its own choice."""
        ...


class Participant:
    """A client that answers."""

    def __init__(
        self,
        private: Private,
        terms: Terms,
        copy: notes.Kept,
        train: Trainer,
        *,
        look: Look | None = None,
        key: Key | None = None,
        audited: AuditedTraining | None = None,
    ) -> None:
        """`copy` is where it keeps its notes, `train` does the training.

        `look` is called before each report: a client that could not train does not report, either.
        `key` is its private key, if the terms have keys; `audited` is for terms with
        audits, and then trains instead of `train`.
        """
        self.private = private
        self.terms = terms
        self.copy = copy
        self._notes = notes.Copy(copy)
        self._train = train
        self._look = look
        self._audited = audited
        self.judgement: Judgement | None = None
        """Of the latest offer that it was asked about, and had not answered before."""
        signer = _signer(private.name, terms, key)
        self._statements = signer and OwnStatements(private.name, signer, self._notes)

    def answer(
        self, asked: Mapping[str, Any], parameters: Arrays | None
    ) -> tuple[dict[str, Any], Arrays | None]:
        """The reply to a question of the server's, with parameters after a round of training."""
        place, content = read_question(asked, self.terms)
        if self._statements is not None:
            self._statements.check(place, content)
        self._check_place(place)
        # to train under an agreement it must have accepted an offer, and it was not out then
        if not isinstance(content, AskedTraining | AskedTier | AskedSettlement | AskedConsent):
            self._check_takes_part(place, content)
        trained = None
        answer: Content
        match content:
            case AskedReport():
                answer = self._report(place, content)
            case AskedRank():
                answer = self._rank(place, content)
            case AskedClock():
                answer = self._clock(place, content)
            case AskedOffer() | AskedPosted():
                answer = self._offer(place, content)
            case AskedTraining() | AskedEquilibrium():
                answer, trained = self._update(place, content, parameters)
            case AskedTier() | AskedSettlement():
                answer = self._take_model(place, content, parameters)
            case AskedConsent():
                answer = self._consent(place, content)
        about = {"stage": place.stage, "slot": place.slot, "turn": place.turn, "token": place.token}
        said = answer.body
        if self._statements is None:
            return about | said, trained
        if place.stage == "train":
            said = said | {"update": None if trained is None else digest(trained)}
        return about | answer.body | self._statements.sign(place, content, said), trained

    def _check_place(self, place: Place) -> None:
        """Whether there is such a turn, in the newest slot, and the server's ledger continues."""
        terms, stage, slot = self.terms, place.stage, place.slot
        # every new attempt leaves out a client, so there are at most as many attempts as clients
        clients, steps = len(terms.clients), steps_of(terms)
        tiers = min(clients, steps) if terms.agreement == "serial clock" else 1
        last = {
            "clock": steps + clients,
            "offer": clients,
            "train": terms.rounds * tiers,
            "tier": tiers - 1,
            "consent": MOST,
        }.get(stage)
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
            self._memory.check(place, asked)
        elif self._notes.recall(self._opening, slot) is None:  # then nothing was checked yet
            nobody = AskedReport(phase="cooperating", suspended={}, returned=[])
            self._memory.check(place, nobody, only=name)

    @property
    def _memory(self) -> SuspensionMemory:
        return SuspensionMemory(self.private.name, self._notes, self.terms)

    @property
    def _opening(self) -> type[notes.Presence]:
        """What it writes down when it is first asked in a slot."""
        return notes.Presence if self.terms.reports == "none" else notes.Report

    def _report(self, place: Place, asked: AskedReport) -> ReportAnswer | PresenceAnswer:
        """(1) Its ratio and its samples; what it reported before in this slot stays its report.

        If nobody reports, it says that it is there, with as many samples as the terms say.
        """
        if self._look is not None:
            self._look()
        known = self._notes.recall(self._opening, place.slot)
        if known is not None and not _says(known, asked):
            raise Refusal("the server told something else before (report)")
        report = self._numbers() if known is None else part(self._reported, known)
        if known is None:
            told = {**self._at(place), **dict(asked), **dict(report)}
            note = self._opening(**told, format=FORMAT, terms=self.terms.digest)
            self._notes.write(note)
        return report

    def trained_in(self, slot: int) -> list[notes.Contribution]:
        """What it noted about each round of a slot in which it trained."""
        return [one for one in self._notes.all(notes.Contribution, slot) if one.samples]

    @property
    def _reported(self) -> type[ReportAnswer | PresenceAnswer]:
        return PresenceAnswer if self.terms.reports == "none" else ReportAnswer

    def _numbers(self) -> ReportAnswer | PresenceAnswer:
        """What it reveals of itself."""
        private = self.private
        if self.terms.reports == "none":
            if (public := self.terms.samples_of(private.name)) > private.samples:
                raise Refusal(f"it has {private.samples} samples, and {public} by the terms")
            return PresenceAnswer(commitment=self._committed())
        saved = (private.communication_cost + self.terms.server_fee) / private.cost_per_sample
        return ReportAnswer(
            ratio=private.ratio,
            samples=private.samples,
            discount_factor=private.discount_factor if private.tells_discount_factor else None,
            fees=saved if self.terms.fees_saved else None,
            commitment=self._committed(),
        )

    def _committed(self) -> Commitment | None:
        if self.terms.audits is None:
            return None
        if self._audited is None:
            raise Refusal("by the terms training is audited, and this client is not set up for it")
        return self._audited.commit()

    def _rank(self, place: Place, rank: AskedRank) -> RankAnswer:
        """(2) Its own equilibrium contribution (Algorithm 1, lines 4-11)."""
        self._note(notes.Rank, place, rank)
        return RankAnswer(contribution=self._alone(place, rank))

    def _clock(self, place: Place, asked: AskedClock) -> ClockAnswer:
        """(2) Whether it goes on to the next share; what it said to this question stays."""
        last, own = self._notes.latest(notes.Stay, place.slot), self._public_samples
        if last is not None and last.turn == place.turn:
            if not _says(last, asked):
                raise Refusal("the server told something else before (stay)")
            return part(ClockAnswer, last)
        if last is not None and (not last.stays or place.turn != last.turn + 1):
            raise Refusal("it stopped the clock, or was not asked before")
        check_step(asked, last, own, self.terms)
        law, steps = self.terms.law_of_loss, steps_of(self.terms)
        answer = ClockAnswer(stays=goes_on(self.private.ratio, own, law, asked, steps))
        self._notes.write(notes.Stay(**self._at(place), **dict(asked), **dict(answer)))
        return answer

    @property
    def _public_samples(self) -> int:
        return self.terms.samples_of(self.private.name)

    def _offer(self, place: Place, offer: AskedOffer | AskedPosted) -> OfferAnswer:
        """(3) Whether accepting is better for it than refusing: its own row of the certificate."""
        self._note(notes.Offer if isinstance(offer, AskedOffer) else notes.Posted, place, offer)
        known = self._notes.recall(notes.Answer, place.slot, place.turn)
        if known is not None:
            return part(OfferAnswer, known)
        self.judgement = self._judge(place, offer)
        answer = OfferAnswer(accepts=self.judgement.accepts)
        self._notes.write(notes.Answer(**self._at(place), **dict(answer)))
        return answer

    def _judge(self, place: Place, offer: AskedOffer | AskedPosted) -> Judgement:
        """Whether it is as the terms say, and worth accepting with the private numbers."""
        private, terms = self.private, self.terms
        if not follows_terms(private, terms, offer):
            return Judgement(False, NOT_BY_TERMS)
        if isinstance(offer, AskedPosted):
            last = self._notes.latest(notes.Stay, place.slot)
            return judge_posted(private, terms, offer, last)
        return judge_offer(private, terms, offer, self._alone(place, offer))

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
            trained = self._trained_on(place, amount, parameters)
        update = None if trained is None else digest(trained)
        if known is None:
            norm = 0.0 if trained is None else distance(trained, parameters)
            told = {**self._at(place), **dict(asked)}
            note = notes.Contribution(**told, **dict(answer), update=update, norm=norm)
            self._notes.write(note)
        elif known.update != update:  # another model would be a second look at its data
            raise Refusal("its training does not come out as it did when it was asked before")
        return answer, trained

    def _trained_on(self, place: Place, amount: int, parameters: Arrays) -> Arrays:
        """Its update; where training is audited, everything random in it follows from the ledger.

        That is from the end of the ledger when the first round of the slot was asked for.
        """
        done = self._done(place)
        if self.terms.audits is None or self._audited is None:
            return self._train(place.slot, place.turn, amount, parameters, first=done)
        earlier = next(iter(self._notes.all(notes.Contribution, place.slot)), None)
        inputs = RoundInputs(
            client=self.private.name,
            position=self.terms.clients.index(self.private.name),
            slot=place.slot,
            turn=place.turn,
            head=(place if earlier is None else earlier).head.digest,
            first=done,
            amount=amount,
        )
        return self._audited.train(inputs, parameters)

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
        same_tier = self._tier(place.turn) == self._tier(last.turn)
        told = asked if again else asked.model_copy(update={"model": last.model})
        if same_tier and not _says(last, told):
            raise Refusal("the server told something else before (contribution)")
        return last if again else None

    def _tier(self, turn: int) -> int:
        """The tier of a round, from 0."""
        return (turn - 1) // self.terms.rounds

    def _done(self, place: Place) -> int:
        """What it was to train on in the tiers before this one."""
        this = self._tier(place.turn)
        if this == 0:  # as always without a serial clock: no need to read all earlier rounds
            return 0
        tiers = {
            tier: note.contribution
            for note in self._notes.all(notes.Contribution, place.slot)
            if (tier := self._tier(note.turn)) < this
        }
        return sum(tiers.values())

    def _amount(self, place: Place, asked: AskedTraining | AskedEquilibrium) -> int:
        """What to train on: as agreed, or the equilibrium contribution; or the slip rehearsed."""
        if isinstance(asked, AskedEquilibrium):
            amount = int(self._alone(place, asked))
        else:
            amount = self._agreed(place, asked)
        slip = self.private.slips.get(place.slot)
        return amount if slip is None else min(slip, self.private.samples)

    def _agreed(self, place: Place, asked: AskedTraining) -> int:
        """What it accepted (the last offer, if it accepted that), which the server must repeat.

        After a serial clock it is a part of that, which must not be more than is left.
        """
        last: notes.Offer | notes.Posted | None
        if self.terms.reports == "none":
            last = self._notes.latest(notes.Posted, place.slot)
        else:
            last = self._notes.latest(notes.Offer, place.slot)
        answer = last and self._notes.recall(notes.Answer, place.slot, last.turn)
        if not last or not answer or not answer.accepts:
            raise Refusal("this is not what was agreed on")
        left, wanted = last.contribution - self._done(place), asked.contribution
        in_tiers = self.terms.agreement == "serial clock"
        if wanted > left or (wanted < left and not in_tiers):
            raise Refusal("this is not what was agreed on")
        return wanted

    def _take_model(
        self, place: Place, told: AskedTier | AskedSettlement, parameters: Arrays | None
    ) -> Receipt:
        """(4, 5) The model if it is sent one; with it the verdicts and the next phase, or not."""
        given = None if parameters is None else digest(parameters)
        if given != told.model:
            raise Refusal("the model of the slot is missing, or another one than was told")
        if isinstance(told, AskedTier):
            self._note(notes.Tier, place, told)
            return Receipt()
        if told.verdict == "suspended" and given is not None:
            raise Refusal("a suspended client is sent no model")
        self._note(notes.Settlement, place, told)
        return Receipt()

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
        form: type[notes.Rank | notes.Offer | notes.Posted | notes.Tier | notes.Settlement],
        place: Place,
        told: AskedRank | AskedOffer | AskedPosted | AskedTier | AskedSettlement,
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


def _signer(name: str, terms: Terms, key: Key | None) -> Signer | None:
    """Signs for a client, with the key that everybody knows to be its own."""
    roster = Roster.of(terms)
    if roster is None:
        return None
    if key is None:
        raise InvalidInput("the terms have keys, so the client needs its own to sign", field="key")
    if key.public != (known := roster.keys.clients[name]):
        raise InvalidInput(f"is {key.public}, but the terms have {known}", field="key")
    return Signer(roster, key)


def _check_follows(place: Place, newest: notes.Note) -> None:
    """Neither the slot nor the server's ledger may go back."""
    if place.slot < newest.slot:
        raise Refusal(f"slot {place.slot} is older than slot {newest.slot}, the newest")
    if place.head.number < newest.head.number:
        raise Refusal("the server's ledger is shorter than before")
    if place.head.number == newest.head.number and place.head != newest.head:
        raise Refusal("the server's ledger has another end than before")


def _says(note: notes.Note, told: Content) -> bool:
    """Whether a note has all of this in it."""
    return all(getattr(note, key) == getattr(told, key) for key in type(told).model_fields)

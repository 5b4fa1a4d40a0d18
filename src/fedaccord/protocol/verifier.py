"""Follows a server's ledger entry by entry, one step ahead of it.

Everything that the server computed is recomputed. Whatever it was told must answer the open
question, from a client that was asked, once; and all answers to a question are written together.
"""

from math import isclose
from typing import Any

from fedaccord.audits.attestation import SignedAttestation
from fedaccord.audits.verdict import SignedVerdict
from fedaccord.errors import FedaccordError
from fedaccord.ledger.chain import START, Head
from fedaccord.protocol import facts
from fedaccord.protocol.auditing import wrong_evidence, wrong_submission
from fedaccord.protocol.conclusions import (
    Facts,
    due,
    equilibrium_of,
    find_offers,
)
from fedaccord.protocol.guards import (
    Length,
    check_commitment,
    check_equilibrium,
    check_report,
    largest_norms,
)
from fedaccord.protocol.messages import LONGEST_REASON, Asked, AskedRank, Stage, part
from fedaccord.protocol.notes import STAGE_OF
from fedaccord.protocol.offers import flaw_in
from fedaccord.protocol.questions import Contents, OpenQuestion, open_question, told_settlement
from fedaccord.protocol.reasons import OF_NODES, Reason, reason_of
from fedaccord.protocol.receiving import ReplyRefused
from fedaccord.protocol.roster import At, Roster
from fedaccord.protocol.rounds import enough_to_average, handed_to, hands_out, most_of
from fedaccord.protocol.signatures import Latest, Signatures, SignaturesSoFar
from fedaccord.protocol.standing import own_equilibrium
from fedaccord.protocol.state import Slot, State
from fedaccord.protocol.terms import SAME_NUMBER, Terms

ANSWERS = ("report", "presence", "rank", "stay", "answer", "contribution", "consent")
"""Kinds of entries that are a client's answers, in a server's ledger and in a copy."""
_PUBLIC = ("turn", "agreement", "equilibrium_total", "punishment", "punishment_slots")
"""What a server says of an agreement, whichever one it finds."""


NONSENSE = (
    FedaccordError,
    ReplyRefused,
    ArithmeticError,
    AttributeError,
    LookupError,
    RecursionError,
    TypeError,
    ValueError,
)
"""Raised by entries that no server of ours wrote."""


def in_brief(error: Exception) -> str:
    """An error in one line; it may quote a ledger, at any length."""
    text = " ".join(str(error).split())
    return text if len(text) <= LONGEST_REASON else f"{text[:LONGEST_REASON]}..."


def same(one: Any, other: Any) -> bool:
    """Whether two values are the same; two machines may round a number differently.

    Under a law with shifts, a total may be the small difference of large numbers.
    """
    if isinstance(one, float) and isinstance(other, float):
        return isclose(one, other, rel_tol=SAME_NUMBER, abs_tol=SAME_NUMBER)
    return bool(one == other)


class Verifier:
    """Knows what the ledger says so far, and what must come next."""

    def __init__(self, *, every_signature: bool = False) -> None:
        """Before the first entry; signatures are checked as `Signatures` has it."""
        self.state = State()
        self.signatures = Signatures(every_signature)
        self.before = START
        """The end of the ledger before this entry."""
        self.asked_at = At(0, "", 0, START)
        """When the question was asked."""
        self.late: list[str] = []
        """Earlier answers of a client that must follow, by their digests."""
        self.unsealed = False
        """Whether the server has not yet signed the latest entries."""
        self.expected: Facts = []
        """What follows without asking anyone."""
        self.question: OpenQuestion | None = None
        """What is being answered, if some of it is answered already."""
        self.answered: OpenQuestion | None = None
        """What everyone has just answered; what strangers replied to it comes last."""
        self.heard: dict[str, facts.TypedFact] = {}
        """What each client answered to it, or that it was absent."""
        self.refused: set[tuple[str | None, Reason]] = set()
        """Whose replies to it were refused, and why."""
        self.too_long: dict[str, Length] = {}
        """The updates of this round that the server says were too long."""
        self.claimed_total: int | None = None
        """The total of the agreement, as the server says."""

    def go_on(self, state: State, signatures: SignaturesSoFar) -> None:
        """Begin with what an earlier verification of the same ledger found."""
        self.state = state
        self.signatures.go_on(signatures)

    def look_at(self, fact: facts.TypedFact, before: Head = START) -> str | None:
        """What is wrong with one more fact, if anything; `before` it the ledger ended there."""
        self.before = before
        if self._complete and self.state.terms is not None:
            self.expected = due(self.state, _public_part)
        # asked of the kind first: isinstance is slow where a pydantic class does not match
        if fact.kind == "seal" and isinstance(fact, facts.Seal):
            return self._sealed(fact)
        if fact.kind == "fault" and isinstance(fact, facts.Fault):
            self.unsealed = True
            self.signatures.claim(before.number + 1, fact)
            return self._remark(fact)
        if self._must_be_sealed:
            return "comes before the server signed what was before it"
        self.unsealed, self.answered = True, None
        if fact.kind == "late" or self.late:
            return self._came_late(fact)
        problem = self._conclusion(fact) if self.expected else self._event(fact)
        if problem is None:
            self.state.apply(fact)
            self._take_note(fact)
            if fact.kind == "offer" and not self.expected and self._reported:
                return self._unproved()
        return problem

    def take_count(self, fact: facts.Contribution, latest: Latest | None) -> None:
        """Take note of a count of which everything was found to be right (`quick_rounds`)."""
        self.unsealed = True
        self.heard[fact.client] = fact
        self.state.apply(fact)
        self.signatures.take(fact.client, latest)

    @property
    def _complete(self) -> bool:
        """Whether everything that belongs to the latest event is there."""
        return not self.expected and self.question is None and not self.late

    @property
    def _must_be_sealed(self) -> bool:
        signs = self.state.roster is not None and self.state.model is not None
        return signs and self.unsealed and self._complete

    def _sealed(self, fact: facts.Seal) -> str | None:
        """What is wrong with the server's signature on everything before it."""
        if not self._complete or not self.unsealed or self.state.model is None:
            return "signs nothing new, or something that is not complete"
        number = 0 if self.state.slot is None else self.state.current.number
        if fact.slot != number:
            return "is of another slot"
        self.unsealed, self.answered = False, None
        return self.signatures.seal(self.state.roster, fact, self.before)

    def _came_late(self, fact: facts.TypedFact) -> str | None:
        """What is wrong with an answer that the server did not take when it was given."""
        if not isinstance(fact, facts.Late) or fact.signed.statement != next(iter(self.late), None):
            return (
                "is where an earlier answer of a client should be, or is one that it did not send"
            )
        del self.late[0]
        self.state.apply(fact)
        return self.signatures.late(self.state.roster, fact)

    def end(self) -> str | None:
        """What is wrong with an end here: all that follows from one answer is written at once."""
        if missing := self.expected or due(self.state, _public_part):
            return f"ends where {missing[0].kind} of slot {missing[0].slot} should follow"
        if self.question is not None:
            stage, slot, *_ = self.question
            return f"ends in the middle of the answers to {stage} of slot {slot}"
        if self.late or self._must_be_sealed:
            return "ends without the server's signature"
        if (problem := self.signatures.end()) is not None:
            return problem
        return None if self.state.model is not None else "ends before the model to begin with"

    @property
    def _reported(self) -> bool:
        """Whether offers are computed from reports; if not, they follow from the entries."""
        return self.state.rules.reports == "ratio"

    def _take_note(self, fact: facts.TypedFact) -> None:
        if fact.kind == "agreement" and isinstance(fact, facts.Agreement) and self._reported:
            self._expect_offers(fact)
        if fact.kind in ("round", "handed", "told"):
            self.question = None
        elif self._all_heard("report", "rank", "clock", "offer", "consent"):
            self.question, self.answered = None, self.question

    def _all_heard(self, *stages: Stage) -> bool:
        """Whether the question is of these stages, and everyone answered it or is absent."""
        question = self.question
        if question is None or question.stage not in stages:
            return False
        return self.heard.keys() == question.contents.keys()

    # --- What the server computed ----------------------------------------------------------

    def _conclusion(self, fact: facts.TypedFact) -> str | None:
        """What is wrong with something that should follow from what is known."""
        wanted = self.expected.pop(0)
        if (fact.kind, fact.slot, fact.whom) != (wanted.kind, wanted.slot, wanted.whom):
            return f"is where {wanted.kind} of slot {wanted.slot} should be"
        match fact, wanted:
            case facts.Agreement(), facts.Agreement() if self._reported:
                self.expected = []
                return self._false_agreement(fact, wanted)
            case facts.Offer(), facts.Offer() if self._reported:
                if fact.contribution > self.state.current.here[fact.client]:
                    return "asks for more samples than the client has"
                return None if fact.turn == wanted.turn else "is out of turn"
        return None if fact == wanted else "does not follow from the entries before it"

    def _false_agreement(self, claimed: facts.Agreement, wanted: facts.Agreement) -> str | None:
        """What is wrong with what a server says about the agreement, before it offers any."""
        for key in _PUBLIC:
            if not same(getattr(claimed, key), getattr(wanted, key)):
                return f"has another {key} than follows from the entries before it"
        if (claimed.salt is None) != (self.state.roster is None):
            return "has no salt for the total at the equilibrium, or a salt without keys"
        exists = claimed.exists
        if (claimed.reason is None, claimed.total is not None) != (exists, exists):
            return "has both a total and a reason, or neither"
        if not exists and len(find_offers(self.state.current, self.state.rules)) > 1:
            return "says that there is no agreement, but there is one"
        return None

    def _expect_offers(self, fact: facts.Agreement) -> None:
        """Any offers that are proved and of their kind will do: another solver may find others."""
        slot = self.state.current
        names = slot.willing if fact.exists else []
        self.expected = [
            facts.Offer(slot=slot.number, client=name, turn=fact.turn, contribution=0)
            for name in names
        ]
        self.claimed_total = fact.total

    def _unproved(self) -> str | None:
        """Why the offers are not an agreement as the terms say, which nobody would break."""
        slot = self.state.current
        amounts = [slot.offers[name] for name in slot.willing]
        if (flaw := flaw_in(slot, self.state.rules, amounts)) is not None:
            return f"completes offers {flaw}"
        if self.claimed_total != sum(amounts):
            return "completes offers whose total is not the one that was told"
        return None

    # --- What happened ---------------------------------------------------------------------

    def _event(self, fact: facts.TypedFact) -> str | None:
        """What is wrong with something that need not have happened."""
        state = self.state
        if state.terms is None and fact.kind != "terms":
            return "comes before the terms"
        if fact.kind in ANSWERS or fact.kind == "absence":
            return self._reply(fact)
        match fact:
            case facts.Terms():
                if not state.between_slots or fact.slot != state.settled:
                    return "changes the terms of a slot that was begun"
                return self.signatures.terms(state.roster, Roster.of(fact.terms))
            case facts.Model():
                first = state.slot is None and state.model is None and fact.slot == 0
                return None if first else "replaces the model"
            case facts.Slot():
                return self._opened(fact)
            case facts.Handed() | facts.Told():
                return self._receipts(fact)
            case facts.Round():
                return self._round(fact)
            case facts.Proposal():
                return self._proposed(fact)
            case facts.Audit() | facts.Attested():
                return self._audited(fact)
        return "follows from nothing"

    def _remark(self, fact: facts.Fault) -> str | None:
        """A reply was refused: nothing follows from it, but it is written with the others."""
        name, question, found = fact.client, self._question_of(fact), reason_of(fact.reason)
        if question is None:
            return "is about a question that is not open"
        if found is None:
            return "has a reason that our server never gives"
        reason, about = found
        if (name is None) != (reason in OF_NODES) or (name is None) != (fact.node is not None):
            return "is neither about a client nor about a node of no client, or about both"
        if not {name, about.get("client")} <= {None, *self.state.rules.clients}:
            return "is about somebody who is not in the terms"
        if name is not None and (name in question.contents) == (reason is Reason.NOT_ASKED):
            return "says that a client was not asked that was, or the other way round"
        if name in self.heard:
            return "comes after the answer of this client"
        too_long = reason is Reason.TOO_LONG
        if (fact.samples is not None, fact.norm is not None) != (too_long, too_long):
            return "has the length of an update that is not too long, or lacks that of one that is"
        if fact.samples is not None and fact.norm is not None:
            self.too_long[str(name)] = Length(fact.samples, fact.norm)
        self.refused.add((name, reason))
        return None

    def _question_of(self, fact: facts.Fault) -> OpenQuestion | None:
        """The question to which the reply was refused."""
        place = (fact.stage, fact.slot, fact.turn)
        for question in (self.question, self.answered):
            if question is not None and place == question[:3]:
                return question
        if self.expected or self.question is not None:
            return None
        question = open_question(self.state)
        return self._ask(question) if place == question[:3] else None

    def _proposed(self, fact: facts.Proposal) -> str | None:
        """What is wrong with a proposal."""
        state = self.state
        if not state.between_slots or state.pending is not None or fact.slot != state.settled:
            return "comes when nothing could be proposed"
        if state.untried:
            return "is decided by terms under which no slot was begun yet"
        if fact.turn != state.proposals + 1:
            return "is out of turn"
        if fact.returns is not None:
            out = state.out.get(fact.returns)
            right = out is not None and out.slipped_in == fact.slipped_in
            return None if right else "is about a client that is not suspended for that slip"
        if state.earlier_models().get(fact.to_slot) != fact.model:
            return "is not about the model of an earlier slot that is kept"
        return None

    def _audited(self, fact: facts.Audit | facts.Attested) -> str | None:
        """What is wrong with an auditor's verdict, or with evidence that a client attached."""
        state = self.state
        if not state.between_slots or state.pending is not None or fact.slot != state.settled:
            return "comes when nothing could be submitted"
        if isinstance(fact, facts.Attested):
            return self._attested(fact)
        if fact.client != fact.verdict.client:
            return "is about another client than its verdict"
        return wrong_submission(
            state, SignedVerdict(verdict=fact.verdict, signature=fact.signature)
        )

    def _attested(self, fact: facts.Attested) -> str | None:
        """Evidence is attached by its client; whether it holds is for its own verifier to say."""
        signed = SignedAttestation(
            client=fact.client,
            slot=fact.attested,
            attestation=fact.attestation,
            signature=fact.signature,
        )
        wrong = wrong_evidence(self.state, signed)
        if wrong is None:
            flaw = self.state.audited[fact.attested].flaw_in_evidence(signed)
            if flaw is not None:
                self.signatures.undecided.append(
                    f"entry {self.before.number + 1} has evidence of {fact.client} in slot "
                    f"{fact.attested} that proves nothing here: {flaw}"
                )
        return wrong

    def _opened(self, fact: facts.Slot) -> str | None:
        state = self.state
        to_come = (state.settled + 1, state.next_phase[0])
        if not state.between_slots or state.pending or (fact.slot, fact.phase) != to_come:
            return "is not the next slot, or not in its phase"
        return None if state.model is not None else "comes before the model to begin with"

    def _receipts(self, fact: facts.Handed | facts.Told) -> str | None:
        """What is wrong with who received a settlement, or the model of a tier."""
        slot, terms = self.state.current, self.state.rules
        if isinstance(fact, facts.Handed):
            asked = hands_out(slot, terms) and fact.turn == slot.handed + 1
        else:
            asked = slot.settled and not slot.told
        if fact.slot != slot.number or not asked:
            return "comes when there was nothing to tell"
        of_tier = isinstance(fact, facts.Handed)
        names = handed_to(slot, terms) if of_tier else told_settlement(slot, terms)
        told = set(fact.clients)
        if fact.clients != [name for name in names if name in told]:
            return "names strangers, or somebody twice"
        if self.state.roster is None:
            return None if fact.receipts is None else "has receipts, but the terms have no keys"
        question = self.question or self._ask(open_question(self.state))
        return self.signatures.receipts(self.state, fact, question.contents, self.asked_at)

    def _reply(self, fact: facts.TypedFact) -> str | None:
        """What is wrong with what a client answered, or with its absence."""
        question = self.question or self._ask(open_question(self.state))
        absent = fact.kind == "absence"
        stage = getattr(fact, "stage", None) if absent else STAGE_OF[fact.kind]
        if (stage, fact.slot, getattr(fact, "turn", 0)) != question[:3]:
            return "answers a question that is not open"
        name = str(fact.whom)
        if name not in question.contents:
            return "comes from a client that was not asked"
        if name in self.heard:
            return "is a second answer of this client"
        if not self._fits_refusals(name, absent=absent):
            return "does not fit what was refused of this client"
        self.heard[name] = fact
        try:
            problem = self._content(fact, question.contents)
        except ReplyRefused as fault:
            return f"has content that our server refuses: {fault}"
        return problem or self._unsigned(fact, question.contents[name])

    def _unsigned(self, fact: facts.TypedFact, content: Asked) -> str | None:
        """Whether a client did not sign what it is said to have answered to this."""
        if fact.kind == "absence" and isinstance(fact, facts.Absence):
            self.signatures.claim(self.before.number + 1, fact)
        elif isinstance(fact, facts.Said):
            self.late = list(facts.late_in(fact) or [])
            return self.signatures.answer(self.state, fact, content, self.asked_at)
        return None

    def _fits_refusals(self, name: str, *, absent: bool) -> bool:
        """A client that replied too often is present, unless its update was too long."""
        if name in self.too_long:
            return absent
        return not absent or (name, Reason.DUPLICATE) not in self.refused

    def _ask(self, question: OpenQuestion) -> OpenQuestion:
        self.question, self.heard, self.too_long, self.refused = question, {}, {}, set()
        self.asked_at = At(question.slot, question.stage, question.turn, self.before)
        return question

    def _content(self, fact: facts.TypedFact, contents: Contents) -> str | None:
        """What is wrong with the content of an answer: the server should have refused it."""
        slot = self.state.current
        match fact:
            case facts.Contribution():
                if fact.samples > most_of(slot, self.state.rules, fact.client):
                    return "has more samples than the client has, or than its share"
                if (fact.update is None) != (fact.samples == 0):
                    return "has an update without samples, or samples without an update"
            case facts.Report() | facts.Presence():
                if isinstance(fact, facts.Report) != self._reported:
                    return "is not what the terms ask a client for when a slot begins"
                if isinstance(fact, facts.Report):
                    check_report(fact)
                terms = self.state.rules
                samples = (
                    fact.samples
                    if isinstance(fact, facts.Report)
                    else terms.samples_of(fact.client)
                )
                check_commitment(fact, samples, terms)
            case facts.Rank():
                report, place = slot.reports[fact.client], part(AskedRank, contents[fact.client])
                law = self.state.rules.law_of_loss
                alone = own_equilibrium(report.ratio, report.samples, law, place.standing)
                check_equilibrium(fact.contribution, alone, report.samples)
                if fact.standing != place.standing:
                    return "is not the place that follows from the reports"
        return None

    def _wrong_bounds(self) -> str | None:
        """Whether an update was refused that was not too long, or taken though it was."""
        lengths = self.too_long | {
            name: Length(fact.samples, fact.norm)
            for name, fact in self.heard.items()
            if isinstance(fact, facts.Contribution) and fact.samples > 0
        }
        largest = largest_norms(self.state.rules, lengths)
        for name, length in lengths.items():
            if (length.norm > largest[name]) != (name in self.too_long):
                return f"has an update of {name} that was judged by another bound than the terms'"
        return None

    def _round(self, fact: facts.Round) -> str | None:
        """What is wrong with the end of a round."""
        state, question = self.state, self.question
        if question is None or (fact.slot, fact.turn) != (question.slot, question.turn):
            return "is of a round that is not open"
        if not self._all_heard("train"):
            return "ends a round before everyone was heard"
        if (problem := self._wrong_bounds()) is not None:
            return problem
        given = [o.samples for o in self.heard.values() if isinstance(o, facts.Contribution)]
        enough = len(given) >= enough_to_average(state.current, state.rules, question.contents)
        averaged = enough and sum(given) > 0
        if fact.averaged != averaged:
            return "should have been averaged" if averaged else "should not have been averaged"
        if fact.total != (sum(given) if averaged else 0):
            return "has another total than was contributed"
        if not averaged and fact.model != state.model:
            return "has another model, though nothing was averaged"
        if fact.score is not None:
            if not averaged:
                return "says how good a new model is, though nothing was averaged"
            self.signatures.claim_score()
        return None


def _public_part(slot: Slot, terms: Terms) -> Facts:
    """What a server says of an agreement, whichever one it finds: offers are proved, not found.

    Finding one is slow, so that is done only where the server says that there is none.
    """
    return [
        facts.Agreement(
            slot=slot.number,
            turn=slot.attempts + 1,
            agreement=terms.agreement,
            exists=False,
            reason=None,
            total=None,
            equilibrium_total=float(equilibrium_of(slot, terms, slot.willing).total),
            punishment=terms.punishment,
            punishment_slots=terms.punishment_slots,
        )
    ]

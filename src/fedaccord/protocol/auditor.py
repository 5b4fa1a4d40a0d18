"""Follows a server's ledger entry by entry, one step ahead of it.

Whatever the server worked out is worked out again. Whatever it was told must answer the question
that was open, of a client that was asked, once; and a question is answered in one piece.
"""

from collections.abc import Mapping
from math import isclose
from typing import Any

from fedaccord.ledger.chain import Fact, canonical
from fedaccord.protocol.conclusions import due, enough_to_average, equilibrium_of, find_offers
from fedaccord.protocol.facts import wrong_form
from fedaccord.protocol.guards import (
    number,
    read_answer,
    read_consent,
    read_equilibrium,
    read_report,
    whole,
)
from fedaccord.protocol.messages import Stage
from fedaccord.protocol.offers import flaw_in
from fedaccord.protocol.questions import Question, open_question
from fedaccord.protocol.reasons import OF_NODES, Reason, reason_of
from fedaccord.protocol.rounds import Length, largest_norms
from fedaccord.protocol.standing import Standing, own_equilibrium
from fedaccord.protocol.state import Slot, State
from fedaccord.protocol.terms import Terms

STAGES = {
    "report": "report",
    "rank": "rank",
    "answer": "offer",
    "contribution": "train",
    "consent": "consent",
}
"""What a client says, and the stage in which it is asked for it."""
_CLOSE = 1e-9


def same(one: Any, other: Any) -> bool:
    """Whether two things in JSON are the same; two machines may round a number differently."""
    if isinstance(one, float) and isinstance(other, float):
        return isclose(one, other, rel_tol=_CLOSE)
    return canonical(one) == canonical(other)


def turn_of(body: Any) -> int:
    """The attempt or the round that an entry is about, whatever it calls it."""
    turn: int = body.get("turn") or body.get("attempt") or body.get("round") or 0
    return turn


class Auditor:
    """Knows what the ledger says so far, and what must come next."""

    def __init__(self) -> None:
        """Before the first entry."""
        self.state = State()
        self.expected: list[Fact] = []
        """What follows by itself."""
        self.question: Question | None = None
        """What is being answered, if some of it is answered already."""
        self.answered: Question | None = None
        """What everyone has just answered; what strangers replied to it comes last."""
        self.heard: dict[str, Fact] = {}
        """What each client answered to it, or that it was absent."""
        self.refused: set[tuple[str | None, Reason]] = set()
        """Whose replies to it were refused, and why."""
        self.too_long: dict[str, Length] = {}
        """The updates of this round that the server says were too long."""
        self.claimed: Mapping[str, Any] = {}
        """What the server says of the agreement that it offers."""

    def look_at(self, fact: Fact) -> str | None:
        """What is wrong with one more fact, if anything."""
        if (problem := wrong_form(fact)) is not None:
            return problem
        if not self.expected and self.question is None and self.state.terms is not None:
            self.expected = due(self.state, _told_of_agreement)
        if fact.kind == "fault":
            return self._remark(fact)
        self.answered = None
        problem = self._conclusion(fact) if self.expected else self._event(fact)
        if problem is None:
            self.state.apply(fact)
            self._take_note(fact)
            if fact.kind == "offer" and not self.expected:
                return self._unproved()
        return problem

    def end(self) -> str | None:
        """What is wrong with an end here: all that follows from one answer is written at once."""
        if missing := self.expected or due(self.state, _told_of_agreement):
            return f"ends where {missing[0].kind} of slot {missing[0].slot} should follow"
        if self.question is not None:
            stage, slot = self.question.stage, self._slot
            return f"ends in the middle of the answers to {stage} of slot {slot}"
        return None if self.state.model is not None else "ends before the model to begin with"

    def _take_note(self, fact: Fact) -> None:
        if fact.kind == "agreement":
            self._expect_offers(fact)
        if fact.kind in ("round", "told"):
            self.question = None
        elif self._all_heard("report", "rank", "offer", "consent"):
            self.question, self.answered = None, self.question

    def _all_heard(self, *stages: Stage) -> bool:
        """Whether the question is of these stages, and everyone answered it or is absent."""
        question = self.question
        if question is None or question.stage not in stages:
            return False
        return self.heard.keys() == question.bodies.keys()

    # --- What the server worked out --------------------------------------------------------

    def _conclusion(self, fact: Fact) -> str | None:
        """What is wrong with something that should follow from what is known."""
        wanted = self.expected.pop(0)
        if (fact.kind, fact.slot, fact.client) != (wanted.kind, wanted.slot, wanted.client):
            return f"stands where {wanted.kind} of slot {wanted.slot} should"
        if fact.kind == "agreement":
            self.expected = []
            return self._false_agreement(fact.body, wanted.body)
        if fact.kind == "offer":
            samples = self.state.current.reports[str(fact.client)]["samples"]
            whole(fact.body, "contribution", most=samples)
            return None if same(fact.body["attempt"], wanted.body["attempt"]) else "is out of turn"
        same_body = canonical(fact.body) == canonical(wanted.body)
        return None if same_body else "is not what follows from the entries before it"

    def _false_agreement(self, claimed: Any, told: Any) -> str | None:
        """What is wrong with what a server says about the agreement, before it offers any."""
        for key, value in told.items():
            if not same(claimed[key], value):
                return f"has another {key} than follows from the entries before it"
        exists = claimed["exists"]
        if (claimed["reason"] is None, claimed["total"] is not None) != (exists, exists):
            return "has a total and a reason, or neither"
        if not exists and find_offers(self.state.current, self.state.rules)[0].body["exists"]:
            return "says that there is no agreement, but there is one"
        return None

    def _expect_offers(self, fact: Fact) -> None:
        """Any offers will do that are proved and of their kind: another solver may find others."""
        slot, attempt = self.state.current, {"attempt": fact.body["attempt"]}
        names = slot.willing if slot.agreement_exists else []
        self.expected = [Fact("offer", slot.number, name, attempt) for name in names]
        self.claimed = fact.body

    def _unproved(self) -> str | None:
        """Whether the offers are an agreement as the terms say, which nobody would break."""
        slot = self.state.current
        amounts = [slot.offers[name] for name in slot.willing]
        if (flaw := flaw_in(slot, self.state.rules, amounts)) is not None:
            return f"completes offers {flaw}"
        if self.claimed["total"] != sum(amounts):
            return "completes offers whose total is not the one that was told"
        return None

    # --- What happened ---------------------------------------------------------------------

    def _event(self, fact: Fact) -> str | None:
        """What is wrong with something that need not have happened."""
        state = self.state
        if state.terms is None and fact.kind != "terms":
            return "comes before the terms"
        match fact.kind:
            case "terms":
                between = state.between_slots and fact.slot == state.settled
                return None if between else "changes the terms of a slot that was begun"
            case "model":
                first = state.slot is None and state.model is None and fact.slot == 0
                return None if first else "replaces the model"
            case "slot":
                return self._opened(fact)
            case "told":
                return self._receipts(fact)
            case "round":
                return self._round(fact)
            case "report" | "rank" | "answer" | "contribution" | "consent" | "absence":
                return self._reply(fact)
            case "proposal":
                return self._proposed(fact)
        return "follows from nothing"

    def _remark(self, fact: Fact) -> str | None:
        """A reply was refused: nothing follows from it, but it is in one piece with the others."""
        body, name = fact.body, fact.client
        question, found = self._question_of(fact), reason_of(body["reason"])
        if question is None:
            return "is of a question that is not open"
        if found is None:
            return "has a reason that no server of ours gives"
        reason, about = found
        if (name is None) != (reason in OF_NODES) or (name is None) != ("node" in body):
            return "is neither of a client nor of a node of nobody, or of both"
        if not {name, about.get("client")} <= {None, *self.state.rules.clients}:
            return "is about somebody who is not in the terms"
        if name is not None and (name in question.bodies) == (reason is Reason.NOT_ASKED):
            return "says that a client was not asked which was, or the other way round"
        if name in self.heard:
            return "comes after the answer of this client"
        length = {"samples", "norm"} if reason is Reason.TOO_LONG else set[str]()
        if body.keys() & {"samples", "norm"} != length:
            return "has the length of an update that is not too long, or lacks that of one that is"
        if reason is Reason.TOO_LONG:
            self.too_long[str(name)] = Length(body["samples"], body["norm"])
        self.refused.add((name, reason))
        return None

    def _question_of(self, fact: Fact) -> Question | None:
        """The question that was answered by what was refused."""
        place = (fact.slot, fact.body["stage"], fact.body["turn"])
        for question in (self.question, self.answered):
            if question is not None and place == (self._slot, question.stage, question.turn):
                return question
        if self.expected or self.question is not None:
            return None
        question = open_question(self.state)
        right = place == (self._slot, question.stage, question.turn)
        return self._ask(question) if right else None

    @property
    def _slot(self) -> int:
        """The one that questions are asked in."""
        return self.state.settled if self.state.proposal else self.state.current.number

    def _proposed(self, fact: Fact) -> str | None:
        """What is wrong with a proposal to go back to an older model."""
        state, body = self.state, fact.body
        if not state.between_slots or state.proposal is not None or fact.slot != state.settled:
            return "comes when nothing could be proposed"
        if body["turn"] != state.proposals + 1:
            return "is out of turn"
        known = state.models.get(body["to_slot"])
        if known is None or body["to_slot"] >= state.settled or body["digest"] != known:
            return "is not about the model of an earlier slot that is kept"
        return None

    def _opened(self, fact: Fact) -> str | None:
        state = self.state
        to_come = (state.settled + 1, state.phase)
        if not state.between_slots or state.proposal or (fact.slot, fact.body["phase"]) != to_come:
            return "is not the slot or the phase to come"
        return None if state.model is not None else "comes before the model to begin with"

    def _receipts(self, fact: Fact) -> str | None:
        slot = self.state.current
        if fact.slot != slot.number or not slot.settled or slot.told:
            return "comes when nothing was to be told"
        told = set(fact.body["clients"])
        if fact.body["clients"] != [name for name in slot.reports if name in told]:
            return "names strangers, or somebody twice"
        return None

    def _reply(self, fact: Fact) -> str | None:
        """What is wrong with what a client said, or with its absence."""
        question = self.question or self._ask(open_question(self.state))
        stage = STAGES.get(fact.kind) or fact.body["stage"]
        place = (self._slot, question.stage, question.turn)
        if (fact.slot, stage, turn_of(fact.body)) != place:
            return "answers a question that is not open"
        if fact.client not in question.bodies:
            return "comes from a client that was not asked"
        if fact.client in self.heard:
            return "is a second answer of this client"
        if not self._fits_refusals(fact):
            return "does not fit what was refused of this client"
        self.heard[fact.client] = fact
        return self._content(fact, question.bodies[fact.client])

    def _fits_refusals(self, fact: Fact) -> bool:
        """Who replied too often is there, unless its update was too long: then it is absent."""
        if fact.client in self.too_long:
            return fact.kind == "absence"
        return fact.kind != "absence" or (fact.client, Reason.DUPLICATE) not in self.refused

    def _ask(self, question: Question) -> Question:
        self.question, self.heard, self.too_long, self.refused = question, {}, {}, set()
        return question

    def _content(self, fact: Fact, told: dict[str, Any]) -> str | None:
        """What is wrong with the content of an answer: the server should have refused it."""
        body, report = fact.body, self.state.current.reports.get(str(fact.client), {})
        match fact.kind:
            case "report":
                return None if same(read_report(body), dict(body)) else "has more than a report"
            case "rank":
                ratio, samples = report["ratio"], report["samples"]
                alone = own_equilibrium(ratio, samples, self.state.rules.rounds, Standing(**told))
                read_equilibrium(body, alone, samples)
                place = {key: body[key] for key in told}
                return None if same(place, told) else "is not the place that the reports lead to"
            case "answer":
                read_answer(body)
            case "consent":
                read_consent(body)
            case "contribution":
                return _false_contribution(body, report["samples"])
        return None

    def _wrong_bounds(self) -> str | None:
        """Whether an update was refused that was not too long, or taken though it was."""
        lengths = self.too_long | {
            name: Length(fact.body["samples"], fact.body["norm"])
            for name, fact in self.heard.items()
            if fact.kind == "contribution" and fact.body["samples"] > 0
        }
        largest = largest_norms(self.state.rules, lengths)
        for name, length in lengths.items():
            if (length.norm > largest[name]) != (name in self.too_long):
                return f"has an update of {name} that was judged by another bound than the terms'"
        return None

    def _round(self, fact: Fact) -> str | None:
        """What is wrong with the end of a round."""
        state, question, body = self.state, self.question, fact.body
        if question is None or (fact.slot, body["round"]) != (state.current.number, question.turn):
            return "is of a round that is not open"
        if not self._all_heard("train"):
            return "ends a round before everyone was heard"
        if (problem := self._wrong_bounds()) is not None:
            return problem
        given = [one.body["samples"] for one in self.heard.values() if one.kind == "contribution"]
        enough = len(given) >= enough_to_average(state.current, state.rules)
        averaged = enough and sum(given) > 0
        if body["averaged"] != averaged:
            return "was to be averaged" if averaged else "was not to be averaged"
        if body["total"] != (sum(given) if averaged else 0):
            return "has a total that nobody gave"
        if not averaged and body["digest"] != state.model:
            return "has another model, though nothing was averaged"
        return None


def _false_contribution(body: Mapping[str, Any], samples: int) -> str | None:
    """What is wrong with what a server says that a client trained."""
    count = whole(body, "samples", samples)
    if (body["update"] is None) != (count == 0):
        return "has an update without samples, or samples without an update"
    return None if number(body, "norm") >= 0 else "has an update of a negative length"


def _told_of_agreement(slot: Slot, terms: Terms) -> list[Fact]:
    """What a server says of an agreement whichever it finds: what it offers is proved, not found.

    Finding one takes long, so that is done only where the server says that there is none.
    """
    told = {
        "attempt": slot.attempt + 1,
        "kind": terms.agreement,
        "equilibrium_total": equilibrium_of(slot, terms, slot.willing).total,
        "punishment_slots": terms.punishment_slots,
    }
    return [Fact("agreement", slot.number, None, told)]

"""A client's copy of its own part of what happened, so that it need not trust the server's.

Each of its entries holds the head of the server's ledger at that moment. A server that changed
its past afterwards could not show a chain with all those heads in it.
"""

import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from fedaccord.agreement.own_row import own_row
from fedaccord.ledger.chain import Entry, Fact, Head, canonical
from fedaccord.protocol.asked import (
    Asked,
    AskedConsent,
    AskedEquilibrium,
    AskedOffer,
    AskedRank,
    AskedReport,
    AskedSettlement,
    AskedTraining,
    Refusal,
    read_question,
)
from fedaccord.protocol.parameters import Arrays, digest, distance
from fedaccord.protocol.standing import Standing, can_follow, own_equilibrium
from fedaccord.protocol.terms import MOST, Terms


class Copy(Protocol):
    """Where a client keeps it: a ledger of its own, or anything that lasts as long as needed."""

    def append(self, facts: list[Fact]) -> object:
        """Write facts down."""
        ...

    def entries(self, *, slot: int, kind: str) -> Iterable[Entry]:
        """What of one kind was written down about a slot."""
        ...

    def last(self) -> Entry | None:
        """What was written down last."""
        ...


def recall(copy: Copy, kind: str, slot: int, turn: int) -> dict[str, Any] | None:
    """What was written down of this kind in this slot and turn."""
    for entry in copy.entries(slot=slot, kind=kind):
        body = entry.body
        if body.get("turn", 0) == turn:
            return body
    return None


Trainer = Callable[[int, int, int, Arrays], Arrays]
"""Trains: given the slot, the round, how many samples, and the global parameters."""
Look = Callable[[], object]
"""Looks whether all is there that a slot takes; an error says what is not."""


@dataclass(frozen=True)
class Private:
    """What only the client itself knows. Of all this it tells its ratio and its samples."""

    name: str
    valuation: float
    cost_per_sample: float
    samples: int
    discount_factor: float
    communication_cost: float = 0.0
    tells_discount_factor: bool = False
    consents_to_slot: int | None = None
    """The slot whose model it agrees to go back to, if that is proposed."""
    slips: Mapping[int, int] = field(default_factory=dict)
    """For rehearsals: slots in which it contributes another number of samples than asked."""

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
        copy: Copy,
        train: Trainer,
        look: Look | None = None,
    ) -> None:
        """`copy` is where it writes its part down, `train` does the training.

        `look` is called before each report: who could not train does not report, either.
        """
        self.private = private
        self.terms = terms
        self.copy = copy
        self._train = train
        self._look = look

    def answer(
        self, asked: Mapping[str, Any], parameters: Arrays | None
    ) -> tuple[dict[str, Any], Arrays | None]:
        """The reply to a question of the server's, with parameters after a round of training."""
        question = read_question(asked, self.terms)
        self._check_place(question)
        trained = None
        match question:
            case AskedReport():
                content = self._report(question)
            case AskedRank():
                content = self._rank(question)
            case AskedOffer():
                content = self._offer(question)
            case AskedTraining() | AskedEquilibrium():
                content, trained = self._update(question, parameters)
            case AskedSettlement():
                content = self._settle(question, parameters)
            case AskedConsent():
                content = self._consent(question)
        place = {"stage": question.stage, "slot": question.slot, "turn": question.turn}
        return place | {"token": question.token} | content, trained

    def _check_place(self, question: Asked) -> None:
        """Whether there is such a turn, in the newest slot, and the server's ledger went on."""
        terms, stage = self.terms, question.stage
        # every new attempt is without somebody, so there are no more than clients
        last = {"offer": len(terms.clients), "train": terms.rounds, "consent": MOST}.get(stage)
        turns = range(1) if last is None else range(1, last + 1)
        if question.turn not in turns:
            raise Refusal(f"there is no turn {question.turn} of {stage} in slot {question.slot}")
        if question.slot > question.head.number:  # every slot has at least one entry
            raise Refusal(f"slot {question.slot} is beyond the server's own ledger")
        newest = self.copy.last()
        if newest is not None:
            self._check_follows(question, newest)
        over = recall(self.copy, "settlement", question.slot, 0) is not None
        if over and stage not in ("settle", "consent"):
            raise Refusal(f"slot {question.slot} is settled")

    def _check_follows(self, question: Asked, newest: Entry) -> None:
        """Neither the slot nor the server's ledger may go back."""
        if question.slot < newest.slot:
            raise Refusal(f"slot {question.slot} is older than slot {newest.slot}, the newest")
        seen = Head(*newest.body["ledger"])
        if question.head.number < seen.number:
            raise Refusal("the server's ledger is shorter than before")
        if question.head.number == seen.number and question.head != seen:
            raise Refusal("the server's ledger has another end than before")

    def _report(self, question: AskedReport) -> dict[str, Any]:
        """(1) Its ratio and its samples."""
        if self._look is not None:
            self._look()
        private = self.private
        content: dict[str, Any] = {"ratio": private.ratio, "samples": private.samples}
        if private.tells_discount_factor:
            content["discount_factor"] = private.discount_factor
        return self._once("report", question, content, {"terms": digest_of(self.terms)})

    def _rank(self, question: AskedRank) -> dict[str, Any]:
        """(2) Its own equilibrium contribution (Algorithm 1, lines 4-11)."""
        self._told("rank", question)
        return {"contribution": self._alone(question)}

    def _offer(self, question: AskedOffer) -> dict[str, Any]:
        """(3) Whether accepting is better for it than refusing: its own row of the certificate."""
        self._told("offer", question)
        return self._once("answer", question, {"accepts": self._accepts(question)})

    def _accepts(self, offer: AskedOffer) -> bool:
        """Whether it is as the terms say, and worth accepting with the private numbers."""
        private, terms = self.private, self.terms
        given = (offer.kind, offer.rounds, offer.punishment_slots, offer.tolerance)
        if given != (terms.agreement, terms.rounds, terms.punishment_slots, terms.tolerance):
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
            equilibrium_contribution=self._alone(offer),
            equilibrium_total=offer.equilibrium_total,
            rounds=terms.rounds,
            punishment_slots=terms.punishment_slots,
            communication_cost=private.communication_cost,
        )
        return row.keeps

    def _update(
        self, question: AskedTraining | AskedEquilibrium, parameters: Arrays | None
    ) -> tuple[dict[str, Any], Arrays | None]:
        """(4) Train on exactly what was accepted, or on what suits it at the equilibrium.

        It trains one model in each round, and writes down which one, what it was told to play,
        and the digest of its update. That finds a server which says afterwards that something
        else was to be played, or that another update came back.
        """
        if parameters is None or digest(parameters) != question.model:
            raise Refusal("the model to train is missing, or another one than was told")
        known = self._trained(question)
        amount = known["samples"] if known else self._amount(question)
        if amount > self.private.samples:  # absence is no deviation, and less would be one
            raise Refusal(f"this takes {amount} samples, and it has {self.private.samples} now")
        trained = None
        if amount > 0:
            trained = self._train(question.slot, question.turn, amount, parameters)
        update = None if trained is None else digest(trained)
        if known is None:
            norm = 0.0 if trained is None else distance(trained, parameters)
            said = {"samples": amount, "update": update, "norm": norm}
            self._note("contribution", question, question.content | said)
        elif known["update"] != update:  # another model would be a second look at its data
            raise Refusal("its training does not come out as it did when it was asked before")
        return {"samples": amount}, trained

    def _trained(self, question: AskedTraining | AskedEquilibrium) -> dict[str, Any] | None:
        """What it wrote down when it was asked for this round before; the latest one only."""
        rounds = list(self.copy.entries(slot=question.slot, kind="contribution"))
        if not rounds:
            return None
        last, told = rounds[-1].body, question.content
        if question.turn < last["turn"]:
            raise Refusal(f"round {question.turn} is over: round {last['turn']} was trained")
        again = question.turn == last["turn"]
        if not again:
            del told["model"]  # there is a new one in each round
        if any(last.get(key) != value for key, value in told.items()):
            raise Refusal("the server told something else before (contribution)")
        return last if again else None

    def _amount(self, question: AskedTraining | AskedEquilibrium) -> int:
        """What to train on: as agreed, or the equilibrium contribution; or the slip rehearsed."""
        if isinstance(question, AskedEquilibrium):
            amount = int(self._alone(question))
        else:
            amount = self._agreed(question)
        slip = self.private.slips.get(question.slot)
        return amount if slip is None else min(slip, self.private.samples)

    def _agreed(self, question: AskedTraining) -> int:
        """What it accepted, which the server must know, too."""
        amount = self._accepted(question.slot)
        if amount is None or amount != question.contribution:
            raise Refusal("this is not what was agreed on")
        return amount

    def _accepted(self, slot: int) -> int | None:
        """What it agreed to contribute in this slot: the last offer, if that was accepted."""
        offers = list(self.copy.entries(slot=slot, kind="offer"))
        if not offers:
            return None
        last = offers[-1].body
        answer = recall(self.copy, "answer", slot, last["turn"])
        accepted: int | None = last["contribution"] if answer and answer["accepts"] else None
        return accepted

    def _settle(self, question: AskedSettlement, parameters: Arrays | None) -> dict[str, Any]:
        """(5) Take note of the verdicts, the phase to come, and the model if it is sent one."""
        given = None if parameters is None else digest(parameters)
        if given != question.model:
            raise Refusal("the model of the slot is missing, or another one than was told")
        self._told("settlement", question)
        return {}

    def _consent(self, question: AskedConsent) -> dict[str, Any]:
        """Whether it agrees to go back to the model of a slot, which must be as it was told."""
        settled = recall(self.copy, "settlement", question.to_slot, 0)
        if settled and settled["model"] not in (None, question.digest):
            raise Refusal(f"this is not the model that slot {question.to_slot} ended with")
        agrees = self.private.consents_to_slot == question.to_slot
        return self._once("consent", question, {"agrees": agrees}, question.content)

    def _alone(self, question: AskedRank | AskedOffer | AskedEquilibrium) -> float:
        """Its own equilibrium contribution, from a standing that the one of the rank leads to."""
        standing = question.standing
        ranked = recall(self.copy, "rank", question.slot, 0)
        before = Standing(*(ranked[key] for key in Standing._fields)) if ranked else standing
        if standing.clients > len(self.terms.clients) or standing.rank > standing.clients:
            raise Refusal("there is no such place among the clients")
        if not can_follow(before, standing):
            raise Refusal("this standing does not fit the one that the server told before")
        private = self.private
        return own_equilibrium(private.ratio, private.samples, self.terms.rounds, standing)

    def _once(
        self,
        kind: str,
        question: Asked,
        content: dict[str, Any],
        unsaid: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Write down what it answers, and what it does not say to anyone.

        What it answered before stays its answer.
        """
        known = recall(self.copy, kind, question.slot, question.turn)
        if known is None:
            self._note(kind, question, content | dict(unsaid or {}))
            return content
        hidden = {"turn", "ledger", *(unsaid or {})}
        return {key: value for key, value in known.items() if key not in hidden}

    def _told(self, kind: str, question: Asked) -> None:
        """Write down what the server told; it must not tell something else later."""
        content = question.content
        known = recall(self.copy, kind, question.slot, question.turn)
        if known is None:
            self._note(kind, question, content)
        elif content != {key: known[key] for key in content}:
            raise Refusal(f"the server told something else before ({kind})")

    def _note(self, kind: str, question: Asked, content: dict[str, Any]) -> None:
        note = content | {"turn": question.turn, "ledger": list(question.ledger)}
        self.copy.append([Fact(kind, question.slot, self.private.name, note)])


def digest_of(terms: Terms) -> str:
    """What a client's copy says of the terms that it reported under."""
    return hashlib.sha256(canonical(terms.model_dump(mode="json")).encode()).hexdigest()

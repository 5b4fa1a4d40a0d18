"""The client's half of the protocol. What it returns leaves the client; nothing else does.

Asked twice (the server was started again), it answers as it did the first time.
"""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from fedaccord.errors import FedaccordError
from fedaccord.flower.ledger.chain import Fact, canonical
from fedaccord.flower.protocol.copy import Copy, recall
from fedaccord.flower.protocol.messages import STAGES, Stage
from fedaccord.flower.protocol.own_row import own_row
from fedaccord.flower.protocol.parameters import Arrays
from fedaccord.flower.protocol.standing import Standing, can_follow, own_equilibrium
from fedaccord.flower.protocol.terms import Terms

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
    slips: Mapping[int, int] = field(default_factory=dict)
    """For rehearsals: slots in which it contributes another number of samples than asked."""

    @property
    def ratio(self) -> float:
        """rho/E."""
        return self.valuation / self.cost_per_sample


class Refusal(FedaccordError):
    """A message of the server's that a client does not go along with."""


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
        question = _question(asked)
        self._check_place(question)
        trained = None
        match question.stage:
            case "report":
                content = self._report(question)
            case "rank":
                content = self._rank(question)
            case "offer":
                content = self._offer(question)
            case "train":
                content, trained = self._update(question, parameters)
            case "settle":
                content = self._settle(question)
        place = {"stage": question.stage, "slot": question.slot, "turn": question.turn}
        return place | {"token": asked.get("token")} | content, trained

    def _check_place(self, question: "_Question") -> None:
        """Whether there is such a turn, in a slot that is not over."""
        terms, stage = self.terms, question.stage
        # every new attempt is without somebody, so there are no more than clients
        last = {"offer": len(terms.clients), "train": terms.rounds}.get(stage)
        turns = range(1) if last is None else range(1, last + 1)
        if question.slot < 1 or question.turn not in turns:
            raise Refusal(f"there is no turn {question.turn} of {stage} in slot {question.slot}")
        over = recall(self.copy, "settlement", question.slot, 0) is not None
        if over and stage != "settle":
            raise Refusal(f"slot {question.slot} is settled")

    def _report(self, question: "_Question") -> dict[str, Any]:
        """(1) Its ratio and its samples."""
        if self._look is not None:
            self._look()
        private = self.private
        content: dict[str, Any] = {"ratio": private.ratio, "samples": private.samples}
        if private.tells_discount_factor:
            content["discount_factor"] = private.discount_factor
        return self._once("report", question, content, {"terms": digest_of(self.terms)})

    def _rank(self, question: "_Question") -> dict[str, Any]:
        """(2) Its own equilibrium contribution (Algorithm 1, lines 4-11)."""
        self._told("rank", question, Standing._fields)
        return {"contribution": self._alone(question)}

    def _offer(self, question: "_Question") -> dict[str, Any]:
        """(3) Whether accepting is better for it than refusing: its own row of the certificate."""
        self._told("offer", question, _OFFERED)
        return self._once("answer", question, {"accepts": self._accepts(question)})

    def _accepts(self, offer: "_Question") -> bool:
        """Whether it is as the terms say, and worth accepting with the private numbers."""
        private, terms = self.private, self.terms
        amount = offer.of("contribution")
        if type(amount) is not int:  # half a sample, or True, is no amount
            return False
        signed = (terms.rounds, terms.punishment_slots, terms.tolerance)
        if tuple(offer.of(key) for key in ("rounds", "punishment_slots", "tolerance")) != signed:
            return False
        if not 0 <= amount <= min(private.samples, offer.of("total")):
            return False
        row = own_row(
            valuation=private.valuation,
            cost_per_sample=private.cost_per_sample,
            samples=private.samples,
            discount_factor=private.discount_factor,
            contribution=amount,
            total=offer.of("total"),
            equilibrium_contribution=self._alone(offer),
            equilibrium_total=offer.of("equilibrium_total"),
            rounds=terms.rounds,
            punishment_slots=terms.punishment_slots,
            communication_cost=private.communication_cost,
        )
        return row.keeps

    def _update(
        self, question: "_Question", parameters: Arrays | None
    ) -> tuple[dict[str, Any], Arrays | None]:
        """(4) Train on exactly what was accepted, or on what suits it at the equilibrium.

        With the amount it writes down what it was told to play, the same in every round: that
        finds a server which says afterwards that something else was to be played.
        """
        if parameters is None:
            raise Refusal("there is no model to train")
        told = {key: question.of(key) for key in _TRAINED.get(str(question.of("basis")), ())}
        if not told:
            raise Refusal("there is an agreement to play, or the equilibrium, and nothing else")
        rounds = list(self.copy.entries(slot=question.slot, kind="contribution"))
        last = rounds[-1].body if rounds else told
        if any(last.get(key) != value for key, value in told.items()):
            raise Refusal("the server told something else before (contribution)")
        # a round later than all that were played cannot be known: most are, and reading takes time
        new = not rounds or last["turn"] < question.turn
        known = None if new else recall(self.copy, "contribution", question.slot, question.turn)
        amount = known["samples"] if known else self._amount(question)
        if amount > self.private.samples:  # absence is no deviation, and less would be one
            raise Refusal(f"this takes {amount} samples, and it has {self.private.samples} now")
        trained = None
        if amount > 0:
            trained = self._train(question.slot, question.turn, amount, parameters)
        if known is None:
            self._note("contribution", question, told | {"samples": amount})
        return {"samples": amount}, trained

    def _amount(self, question: "_Question") -> int:
        """What to train on: as agreed, or the equilibrium contribution; or the slip rehearsed."""
        at_equilibrium = question.of("basis") == "equilibrium"
        amount = int(self._alone(question)) if at_equilibrium else self._agreed(question)
        slip = self.private.slips.get(question.slot)
        return amount if slip is None else min(slip, self.private.samples)

    def _agreed(self, question: "_Question") -> int:
        """What it accepted, which the server must know, too."""
        amount = self._accepted(question.slot)
        if amount is None or amount != question.of("contribution"):
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

    def _settle(self, question: "_Question") -> dict[str, Any]:
        """(5) Take note of the verdicts and the phase to come."""
        self._told("settlement", question, _SETTLED)
        return {}

    def _alone(self, question: "_Question") -> float:
        """Its own equilibrium contribution, from a standing that the one of the rank leads to."""
        standing = Standing(*(question.of(key) for key in Standing._fields))
        ranked = recall(self.copy, "rank", question.slot, 0)
        before = Standing(*(ranked[key] for key in Standing._fields)) if ranked else standing
        if not can_follow(before, standing):
            raise Refusal("this standing does not fit the one that the server told before")
        private = self.private
        return own_equilibrium(private.ratio, private.samples, self.terms.rounds, standing)

    def _once(
        self,
        kind: str,
        question: "_Question",
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
        return {key: value for key, value in known.items() if key not in _UNSAID}

    def _told(self, kind: str, question: "_Question", keys: tuple[str, ...]) -> None:
        """Write down what the server told; it must not tell something else later."""
        content = {key: question.of(key) for key in keys}
        known = recall(self.copy, kind, question.slot, question.turn)
        if known is None:
            self._note(kind, question, content)
        elif content != {key: known[key] for key in keys}:
            raise Refusal(f"the server told something else before ({kind})")

    def _note(self, kind: str, question: "_Question", content: dict[str, Any]) -> None:
        note = content | {"turn": question.turn, "ledger": question.of("ledger")}
        self.copy.append([Fact(kind, question.slot, self.private.name, note)])


@dataclass(frozen=True)
class _Question:
    """What the server asks, looked at with care: it may be wrong, too."""

    stage: Stage
    slot: int
    turn: int
    content: Mapping[str, Any]

    def of(self, key: str) -> Any:
        """A part of it that must be there."""
        if key not in self.content:
            raise Refusal(f"the question has no {key}")
        return self.content[key]


def _question(asked: Mapping[str, Any]) -> _Question:
    stage, place = asked.get("stage"), [asked.get("slot"), asked.get("turn")]
    if stage not in STAGES or any(type(number) is not int for number in place):
        raise Refusal("this is no question of the protocol")
    return _Question(stage, asked["slot"], asked["turn"], asked)


def digest_of(terms: Terms) -> str:
    """What a client's copy says of the terms that it reported under."""
    return hashlib.sha256(canonical(terms.model_dump(mode="json")).encode()).hexdigest()


_UNSAID = ("turn", "ledger", "terms")
"""What is in an entry of the copy beside the answer."""
_OFFERED = (
    "contribution",
    "kind",
    "total",
    "equilibrium_total",
    "punishment_slots",
    "tolerance",
    "rounds",
    *Standing._fields,
)
_TRAINED = {
    "agreement": ("basis", "contribution"),
    "equilibrium": ("basis", "contribution", *Standing._fields),
}
"""What a client is told with a model to train, by what is played."""
_SETTLED = (
    "verdict",
    "agreed",
    "contributed",
    "rounds_absent",
    "deviated",
    "absent",
    "phase",
    "slots_left",
)

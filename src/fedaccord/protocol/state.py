"""What the server knows: nothing but what its ledger says, read in order."""

from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any, Literal

from fedaccord.errors import FedaccordError
from fedaccord.ledger.chain import Fact
from fedaccord.protocol.terms import Terms, read_terms

Phase = Literal["cooperating", "punishing"]
Basis = Literal["agreement", "equilibrium"]


@dataclass
class Slot:
    """One slot, as far as it has come."""

    number: int
    phase: Phase
    reports: dict[str, dict[str, Any]] = field(default_factory=dict)
    ranked: set[str] = field(default_factory=set)
    absent: set[str] = field(default_factory=set)
    """Who did not answer a question before the training."""
    refused: set[str] = field(default_factory=set)
    attempt: int = 0
    """How often an agreement was looked for."""
    agreement_exists: bool = False
    offers: dict[str, int] = field(default_factory=dict)
    """What each client is offered in this attempt."""
    answered: set[str] = field(default_factory=set)
    basis: Basis | None = None
    amounts: dict[str, int] = field(default_factory=dict)
    """What each client is to contribute."""
    rounds: int = 0
    """How many are over."""
    in_round: bool = False
    """Whether some of the answers of a round are known, and its end is not."""
    least: dict[str, int] = field(default_factory=dict)
    """What each client trained on in the round in which it was least, of those it was there."""
    missed: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    """How many rounds each client was absent."""
    settled: bool = False
    told: bool = False

    @property
    def present(self) -> list[str]:
        """Clients that reported and answered so far, in the order of the terms."""
        return [name for name in self.reports if name not in self.absent]

    @property
    def willing(self) -> list[str]:
        """Those of them that have not refused."""
        return [name for name in self.present if name not in self.refused]

    @property
    def contributors(self) -> list[str]:
        """Who is to train."""
        return [name for name in self.reports if self.amounts.get(name, 0) > 0]


@dataclass
class Proposal:
    """Going back to an older model, while the clients are asked."""

    slot: int
    """The last one that was settled."""
    turn: int
    """Which proposal it is after that slot, from 1 on."""
    to_slot: int
    digest: str
    """Of the model of that slot."""
    reason: str
    answers: dict[str, bool] = field(default_factory=dict)
    absent: set[str] = field(default_factory=set)

    @property
    def told(self) -> dict[str, Any]:
        """What each client is told."""
        return {"to_slot": self.to_slot, "digest": self.digest, "reason": self.reason}


class State:
    """All that the server knows."""

    def __init__(self) -> None:
        """Nothing yet."""
        self.terms: Terms | None = None
        self.slot: Slot | None = None
        self.phase: Phase = "cooperating"
        self.slots_left: int | None = 0
        """Slots of punishment that are left; None: it never ends."""
        self.settled = 0
        """How many slots are over and done with."""
        self.model: str | None = None
        """The digest of the latest model."""
        self.models: dict[int, str] = {}
        """The digests of the models that the latest slots ended with; 0 is the start."""
        self.proposal: Proposal | None = None
        self.proposals = 0
        """How many there were since the last slot."""
        self.went_back = False
        """Whether the last of them was accepted."""

    def apply(self, fact: Fact) -> None:
        """Take note of one more fact."""
        try:
            note = _NOTES[fact.kind]
        except KeyError:
            raise FedaccordError(f"the ledger has an unknown kind of entry, {fact.kind}") from None
        note(self, fact)

    @property
    def rules(self) -> Terms:
        """The terms, which are the first thing in any ledger."""
        if self.terms is None:
            raise FedaccordError("the ledger does not begin with the terms")
        return self.terms

    @property
    def current(self) -> Slot:
        """The slot that is open, or was last."""
        if self.slot is None:
            raise FedaccordError("the ledger speaks of a slot before one is opened")
        return self.slot

    @property
    def between_slots(self) -> bool:
        """Whether nothing is going on."""
        return self.slot is None or self.slot.told


def _terms(state: State, fact: Fact) -> None:
    state.terms = read_terms(dict(fact.body["terms"]), "the ledger's terms")


def _model(state: State, fact: Fact) -> None:
    state.model = fact.body["digest"]
    state.models = {0: fact.body["digest"]}


def _slot(state: State, fact: Fact) -> None:
    state.slot = Slot(fact.slot, state.phase)


def _report(state: State, fact: Fact) -> None:
    state.current.reports[_who(fact)] = dict(fact.body)


def _rank(state: State, fact: Fact) -> None:
    state.current.ranked.add(_who(fact))


def _absence(state: State, fact: Fact) -> None:
    if fact.body["stage"] == "consent":
        _proposal(state).absent.add(_who(fact))
    elif fact.body["stage"] == "train":
        state.current.missed[_who(fact)] += 1
        state.current.in_round = True
    else:
        state.current.absent.add(_who(fact))


def _agreement(state: State, fact: Fact) -> None:
    state.current.attempt = fact.body["attempt"]
    state.current.agreement_exists = fact.body["exists"]
    state.current.offers.clear()
    state.current.answered.clear()


def _offer(state: State, fact: Fact) -> None:
    state.current.offers[_who(fact)] = fact.body["contribution"]


def _answer(state: State, fact: Fact) -> None:
    state.current.answered.add(_who(fact))
    if not fact.body["accepts"]:
        state.current.refused.add(_who(fact))


def _basis(state: State, fact: Fact) -> None:
    state.current.basis = fact.body["basis"]
    state.current.amounts = dict(fact.body["contributions"])


def _contribution(state: State, fact: Fact) -> None:
    slot, name, samples = state.current, _who(fact), fact.body["samples"]
    slot.least[name] = min(samples, slot.least.get(name, samples))
    slot.in_round = True


def _round(state: State, fact: Fact) -> None:
    state.current.rounds = fact.body["round"]
    state.current.in_round = False
    state.model = fact.body["digest"]


def _settlement(state: State, fact: Fact) -> None:
    state.current.settled = True
    state.settled = fact.slot
    state.proposals = 0
    if state.model is not None:
        state.models[fact.slot] = state.model
    for slot in sorted(state.models)[: -state.rules.models_kept - 1]:
        del state.models[slot]
    state.phase = fact.body["phase"]
    state.slots_left = fact.body["slots_left"]


def _told(state: State, fact: Fact) -> None:  # noqa: ARG001  all facts are noted alike
    state.current.told = True


def _propose(state: State, fact: Fact) -> None:
    state.proposals += 1
    body = fact.body
    state.proposal = Proposal(
        fact.slot, body["turn"], body["to_slot"], body["digest"], body["reason"]
    )


def _consent(state: State, fact: Fact) -> None:
    _proposal(state).answers[_who(fact)] = fact.body["agrees"]


def _rollback(state: State, fact: Fact) -> None:
    state.went_back = fact.body["accepted"]
    if state.went_back:
        state.model = fact.body["digest"]
    state.proposal = None


def _proposal(state: State) -> Proposal:
    if state.proposal is None:
        raise FedaccordError("the ledger speaks of a rollback that nobody proposed")
    return state.proposal


def _nothing(state: State, fact: Fact) -> None:
    """A fault or a verdict changes nothing that the settlement does not."""


def _who(fact: Fact) -> str:
    if fact.client is None:
        raise FedaccordError(f"the ledger has an entry {fact.kind} of nobody")
    return fact.client


_NOTES = {
    "terms": _terms,
    "model": _model,
    "slot": _slot,
    "report": _report,
    "rank": _rank,
    "absence": _absence,
    "fault": _nothing,
    "agreement": _agreement,
    "offer": _offer,
    "answer": _answer,
    "basis": _basis,
    "contribution": _contribution,
    "round": _round,
    "verdict": _nothing,
    "settlement": _settlement,
    "told": _told,
    "proposal": _propose,
    "consent": _consent,
    "rollback": _rollback,
}

KINDS = tuple(_NOTES)
"""Of the entries of a ledger."""

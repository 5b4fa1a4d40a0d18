"""What the server says while slots run.

These lines are the coordinator's, who runs the server and has its ledger. They say who took part,
what was offered and how the rounds went. They leave out what clients report of themselves (the
ledger has it), so a log can be kept or sent on more freely than the ledger.

>>> over = RoundOver(slot=1, round=2, rounds=5, seconds=7.4, clients=["a", "c"], samples=94)
>>> print(over.in_words)
slot 1, round 2 of 5: averaged a and c, 94 samples, in 7.4 s
"""

from collections.abc import Sequence
from typing import Annotated, ClassVar, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from fedaccord.flower.events import (
    Event,
    Level,
    Note,
    Suspension,
    counted,
    lasted,
    listed,
    score_in_words,
    suspended_in_words,
)
from fedaccord.protocol.messages import BasisName, Phase, Stage, VerdictName

Why: TypeAlias = Literal[
    "no_node",
    "nameless_node",
    "wrong_node",
    "no_answer",
    "rejected",
    "refused",
    "failed",
    "earlier",
]
"""Why a client is missing: see `Missing`."""

NOT_DONE: dict[Stage, str] = {
    "report": "did not report",
    "rank": "did not answer when it was told its place",
    "clock": "did not answer the clock",
    "offer": "did not answer its offer",
    "train": "did not train",
    "tier": "did not receive the model of its tier",
    "settle": "did not receive the settlement",
    "consent": "did not answer the proposal",
}
"""What a client did not do that is missing in a stage."""


class Missing(BaseModel):
    """A client that is missing, and why."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    client: str
    stage: Stage
    why: Why
    """No node of it is connected; its node is connected but does not say whose it is; its node
    cannot be its own; it did not answer in time; its reply was rejected; it refused the question;
    it failed at its own side; or it was missing before the server was started again."""
    seconds: float | None = None
    """How long the server waited for it."""
    reason: str | None = None
    """What is wrong with its reply or its node."""

    @property
    def because(self) -> str:
        """Why, in words."""
        return {
            "no_node": "no node of it is connected",
            "nameless_node": "its node is connected, but cannot say whose it is",
            "wrong_node": f"a node was left out, as it {self.reason}",
            "no_answer": f"no answer in {self.seconds or 0:g} s",
            "rejected": f"its reply was rejected ({self.reason})",
            "refused": "it refused the question; its own log says why",
            "failed": "it failed at its own side; its own log says why",
            "earlier": "it was missing before the server was started again",
        }[self.why]


class RunBegins(Event):
    """The server begins a run."""

    event: Literal["run_begins"] = "run_begins"
    consortium: str
    clients: list[str]
    slot: int
    """The slot that is played next, or is under way."""
    last_slot: int
    round: int = 0
    """How many rounds of it are over already."""

    def sentence(self) -> str:
        """Who is expected, and how far the run goes."""
        if self.slot > self.last_slot:
            return f"{self.consortium}: slot {self.last_slot} is settled already, nothing to run"
        several = self.slot < self.last_slot
        slots = f"slots {self.slot} to {self.last_slot}" if several else f"slot {self.slot}"
        after = f"; slot {self.slot} goes on after round {self.round}" if self.round else ""
        return f"{self.consortium}: running {slots} with {listed(self.clients)}{after}"


class Waiting(Event):
    """The server waits for some clients."""

    event: Literal["waiting"] = "waiting"
    slot: int
    stage: Literal["connect", "name"] | Stage
    """What for: that a node connects, or says whose it is, or that a question is answered."""
    round: int | None = None
    clients: list[str]
    """For whom."""
    seconds: float
    """How long so far."""
    limit: float
    """After how many seconds the slot goes on without them."""

    def sentence(self) -> str:
        """For whom, and for how long still."""
        what = {
            "connect": " to connect",
            "name": " to say who it is" if len(self.clients) == 1 else " to say who they are",
            "train": f" to train round {self.round}",
            "settle": " to receive the settlement",
        }.get(self.stage, " to answer")
        time = f"{self.seconds:.0f} of {self.limit:g} s"
        return f"slot {self.slot}: waiting for {listed(self.clients)}{what} ({time})"


class NodeRefused(Event):
    """A node that is no client's, or cannot be the client that it says it is."""

    usual_level: ClassVar[Level] = "warning"
    event: Literal["node_refused"] = "node_refused"
    slot: int
    node: int
    reason: str

    def sentence(self) -> str:
        """Which node, and why."""
        return f"slot {self.slot}: node {self.node} {self.reason}; it is left out"


class SlotBegins(Event):
    """A slot begins."""

    event: Literal["slot_begins"] = "slot_begins"
    slot: int
    phase: Phase
    suspended: list[Suspension] = Field(default_factory=list)
    returned: list[str] = Field(default_factory=list)
    """Whose suspension was ended early."""

    def sentence(self) -> str:
        """The phase, and who is out."""
        out = f"; suspended: {suspended_in_words(self.suspended)}" if self.suspended else ""
        back = f"; back early: {listed(self.returned)}" if self.returned else ""
        return f"slot {self.slot} begins, {self.phase}{out}{back}"


class Reported(Event):
    """Which clients reported, or said that they are there."""

    event: Literal["reported"] = "reported"
    slot: int
    clients: list[str]
    reports: bool
    """Whether they report numbers by the terms."""

    def sentence(self) -> str:
        """Who."""
        there = "is there" if len(self.clients) == 1 else "are there"
        return f"slot {self.slot}: {listed(self.clients)} {'reported' if self.reports else there}"


class ClientMissing(Event):
    """A client is missing, and why."""

    usual_level: ClassVar[Level] = "warning"
    event: Literal["missing"] = "missing"
    slot: int
    round: int | None = None
    client: str
    missing: Missing

    def sentence(self) -> str:
        """Who, and why."""
        about = f", round {self.round}" if self.round else ""
        what = NOT_DONE[self.missing.stage]
        return f"slot {self.slot}{about}: {self.client} {what}: {self.missing.because}"


class ClockStep(Event):
    """The clock went a step further, or is over."""

    event: Literal["clock"] = "clock"
    slot: int
    step: int
    steps: int
    stopped: list[str] = Field(default_factory=list)
    """Who stopped here."""
    over: bool

    def sentence(self) -> str:
        """Where it stands."""
        who = f"; {listed(self.stopped)} stopped" if self.stopped else ""
        end = ", and is over" if self.over else ""
        return f"slot {self.slot}: the clock is at {self.step} of {self.steps} steps{end}{who}"


class Offers(Event):
    """What the agreement asks of each client, or that there is none."""

    event: Literal["offers"] = "offers"
    slot: int
    attempt: int
    contributions: dict[str, int]
    """Samples of each client; none if there is no agreement."""
    reason: str | None = None
    """Why there is none."""

    def sentence(self) -> str:
        """To whom, and how much."""
        if not self.contributions:
            return f"slot {self.slot}: there is no agreement to offer: {self.reason}"
        offers = listed(f"{name} {amount:,}" for name, amount in self.contributions.items())
        total = counted(sum(self.contributions.values()), "sample")
        return f"slot {self.slot}: offered {offers} ({total} in all)"


class Answers(Event):
    """Who accepted its offer, and who refused."""

    event: Literal["answers"] = "answers"
    slot: int
    accepted: list[str]
    refused: list[str] = Field(default_factory=list)

    @property
    def level(self) -> Level:
        """A refusal is worth a look."""
        return "warning" if self.refused else "info"

    def sentence(self) -> str:
        """Who."""
        no = f", {listed(self.refused)} refused" if self.refused else ""
        return f"slot {self.slot}: {listed(self.accepted)} accepted{no}"


class Plan(Event):
    """What is played in a slot."""

    event: Literal["plan"] = "plan"
    slot: int
    basis: BasisName
    reason: str | None = None
    total: int

    def sentence(self) -> str:
        """The agreement or the equilibrium, and how many samples that is."""
        why = f" ({self.reason})" if self.reason else ""
        return f"slot {self.slot}: playing the {self.basis}{why}, {counted(self.total, 'sample')}"


class RoundOver(Event):
    """A round is over."""

    event: Literal["round"] = "round"
    slot: int
    round: int
    rounds: int
    seconds: float
    clients: list[str]
    """Whose updates came."""
    samples: int
    """What they were trained on, if they were averaged."""
    averaged: bool = True
    """Whether they were enough to average; if not, the model is as before."""
    loss: float | None = None
    """Of the new model on the server's test examples, if it has any; so is the accuracy."""
    accuracy: float | None = None
    """Or what else the task is measured by."""
    measure: str | None = None
    """The name of that: accuracy, or concordance for survival times."""

    @property
    def level(self) -> Level:
        """A round without a new model is worth a look."""
        return "info" if self.averaged else "warning"

    def sentence(self) -> str:
        """Who was averaged, how long it took, and how good the model is."""
        what = f"averaged {listed(self.clients)}, {counted(self.samples, 'sample')}"
        if not self.averaged:
            what = f"too few updates to average (from {listed(self.clients)})"
        score = score_in_words(self.loss, self.accuracy, self.measure)
        end = f"; {score}" if score else ""
        where = f"slot {self.slot}, round {self.round} of {self.rounds}"
        return f"{where}: {what}, in {lasted(self.seconds)}{end}"


class ClientVerdict(Event):
    """The verdict on a client."""

    event: Literal["verdict"] = "verdict"
    slot: int
    client: str
    verdict: VerdictName
    agreed: int | None = None
    contributed: int | None = None
    rounds_absent: int = 0

    @property
    def level(self) -> Level:
        """Whatever is not as agreed is worth a look."""
        return "info" if self.verdict in ("kept", "suspended") else "warning"

    def sentence(self) -> str:
        """What it contributed of what was agreed."""
        parts = []
        if self.agreed is not None:
            parts.append(f"trained on {self.contributed or 0:,} of {self.agreed:,} samples")
        if self.rounds_absent:
            parts.append(f"absent in {counted(self.rounds_absent, 'round')}")
        about = f" ({', '.join(parts)})" if parts else ""
        return f"slot {self.slot}: verdict on {self.client}: {self.verdict}{about}"


class SlotOver(Event):
    """A slot is settled, and what comes next."""

    event: Literal["settled", "void"] = "settled"
    """Void: nothing was trained."""
    slot: int
    seconds: float
    rounds: int
    """With a new model."""
    total: int
    """Samples that it was trained on."""
    reason: str | None = None
    """Why it is void."""
    missing: list[Missing] = Field(default_factory=list)
    """Who was missing at some time in the slot, each client once."""
    phase: Phase
    """Of the next slot."""
    suspended: list[Suspension] = Field(default_factory=list)
    """Who takes no part in the next slot."""

    @property
    def level(self) -> Level:
        """A void slot is an error, and a missing client worth a look."""
        return "error" if self.event == "void" else "warning" if self.missing else "info"

    def sentence(self) -> str:
        """How it ended, who was missing, what to do and what comes next."""
        missing = listed(f"{one.client} ({one.because})" for one in self.missing)
        absent = f" Missing: {missing}." if self.missing else ""
        if self.event == "settled":
            work = f"{counted(self.rounds, 'round')} on {counted(self.total, 'sample')}"
            how = f"slot {self.slot} is settled: {work} in {lasted(self.seconds)}.{absent}"
        else:
            how = f"slot {self.slot} is VOID: {self.reason}.{absent}{_to_do(self.missing)}"
        out = f"; suspended in it: {suspended_in_words(self.suspended)}" if self.suspended else ""
        return f"{how} Next is slot {self.slot + 1}, {self.phase}{out}."


_REMEDIES: dict[Why, str] = {
    "no_node": "start the node (`fedaccord member start`) at {}",
    "wrong_node": "stop every node but one at {}, and register its key",
    "nameless_node": "run `fedaccord member check` at {}",
    "no_answer": "run `fedaccord member check` at {}",
    "rejected": "run `fedaccord member check` at {}",
    "refused": "run `fedaccord member check` at {}",
    "failed": "run `fedaccord member check` at {}",
}


def _to_do(missing: Sequence[Missing]) -> str:
    """What to do so that the next slot is not void."""
    steps: dict[str, list[str]] = {}
    for one in missing:
        if (remedy := _REMEDIES.get(one.why)) is not None:
            steps.setdefault(remedy, []).append(one.client)
    if not steps:
        return ""
    todo = "; ".join(remedy.format(listed(names)) for remedy, names in steps.items())
    return f" What to do: {todo}; then run the next slot."


class Decided(Event):
    """What came of a proposal."""

    event: Literal["decision"] = "decision"
    slot: int
    proposal: str
    accepted: bool

    def sentence(self) -> str:
        """Whether it was accepted."""
        outcome = "accepted" if self.accepted else "not accepted"
        return f"the proposal to {self.proposal} was {outcome}"


class RunEnds(Event):
    """The run is over."""

    event: Literal["run_ends"] = "run_ends"
    settled: list[int]
    """The slots that this run settled."""
    void: list[int] = Field(default_factory=list)
    """Those of them that are void."""

    @property
    def level(self) -> Level:
        """A void slot is an error."""
        return "error" if self.void else "info"

    def sentence(self) -> str:
        """How many slots were settled, and which are void."""
        slots = counted(len(self.settled), "slot")
        void = f"; VOID: {', '.join(map(str, self.void))}" if self.void else ", none of them void"
        return f"the run is over: {slots} settled{void if self.settled else ''}"


class RunFailed(Event):
    """The run ended before the last slot was settled."""

    usual_level: ClassVar[Level] = "error"
    event: Literal["run_failed"] = "run_failed"
    message: str

    def sentence(self) -> str:
        """Why."""
        return self.message


ServerEvent: TypeAlias = Annotated[
    RunBegins
    | Waiting
    | NodeRefused
    | SlotBegins
    | Reported
    | ClientMissing
    | ClockStep
    | Offers
    | Answers
    | Plan
    | RoundOver
    | ClientVerdict
    | SlotOver
    | Decided
    | RunEnds
    | RunFailed
    | Note,
    Field(discriminator="event"),
]
_READ: TypeAdapter[ServerEvent] = TypeAdapter(ServerEvent)


def read_event(fields: dict[str, object]) -> ServerEvent | None:
    """The event in a line of JSON; None: it is not one of the server's."""
    try:
        return _READ.validate_python({k: v for k, v in fields.items() if k != "level"})
    except ValidationError:
        return None

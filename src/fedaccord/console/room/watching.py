"""A slot as its entries in the ledger tell it, as plain records.

Nothing here knows more than the ledger. Of a long ledger only the slots that are shown are read,
and of the latest slot only what came since the last look.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Literal

from fedaccord.checks import escaped
from fedaccord.errors import InvalidInput
from fedaccord.flower.events import suspensions
from fedaccord.game.slot import slots_per_year
from fedaccord.ledger.chain import Chain, Entry, Head
from fedaccord.ledger.store import Ledger
from fedaccord.protocol import facts
from fedaccord.protocol.conclusions import active, reports_in
from fedaccord.protocol.messages import BasisName, Out, Phase, VerdictName
from fedaccord.protocol.one_slot import state_before, take_note
from fedaccord.protocol.questions import open_question
from fedaccord.protocol.rounds import rounds_of
from fedaccord.protocol.state import Slot, State
from fedaccord.protocol.verifier import NONSENSE, in_brief
from fedaccord.summaries.slots import ASKS, Moment, SlotStory

Stage = Literal["reports", "offers", "training", "settlement", "over"]
Part = Literal["awaited", "there", "absent", "refused", "suspended"]
EARLIER = 25
"""Slots in a list of earlier ones."""


@dataclass(frozen=True)
class MemberInSlot:
    """One member in a slot."""

    name: str
    part: Part
    """Whether it takes part."""
    because: str
    """Why it is absent, in words; empty if it is not."""
    asked: int | None
    """Samples that it was offered, or is to train on."""
    answer: Literal["accepted", "refused"] | None
    trained: int | None
    """Samples that it trained on: the least in any round so far."""
    rounds: int
    """Rounds in which it trained."""
    missed: int
    """Rounds in which it was absent."""
    verdict: VerdictName | None


@dataclass(frozen=True)
class RoundInSlot:
    """A round that is over."""

    number: int
    at: str
    members: int
    """Who trained on something."""
    samples: int
    """What they trained on, if there were enough to average."""
    averaged: bool
    movement: float | None
    """How far their updates moved the model on average: the mean of the norms in the ledger."""
    loss: float | None = None
    """Of the model after it on the server's test examples, if the server has any."""
    accuracy: float | None = None
    """The same, or what else the task is measured by."""
    measure: str | None = None
    """The name of that."""


@dataclass(frozen=True)
class SuspendedMember:
    """Who takes no part."""

    name: str
    slipped_in: int
    until: int | None
    """The last slot of it, if every slot until then is played; for ever if there is none."""
    day: str | None
    """About the day on which it ends, if the length of a slot is known."""


@dataclass(frozen=True)
class WatchedSlot:
    """A slot, as far as it has come."""

    consortium: str
    slot: int
    phase: Phase
    stage: Stage
    begun: str
    """When, in UTC, by the server's clock."""
    latest: str
    """The time of the latest entry about it."""
    entries: int
    head: str
    """The digest of the latest entry about it."""
    asks: str
    """What is asked at the moment, in words; empty if nothing is."""
    waiting: list[str]
    """Who is asked it."""
    reports: bool
    """Whether members report numbers, or only that they are there."""
    expected: int
    """Members that are not suspended."""
    here: int
    offered: int
    answered: int
    refused: int
    basis: BasisName | None
    total_asked: int
    rounds_in_all: int
    rounds: list[RoundInSlot]
    members: list[MemberInSlot]
    suspended: list[SuspendedMember]
    """In this slot."""
    suspended_next: list[SuspendedMember]
    """From the next slot on, once this one is settled."""
    settled: bool
    void: str | None
    """Why nothing was trained, if the slot is over and nothing was."""
    total: int | None
    """Samples that the slot was trained on, when it is settled."""
    next_phase: Phase | None
    timeline: list[Moment]
    """The latest first."""
    problem: str | None = None
    """Why the rest cannot be read, if somebody changed the ledger."""


class SlotReader:
    """Follows the entries of one slot."""

    def __init__(self, number: int, state: State, days: float | None = None) -> None:
        """`state` is what the server knows before the slot begins; a slot has so many `days`."""
        self.number, self.state = number, state
        self.last = 0
        """The number of the latest entry that was taken."""
        self.problem: str | None = None
        self._days = days
        self._story = SlotStory()
        self._chain: Chain | None = None
        self._entries = 0
        self._begun, self._latest, self._head = "", "", ""
        self._phase: Phase = "cooperating"
        self._answers: dict[str, bool] = {}
        self._absent: dict[str, str] = {}
        self._trained: dict[str, int] = {}
        self._norms: list[float] = []
        self._rounds: list[RoundInSlot] = []
        self._verdicts: dict[str, VerdictName] = {}
        self._settlement: facts.Settlement | None = None

    def take(self, entry: Entry) -> None:
        """Take one more entry of the slot; after one that makes no sense nothing is taken."""
        self.last = entry.number
        if self.problem is not None:
            return
        if self._chain is None:
            self._chain = Chain(Head(entry.number - 1, str(entry.previous)))
        try:
            self._chain.follow(entry)
            if not self._chain.whole:
                self.problem = escaped(self._chain.problems[0])
                return
            self._note(entry, take_note(self.state, entry))
        except NONSENSE as error:
            about = f"entry {entry.number} ({entry.kind} of slot {entry.slot})"
            self.problem = escaped(f"{about} makes no sense: {in_brief(error)}")

    def _note(self, entry: Entry, fact: facts.TypedFact) -> None:
        self._entries += 1
        self._latest, self._head = entry.at, entry.digest
        match fact:
            case facts.Slot():
                self._begun, self._phase = entry.at, fact.phase
            case facts.Answer():
                self._answers[fact.client] = fact.accepts
            case facts.Contribution():
                if fact.samples:
                    self._trained[fact.client] = self._trained.get(fact.client, 0) + 1
                    self._norms.append(fact.norm)
            case facts.Round():
                self._end_round(entry.at, fact)
            case facts.Verdict():
                self._verdicts[fact.client] = fact.verdict
            case facts.Settlement():
                self._settlement = fact
        self._story.hear(entry.at, fact, self.state)
        if isinstance(fact, facts.Absence):
            self._absent[fact.client] = self._story.reason_of(fact)

    def _end_round(self, at: str, fact: facts.Round) -> None:
        norms, self._norms = self._norms, []
        mean = sum(norms) / len(norms) if norms else None
        one = RoundInSlot(
            number=fact.turn,
            at=at,
            members=len(norms),
            samples=fact.total,
            averaged=fact.averaged,
            movement=mean,
            loss=fact.loss,
            accuracy=fact.accuracy,
            measure=None if fact.measure is None else escaped(fact.measure),
        )
        self._rounds.append(one)

    # --- What there is so far --------------------------------------------------------------

    @property
    def begun(self) -> bool:
        """Whether the slot has begun, and can be shown."""
        return self._begun != ""

    def record(self) -> WatchedSlot:
        """All of it."""
        state, slot, terms = self.state, self.state.current, self.state.rules
        asks, waiting = self._question()
        settled = self._settlement is not None
        return WatchedSlot(
            consortium=escaped(terms.name),
            slot=self.number,
            phase=self._phase,
            stage=_stage(state, slot),
            begun=self._begun,
            latest=self._latest,
            entries=self._entries,
            head=self._head,
            asks=asks,
            waiting=waiting,
            reports=terms.reports == "ratio",
            expected=len(active(slot, terms)),
            here=len(slot.here),
            offered=len(slot.offers),
            answered=len(slot.answered & slot.offers.keys()),
            refused=len(slot.refused),
            basis=slot.basis,
            total_asked=sum(slot.amounts.values()),
            rounds_in_all=rounds_of(slot, terms),
            rounds=list(self._rounds),
            members=[self._member(name, slot) for name in terms.clients],
            suspended=self._out(slot.out, self.number),
            suspended_next=self._out(state.out, self.number + 1) if settled else [],
            settled=settled,
            void=self._story.void,
            total=self._settlement.total if self._settlement else None,
            next_phase=state.next_phase[0] if settled else None,
            timeline=self._story.moments,
            problem=self.problem,
        )

    def _question(self) -> tuple[str, list[str]]:
        """What is asked of whom, as the ledger leads to it."""
        state = self.state
        if (state.between_slots and state.pending is None) or self.problem is not None:
            return "", []
        try:
            question = open_question(state)
        except NONSENSE:
            return "", []
        return ASKS[question.stage], [escaped(name) for name in question.contents]

    def _member(self, name: str, slot: Slot) -> MemberInSlot:
        answer = self._answers.get(name)
        part: Part = "there" if name in slot.here else "awaited"
        if name in slot.out:
            part = "suspended"
        elif name in slot.absent or slot.missed.get(name):
            part = "absent"
        elif name in slot.refused:
            part = "refused"
        return MemberInSlot(
            name=escaped(name),
            part=part,
            because=escaped(self._absent.get(name, "")) if part == "absent" else "",
            asked=slot.amounts.get(name, slot.offers.get(name)),
            answer=None if answer is None else "accepted" if answer else "refused",
            trained=slot.contributed.get(name),
            rounds=self._trained.get(name, 0),
            missed=slot.missed.get(name, 0),
            verdict=self._verdicts.get(name),
        )

    def _out(self, out: Out, first: int) -> list[SuspendedMember]:
        return [
            SuspendedMember(escaped(one.client), one.slipped_in, one.until, self._day(one.until))
            for one in suspensions(out, first)
        ]

    def _day(self, until: int | None) -> str | None:
        """About the day on which a slot ends, if all are of the same length."""
        if until is None or self._days is None:
            return None
        try:
            begun = datetime.fromisoformat(self._begun)
            return (begun + timedelta((until - self.number + 1) * self._days)).date().isoformat()
        except (ValueError, OverflowError):
            return None


def _stage(state: State, slot: Slot) -> Stage:
    if slot.settled:
        return "over" if slot.told else "settlement"
    if slot.basis is not None:
        return "training"
    return "offers" if reports_in(slot, state.rules) else "reports"


def read_slot(ledger: Ledger, number: int, days: float | None = None) -> SlotReader:
    """Everything that the ledger says about a slot."""
    reader = open_slot(ledger, number, days)
    follow(reader, ledger.entries(slot=number))
    return reader


def open_slot(ledger: Ledger, number: int, days: float | None = None) -> SlotReader:
    """A reader before its first entry."""
    try:
        return SlotReader(number, state_before(ledger, number), days)
    except NONSENSE as error:
        reader = SlotReader(number, State(), days)
        reader.problem = escaped(f"what is before slot {number} makes no sense: {in_brief(error)}")
        return reader


def follow(reader: SlotReader, entries: Iterable[Entry]) -> None:
    """Give a reader more entries; those of other slots are left out."""
    for entry in entries:
        if entry.slot == reader.number:
            reader.take(entry)


# --- How long a slot is --------------------------------------------------------------------


def days_of(slot_length: str) -> float | None:
    """How many days a slot has, if somebody said how long one is.

    >>> days_of("1 year"), days_of("")
    (365.0, None)
    """
    try:
        return 365.0 / slots_per_year(slot_length) if slot_length else None
    except InvalidInput:
        return None


def pace(ledger: Ledger) -> float | None:
    """Days from the beginning of a slot to that of the next one, on average of the latest.

    None if there were too few, or they follow one another within hours, as in a rehearsal.
    """
    begun = [entry.at for entry in ledger.some(_PACED, kind="slot")]
    try:
        last, first = datetime.fromisoformat(begun[0]), datetime.fromisoformat(begun[-1])
        days = (last - first) / timedelta(1) / (len(begun) - 1)
    except (LookupError, ValueError, TypeError, ZeroDivisionError):
        return None
    return days if days >= _SHORTEST else None


_PACED = 10
_SHORTEST = 0.2


# --- Many slots ----------------------------------------------------------------------------


@dataclass(frozen=True)
class PastSlot:
    """A slot that is settled, in a line."""

    slot: int
    at: str
    void: bool
    basis: BasisName | None
    total: int
    slipped: list[str] = field(default_factory=list)
    """Who slipped in it, where slips suspend."""


def past_slots(ledger: Ledger, before: int | None = None) -> list[PastSlot]:
    """The latest settled slots, before the slot `before` if it is given; the last first."""
    limit = None
    if before is not None:
        begin = next(iter(ledger.some(1, slot=before, kind="slot")), None)
        limit = begin.number if begin is not None else None
    found = []
    for entry in ledger.some(EARLIER, before=limit, kind="settlement"):
        try:
            fact = facts.read_fact(entry.fact)
        except NONSENSE:
            continue
        assert isinstance(fact, facts.Settlement)
        slipped = [escaped(n) for n, one in fact.suspended.items() if one.slipped_in == fact.slot]
        void = fact.void or fact.total == 0
        found.append(PastSlot(fact.slot, entry.at, void, fact.basis, fact.total, slipped))
    return found


def latest_slot(ledger: Ledger) -> int:
    """The number of the latest slot that was begun; 0: none was."""
    last = ledger.last("slot")
    return 0 if last is None else last.slot

"""Follows one slot in the ledger, and tells it as a plain record.

It knows nothing but the ledger, and of the latest slot it reads only what came since the last look.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta

from fedaccord.checks import escaped
from fedaccord.console.room.watched_slot import (
    MemberInSlot,
    Part,
    RoundInSlot,
    Stage,
    SuspendedMember,
    WatchedSlot,
)
from fedaccord.flower.events import suspensions
from fedaccord.ledger.chain import Chain, Entry, Head
from fedaccord.ledger.store import Ledger
from fedaccord.protocol import facts
from fedaccord.protocol.conclusions import active, reports_in
from fedaccord.protocol.messages import Out, Phase, VerdictName
from fedaccord.protocol.one_slot import state_before, take_note
from fedaccord.protocol.questions import open_question
from fedaccord.protocol.rounds import rounds_of
from fedaccord.protocol.state import Slot, State
from fedaccord.protocol.verifier import NONSENSE, in_brief
from fedaccord.summaries.slots import ASKS, SlotStory


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

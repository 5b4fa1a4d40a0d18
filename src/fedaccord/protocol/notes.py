"""A client's copy of its own part of what happened, so that it need not trust the server's ledger.

Each note holds the head of the server's ledger at that moment. A server that changed its past
afterwards could not show a chain with all those heads in it. A copy may be a file (`CopyFile`) or
be kept in memory (`CopyInMemory`); `Copy` reads and writes the notes in either.
"""

import json
from collections.abc import Iterable, Iterator, MutableMapping
from pathlib import Path
from typing import Annotated, Any, Protocol, TypeVar

from pydantic import Field

from fedaccord.ledger.chain import START, Entry, Fact, Head, extend
from fedaccord.ledger.store import open_ledger, wall_clock
from fedaccord.protocol.facts import ClientFact
from fedaccord.protocol.forms import WrongForm, check_format, read_as
from fedaccord.protocol.keys import PublicKey, Signature
from fedaccord.protocol.limits import Count
from fedaccord.protocol.messages import (
    FORMAT,
    Amount,
    AskedClock,
    AskedConsent,
    AskedOffer,
    AskedPosted,
    AskedRank,
    AskedReport,
    AskedSettlement,
    AskedTier,
    BasisName,
    ClockAnswer,
    ConsentAnswer,
    Digest,
    OfferAnswer,
    PresenceAnswer,
    ReportAnswer,
    Samples,
    ShownHead,
    Stage,
    Total,
    TrainingAnswer,
    Turn,
)


class Note(ClientFact):
    """An entry of a copy."""

    turn: Turn
    ledger: ShownHead

    @property
    def head(self) -> Head:
        """The head of the server's ledger that the client was shown."""
        return Head(*self.ledger)


class Presence(Note, AskedReport, PresenceAnswer):
    """What the client was told when it said that it is there, and the terms that it follows."""

    kind = "presence"
    format: Annotated[int, Field(ge=FORMAT, le=FORMAT)]
    terms: Digest
    """Their digest."""


class Report(Presence, ReportAnswer):
    """The same, and what the client reported."""

    kind = "report"


class Rank(Note, AskedRank):
    """The place that the client was told."""

    kind = "rank"


class Stay(Note, AskedClock, ClockAnswer):
    """Where the clock stood, and whether the client goes on."""

    kind = "stay"


class Offer(Note, AskedOffer):
    """An offer to the client that was computed from reports."""

    kind = "offer"


class Posted(Note, AskedPosted):
    """An offer to the client that follows from the terms, or from a clock."""

    kind = "posted"


class Answer(Note, OfferAnswer):
    """Its answer to that."""

    kind = "answer"


class Contribution(Note, TrainingAnswer):
    """What it was told to train in a round, and what it trained."""

    kind = "contribution"
    basis: BasisName
    contribution: Samples
    model: Digest
    update: Digest | None
    norm: Amount
    rank: Count | None = None
    """At the equilibrium, as are the next three."""
    clients: Count | None = None
    above: Total | None = None
    tied: Total | None = None


class Tier(Note, AskedTier):
    """The model of its tier that it was handed, while others go on."""

    kind = "tier"


class Settlement(Note, AskedSettlement):
    """The settlement that it was told."""

    kind = "settlement"


class Consent(Note, AskedConsent, ConsentAnswer):
    """A proposal, and its answer."""

    kind = "consent"


class Signed(Note):
    """A question as the server signed it, and the answer as the client did: their evidence."""

    kind = "signed"
    stage: Stage
    consortium: str
    terms: Digest
    """The digest of the terms that both follow."""
    keys: tuple[PublicKey, PublicKey] = Field(strict=False)
    """The server's and the client's public keys."""
    token: str
    received: Digest
    """The last statement of the client that the server said it has, which the answer names."""
    asks: dict[str, Any]
    question_signature: Signature
    said: dict[str, Any]
    statement: Digest
    """The digest of the client's statement with its signature."""
    signature: Signature


FORMS: dict[str, type[Note]] = {
    form.kind: form
    for form in (
        *(Report, Presence, Rank, Stay, Offer, Posted, Answer),
        *(Contribution, Tier, Settlement, Consent, Signed),
    )
}
STAGE_OF: dict[str, Stage] = {
    "report": "report",
    "presence": "report",
    "rank": "rank",
    "stay": "clock",
    "offer": "offer",
    "posted": "offer",
    "answer": "offer",
    "contribution": "train",
    "tier": "tier",
    "settlement": "settle",
    "consent": "consent",
}
"""In which stage a client writes each kind of note."""


def read_note(fact: Fact) -> Note:
    """The note in an entry of a client's copy."""
    form = FORMS.get(fact.kind)
    if fact.client is None or form is None:
        raise WrongForm("is not an entry of a client's copy")
    if issubclass(form, Presence):
        check_format(fact)
    return read_as(form, fact, {"slot": fact.slot, "client": fact.client})


class Kept(Protocol):
    """Where a copy is kept: a ledger of its own, or anything that lasts as long as needed."""

    def append(self, facts: list[Fact]) -> object:
        """Write facts."""
        ...

    def entries(self, *, slot: int, kind: str) -> Iterable[Entry]:
        """The entries of one kind about a slot."""
        ...

    def last(self) -> Entry | None:
        """The latest entry."""
        ...


AnyNote = TypeVar("AnyNote", bound=Note)


class Copy:
    """The notes in a copy, wherever it is kept."""

    def __init__(self, kept: Kept) -> None:
        """Continue with what is there."""
        self._kept = kept

    def write(self, note: Note) -> None:
        """Add a note."""
        self._kept.append([note.fact])

    def recall(self, form: type[AnyNote], slot: int, turn: int = 0) -> AnyNote | None:
        """The note of one kind about a slot and turn."""
        notes = (_read(form, entry) for entry in self._kept.entries(slot=slot, kind=form.kind))
        return next((note for note in notes if note.turn == turn), None)

    def all(self, form: type[AnyNote], slot: int) -> list[AnyNote]:
        """The notes of one kind about a slot."""
        return [_read(form, entry) for entry in self._kept.entries(slot=slot, kind=form.kind)]

    def latest(self, form: type[AnyNote], slot: int) -> AnyNote | None:
        """The latest note of one kind about a slot."""
        entries = list(self._kept.entries(slot=slot, kind=form.kind))
        return _read(form, entries[-1]) if entries else None

    def newest_of(self, form: type[AnyNote], before: int) -> AnyNote | None:
        """The latest note of one kind about a slot before this one."""
        last = self.newest()
        start = min(before - 1, last.slot) if last is not None else 0
        found = (self.latest(form, slot) for slot in range(start, 0, -1))
        return next((note for note in found if note is not None), None)

    def since(self, form: type[AnyNote], slot: int) -> Iterator[AnyNote]:
        """All notes of one kind about a slot and those after it."""
        last = self.newest()
        for each in range(slot, 1 + (last.slot if last is not None else 0)):
            for entry in self._kept.entries(slot=each, kind=form.kind):
                yield _read(form, entry)

    def signed_back(self, slot: int) -> Iterator[Signed]:
        """What was signed in a slot and those before it, the latest first."""
        for each in range(slot, 0, -1):
            yield from reversed(self.all(Signed, each))

    def newest(self) -> Note | None:
        """The latest note."""
        last = self._kept.last()
        return None if last is None else read_note(last.fact)


def _read(form: type[AnyNote], entry: Entry) -> AnyNote:
    return read_as(form, entry.fact, {"slot": entry.slot, "client": entry.client})


class CopyFile:
    """A copy in a ledger of its own, open only while it is read or written."""

    def __init__(self, path: Path, patience: float) -> None:
        """Wait up to `patience` seconds while another process has it open."""
        self._path, self._patience = path, patience

    def append(self, facts: list[Fact]) -> None:
        """Write facts."""
        with open_ledger(self._path, wait=self._patience) as ledger:
            ledger.append(facts)

    def entries(self, *, slot: int, kind: str) -> list[Entry]:
        """The entries of one kind about a slot."""
        with open_ledger(self._path, wait=self._patience) as ledger:
            return list(ledger.entries(slot=slot, kind=kind))

    def last(self) -> Entry | None:
        """The latest entry."""
        with open_ledger(self._path, wait=self._patience) as ledger:
            return ledger.last()


class CopyInMemory:
    """A copy in a mapping of texts, which lasts as long as that does."""

    def __init__(self, texts: MutableMapping[str, Any] | None = None) -> None:
        """Continue with what is there."""
        self._texts = {} if texts is None else texts

    def append(self, facts: list[Fact]) -> None:
        """Write facts."""
        last = self.last()
        head, at = (START, "") if last is None else (last.head, last.at)
        for entry in extend(head, facts, max(wall_clock(), at)):
            self._texts[str(entry.number)] = json.dumps(entry)

    def entries(self, *, slot: int | None = None, kind: str | None = None) -> Iterator[Entry]:
        """The entries: all, or those about one slot, or of one kind."""
        for number in range(1, len(self._texts) + 1):
            text = self._texts[str(number)]
            if kind is not None and f'"{kind}"' not in text:
                continue  # most are of another kind, and reading them takes time
            entry = Entry(*json.loads(text))
            if slot in (None, entry.slot) and kind in (None, entry.kind):
                yield entry

    def last(self) -> Entry | None:
        """The latest entry."""
        last = len(self._texts)
        return Entry(*json.loads(self._texts[str(last)])) if last else None

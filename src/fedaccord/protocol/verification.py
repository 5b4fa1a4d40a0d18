"""Verifying a ledger: is what it says what its own reports and contributions lead to?

A chain can be intact and still say something false, if its writer does. So verifying means to work
out again whatever the server worked out: it certifies each agreement from the clients' reports, and
compares what was played, every rank, every verdict, every phase. Clients' copies are the last
witnesses.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from fedaccord.errors import FedaccordError, InvalidInput
from fedaccord.ledger.chain import Chain, Checkpoint, Entry, Fact, Head
from fedaccord.ledger.lines import Reading
from fedaccord.protocol import evidence, facts, notes
from fedaccord.protocol.auditing import draw_slot
from fedaccord.protocol.comparison import CopyComparison, compare_copies
from fedaccord.protocol.copies import EMPTY, Compared, compare_with_server
from fedaccord.protocol.evidence import Proof
from fedaccord.protocol.forms import WrongForm
from fedaccord.protocol.parameters import digest, from_bytes
from fedaccord.protocol.quick_rounds import took_count
from fedaccord.protocol.signatures import Signatures
from fedaccord.protocol.state import State
from fedaccord.protocol.trusted import Trusted
from fedaccord.protocol.verifier import NONSENSE, Verifier, in_brief

What = Literal["the server's ledger", "a client's copy", "part of a ledger", "an empty ledger"]


@dataclass(frozen=True)
class Findings:
    """The result of going through a ledger once."""

    chain: Chain
    problems: list[str]
    """What is wrong, in words; none if everything follows."""
    signatures: Signatures
    state: State | None = None
    """What a server knows at the end; None: it is not a server's ledger."""


def wrong_in(entries: Iterable[Entry]) -> list[str]:
    """What is wrong with a server's ledger, in words; nothing if everything follows."""
    return look_over(entries).problems


def look_over(
    entries: Iterable[Entry],
    models: Sequence[Checkpoint] | None = None,
    *,
    every_signature: bool = False,
    since: Trusted | None = None,
) -> Findings:
    """Work out again what a server's ledger says, and check the models stored with it if given.

    `since` an earlier verification, `entries` begin with the one that it ended with.
    """
    verifier = Verifier(every_signature=every_signature)
    if since is None:
        return _go_through(entries, _Server(models, believed=0, verifier=verifier))
    verifier.go_on(since.state, since.signatures)
    rest = iter(entries)
    first, chain = next(rest, None), Chain(since.head, since.at, since.slots)
    server = _Server(models, believed=0, verifier=verifier, known=since.head.number)
    if first is None or (first.number, first.digest) != since.head:
        problem = f"entry {since.head.number} is not the one that was verified before"
        return Findings(chain, [problem], verifier.signatures)
    return _go_through(rest, server, chain)


def trusted_end(findings: Findings) -> Trusted | None:
    """What the next verification may believe; None in the middle of a slot."""
    state = findings.state
    if state is None or findings.problems or not state.between_slots or state.pending is not None:
        return None
    chain = findings.chain
    return Trusted(chain.head, chain.at, chain.slots, state, findings.signatures.so_far)


def look_over_end(
    entries: Iterable[Entry], models: Sequence[Checkpoint], last_slot: int
) -> tuple[Findings, State]:
    """The same for the chain, the models and the last slot; and what a server knows at the end.

    Entries before the number `last_slot` are read, but not recomputed.
    """
    verifier = Verifier()
    server = _Server(models, believed=last_slot, verifier=verifier)
    return _go_through(entries, server), verifier.state


def look_over_copy(entries: Iterable[Entry]) -> Findings:
    """Check that a client's copy is intact, and each entry one that a client writes."""
    return _go_through(entries, _Client())


class _Reader(Protocol):
    signatures: Signatures
    state: State | None

    def took(self, chain: Chain, entry: Entry) -> bool:
        """Whether this entry is right, and was taken note of the quick way."""
        ...

    def look_at(self, before: Head, fact: Fact) -> str | None:
        """What is wrong with the fact that follows this end of the chain, if anything."""
        ...

    def end(self) -> str | None:
        """What is wrong if the ledger ends here."""
        ...


def _go_through(entries: Iterable[Entry], reader: _Reader, chain: Chain | None = None) -> Findings:
    """Follow the chain to its end, and read what is in it for as long as it makes sense."""
    chain, wrong = chain or Chain(), None
    for entry in entries:
        if wrong is None and chain.whole and reader.took(chain, entry):
            continue
        before, fact = chain.head, chain.follow(entry)
        if fact is not None and wrong is None and chain.whole:
            wrong = _wrong(reader, before, fact)  # what comes after it follows from it
    if chain.length == 0:
        return Findings(chain, [EMPTY], reader.signatures)
    if chain.whole and wrong is None:
        wrong = reader.end()
    problems = chain.problems or ([] if wrong is None else [wrong])
    return Findings(chain, problems, reader.signatures, reader.state)


def _wrong(reader: _Reader, before: Head, fact: Fact) -> str | None:
    about = f"entry {before.number + 1} ({fact.kind} of slot {fact.slot})"
    try:
        problem = reader.look_at(before, fact)
    except WrongForm as wrong:
        return f"{about} {wrong}"
    except NONSENSE as error:
        return f"{about} makes no sense: {in_brief(error)}"
    return None if problem is None else f"{about} {problem}"


class _Server:
    """Reads a server's ledger, and looks for the models that are stored with it."""

    def __init__(
        self,
        models: Sequence[Checkpoint] | None,
        believed: int,
        verifier: Verifier,
        known: int = 0,
    ) -> None:
        self.verifier, self.signatures = verifier, verifier.signatures
        self.state: State | None = verifier.state
        self._believed = believed
        self._models = models
        self._slots = {model.number: model.slot for model in models or ()}
        self._digests: dict[int, str] = {}
        self._named: set[int] = set()
        self._unreadable = False
        try:
            self._digests = {m.number: digest(from_bytes(m.parameters)) for m in models or ()}
        except FedaccordError:
            self._unreadable = True
        state = verifier.state
        kept = {state.model, *state.models.values()}
        # those that came with entries which were verified before
        self._named = {n for n, one in self._digests.items() if n <= known and one in kept}

    def took(self, chain: Chain, entry: Entry) -> bool:
        if entry.kind != "contribution" or chain.head.number < self._believed:
            return False
        return took_count(self.verifier, chain, entry)

    def look_at(self, before: Head, fact: Fact) -> str | None:
        record, number = facts.read_fact(fact), before.number + 1
        draw_slot(self.verifier.state, before)
        if number < self._believed:
            self.verifier.state.apply(record)
        elif (problem := self.verifier.look_at(record, before)) is not None:
            return problem
        if number in self._digests and self._is_named(number, fact):
            self._named.add(number)
        return None

    def _is_named(self, number: int, fact: Fact) -> bool:
        """Whether the model that was stored with this entry is the latest, and of its slot.

        The model of a decision to go back is the one that the next slot begins with.
        """
        made = fact.slot + 1 if fact.kind == "decision" else fact.slot
        latest = self.verifier.state.model
        return self._slots[number] == made and self._digests[number] == latest

    def end(self) -> str | None:
        try:
            if (problem := self.verifier.end()) is not None:
                return f"it {problem}"
        except NONSENSE as error:
            return f"its end makes no sense: {in_brief(error)}"
        return None if self._models is None else self._wrong_model()

    def _wrong_model(self) -> str | None:
        """Each model must be one that the ledger names, and the latest must be there."""
        if self._unreadable:
            return "the model stored with it cannot be read"
        if self._named != self._digests.keys():
            return "the model stored with it is not the one that it names"
        latest = self.verifier.state.model
        if latest is not None and latest not in self._digests.values():
            return "the model that it names is not stored with it"
        return None


class _Client:
    """Reads a client's copy: all of it is about one client, and the server's ledger only grows."""

    def __init__(self) -> None:
        self.signatures = Signatures()
        self.state: State | None = None
        self._name: str | None = None
        self._slot = 0
        self._shown = Head(0, "")
        self._told: dict[tuple[str, int], notes.Note] = {}
        """What it wrote down in this slot, by stage and turn."""

    def took(self, chain: Chain, entry: Entry) -> bool:  # noqa: ARG002  as all readers
        return False

    def look_at(self, before: Head, fact: Fact) -> str | None:  # noqa: ARG002  as all readers
        note = notes.read_note(fact)
        if self._name not in (None, note.client):
            return "is about another client"
        if note.slot < self._slot or note.head.number < self._shown.number:
            return "goes back to an older slot, or to a server's ledger that was shorter"
        if note.head.number == self._shown.number and note.head != self._shown:
            return "has another end of the server's ledger than the entry before it"
        if note.slot != self._slot:
            self._told = {}
        if isinstance(note, notes.Signed):
            told = self._told.get((note.stage, note.turn))
            if (flaw := evidence.flaw_in(note, told)) is not None:
                self.signatures.wrong += 1
                return flaw
            self.signatures.checked += 2
        elif note.kind != "answer":
            self._told[notes.STAGE_OF[note.kind], note.turn] = note
        self._name, self._slot, self._shown = note.client, note.slot, note.head
        return None

    def end(self) -> str | None:
        return None


# --- Whole ledgers, and several of them ----------------------------------------------------


@dataclass(frozen=True)
class Verification:
    """The result of verifying a ledger, by itself and against clients' copies."""

    what: What
    chain: Chain
    problems: list[str]
    signatures: Signatures
    undecided: list[str]
    """What nobody can decide, in words."""
    proofs: list[Proof]
    """Of who said two things that cannot both be true."""
    trusted: Trusted | None
    """What the next verification may begin with, if everything is in order up to the end of a
    slot."""


def verify(
    ledger: Reading,
    copies: Mapping[str, Reading] | None = None,
    *,
    every_signature: bool = False,
    since: Trusted | None = None,
) -> Verification:
    """What a ledger is, and everything that is wrong with it; `copies` have names to be shown.

    `since` an earlier verification, only what came after it is looked at.
    """
    is_copy = _is_copy(ledger)
    if is_copy:
        findings = look_over_copy(ledger.entries())
    else:
        entries = ledger.entries() if since is None else ledger.entries_from(since.head.number)
        findings = look_over(entries, ledger.models, every_signature=every_signature, since=since)
    chain, problems = findings.chain, findings.problems
    what: What = "a client's copy" if is_copy else "the server's ledger"
    if chain.length == 0:
        what = "an empty ledger"
    elif ledger.models is None and chain.is_part:
        what = "part of a ledger"
        problems = [
            f"{chain.head.number - chain.length} entries are missing, as in an extract for one "
            "client; only a complete ledger can be verified"
        ]
    problems, undecided = ledger.damage() + problems, list(findings.signatures.undecided)
    proofs: list[Proof] = []
    for name, found in _disagreements(ledger, chain, copies or {}).items():
        problems += [f"{name}: {problem}" for problem in found.problems]
        undecided += [f"{name}: {one}" for one in found.undecided]
        proofs += found.proofs
    end = None if problems else trusted_end(findings)
    return Verification(what, chain, problems, findings.signatures, undecided, proofs, end)


def _is_copy(ledger: Reading) -> bool:
    """A copy is about one client only; a server's ledger begins with what concerns everyone."""
    first = next(ledger.entries(), None)
    return first is not None and first.client is not None


def _disagreements(
    ledger: Reading, chain: Chain, copies: Mapping[str, Reading]
) -> dict[str, Compared]:
    """What is wrong with each copy, or where it and the ledger disagree."""
    wrong = {name: Compared(wrong_copy(copy), [], []) for name, copy in copies.items()}
    intact = [name for name, found in wrong.items() if not found.problems]
    if chain.length == 0 or not chain.whole:
        broken = Compared(["cannot be compared with a ledger that is not intact"], [], [])
        compared = [broken] * len(intact)
    else:
        entries = (copies[name].entries() for name in intact)
        compared = compare_with_server(ledger.entries(), entries)
    return wrong | dict(zip(intact, compared, strict=True))


def wrong_copy(copy: Reading) -> list[str]:
    """What is wrong with a client's copy by itself."""
    if damage := copy.damage():
        return damage
    first = next(copy.entries(), None)
    if first is not None and first.client is None:
        return ["is not a client's copy"]
    return look_over_copy(copy.entries()).problems


@dataclass(frozen=True)
class ComparedCopies:
    """The result of comparing clients' copies with one another."""

    clients: dict[str, str]
    """Whose copy each intact one is, by its name."""
    comparison: CopyComparison
    problems: list[str]


@dataclass(frozen=True)
class _Entries:
    """The entries of a copy, which can be read several times."""

    copy: Reading

    def __iter__(self) -> Iterator[Entry]:
        return self.copy.entries()


def compare(copies: Mapping[str, Reading]) -> ComparedCopies:
    """Compare the intact copies; `copies` have names to be shown."""
    wrong = {name: wrong_copy(copy) for name, copy in copies.items()}
    intact = {name: copy for name, copy in copies.items() if not wrong[name]}
    clients = {name: str(next(copy.entries()).client) for name, copy in intact.items()}
    first: dict[str, str] = {}
    for name, client in clients.items():
        if client in first:
            both = f"{first[client]} and {name}"
            raise InvalidInput(f"{both} are copies of the same client, {client}")
        first[client] = name
    comparison = compare_copies([_Entries(copy) for copy in intact.values()])
    problems = [f"{name}: {problem}" for name, found in wrong.items() for problem in found]
    return ComparedCopies(clients, comparison, problems + comparison.contradictions)

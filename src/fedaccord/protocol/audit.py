"""Going through a ledger again: is what it says what its own reports and contributions lead to?

A chain can be whole and still say something false, if its writer does. So an audit works out
again whatever the server worked out: it certifies each agreement from the clients' reports, and
compares what was played, every rank, every verdict, every phase. A client's copy is the last
witness: it must have been told what follows from the ledger that it was shown.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from fedaccord.errors import FedaccordError
from fedaccord.ledger.chain import Chain, Checkpoint, Entry, Fact, Head
from fedaccord.protocol.auditor import STAGES, Auditor, same, turn_of
from fedaccord.protocol.facts import wrong_note
from fedaccord.protocol.guards import Fault
from fedaccord.protocol.messages import LONGEST_REASON
from fedaccord.protocol.parameters import digest, from_bytes
from fedaccord.protocol.participant import digest_of
from fedaccord.protocol.questions import open_question
from fedaccord.protocol.state import State

_NONSENSE = (
    FedaccordError,
    Fault,
    ArithmeticError,
    AttributeError,
    LookupError,
    RecursionError,
    TypeError,
    ValueError,
)
"""What comes of entries that no server of ours wrote."""
EMPTY = "it has no entries"


@dataclass(frozen=True)
class Findings:
    """What came of going through a ledger once."""

    chain: Chain
    problems: list[str]
    """What is wrong, in words; nothing if all of it can be worked out."""


def audit(entries: Iterable[Entry]) -> list[str]:
    """What is wrong with a server's ledger, in words; nothing if all of it can be worked out."""
    return look_over(entries).problems


def look_over(entries: Iterable[Entry], models: Sequence[Checkpoint] | None = None) -> Findings:
    """Work out again what a server's ledger says, and look at the models beside it if given."""
    return _go_through(entries, _Server(models, believed=0))


def look_over_end(
    entries: Iterable[Entry], models: Sequence[Checkpoint], last_slot: int
) -> tuple[Findings, State]:
    """The same of the chain, the models and the last slot, and what a server knows at the end.

    Entries before the number `last_slot` are read, and not worked out again.
    """
    server = _Server(models, believed=last_slot)
    return _go_through(entries, server), server.auditor.state


def look_over_copy(entries: Iterable[Entry]) -> Findings:
    """Whether a client's copy is whole, and each entry one that a client writes."""
    return _go_through(entries, _Client())


class _Reader(Protocol):
    def look_at(self, number: int, fact: Fact) -> str | None:
        """What is wrong with one more fact, if anything."""
        ...

    def end(self) -> str | None:
        """What is wrong with an end here."""
        ...


def _go_through(entries: Iterable[Entry], reader: _Reader) -> Findings:
    """Follow the chain to its end, and read what is in it as long as it makes sense."""
    chain, wrong = Chain(), None
    for entry in entries:
        fact = chain.follow(entry)
        if fact is not None and wrong is None and chain.whole:
            wrong = _wrong(reader, entry.number, fact)  # what comes after it follows from it
    if chain.length == 0:
        return Findings(chain, [EMPTY])
    if chain.whole and wrong is None:
        wrong = reader.end()
    return Findings(chain, chain.problems or ([] if wrong is None else [wrong]))


def _wrong(reader: _Reader, number: int, fact: Fact) -> str | None:
    about = f"entry {number} ({fact.kind} of slot {fact.slot})"
    try:
        problem = reader.look_at(number, fact)
    except _NONSENSE as error:
        return f"{about} makes no sense: {_brief(error)}"
    return None if problem is None else f"{about} {problem}"


def _brief(error: Exception) -> str:
    """An error in a line; it may quote what is in the ledger, of any length."""
    text = " ".join(str(error).split())
    return text if len(text) <= LONGEST_REASON else f"{text[:LONGEST_REASON]}..."


class _Server:
    """Reads a server's ledger, and looks for the models that are kept beside it."""

    def __init__(self, models: Sequence[Checkpoint] | None, believed: int) -> None:
        self.auditor = Auditor()
        self._believed = believed
        self._models = models
        self._slots = {model.number: model.slot for model in models or ()}
        self._digests: dict[int, str] = {}
        self._spoken_of: set[int] = set()
        self._unreadable = False
        try:
            self._digests = {m.number: digest(from_bytes(m.parameters)) for m in models or ()}
        except FedaccordError:
            self._unreadable = True

    def look_at(self, number: int, fact: Fact) -> str | None:
        if number < self._believed:
            self.auditor.state.apply(fact)
        elif (problem := self.auditor.look_at(fact)) is not None:
            return problem
        if number in self._digests and self._is_spoken_of(number, fact):
            self._spoken_of.add(number)
        return None

    def _is_spoken_of(self, number: int, fact: Fact) -> bool:
        """Whether the model that was stored with this entry is the latest, and of its slot.

        A rollback's is what the next slot begins with. Older ledgers said 0 of every model.
        """
        state = self.auditor.state
        made = fact.slot + 1 if fact.kind == "rollback" else fact.slot
        return self._slots[number] in (0, made) and self._digests[number] == state.model

    def end(self) -> str | None:
        try:
            if (problem := self.auditor.end()) is not None:
                return f"it {problem}"
        except _NONSENSE as error:
            return f"its end makes no sense: {_brief(error)}"
        return None if self._models is None else self._wrong_model()

    def _wrong_model(self) -> str | None:
        """Each model must be one that the ledger speaks of, and the latest must be there."""
        if self._unreadable:
            return "the model beside it cannot be read"
        if self._spoken_of != self._digests.keys():
            return "the model beside it is not the one that it speaks of"
        latest = self.auditor.state.model
        if latest is not None and latest not in self._digests.values():
            return "the model that it speaks of is not beside it"
        return None


class _Client:
    """Reads a client's copy: all of it is about one client, and the server's ledger goes on."""

    def __init__(self) -> None:
        self._name: str | None = None
        self._slot = 0
        self._shown = Head(0, "")

    def look_at(self, number: int, fact: Fact) -> str | None:  # noqa: ARG002  as all readers
        if (problem := wrong_note(fact)) is not None:
            return problem
        if self._name not in (None, fact.client):
            return "is about another client"
        shown = Head(*fact.body["ledger"])
        if fact.slot < self._slot or shown.number < self._shown.number:
            return "goes back to an older slot, or to a server's ledger that was shorter"
        if shown.number == self._shown.number and shown != self._shown:
            return "has another end of the server's ledger than the entry before it"
        self._name, self._slot, self._shown = fact.client, fact.slot, shown
        return None

    def end(self) -> str | None:
        return None


# --- A client's copy against the server's ledger -------------------------------------------

_Place: TypeAlias = tuple[str, int, str | None, int]

_SAID = {
    "report": ("ratio", "samples", "discount_factor"),
    "answer": ("accepts",),
    "contribution": ("samples", "update"),
    "consent": ("agrees",),
}
"""What a client says itself, which both write down."""
_TOLD = {
    "rank": "rank",
    "offer": "offer",
    "contribution": "train",
    "settlement": "settle",
    "consent": "consent",
}
"""What has in it what the client was told, and in which stage. Only the copy has all of it."""
_FROM_CLIENT = ("report", "rank", "answer", "contribution", "consent")
"""What a client writes down before it says so: the server cannot know of more."""


def contradictions(server: Iterable[Entry], copy: Iterable[Entry]) -> list[str]:
    """Where a client's copy and the server's ledger disagree, in words.

    Every head that the client was shown must be in the server's chain, what the client was told
    must follow from the ledger up to there, and whatever both wrote down must be the same. An
    answer that never arrived is only in the copy; but what the server says that it was told by
    the client, or that it told it, must be in the copy, too.
    """
    (found,) = contradictions_of_many(server, [copy])
    return found


def contradictions_of_many(
    server: Iterable[Entry], copies: Iterable[Iterable[Entry]]
) -> list[list[str]]:
    """The same of several copies, going through the server's ledger once."""
    witnesses = [_Witness(copy) for copy in copies]
    if not witnesses:
        return []
    state, nonsense = State(), None
    for last in server:
        try:
            fact = last.fact
            state.apply(fact)
        except _NONSENSE as error:
            nonsense = f"cannot be compared: {_brief(error)}"
            break
        for witness in witnesses:
            witness.look_at(last, fact, state)
    return [witness.end() if nonsense is None else [nonsense] for witness in witnesses]


class _Witness:
    """A client's copy, while the server's ledger goes by."""

    def __init__(self, copy: Iterable[Entry]) -> None:
        self._misled: list[str] = []
        self._misquoted: list[str] = []
        self._invented: list[str] = []
        self._nonsense: str | None = EMPTY
        self._shown: dict[int, list[Entry]] = defaultdict(list)
        """By the number of the server's entry that the client was shown."""
        self._said: dict[_Place, list[Entry]] = defaultdict(list)
        self._clients: set[str | None] = set()
        try:
            for entry in copy:
                self._nonsense = None
                body = entry.body
                if entry.kind not in (*_SAID, *_TOLD) or "ledger" not in body:
                    self._nonsense = "is no copy of a client's"
                    break
                if (problem := wrong_note(entry.fact)) is not None:
                    self._nonsense = f"{_about(entry)} {problem}"
                    break
                self._shown[body["ledger"][0]].append(entry)
                self._said[_place(entry, body)].append(entry)
                self._clients.add(entry.client)
        except _NONSENSE as error:
            self._nonsense = f"cannot be compared: {_brief(error)}"

    def look_at(self, last: Entry, fact: Fact, state: State) -> None:
        """Compare with one more entry of the server's; `state` is what it knows after it."""
        if self._nonsense is not None:
            return
        try:
            if last.number in self._shown:
                self._look_at_shown(last, state)
            self._look_at_said(last, fact)
        except _NONSENSE as error:
            self._nonsense = f"cannot be compared: {_brief(error)}"

    def end(self) -> list[str]:
        """All that was found."""
        if self._nonsense is not None:
            return [self._nonsense]
        unseen = [
            f"{_about(entry)}: entry {number} of the server's ledger was another one then"
            for number, entries in self._shown.items()
            for entry in entries
        ]
        return [*self._misled, *unseen, *self._misquoted, *self._invented]

    def _look_at_shown(self, last: Entry, state: State) -> None:
        """What the client was asked or told that does not follow from what it was shown."""
        others = []
        for entry in self._shown.pop(last.number):
            if entry.body["ledger"][1] != last.digest:
                others.append(entry)
            elif not _follows(entry, state):
                self._misled.append(
                    f"{_about(entry)}: the server told something else than its ledger says"
                )
        if others:
            self._shown[last.number] = others

    def _look_at_said(self, last: Entry, fact: Fact) -> None:
        """What the server says that it was told by the client or told it, and how."""
        if fact.kind == "told":
            places = [("settlement", fact.slot, name, 0) for name in fact.body["clients"]]
        elif fact.kind in _FROM_CLIENT and fact.client in self._clients:
            places = [_place(last, fact.body)]
        else:
            return
        for place in places:
            if place[2] not in self._clients:
                continue
            if place not in self._said:
                about = f"entry {last.number} ({last.kind} of slot {last.slot})"
                self._invented.append(f"{place[2]} knows nothing of the server's {about}")
            for noted in self._said.get(place, ()):
                if _misquoted(fact, noted):
                    wrong = f"{_about(noted)}: the server wrote something else down"
                    self._misquoted.append(wrong)


def _misquoted(fact: Fact, noted: Entry) -> bool:
    """Whether the server wrote down something else than the client said."""
    body = noted.body
    return any(fact.body.get(key) != body.get(key) for key in _SAID.get(fact.kind, ()))


def _follows(entry: Entry, state: State) -> bool:
    """Whether a server that knows this would have asked and told the client what it wrote down."""
    body, stage = entry.body, STAGES[entry.kind] if entry.kind in _SAID else _TOLD[entry.kind]
    try:
        question = open_question(state)
    except _NONSENSE:  # it was shown a moment at which nothing was to be asked
        return False
    slot = state.settled if question.stage == "consent" else state.current.number
    place = (slot, question.stage, question.turn)
    if (entry.slot, stage, turn_of(body)) != place or entry.client not in question.bodies:
        return False
    if "terms" in body and body["terms"] != digest_of(state.rules):
        return False
    told = question.bodies[entry.client] if entry.kind in _TOLD else {}
    return all(same(body[key], value) for key, value in told.items())


def _about(entry: Entry) -> str:
    return f"{entry.client}'s entry {entry.number} ({entry.kind} of slot {entry.slot})"


def _place(entry: Entry, body: Mapping[str, Any]) -> _Place:
    """What an entry is about: no client says two things in one place."""
    return entry.kind, entry.slot, entry.client, turn_of(body)

"""Going through a ledger again: is what it says what its own reports and contributions lead to?

A chain can be whole and still say something false, if its writer does. So an audit works out
again whatever the server worked out: it certifies each agreement from the clients' reports, and
compares what was played, every rank, every verdict, every phase. A client's copy is the last
witness: it must have been told what follows from the ledger that it was shown.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeAlias

from fedaccord.errors import FedaccordError
from fedaccord.flower.ledger.chain import Checkpoint, Entry, broken_links
from fedaccord.flower.protocol.auditor import STAGES, Auditor, same, turn_of
from fedaccord.flower.protocol.client import digest_of
from fedaccord.flower.protocol.guards import Fault
from fedaccord.flower.protocol.parameters import digest, from_bytes
from fedaccord.flower.protocol.questions import open_question
from fedaccord.flower.protocol.state import State

_NONSENSE = (
    FedaccordError,
    Fault,
    ArithmeticError,
    AttributeError,
    LookupError,
    TypeError,
    ValueError,
)
"""What comes of entries that no server of ours wrote."""
EMPTY = "it has no entries"


def audit(entries: Iterable[Entry]) -> list[str]:
    """What is wrong with a server's ledger, in words; nothing if all of it can be worked out."""
    entries = list(entries)
    if not entries:
        return [EMPTY]
    return broken_links(entries) or list(_wrong_conclusions(entries, 0))


def audit_end(entries: Iterable[Entry]) -> list[str]:
    """The same of the chain and the last slot; slots before it are read, not worked out again."""
    entries = list(entries)
    if problems := broken_links(entries):
        return problems
    slots = [n for n, entry in enumerate(entries) if entry.kind == "slot"]
    return list(_wrong_conclusions(entries, slots[-1] if slots else 0))


def _wrong_conclusions(entries: list[Entry], believed: int) -> Iterator[str]:
    auditor = Auditor()
    about = ""
    try:
        for n, entry in enumerate(entries):
            about = f"entry {entry.number} ({entry.kind} of slot {entry.slot})"
            if n < believed:
                auditor.state.apply(entry.fact)
            elif (problem := auditor.look_at(entry.fact)) is not None:
                yield f"{about} {problem}"
                return  # what comes after a false entry follows from it
        if (problem := auditor.end()) is not None:
            yield f"it {problem}"
    except _NONSENSE as error:
        yield f"{about} makes no sense: {error}"


def wrong_model(entries: Sequence[Entry], stored: Sequence[Checkpoint]) -> list[str]:
    """What is wrong with the models beside a ledger: each must be one that it speaks of."""
    digests: dict[int, str] = {}
    for checkpoint in stored:
        try:
            digests[checkpoint.number] = digest(from_bytes(checkpoint.parameters))
        except FedaccordError:
            return ["the model beside it cannot be read"]
    latest, kept = None, set[int]()
    for entry in entries:
        if entry.kind in ("model", "round") or (
            entry.kind == "rollback" and entry.body["accepted"]
        ):
            latest = entry.body["digest"]
        if digests.get(entry.number) == latest and latest is not None:
            kept.add(entry.number)
    if kept != digests.keys():
        return ["the model beside it is not the one that it speaks of"]
    if latest is not None and latest not in digests.values():
        return ["the model that it speaks of is not beside it"]
    return []


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
    server, copy = list(server), list(copy)
    if not copy:
        return [EMPTY]
    try:
        if any(e.kind not in (*_SAID, *_TOLD) or "ledger" not in e.body for e in copy):
            return ["is no copy of a client's"]
        return [*_misled(server, copy), *_misquoted(server, copy), *_invented(server, copy)]
    except _NONSENSE as error:
        return [f"cannot be compared: {error}"]


def _misled(server: list[Entry], copy: list[Entry]) -> Iterator[str]:
    """What the client was asked or told that does not follow from what it was shown."""
    shown: dict[int, list[Entry]] = defaultdict(list)
    for entry in copy:
        shown[entry.body["ledger"][0]].append(entry)
    state = State()
    for last in server:
        state.apply(last.fact)
        others = []
        for entry in shown.pop(last.number, []):
            if entry.body["ledger"][1] != last.digest:
                others.append(entry)
            elif not _follows(entry, state):
                yield f"{_about(entry)}: the server told something else than its ledger says"
        if others:
            shown[last.number] = others
    for number, entries in shown.items():
        for entry in entries:
            yield f"{_about(entry)}: entry {number} of the server's ledger was another one then"


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


def _misquoted(server: list[Entry], copy: list[Entry]) -> Iterator[str]:
    """What the client said, and the server wrote down otherwise."""
    written: dict[_Place, list[dict[str, Any]]] = defaultdict(list)
    for entry in server:
        if entry.kind in _SAID:
            written[_place(entry)].append(entry.body)
    for entry in copy:
        keys, theirs = _SAID.get(entry.kind, ()), written.get(_place(entry), [])
        if any(body.get(key) != entry.body.get(key) for body in theirs for key in keys):
            yield f"{_about(entry)}: the server wrote something else down"


def _invented(server: list[Entry], copy: list[Entry]) -> Iterator[str]:
    """What the server says that it was told by the client or told it, and the copy does not."""
    clients = {entry.client for entry in copy}
    written = {_place(entry) for entry in copy}
    for entry in server:
        about = f"entry {entry.number} ({entry.kind} of slot {entry.slot})"
        places = [_place(entry)] if entry.kind in _FROM_CLIENT else []
        if entry.kind == "told":
            places = [("settlement", entry.slot, client, 0) for client in entry.body["clients"]]
        for place in places:
            if place[2] in clients and place not in written:
                yield f"{place[2]} knows nothing of the server's {about}"


def _about(entry: Entry) -> str:
    return f"{entry.client}'s entry {entry.number} ({entry.kind} of slot {entry.slot})"


def _place(entry: Entry) -> _Place:
    """What an entry is about: no client says two things in one place."""
    return entry.kind, entry.slot, entry.client, turn_of(entry.body)

"""What clients' copies prove against one another, without the server.

A server that shows two clients different ledgers (a fork) can keep each of them content by itself.
But it puts every question to all clients at once, from one ledger, and tells all of them the same
about everything that concerns everyone. So two copies that disagree there prove that it lied to
one of their clients, whatever its own ledger says.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, NamedTuple, TypeAlias

from fedaccord.ledger.chain import Entry
from fedaccord.protocol import notes
from fedaccord.protocol.copies import Noted, Place, place_of
from fedaccord.protocol.evidence import Proof, question_in
from fedaccord.protocol.verifier import same

_OPENING = {
    "terms": "terms",
    "phase": "phase",
    "suspended": "suspended clients",
    "returned": "clients that were allowed to return",
}
_OFFERED = {
    "agreement": "kind of agreement",
    "total": "total of the agreement",
    "punishment": "punishment",
    "punishment_slots": "slots of punishment",
    "tolerance": "tolerance",
    "rounds": "rounds",
}
ALIKE = {
    "report": _OPENING,
    "presence": _OPENING,
    "rank": {"clients": "number of clients"},
    "stay": {"step": "share of the clock", "total": "total", "inside": "samples still in"},
    "offer": _OFFERED
    | {
        "equilibrium_total": "total at the equilibrium",
        "salt": "salt of that total",
        "clients": "number of clients",
    },
    "posted": _OFFERED,
    "answer": {},
    "contribution": {"basis": "basis", "model": "model", "clients": "number of clients"},
    "tier": {"model": "model"},
    "settlement": {
        "phase": "next phase",
        "slots_left": "slots of punishment that are left",
        "suspended": "suspended clients",
        "deviated": "clients that deviated",
        "absent": "clients that were absent",
        "model": "model",
    },
    "consent": {
        "to_slot": "slot to go back to",
        "model": "model",
        "returns": "client to return",
        "reason": "reason",
    },
}
"""What all clients are told alike in each kind of note, and in words.

A model is told only to clients that are sent one, a number of clients only along with ranks.
"""
UNSEEN = (
    "a server that never put the same question of a slot to two of these clients, and never showed "
    "two of them an entry with the same number; comparing each copy with the server's ledger does"
)
"""What comparing copies cannot find."""


class _Alike(NamedTuple):
    """A note, and what all clients were told alike in it."""

    noted: Noted
    told: dict[str, Any]


@dataclass
class CopyComparison:
    """The result of comparing copies."""

    questions: int = 0
    """How many questions two clients or more were asked."""
    shown: int = 0
    """Of how many entries of the server's ledger two clients or more were shown the digest."""
    contradictions: list[str] = field(default_factory=list)
    proofs: list[Proof] = field(default_factory=list)
    """Pairs of statements of the server's which show that it lied."""


def compare_copies(copies: Collection[Iterable[Entry]]) -> CopyComparison:
    """Where clients' copies contradict one another; each of them must be intact by itself.

    They are read twice if there is something to prove.
    """
    by_question: dict[tuple[str, int, int], _Alike] = {}
    by_shown: dict[int, _Alike] = {}
    questions, shown = set[tuple[str, int, int]](), set[int]()
    found: dict[str, _Both] = {}  # in order, each once
    for entry in chain.from_iterable(copies):
        noted = Noted(entry.number, note := notes.read_note(entry.fact))
        if isinstance(note, notes.Signed):
            continue
        number, digest = note.head

        alike = _Alike(noted, {f"digest of entry {number} of the server's ledger": digest})
        first = by_shown.setdefault(number, alike)
        if first.noted.note.client != note.client:
            shown.add(number)
            found |= dict.fromkeys(_differences(first, alike), (first.noted, noted))

        alike = _Alike(noted, _told_alike(note) | {_LENGTH: number})
        first = by_question.setdefault((note.kind, note.slot, note.turn), alike)
        if first.noted.note.client != note.client:
            questions.add((notes.STAGE_OF[note.kind], note.slot, note.turn))
            found |= dict.fromkeys(_differences(first, alike), (first.noted, noted))
    proofs = _proofs(copies, found) if found else []
    return CopyComparison(len(questions), len(shown), list(found), proofs)


_Both: TypeAlias = tuple[Noted, Noted]


def _proofs(copies: Collection[Iterable[Entry]], found: dict[str, _Both]) -> list[Proof]:
    """For each contradiction the two questions as the server signed them, if it did."""
    wanted = {place_of(noted.note) for both in found.values() for noted in both}
    signed: dict[Place, notes.Signed] = {}
    for entry in chain.from_iterable(copies):
        note = notes.read_note(entry.fact)
        if isinstance(note, notes.Signed) and place_of(note) in wanted:
            signed.setdefault(place_of(note), note)
    proofs = []
    for problem, (one, other) in found.items():
        pair = [signed.get(place_of(noted.note)) for noted in (one, other)]
        if pair[0] is not None and pair[1] is not None:
            proofs.append(Proof(problem, question_in(pair[0]), question_in(pair[1])))
    return proofs


_LENGTH = "number of entries in the server's ledger"


def _told_alike(note: notes.Note) -> dict[str, Any]:
    """What all clients were told alike, in words, as far as this client was told it."""
    told = {key: getattr(note, key) for key in ALIKE[note.kind]}
    if told.get("agreement") == "serial clock":  # each tier has a model and a total of its own
        del told["total"]
    unsaid = [key for key in ("model", "clients") if told.get(key, 0) is None]
    return {ALIKE[note.kind][key]: value for key, value in told.items() if key not in unsaid}


def _differences(one: _Alike, other: _Alike) -> list[str]:
    return [
        f"{one.noted} and {other.noted} differ in the {what}: "
        f"{_shortened(told)} and {_shortened(other.told[what])}"
        for what, told in one.told.items()
        if what in other.told and not same(told, other.told[what])
    ]


def _shortened(value: Any) -> str:
    if isinstance(value, list | dict):
        return ", ".join(map(str, value)) or "nobody"
    text = "none" if value is None else str(value)
    return f"{text[:16]}..." if len(text) == 64 else text

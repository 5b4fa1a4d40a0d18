"""Two stories: what clients' copies say against one another, without the server.

A server that shows two clients different ledgers (a fork) can keep each of them content by itself.
But it puts every question to all clients at once, from one ledger, and tells all of them the same
about everything that concerns everyone. So two copies that disagree there prove that it lied to
one of their clients, whatever its own ledger says.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, NamedTuple

from fedaccord.ledger.chain import Entry
from fedaccord.protocol.auditor import same

ALIKE = {
    "report": {"terms": "terms"},
    "rank": {"clients": "number of clients"},
    "offer": {
        "kind": "kind of agreement",
        "total": "total of the agreement",
        "equilibrium_total": "total at the equilibrium",
        "punishment_slots": "slots of punishment",
        "tolerance": "tolerance",
        "rounds": "rounds",
        "clients": "number of clients",
    },
    "answer": {},
    "contribution": {"basis": "basis", "model": "model", "clients": "number of clients"},
    "settlement": {
        "phase": "phase to come",
        "slots_left": "slots of punishment that are left",
        "deviated": "clients that deviated",
        "absent": "clients that were absent",
        "model": "model",
    },
    "consent": {"to_slot": "slot to go back to", "digest": "model", "reason": "reason"},
}
"""What everyone is told alike in each kind of a copy's entries, and in words.

A model is told only to those who are sent one, a number of clients only where ranks are told.
"""
UNSEEN = (
    "a server that never put the same question of a slot to two of these clients, and never showed "
    "two of them an entry with the same number; ledger verify LEDGER --against COPY finds that one"
)


class _Note(NamedTuple):
    """An entry of a copy, and what everyone was told alike in it."""

    client: str | None
    number: int
    kind: str
    slot: int
    told: dict[str, Any]

    def __str__(self) -> str:
        return f"{self.client}'s entry {self.number} ({self.kind} of slot {self.slot})"


@dataclass
class Comparison:
    """What came of comparing copies."""

    questions: int = 0
    """That two clients or more were asked."""
    shown: int = 0
    """Entries of the server's ledger whose digest two clients or more were shown."""
    contradictions: list[str] = field(default_factory=list)


def compare_copies(copies: Iterable[Iterable[Entry]]) -> Comparison:
    """Where clients' copies contradict one another; each of them must be whole by itself."""
    by_question: dict[tuple[str, int, int], _Note] = {}
    by_shown: dict[int, _Note] = {}
    questions, shown = set[tuple[str, int, int]](), set[int]()
    found: dict[str, None] = {}  # in order, each once
    for entry in chain.from_iterable(copies):
        body = entry.body
        number, digest = body["ledger"]
        place = (entry.kind, entry.slot, body["turn"])
        about = (entry.client, entry.number, entry.kind, entry.slot)

        note = _Note(*about, {_ENTRY.format(number): digest})
        first = by_shown.setdefault(number, note)
        if first.client != note.client:
            shown.add(number)
            found |= dict.fromkeys(_differences(first, note))

        note = _Note(*about, _alike(entry.kind, body) | {_LENGTH: number})
        first = by_question.setdefault(place, note)
        if first.client != note.client:
            questions.add(("offer" if entry.kind == "answer" else entry.kind, *place[1:]))
            found |= dict.fromkeys(_differences(first, note))
    return Comparison(len(questions), len(shown), list(found))


_ENTRY = "digest of entry {} of the server's ledger"
_LENGTH = "number of entries in the server's ledger"


def _alike(kind: str, body: Mapping[str, Any]) -> dict[str, Any]:
    """What everyone was told alike, in words, as far as this client was told it."""
    told = {key: body[key] for key in ALIKE[kind] if key in body}
    unsaid = [key for key in ("model", "clients") if told.get(key, 0) is None]
    return {ALIKE[kind][key]: value for key, value in told.items() if key not in unsaid}


def _differences(one: _Note, other: _Note) -> list[str]:
    return [
        f"{one} and {other} differ in the {what}: {_brief(told)} and {_brief(other.told[what])}"
        for what, told in one.told.items()
        if what in other.told and not same(told, other.told[what])
    ]


def _brief(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "nobody"
    text = "none" if value is None else str(value)
    return f"{text[:16]}..." if len(text) == 64 else text

"""Small consortia in one process: terms, clients, a model of a few numbers."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from fedaccord.ledger.chain import START, Entry, Fact, extend
from fedaccord.ledger.store import Ledger, open_ledger
from fedaccord.protocol.coordinator import Coordinator
from fedaccord.protocol.envelopes import Ask, Reply
from fedaccord.protocol.parameters import Arrays
from fedaccord.protocol.participant import Participant
from fedaccord.protocol.private import Private
from fedaccord.protocol.terms import Terms, read_terms
from fedaccord.signing.keys import Key, key_from_seed

NOON = "2025-01-01T12:00:00+00:00"
TRAINING = {"shape": [2], "classes": 2}
START_MODEL: Arrays = {"w": np.zeros(3, np.float32), "b": np.zeros(1, np.float32)}


def clock() -> str:
    return NOON


def terms_of(names: Sequence[str] = ("a", "b", "c", "d", "e"), **changes: Any) -> Terms:
    given = {
        "name": "test",
        "clients": list(names),
        "rounds": 2,
        "discount_factor": 0.8,
        "punishment_slots": 2,
        "margin": 0.1,
        "training": TRAINING,
    }
    return read_terms(given | changes, "test")


def key_of(party: str) -> Key:
    """A party's private key, the same in every test."""
    return key_from_seed(sha256(party.encode()).digest())


def keys_of(names: Sequence[str]) -> dict[str, Any]:
    """The public keys of the server and of these clients, for terms."""
    clients = {name: key_of(name).public for name in names}
    return {"server": key_of("the server").public, "clients": clients}


def server_key(terms: Terms | None) -> Key | None:
    """The server's private key, if the terms have keys."""
    return key_of("the server") if terms is None or terms.keys else None


def privates_of(names: Sequence[str] = ("a", "b", "c", "d", "e"), **changes: Any) -> list[Private]:
    """Clients with ascending valuations and unequal data: the first ones would free-ride."""
    return [
        Private(
            name=name,
            valuation=(n + 1) * 17.0,
            cost_per_sample=0.0131 * (1 + 0.1 * n),
            samples=40 + 10 * n,
            discount_factor=0.8,
            **changes,
        )
        for n, name in enumerate(names)
    ]


def nudge(slot: int, turn: int, amount: int, parameters: Arrays, *, first: int = 0) -> Arrays:
    """Training that costs nothing and shows what it was given."""
    step = np.float32(amount + 0.1 * turn + 0.01 * slot + 0.001 * first)
    return {name: array + step for name, array in parameters.items()}


class Notebook:
    """A copy in memory, and in a file if it must outlive the process."""

    def __init__(self, path: Path | None = None) -> None:
        self.path = path
        self.written: list[Entry] = []
        if path is not None and path.exists():
            self.written = [Entry(*json.loads(line)) for line in path.read_text().splitlines()]

    def append(self, facts: list[Fact]) -> None:
        head = self.written[-1].head if self.written else START
        fresh = list(extend(head, facts, NOON))
        self.written += fresh
        if self.path is not None:
            with self.path.open("a") as file:
                file.write("".join(json.dumps(entry) + "\n" for entry in fresh))

    def entries(self, *, slot: int, kind: str) -> Iterator[Entry]:
        return (entry for entry in self.written if (entry.slot, entry.kind) == (slot, kind))

    def last(self) -> Entry | None:
        return self.written[-1] if self.written else None


class Clients:
    """All clients in one process: they answer at once."""

    def __init__(
        self,
        terms: Terms,
        privates: Sequence[Private],
        folder: Path | None = None,
        keys: Mapping[str, Key] | None = None,
    ) -> None:
        """`keys` are those that differ from the ones of all tests."""
        self.copies = {
            private.name: Notebook(folder and folder / f"{private.name}.jsonl")
            for private in privates
        }
        self.participants = {
            private.name: Participant(
                private,
                terms,
                self.copies[private.name],
                nudge,
                key=(keys or {}).get(private.name, key_of(private.name)) if terms.keys else None,
            )
            for private in privates
        }
        self.away: set[str] = set()

    def join(self, copies: Mapping[str, Notebook]) -> None:
        """Go on with the copies of clients that were there before."""
        for name, notebook in copies.items():
            self.copies[name].written += notebook.written

    def reply(self, name: str, ask: Ask) -> Reply:
        model = ask.parameters if ask.sends_model(name) else None
        body, arrays = self.participants[name].answer(ask.body(name), model)
        return Reply(hash(name) % 1000, name, body, arrays)

    def __call__(self, ask: Ask) -> list[Reply]:
        return [self.reply(name, ask) for name in ask.contents if name not in self.away]


@lru_cache(maxsize=1)
def empty_ledger() -> bytes:
    """A ledger with its tables and nothing in them: a migration for each test takes long."""
    with TemporaryDirectory() as folder:
        path = Path(folder, "ledger.db")
        open_ledger(path).close()
        return path.read_bytes()


def ledger_at(path: Path) -> Ledger:
    if not path.exists():
        path.write_bytes(empty_ledger())
    return open_ledger(path, clock=clock)


def run(
    coordinator: Coordinator, clients: Callable[[Ask], list[Reply]], last_slot: int
) -> Coordinator:
    while (ask := coordinator.next_ask(last_slot)) is not None:
        coordinator.take(ask, clients(ask))
    return coordinator


def kinds(ledger: Ledger, slot: int) -> list[str]:
    return [entry.kind for entry in ledger.entries(slot=slot)]


def verdicts(ledger: Ledger, slot: int) -> dict[str, str]:
    return {
        str(entry.client): entry.body["verdict"]
        for entry in ledger.entries(slot=slot, kind="verdict")
    }


def phases(ledger: Ledger) -> list[str]:
    return [entry.body["phase"] for entry in ledger.entries(kind="slot")]

"""How long it takes to verify a long ledger, and how much memory.

`python -m benchmarks.verify ENTRIES SLOTS` does it for a ledger of about that many entries.
"""

import resource
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from benchmarks.measure import Timing
from benchmarks.row import Row
from fedaccord.game.law import Law
from fedaccord.ledger.store import open_ledger
from fedaccord.protocol.coordinator import Coordinator
from fedaccord.protocol.envelopes import Ask, Reply
from fedaccord.protocol.parameters import Arrays, digest
from fedaccord.protocol.roster import said_to
from fedaccord.protocol.standing import Standing, own_equilibrium
from fedaccord.protocol.terms import Terms, read_terms
from fedaccord.signing.keys import Key, key_from_seed
from fedaccord.signing.statement import NOTHING

CLIENTS, ENTRIES, SLOTS = 100, 100_000, (3, 67)
"""A few slots of many rounds, and many slots of a few."""
START: Arrays = {"w": np.zeros(3, np.float32)}
SAMPLES = {f"client-{n}": 100 + n % 7 for n in range(CLIENTS)}
_BESIDE = 6 * CLIENTS
"""Roughly how many entries a slot has besides those of its rounds."""


def run() -> Iterator[Row]:
    for slots in SLOTS:
        yield measure(ENTRIES, slots)
    yield measure(ENTRIES, SLOTS[0], signed=False)


def measure(entries: int, slots: int, *, signed: bool = True) -> Row:
    """Write such a ledger, and verify it in a separate process."""
    rounds = max(1, (entries // slots - _BESIDE) // (CLIENTS + 1))
    with TemporaryDirectory() as folder:
        place = Path(folder, "ledger.db")
        count = write_ledger(place, rounds, slots, signed=signed)
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        code = "from benchmarks.verify import verify_and_tell; verify_and_tell()"
        command = [sys.executable, "-c", code, str(place)]
        result = subprocess.run(command, check=True, capture_output=True, text=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    wall, peak = map(float, result.stdout.split())
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Row(
        "verify",
        f"verify a ledger of {CLIENTS} clients, {slots} slots and {rounds} rounds in each, "
        + ("all of it signed" if signed else "nothing in it signed"),
        "–",
        value=count / wall,
        unit="entries/s",
        ours=Timing(wall, cpu, 1, "minimum"),
        note=f"{count:,} entries, peak memory {peak / 1e6:.0f} MB; CPU time is that of the "
        "whole process",
    )


def write_ledger(place: Path, rounds: int, slots: int, *, signed: bool = True) -> int:
    """Play slots in which everyone keeps to the agreement; returns the number of entries."""
    terms = _terms(rounds, signed=signed)
    with open_ledger(place) as ledger:
        coordinator = Coordinator(terms, ledger, START, _key("the server") if signed else None)
        while (ask := coordinator.next_ask(slots)) is not None:
            coordinator.take(ask, [_reply(name, ask, rounds) for name in ask.contents])
        return ledger.head.number


@cache
def _key(party: str) -> Key:
    return key_from_seed(sha256(party.encode()).digest())


def _terms(rounds: int, *, signed: bool) -> Terms:
    clients = {name: _key(name).public for name in SAMPLES}
    keys = {"keys": {"server": _key("the server").public, "clients": clients}}
    given = (keys if signed else {}) | {
        "name": "benchmark",
        "clients": list(SAMPLES),
        "rounds": rounds,
        "discount_factor": 0.8,
        "margin": 0.05,
        "punishment_slots": 10,
        "training": {"shape": [2], "classes": 2},
    }
    return read_terms(given, "benchmark")


def _ratio(name: str, rounds: int) -> float:
    """Chosen so that the client with the largest ratio is satiated at half of all data (eq. 10)."""
    most: float = 2.0 * (0.5 * sum(SAMPLES.values())) ** 1.5 * rounds**0.5
    return most * (10 + int(name.removeprefix("client-"))) / (10 + CLIENTS)


def _reply(name: str, ask: Ask, rounds: int) -> Reply:
    """The reply of an honest client that keeps no copy and does not really train."""
    body, content, trained = ask.body(name), dict[str, object](), None
    match ask.stage:
        case "report":
            content = {"ratio": _ratio(name, rounds), "samples": SAMPLES[name]}
        case "rank":
            standing = Standing(*(body[key] for key in Standing._fields))
            alone = own_equilibrium(
                _ratio(name, rounds), SAMPLES[name], Law.paper(rounds), standing
            )
            content = {"contribution": alone}
        case "offer":
            content = {"accepts": True}
        case "train":
            content = {"samples": body["contribution"]}
            step = np.float32(body["contribution"])
            trained = {key: array + step for key, array in (ask.parameters or {}).items()}
    place = {key: body[key] for key in ("stage", "slot", "turn", "token")}
    if ask.signer is None:
        return Reply(1, name, place | content, trained)
    answer = content | ({"update": digest(trained)} if trained is not None else {})
    said, previous = said_to(ask.contents[name], answer), ask.received.get(name, NOTHING)
    signature = ask.signer.roster.answer(name, ask.at, said, previous).sign(_key(name))
    return Reply(1, name, place | content | {"signature": signature}, trained)


def verify_and_tell() -> None:
    """Verify the ledger named in the arguments; print the seconds and the peak memory in bytes."""
    from time import perf_counter

    from benchmarks.measure import peak_memory
    from fedaccord.ledger.lines import read
    from fedaccord.protocol.verification import look_over

    start = perf_counter()
    with read(sys.argv[1]) as ledger:
        problems = ledger.damage() + look_over(ledger.entries(), ledger.models).problems
    if problems:
        raise SystemExit(problems[0])
    print(perf_counter() - start, peak_memory())


if __name__ == "__main__":
    row = measure(int(sys.argv[1]), int(sys.argv[2]))
    print(f"{row.what}: {row.value:,.0f} {row.unit}; {row.note}")

"""The server is killed (kill -9) at every moment of every commit, and started again.

The ledger must then be, byte for byte, the one of a server that was never killed.
"""

import os
import signal
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pytest

from fedaccord.ledger.chain import Entry
from fedaccord.ledger.store import Moment
from fedaccord.protocol.coordinator import Coordinator
from fedaccord.protocol.envelopes import Ask, Reply
from fedaccord.protocol.parameters import digest
from fedaccord.protocol.state import State
from fedaccord.protocol.terms import Terms
from fedaccord.protocol.verification import wrong_in
from tests.flower.consortia import (
    START_MODEL,
    TRAINING,
    Clients,
    ledger_at,
    privates_of,
    run,
    terms_of,
)
from tests.protocol.postings import unreported

NAMES = ("a", "b", "c")
TERMS = terms_of(NAMES, rounds=4, punishment_slots=1)
SUSPENDING = terms_of(
    (*NAMES, "d"),
    rounds=4,
    punishment="suspension",
    punishment_slots=2,
    training=TRAINING | {"optimiser": "fedadam", "server_rate": 5.0},
)
TIERS = unreported(
    "serial clock",
    (*NAMES, "d"),
    clock_steps=4,
    punishment_slots=2,
    training=TRAINING | {"optimiser": "fedyogi", "server_rate": 5.0},
)
SLOTS = {"reversion": 4, "suspension": 5}


def clients(folder: Path, terms: Terms) -> Clients:
    """Some slip, so that there is a punishment. All their state is in their files.

    Under reversion c does, in slot 2; under suspension b in slot 1 and c in slot 2, and everyone
    would let b return.
    """
    slips = {"reversion": {"c": 2}, "suspension": {"b": 1, "c": 2}}[terms.punishment]
    privates = [
        replace(
            private,
            slips={slips[private.name]: 0} if private.name in slips else {},
            consents_to_return=("b", 1),
        )
        for private in privates_of(terms.clients)
    ]
    return Clients(terms, privates, folder)


def answers(ask: Ask, all_of_them: Clients, state: State) -> list[Reply]:
    """The replies; also of a server that was started again, no suspended client gets a model."""
    if ask.stage != "consent":
        assert not any(ask.sends_model(name) for name in state.current.out if name in ask.contents)
    all_of_them.away = {"a"} if (ask.slot, ask.stage, ask.turn) == (1, "train", 2) else set()
    return all_of_them(ask)


def serve(folder: Path, terms: Terms, killed_at: int | None = None) -> int:
    """Run the slots in this process, kill it at the n-th moment; return the number of moments.

    Under suspension it is proposed after slot 2 that b returns.
    """
    moments = 0

    def watch(moment: Moment) -> None:
        nonlocal moments
        moments += 1
        if moments == killed_at:
            os.kill(os.getpid(), signal.SIGKILL)

    folder.mkdir(exist_ok=True)
    everyone = clients(folder, terms)
    with ledger_at(folder / "ledger.db") as ledger:
        ledger.watch(watch)
        coordinator = Coordinator(terms, ledger, START_MODEL)
        state = coordinator.state
        run(coordinator, lambda ask: answers(ask, everyone, state), 2)
        if "b" in state.out and state.settled == 2 and not state.proposals:
            coordinator.propose_return("b", "it was a mistake")
        run(coordinator, lambda ask: answers(ask, everyone, state), SLOTS[terms.punishment])
    return moments


def in_child(folder: Path, terms: Terms, killed_at: int) -> bool:
    """Serve in a child that is forked from this warm process; whether it was killed."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            serve(folder, terms, killed_at)
            code = 0
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0
    return os.WIFSIGNALED(status)


class Kept(NamedTuple):
    """A ledger, the last model, and what the server's optimiser remembers."""

    entries: list[Entry]
    model: bytes
    remembered: bytes | None


def all_of(folder: Path) -> Kept:
    with ledger_at(folder / "ledger.db") as ledger:
        last = ledger.checkpoints()[-1]
        return Kept(list(ledger.entries()), last.parameters, ledger.moments())


class Unkilled(NamedTuple):
    """A run without any kill: its terms, the number of moments, and what it left."""

    terms: Terms
    moments: int
    kept: Kept


def _named(terms: Terms) -> str:
    return terms.agreement if terms.reports == "none" else terms.punishment


@pytest.fixture(scope="module", params=[TERMS, SUSPENDING, TIERS], ids=_named)
def unkilled(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Unkilled:
    folder, terms = tmp_path_factory.mktemp("unkilled"), request.param
    return Unkilled(terms, serve(folder, terms), all_of(folder))


@pytest.mark.slow
def test_killed_at_every_moment_of_every_commit(unkilled: Unkilled, tmp_path: Path) -> None:
    """Under suspension at every fourth one: the commits are the same, and it takes long."""
    terms, moments, kept = unkilled
    assert moments >= 100
    assert wrong_in(kept.entries) == []
    for moment in range(1, moments + 1, 1 if terms == TERMS else 4):
        folder = tmp_path / str(moment)
        assert in_child(folder, terms, killed_at=moment)
        serve(folder, terms)
        assert all_of(folder) == kept, f"killed at moment {moment}"


@pytest.mark.slow
def test_killed_again_and_again(unkilled: Unkilled, tmp_path: Path) -> None:
    """Every server survives only a few commits, until one reaches the end."""
    terms, _, kept = unkilled
    folder, killed = tmp_path / "folder", 0
    while in_child(folder, terms, killed_at=11):
        killed += 1
    assert killed >= 9
    assert all_of(folder) == kept


@pytest.mark.slow
def test_the_unkilled_run_has_everything(unkilled: Unkilled) -> None:
    terms, _, (entries, _, remembered) = unkilled
    assert (remembered is None) == (terms is TERMS)
    phases = [entry.body["phase"] for entry in entries if entry.kind == "slot"]
    out = [list(entry.body["suspended"]) for entry in entries if entry.kind == "settlement"]
    if terms.punishment == "reversion":
        assert phases == ["cooperating", "cooperating", "punishing", "cooperating"]
        assert not any(out)
    else:
        assert phases == ["cooperating"] * 5
        assert out == [["b"], ["b", "c"], ["c"], [], []]
        assert [e.body["accepted"] for e in entries if e.kind == "decision"] == [True]
    kinds = {entry.kind for entry in entries}
    assert {"absence", "agreement", "answer", "verdict"} <= kinds
    assert ({"presence", "stay", "clock", "handed"} <= kinds) == (terms is TIERS)
    assert len({digest(START_MODEL), *(e.body["model"] for e in entries if e.kind == "round")}) > 9

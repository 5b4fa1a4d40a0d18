"""The server is killed (kill -9) at every moment of every commit, and started again.

The ledger must then be, byte for byte, the one of a server that was never killed.
"""

import os
import signal
from dataclasses import replace
from pathlib import Path

import pytest

from fedaccord.ledger.chain import Entry
from fedaccord.ledger.store import Moment
from fedaccord.protocol.audit import audit
from fedaccord.protocol.coordinator import Coordinator
from fedaccord.protocol.messages import Ask, Reply
from fedaccord.protocol.parameters import digest
from tests.flower.consortia import START_MODEL, Clients, ledger_at, privates_of, run, terms_of

NAMES = ("a", "b", "c")
TERMS = terms_of(NAMES, rounds=4, punishment_slots=1)
SLOTS = 4


def clients(folder: Path) -> Clients:
    """One slips in slot 2, so that there is a punishment. All their state is in their files."""
    privates = privates_of(NAMES)
    privates[2] = replace(privates[2], slips={2: 0})
    return Clients(TERMS, privates, folder)


def answers(ask: Ask, all_of_them: Clients) -> list[Reply]:
    all_of_them.away = {"a"} if (ask.slot, ask.stage, ask.turn) == (1, "train", 2) else set()
    return all_of_them(ask)


def serve(folder: Path, killed_at: int | None = None) -> int:
    """Run the slots in this process, kill it at the n-th moment; return the number of moments."""
    moments = 0

    def watch(moment: Moment) -> None:
        nonlocal moments
        moments += 1
        if moments == killed_at:
            os.kill(os.getpid(), signal.SIGKILL)

    folder.mkdir(exist_ok=True)
    everyone = clients(folder)
    with ledger_at(folder / "ledger.db") as ledger:
        ledger.watch(watch)
        run(Coordinator(TERMS, ledger, START_MODEL), lambda ask: answers(ask, everyone), SLOTS)
    return moments


def in_child(folder: Path, killed_at: int) -> bool:
    """Serve in a child that is forked from this warm process; whether it was killed."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            serve(folder, killed_at)
            code = 0
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0
    return os.WIFSIGNALED(status)


def all_of(folder: Path) -> tuple[list[Entry], bytes]:
    with ledger_at(folder / "ledger.db") as ledger:
        return list(ledger.entries()), ledger.checkpoints()[-1].parameters


@pytest.fixture(scope="module")
def unkilled(tmp_path_factory: pytest.TempPathFactory) -> tuple[int, list[Entry], bytes]:
    folder = tmp_path_factory.mktemp("unkilled")
    moments = serve(folder)
    return moments, *all_of(folder)


@pytest.mark.slow
def test_killed_at_every_moment_of_every_commit(
    unkilled: tuple[int, list[Entry], bytes], tmp_path: Path
) -> None:
    moments, entries, model = unkilled
    assert moments >= 100
    assert audit(entries) == []
    for moment in range(1, moments + 1):
        folder = tmp_path / str(moment)
        assert in_child(folder, killed_at=moment)
        serve(folder)
        assert all_of(folder) == (entries, model), f"killed at moment {moment}"


def test_killed_again_and_again(unkilled: tuple[int, list[Entry], bytes], tmp_path: Path) -> None:
    """Every server survives only a few commits, until one reaches the end."""
    _, entries, model = unkilled
    folder, killed = tmp_path / "folder", 0
    while in_child(folder, killed_at=11):
        killed += 1
    assert killed >= 9
    assert all_of(folder) == (entries, model)


def test_the_unkilled_run_has_everything(unkilled: tuple[int, list[Entry], bytes]) -> None:
    _, entries, _ = unkilled
    phases = [entry.body["phase"] for entry in entries if entry.kind == "slot"]
    assert phases == ["cooperating", "cooperating", "punishing", "cooperating"]
    assert {"absence", "agreement", "answer", "verdict"} <= {entry.kind for entry in entries}
    assert len({digest(START_MODEL), *(e.body["model"] for e in entries if e.kind == "round")}) > 9

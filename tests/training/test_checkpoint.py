"""Checkpoints: complete files, and only of the same run."""

import os
import resource
import stat
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

import fedaccord as fa
from fedaccord.data.partition import SkewedPartition
from fedaccord.training import checkpoint as module
from fedaccord.training.checkpoint import Checkpoint, identity_of, load_parameters
from fedaccord.training.course import Course, RunState, train
from fedaccord.training.engine import PlainEngine
from fedaccord.training.optimisers import FedAdam, FedYogi
from fedaccord.training.rules import GradientStep
from fedaccord.training.task import Model
from fedaccord.training.vectorised.engine import VectorisedEngine
from tests.training.test_course import SIZES, THREE_SLOTS, course

ENGINE = VectorisedEngine()


def checkpoint(path: Path, given: Course | None = None, **change: Any) -> Checkpoint:
    usual = {"contributions": THREE_SLOTS, "phases": ["a", "b", "c"], "seed": 0, "engine": ENGINE}
    fields: dict[str, Any] = usual | change
    return Checkpoint(path, identity_of(given or course(), **fields))


def skewed(alpha: float) -> Callable[[int], SkewedPartition]:
    """Another partition of the usual data."""
    return lambda seed: SkewedPartition(course().model.dataset, SIZES, alpha, seed)


def test_loads_what_was_saved(tmp_path: Path) -> None:
    store = checkpoint(tmp_path / "run.pt")
    run = train(course(), THREE_SLOTS, store=store)
    state = checkpoint(tmp_path / "run.pt").load()
    assert state is not None
    assert state.slots == run.slots
    assert state.rounds == ()
    parameters = load_parameters(tmp_path / "run.pt")
    assert all(torch.equal(parameters[name], run.parameters[name]) for name in run.parameters)
    course().model.module.load_state_dict(parameters)
    assert [path.name for path in tmp_path.iterdir()] == ["run.pt"]


def test_a_missing_file_loads_nothing(tmp_path: Path) -> None:
    assert checkpoint(tmp_path / "run.pt").load() is None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"seed": 1}, "its seed is 0, not 1"),
        ({"engine": PlainEngine()}, "its engine is vectorised, not plain"),
        ({"contributions": THREE_SLOTS[:2]}, "its number of slots is 3, not 2"),
        ({"contributions": 0.5 * THREE_SLOTS}, "its contributions is"),
        ({"phases": ["x", "y", "z"]}, "its phases is a b c, not x y z"),
        ({"given": course(rounds=4)}, "its rounds is 3, not 4"),
        (
            {"given": course(GradientStep(0.1))},
            "its local training is one gradient step, rate 0.5, not",
        ),
        (
            {"given": course(server=FedAdam(0.5))},
            "its server optimiser is none, not FedAdam, rate 0.5, beta1 0.9, beta2 0.99, tau 0.001",
        ),
    ],
)
def test_a_different_run_cannot_resume_from_it(
    tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    train(course(), THREE_SLOTS, store=checkpoint(tmp_path / "run.pt"))
    with pytest.raises(fa.InvalidInput, match=f"checkpoint of another run: {message}"):
        checkpoint(tmp_path / "run.pt", **change).load()


def on_changed(array: str) -> Course:
    """The usual course on other data: one of its arrays is reversed."""
    given = course()
    data = given.model.dataset
    other = replace(data, **{array: getattr(data, array)[::-1].copy()})
    return replace(given, model=Model(given.model.task, other))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (on_changed("inputs"), "its dataset is digits"),
        (on_changed("labels"), "its dataset is digits"),
        (on_changed("test_inputs"), "its dataset is digits"),
        (on_changed("test_labels"), "its dataset is digits"),
        (replace(course(), scale=0.5), "its scale is 1.0, not 0.5"),
        (replace(course(), partition=skewed(0.1)), "its skew is none, not 0.1"),
        (replace(course(), partition=lambda _: course().partition(7)), "its partition is"),
    ],
)
def test_other_data_is_another_run(tmp_path: Path, given: Course, message: str) -> None:
    train(course(), THREE_SLOTS, store=checkpoint(tmp_path / "run.pt"))
    with pytest.raises(fa.InvalidInput, match=f"checkpoint of another run: {message}"):
        checkpoint(tmp_path / "run.pt", given).load()


@pytest.mark.parametrize(
    "content", [b"", b"garbage", b"PK\x03\x04 half a file", b"\x80\x04hello", b"\x80\x02."]
)
def test_damaged_files(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "run.pt"
    path.write_bytes(content)
    with pytest.raises(fa.FedaccordError, match="cannot be read as a checkpoint"):
        checkpoint(path).load()


def test_other_files(tmp_path: Path) -> None:
    torch.save({"weights": torch.zeros(2)}, tmp_path / "run.pt")
    with pytest.raises(fa.FedaccordError, match="is not a checkpoint of fedaccord"):
        checkpoint(tmp_path / "run.pt").load()


@pytest.mark.parametrize(
    "change",
    [
        {"identity": "mine"},
        {"identity": None},
        {"parameters": None},
        {"parameters": {"1.weight": 3.0}},
        {"parameters": {}},
        {"parameters": {"1.weight": torch.zeros(2)}},
        {"slots": None},
        {"slots": 3},
        {"slots": ["a slot"]},
        {"slots": [{"slot": 1}]},
        {"rounds": None},
        {"rounds": [{"loss": "much", "accuracy": 1.0}]},
        {"rounds": [{"loss": 1.0}]},
    ],
)
def test_unexpected_contents(tmp_path: Path, change: dict[str, Any]) -> None:
    """A file in which one value is wrong, or missing (None)."""
    path = tmp_path / "run.pt"
    train(course(), THREE_SLOTS, store=checkpoint(path))
    content = torch.load(path, weights_only=True) | change
    torch.save({part: value for part, value in content.items() if value is not None}, path)
    with pytest.raises(fa.FedaccordError, match="is not a checkpoint of fedaccord"):
        checkpoint(path).load()


class Killed(Checkpoint):
    """A checkpoint that saves every round, and ends the run in the middle of its second slot."""

    def save(self, state: RunState, *, at_once: bool = False) -> None:
        super().save(state, at_once=True)
        if len(state.slots) == 1 and len(state.rounds) == 2:
            raise KeyboardInterrupt


def test_a_run_with_a_server_optimiser_resumes_in_the_middle_of_a_slot(tmp_path: Path) -> None:
    given, path = course(server=FedYogi(0.02)), tmp_path / "run.pt"
    with pytest.raises(KeyboardInterrupt):
        train(given, THREE_SLOTS, store=Killed(path, checkpoint(path, given).identity))
    resumed = train(given, THREE_SLOTS, store=checkpoint(path, given))
    whole = train(given, THREE_SLOTS)
    assert resumed.slots == whole.slots
    assert all(torch.equal(whole.parameters[n], resumed.parameters[n]) for n in whole.parameters)


@pytest.mark.parametrize(
    "moments",
    [
        {},
        None,
        3,
        {"first": 3},
        {"first": {"1.weight": torch.zeros(2)}},
        {"first": {"other": torch.zeros(2)}},
        {"first": {"1.weight": "many"}},
    ],
)
def test_unexpected_moments(tmp_path: Path, moments: Any) -> None:
    given, path = course(server=FedYogi(0.02)), tmp_path / "run.pt"
    with pytest.raises(KeyboardInterrupt):
        train(given, THREE_SLOTS, store=Killed(path, checkpoint(path, given).identity))
    content = torch.load(path, weights_only=True)
    torch.save(content | {"moments": moments}, path)
    with pytest.raises(fa.FedaccordError, match="is not a checkpoint of fedaccord"):
        checkpoint(path, given).load()


def test_an_older_file_says_nothing_of_a_server_optimiser(tmp_path: Path) -> None:
    path = tmp_path / "run.pt"
    run = train(course(), THREE_SLOTS, store=checkpoint(path))
    content = torch.load(path, weights_only=True)
    del content["identity"]["server optimiser"], content["moments"]
    torch.save(content, path)
    state = checkpoint(path).load()
    assert state is not None
    assert state.slots == run.slots
    with pytest.raises(fa.InvalidInput, match="its server optimiser is none, not FedAdam"):
        checkpoint(path, course(server=FedAdam())).load()


def test_a_missing_slot(tmp_path: Path) -> None:
    path = tmp_path / "run.pt"
    train(course(), THREE_SLOTS, store=checkpoint(path))
    content = torch.load(path, weights_only=True)
    torch.save(content | {"slots": content["slots"][1:]}, path)
    with pytest.raises(fa.FedaccordError, match="is not a checkpoint of fedaccord"):
        checkpoint(path).load()


def test_a_full_disk(tmp_path: Path) -> None:
    """A limit on the file size stands for a full disk: the old file is unchanged."""
    path = tmp_path / "run.pt"
    train(course(), THREE_SLOTS, store=checkpoint(path))
    before = path.read_bytes()
    large = RunState((), (), {"1.weight": torch.zeros(100_000)})
    usual, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1024, most))
    try:
        with pytest.raises(fa.FedaccordError, match=r"run.pt: cannot be written: File too large"):
            Checkpoint(path, {}).save(large, at_once=True)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (usual, most))
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["run.pt"]


def test_rounds_in_quick_succession_are_not_all_written(tmp_path: Path) -> None:
    store = checkpoint(tmp_path / "run.pt")
    state = train(course(), THREE_SLOTS, store=checkpoint(tmp_path / "other.pt"))
    store.save(RunState(state.slots, (), state.parameters))
    assert not store.path.exists()
    store.save(RunState(state.slots, (), state.parameters), at_once=True)
    assert store.path.exists()


def test_a_checkpoint_is_on_disk_before_it_has_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All of it: a file that is renamed before it is flushed may be empty after a crash."""
    synced, named = dict[str, int](), list[tuple[str, int]]()
    sync, replaced, link = os.fsync, os.replace, os.link

    def fsync(number: int) -> None:
        sync(number)
        synced[Path(f"/proc/self/fd/{number}").readlink().name] = os.fstat(number).st_size

    def replace_file(source: Path, target: Path) -> None:
        named.append((Path(target).name, synced.pop(Path(source).name, -1)))
        replaced(source, target)

    def link_file(source: Path, target: Path) -> None:
        named.append((Path(target).name, synced.pop(Path(source).name, -1)))
        link(source, target)

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(os, "replace", replace_file)
    monkeypatch.setattr(os, "link", link_file)
    store = checkpoint(tmp_path / "run.pt")
    for _ in range(2):  # a new file, and one that takes the place of another
        store.save(RunState((), (), {"w": torch.zeros(10_000)}), at_once=True)
    size = store.path.stat().st_size
    assert size > 40_000
    assert named == [("run.pt", size)] * 2


def test_only_the_owner_reads_a_checkpoint(tmp_path: Path) -> None:
    """A model reveals some of its data."""
    path = tmp_path / "run.pt"
    path.write_bytes(b"")
    path.chmod(0o644)  # what an earlier file allowed does not matter
    checkpoint(path).save(RunState((), (), {"w": torch.zeros(3)}), at_once=True)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_run_is_saved_in_the_middle_of_a_slot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After every round, if they take long enough: at most one is lost."""
    monkeypatch.setattr(module, "_SECONDS_BETWEEN", 0.0)
    store, found = checkpoint(tmp_path / "run.pt"), list[tuple[int, int, int]]()

    def after(slot: int, turn: int, score: object) -> None:
        state = store.load()
        assert state is not None
        assert state.rounds[-1] == score
        found.append((slot, len(state.slots), len(state.rounds)))

    train(course(), THREE_SLOTS, store=store, progress=after)
    assert found == [(slot, slot - 1, turn) for slot in (1, 2) for turn in (1, 2, 3)]


def test_a_second_of_work_is_lost_at_most(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    store, state = checkpoint(tmp_path / "run.pt"), RunState((), (), {"w": torch.zeros(3)})
    now = 100.99
    store.save(state)
    assert not store.path.exists()
    now = 101.0
    store.save(state)
    assert store.path.exists()
    store.path.unlink()
    now = 101.99  # counted from the last save
    store.save(state)
    assert not store.path.exists()

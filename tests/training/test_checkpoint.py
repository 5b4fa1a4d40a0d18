"""Runs on disk: whole files, of this run only."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

import fedaccord as fa
from fedaccord.training.checkpoint import Checkpoint, identity_of, load_parameters
from fedaccord.training.course import Course, State, train
from fedaccord.training.engine import GradientStep
from fedaccord.training.plain import PlainEngine
from fedaccord.training.task import Model
from fedaccord.training.vectorised import VectorisedEngine
from tests.training.test_course import THREE_SLOTS, course

ENGINE = VectorisedEngine()


def checkpoint(path: Path, given: Course | None = None, **change: Any) -> Checkpoint:
    usual = {"contributions": THREE_SLOTS, "phases": ["a", "b", "c"], "seed": 0, "engine": ENGINE}
    fields: dict[str, Any] = usual | change
    return Checkpoint(path, identity_of(given or course(), **fields))


def test_what_is_saved_is_loaded(tmp_path: Path) -> None:
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


def test_nothing_there(tmp_path: Path) -> None:
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
    ],
)
def test_another_run_does_not_go_on_from_it(
    tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    train(course(), THREE_SLOTS, store=checkpoint(tmp_path / "run.pt"))
    with pytest.raises(fa.InvalidInput, match=f"checkpoint of another run: {message}"):
        checkpoint(tmp_path / "run.pt", **change).load()


def test_other_test_labels_are_another_run(tmp_path: Path) -> None:
    train(course(), THREE_SLOTS, store=checkpoint(tmp_path / "run.pt"))
    given = course()
    data = given.model.dataset
    other = replace(data, test_labels=data.test_labels[::-1].copy())
    changed = replace(given, model=Model(given.model.task, other))
    with pytest.raises(fa.InvalidInput, match="its dataset is digits"):
        checkpoint(tmp_path / "run.pt", changed).load()


@pytest.mark.parametrize("content", [b"", b"garbage", b"PK\x03\x04 half a file"])
def test_damaged_files(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "run.pt"
    path.write_bytes(content)
    with pytest.raises(fa.FedaccordError, match="cannot be read as a checkpoint"):
        checkpoint(path).load()


def test_other_files(tmp_path: Path) -> None:
    torch.save({"weights": torch.zeros(2)}, tmp_path / "run.pt")
    with pytest.raises(fa.FedaccordError, match="is no checkpoint of fedaccord"):
        checkpoint(tmp_path / "run.pt").load()


def test_rounds_in_a_row_are_not_all_written(tmp_path: Path) -> None:
    store = checkpoint(tmp_path / "run.pt")
    state = train(course(), THREE_SLOTS, store=checkpoint(tmp_path / "other.pt"))
    store.save(State(state.slots, (), state.parameters))
    assert not store.path.exists()
    store.save(State(state.slots, (), state.parameters), at_once=True)
    assert store.path.exists()

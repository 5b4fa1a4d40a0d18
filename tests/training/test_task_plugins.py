"""Tasks from other packages, found by their entry points: a package is really installed."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import fedaccord as fa
from fedaccord.training import find_task

PACKAGE = """\
import torch
from fedaccord.training import Task

def build(dataset):
    first, last = torch.nn.Linear(64, 8), torch.nn.Linear(8, dataset.classes)
    return torch.nn.Sequential(torch.nn.Flatten(), first, torch.nn.Tanh(), last)

narrow = Task("anything", build)
wrong = "not a task"
"""
ENTRY_POINTS = """\
[fedaccord.tasks]
narrow = narrow_tasks:narrow
broken = narrow_tasks:missing
wrong = narrow_tasks:wrong
softmax = narrow_tasks:narrow
"""


@pytest.fixture(autouse=True)
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What pip leaves behind: a module, and a `.dist-info` directory with entry points."""
    site = tmp_path / "site"
    info = site / "narrow_tasks-1.0.dist-info"
    info.mkdir(parents=True)
    (site / "narrow_tasks.py").write_text(PACKAGE, encoding="utf-8")
    (info / "METADATA").write_text("Name: narrow-tasks\nVersion: 1.0\n", encoding="utf-8")
    (info / "entry_points.txt").write_text(ENTRY_POINTS, encoding="utf-8")
    monkeypatch.syspath_prepend(site)
    yield
    sys.modules.pop("narrow_tasks", None)


def test_a_task_has_the_name_of_its_entry_point() -> None:
    assert find_task("narrow").name == "narrow"


def test_it_trains_by_name() -> None:
    trial = fa.train([30, 20], task="narrow", rounds=2, seeds=1)
    assert trial.course.model.task.name == "narrow"
    assert "3.weight" in trial.runs[0].parameters


def test_the_command_line_lists_it() -> None:
    found = subprocess.run(
        [sys.executable, "-m", "fedaccord", "train", "--help"],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "softmax, mlp, cnn, cox, broken, narrow or wrong" in " ".join(found.stdout.split())


def test_built_in_tasks_cannot_be_replaced() -> None:
    assert find_task("softmax").build.__module__ == "fedaccord.training.task"


def test_an_unknown_task_lists_all_of_them() -> None:
    with pytest.raises(fa.InvalidInput, match="softmax, mlp, cnn, cox, broken, narrow, wrong"):
        find_task("svm")


def test_entry_points_that_do_not_work() -> None:
    with pytest.raises(fa.FedaccordError, match="broken: cannot be loaded from"):
        find_task("broken")
    with pytest.raises(fa.FedaccordError, match=r"wrong: .* must be a fedaccord.training.Task"):
        find_task("wrong")

"""Interrupted training resumes after the last finished run, with the same numbers."""

import json
from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("sklearn")

from fedaccord.experiments.figures import accuracy, law, training_kind
from fedaccord.experiments.presets import TrainingPreset
from fedaccord.training import course
from tests.experiments.presets_for_tests import small_training

EACH = pytest.mark.parametrize(
    ("preset", "runs"),
    [
        (small_training("accuracy", scales=[1.0, 0.1]), 2 * 2 * len(accuracy.MECHANISMS)),
        (small_training("law", samples=[20, 100, 500], rounds=[1, 2, 5]), 3 * 2),
    ],
    ids=["accuracy", "law"],
)


@pytest.fixture
def trainings(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The seeds of the runs that are actually trained."""
    seeds: list[int] = []
    real: Callable[..., Any] = course.train

    def counted(*words: Any, seed: int, **more: Any) -> Any:
        seeds.append(seed)
        return real(*words, seed=seed, **more)

    monkeypatch.setattr(course, "train", counted)
    return seeds


class Interrupted(dict[str, Any]):
    """Stores only this many parts; then someone presses Ctrl-C."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self.most = most

    def __setitem__(self, part: str, numbers: Any) -> None:
        if len(self) == self.most:
            raise KeyboardInterrupt
        super().__setitem__(part, numbers)


@pytest.mark.slow
@EACH
def test_no_finished_run_is_trained_again(
    preset: TrainingPreset, runs: int, trainings: list[int]
) -> None:
    module = training_kind(preset)
    whole = module.run(preset).as_csv()
    assert len(trainings) == runs
    parts = Interrupted(4)
    with pytest.raises(KeyboardInterrupt):
        module.run(preset, parts=parts)
    kept = json.loads(json.dumps(parts))  # as on disk
    assert len(kept) == 4
    trainings.clear()
    assert module.run(preset, parts=kept).as_csv() == whole
    assert len(trainings) == runs - 4
    assert len(kept) == runs


def test_every_run_has_a_part_of_its_own() -> None:
    parts: dict[str, Any] = {}
    law.run(small_training("law", samples=[20, 100], rounds=[1, 5]), parts=parts)
    assert list(parts) == [f"{size} samples, seed {seed}" for size in (20, 100) for seed in (1, 2)]
    assert all(len(losses) == 2 for losses in parts.values())

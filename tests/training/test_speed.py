"""How long a sample takes on this machine."""

import time
from types import SimpleNamespace

import numpy as np
import pytest

from fedaccord.data.dataset import load_dataset
from fedaccord.training import speed as module
from fedaccord.training.engine import GradientStep, LocalEpochs
from fedaccord.training.speed import measure_speed
from fedaccord.training.task import Model, find_task


def test_the_speed_is_the_median_of_all_rounds_but_the_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With a fake clock: rounds of 100 s, then of 3, 1, 2, 9, 2, 4 and 5."""
    times = iter(np.cumsum([7.0, 100.0, 3.0, 1.0, 2.0, 9.0, 2.0, 4.0, 5.0]).tolist())
    clock = SimpleNamespace(perf_counter=lambda: next(times))
    monkeypatch.setattr(module, "time", clock)
    model = Model(find_task("softmax"), load_dataset("digits"))
    speed = measure_speed(model, GradientStep())
    assert speed.seconds == pytest.approx(3.0 / model.dataset.size)
    assert speed.slowest == pytest.approx(9.0 / model.dataset.size)


@pytest.mark.slow
@pytest.mark.parametrize("local", [GradientStep(), LocalEpochs(0.1, batch=8, epochs=2)])
def test_the_speed_is_per_sample(local: GradientStep | LocalEpochs) -> None:
    """Median and slowest time per sample are no more than the whole measurement took."""
    model = Model(find_task("softmax"), load_dataset("digits"))
    before = time.perf_counter()
    speed = measure_speed(model, local)
    took = time.perf_counter() - before
    assert 0 < speed.seconds <= speed.slowest <= took / model.dataset.size

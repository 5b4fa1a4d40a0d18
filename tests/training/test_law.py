"""The law against measurements: recovered if it holds, rejected if it does not."""

import time
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from fedaccord.training.calibration import measure_losses, measure_speed
from fedaccord.training.law import fit_law
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import lsq_linear

import fedaccord as fa
from fedaccord.data.dataset import load_dataset
from fedaccord.data.partition import RandomPartition
from fedaccord.training import calibration
from fedaccord.training.course import Course, train
from fedaccord.training.engine import GradientStep, LocalEpochs
from fedaccord.training.task import Model, find_task

TOTALS, TURNS = (
    grid.ravel().astype(float)
    for grid in np.meshgrid([10, 30, 100, 300, 1000], [1, 2, 5, 10, 50], indexing="ij")
)
coefficients = st.floats(0.01, 100.0)


@given(coefficients, coefficients, st.floats(0.0, 100.0))
def test_recovers_an_exact_law(data: float, rounds: float, floor: float) -> None:
    law = fit_law(TOTALS, TURNS, data / np.sqrt(TOTALS * TURNS) + rounds / TURNS + floor)
    # the largest term is up to 1e4 times another, which leaves a relative accuracy of 1e-10
    found = [law.data, law.rounds, law.floor]
    np.testing.assert_allclose(found, [data, rounds, floor], rtol=1e-6, atol=1e-8)
    assert law.fits
    assert law.error < 1e-8


@given(st.lists(st.floats(0.0, 5.0), min_size=25, max_size=25))
def test_no_other_law_of_this_form_fits_better(losses: list[float]) -> None:
    measured = np.array(losses)
    law = fit_law(TOTALS, TURNS, measured)
    columns = np.column_stack([1 / np.sqrt(TOTALS * TURNS), 1 / TURNS, np.ones_like(TURNS)])
    other = lsq_linear(columns, measured, bounds=(0.0, np.inf), tol=1e-14)
    assert np.sum(law.residuals**2) <= 2 * other.cost + 1e-9
    assert min(law.data, law.rounds, law.floor) >= 0.0


def test_reports_data_that_does_not_follow_the_law() -> None:
    straight = fit_law(TOTALS, TURNS, 2.0 - 0.03 * TURNS)
    assert not straight.fits
    assert "explains only" in straight.objections[0]
    rising = fit_law(TOTALS, TURNS, 0.001 * TOTALS)
    assert "more data does not lower the loss at all" in rising.objections
    assert not fit_law(TOTALS, TURNS, np.ones_like(TURNS)).fits


@pytest.mark.parametrize("losses", [[1.0, 2.0, 3.0], [1.0, 2.0, 3.0, np.nan]])
def test_too_few_losses_to_fit(losses: list[float]) -> None:
    size = len(losses)
    with pytest.raises(fa.InvalidInput, match="needs four or more, all finite"):
        fit_law(TOTALS[:size], TURNS[:size], np.array(losses))


def test_losses_are_measured_on_more_and_more_data() -> None:
    model = Model(find_task("softmax"), load_dataset("digits"))
    told: list[tuple[int, int]] = []
    losses = measure_losses(
        model, GradientStep(0.5), 8, seeds=2, progress=lambda done, of: told.append((done, of))
    )
    assert losses.totals[-1] == model.dataset.size
    assert (losses.turns[0], losses.turns[-1]) == (1, 8)
    assert losses.mean.shape == (len(losses.totals), len(losses.turns))
    assert (losses.mean[:, -1] < losses.mean[:, 0]).all()  # rounds help
    assert losses.mean[-1, -1] < losses.mean[0, -1]  # and so does data
    assert told[-1] == (told[-1][1], told[-1][1])
    assert len(told) == told[-1][1]
    assert losses.law().losses.size == losses.mean.size
    assert losses.law_at_the_end().losses.size == len(losses.totals)


def test_losses_are_means_over_seeds_with_different_data() -> None:
    model = Model(find_task("softmax"), load_dataset("digits"))
    losses = measure_losses(model, GradientStep(0.5), 4, clients=2, seeds=3)
    half = int(losses.totals[1]) // 2
    sizes = [int(losses.totals[1]) - half, half]
    course = Course(model, lambda seed: RandomPartition(model.dataset, sizes, seed), 4)
    course = replace(course, local=GradientStep(0.5))
    runs = [train(course, sizes, seed=seed) for seed in range(3)]
    by_hand = np.mean([[score.loss for score in run.slots[0].rounds] for run in runs], axis=0)
    np.testing.assert_allclose(losses.mean[1], by_hand[losses.turns - 1], rtol=1e-12)


def test_the_law_needs_rounds() -> None:
    model = Model(find_task("softmax"), load_dataset("digits"))
    with pytest.raises(fa.InvalidInput, match="rounds: must be 4 or more to fit the law, got 3"):
        measure_losses(model, GradientStep(), 3)


def test_the_speed_is_the_median_of_all_rounds_but_the_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With a fake clock: rounds of 100 s, then of 3, 1, 2, 9, 2, 4 and 5."""
    times = iter(np.cumsum([7.0, 100.0, 3.0, 1.0, 2.0, 9.0, 2.0, 4.0, 5.0]).tolist())
    clock = SimpleNamespace(perf_counter=lambda: next(times))
    monkeypatch.setattr(calibration, "time", clock)
    model = Model(find_task("softmax"), load_dataset("digits"))
    speed = measure_speed(model, GradientStep())
    assert speed.seconds == pytest.approx(3.0 / model.dataset.size)
    assert speed.slowest == pytest.approx(9.0 / model.dataset.size)


@pytest.mark.parametrize("local", [GradientStep(), LocalEpochs(0.1, batch=8, epochs=2)])
def test_the_speed_is_per_sample(local: GradientStep | LocalEpochs) -> None:
    """Median and slowest time per sample are no more than the whole measurement took."""
    model = Model(find_task("softmax"), load_dataset("digits"))
    before = time.perf_counter()
    speed = measure_speed(model, local)
    took = time.perf_counter() - before
    assert 0 < speed.seconds <= speed.slowest <= took / model.dataset.size

"""Intervals: by hand, and that they contain the truth as often as they say."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from scipy import stats

from fedaccord.training.estimates import (
    estimate,
    estimate_gain,
    estimate_lost,
    estimate_measure,
)
from fedaccord.training.measures import CONCORDANCE
from tests.training.patients import RISKS, patients

Numbers = npt.NDArray[Any]


def test_a_measure_by_hand() -> None:
    """Four examples and two seeds; an example that is right and one that is wrong are added."""
    errors = np.array([[0.0, 0.0, 1.0, 1.0], [0.0, 1.0, 1.0, 1.0]])
    examples = [0.0, 0.5, 1.0, 1.0, 0.0, 1.0]
    one, other = np.var(examples, ddof=1) / 6, np.var([0.5, 0.75], ddof=1) / 2
    freedom = (one + other) ** 2 / (one**2 / 5 + other**2 / 1)
    found = estimate_measure(errors)
    assert found.mean == pytest.approx(1 - 0.625)
    half = stats.t.ppf(0.975, freedom) * np.sqrt(one + other)
    assert found.half_width == pytest.approx(min(half, 0.625))


def test_a_gain_by_hand() -> None:
    before, after = np.eye(2, 40), np.zeros((2, 40))
    examples = [0.5, 0.5, *[0.0] * 38, -0.5, 0.5]
    one, other = np.var(examples, ddof=1) / 42, 0.0
    found = estimate_gain(before, after)
    assert found.mean == pytest.approx(1 / 40)
    half = stats.t.ppf(0.975, 41) * np.sqrt(one + other)
    assert found.half_width == pytest.approx(half)


def test_a_single_seed_has_an_interval_about_the_examples() -> None:
    """Nothing is known of other seeds, but 40 examples say how much another 40 would differ."""
    errors = np.array([[1.0, 0.0] * 20])
    found = estimate_measure(errors)
    examples = [*errors[0], 0.0, 1.0]
    half = stats.t.ppf(0.975, 41) * np.sqrt(np.var(examples, ddof=1) / 42)
    assert found.mean == 0.5
    assert found.half_width == pytest.approx(half)
    assert estimate_gain(errors, 0 * errors).sure
    assert not estimate_gain(errors[:, :3], 0 * errors[:, :3]).sure
    without_examples = estimate([0.5])
    assert np.isnan(without_examples.half_width)
    assert not without_examples.sure


def test_nothing_is_sure_of_a_few_patients() -> None:
    """All of 16 patients right, with every seed, and no difference between two models."""
    right = np.zeros((5, 16))
    assert 0.05 < estimate_measure(right).half_width < 0.2
    assert 0.05 < estimate_gain(right, right).half_width < 0.2
    assert estimate_measure(np.zeros((5, 1_000))).half_width < 0.005


def test_nothing_at_all_is_known_of_a_single_event() -> None:
    """A concordance is from 0 to 1, and so wide is the interval at most."""
    right = np.zeros((5, 11))
    assert estimate_measure(right, weight=11.0).half_width == 1.0
    assert estimate_gain(right, right, weight=11.0).half_width == 1.0


def test_losses_have_their_own_scale() -> None:
    losses = np.random.default_rng(0).exponential(7.0, size=(4, 30))
    found = estimate_lost(losses.mean(axis=1), losses.mean(axis=0))
    variances = [losses.mean(axis=axis).var(ddof=1) for axis in (0, 1)]
    error = np.sqrt(variances[0] / 30 + variances[1] / 4)
    assert found.mean == pytest.approx(losses.mean())
    assert 1.9 * error < found.half_width < 3.3 * error


def answers(rng: np.random.Generator, accuracy: float, hard: Numbers, seeds: int) -> Numbers:
    """Errors of models on patients some of whom are harder than others, with seeds that differ."""
    spread = np.sqrt(1 + hard.var() + 0.09)
    luck = rng.normal(scale=0.3, size=(seeds, 1))
    known = hard + luck + rng.normal(size=(seeds, hard.size))
    wrong: Numbers = known < stats.norm.ppf(1 - accuracy) * spread
    return wrong.astype(float)


@pytest.mark.parametrize("accuracy", [0.7, 0.95])
@pytest.mark.parametrize(("size", "seeds"), [(16, 3), (45, 5), (104, 10)])
def test_accuracies_are_in_their_intervals(accuracy: float, size: int, seeds: int) -> None:
    rng = np.random.default_rng(size)
    level = gain = 0
    for _ in range(300):
        hard = rng.normal(scale=2.0, size=size)
        hard /= hard.std() / 2.0
        before, after = (answers(rng, a, hard, seeds) for a in (accuracy - 0.05, accuracy))
        found, gained = estimate_measure(after), estimate_gain(before, after)
        level += abs(found.mean - accuracy) <= found.half_width
        gain += abs(gained.mean - 0.05) <= gained.half_width
    assert level >= 0.92 * 300
    assert gain >= 0.92 * 300


@pytest.mark.slow
@pytest.mark.parametrize(("size", "events"), [(20, 3), (60, 8), (104, 60)])
def test_concordances_are_in_their_intervals(size: int, events: int) -> None:
    """Also where only few had the event: without its weight, six of ten would be outside."""

    def seen_briefly(inputs: Numbers, labels: Numbers) -> tuple[Numbers, Numbers]:
        latest = np.quantile(np.abs(labels), min(1.0, 1.6 * events / size))
        return inputs @ RISKS, np.where(np.abs(labels) > latest, -np.ceil(latest), labels).astype(
            np.int64
        )

    def errors(scores: Numbers, labels: Numbers) -> Numbers:
        found: Numbers = CONCORDANCE.errors(
            torch.from_numpy(scores)[:, None], torch.from_numpy(labels)
        ).numpy()
        return found

    truth = 1 - errors(*seen_briefly(*patients(4_000, seed=1))).mean()
    rng, inside, defined = np.random.default_rng(0), 0, 0
    for seed in range(150):
        scores, labels = seen_briefly(*patients(size, seed=seed + 2))
        runs = np.array([errors(scores + rng.normal(scale=0.05, size=size), labels) for _ in "123"])
        if np.isnan(runs).any():
            continue
        found = estimate_measure(runs, CONCORDANCE.weight(torch.from_numpy(labels)))
        inside, defined = inside + (abs(found.mean - truth) <= found.half_width), defined + 1
    assert defined > 100
    assert inside >= 0.92 * defined

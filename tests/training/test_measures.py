"""Accuracy and concordance: one error per example, whose mean and spread are right."""

from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch

from fedaccord.training import measures
from fedaccord.training.measures import ACCURACY, CONCORDANCE

Numbers = npt.NDArray[Any]


def concordance(scores: Numbers, labels: Numbers) -> float:
    """By its definition, pair by pair."""
    right = pairs = 0.0
    for i, j in combinations(range(len(labels)), 2):
        times, events = abs(labels[[i, j]]), labels[[i, j]] > 0
        if times[0] == times[1]:
            comparable = events[0] != events[1]
            earlier = 0 if events[0] else 1
        else:
            earlier = int(times[1] < times[0])
            comparable = events[earlier]
        if not comparable:
            continue
        first, second = (i, j) if earlier == 0 else (j, i)
        pairs += 1
        right += 0.5 if scores[first] == scores[second] else float(scores[first] > scores[second])
    return right / pairs


def errors(scores: Numbers, labels: Numbers) -> Numbers:
    outputs = torch.from_numpy(scores)[:, None]
    found: Numbers = CONCORDANCE.errors(outputs, torch.from_numpy(labels)).numpy()
    return found


def patients(size: int, seed: int, latest: int = 1_000) -> tuple[Numbers, Numbers]:
    """Scores that say something about the times, a third of them censored."""
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=size)
    times = np.ceil(latest * rng.exponential(np.exp(-scores)) / 4).astype(np.int64)
    return scores, np.where(rng.random(size) < 0.33, -times, times)


@pytest.mark.parametrize("seed", range(20))
def test_concordance_is_that_of_all_pairs(seed: int) -> None:
    """Ties in times (few different ones), in scores (rounded), and both; some seen for no time."""
    rng = np.random.default_rng(seed)
    scores, labels = patients(int(rng.integers(2, 60)), seed, latest=[4, 12, 1_000][seed % 3])
    scores = np.round(scores, seed % 4)
    labels[rng.random(len(labels)) < 0.1] = 0
    labels[0], labels[1] = 1, -2  # at least one pair
    assert 1 - errors(scores, labels).mean() == pytest.approx(concordance(scores, labels))


def test_equal_times_and_equal_scores_by_hand() -> None:
    """At time 3: an event and a censored one can be compared, two events cannot."""
    labels = np.array([3, -3, 3])
    assert concordance(np.array([2.0, 1.0, 0.0]), labels) == 0.5  # right, and wrong
    assert errors(np.array([2.0, 1.0, 0.0]), labels).mean() == pytest.approx(0.5)
    assert errors(np.array([1.0, 1.0, 1.0]), labels).mean() == pytest.approx(0.5)  # two halves
    assert errors(np.array([2.0, 1.0, 2.0]), labels).mean() == pytest.approx(0.0)


def test_labels_of_zero_change_nothing() -> None:
    scores, labels = patients(50, seed=1)
    more = np.append(scores, [5.0, -5.0]), np.append(labels, [0, 0])
    assert errors(*more).mean() == pytest.approx(errors(scores, labels).mean())


def test_nobody_can_be_compared() -> None:
    assert np.isnan(errors(np.array([1.0, 2.0]), np.array([-4, -5]))).all()
    assert np.isnan(errors(np.array([1.0, 2.0]), np.array([5, 5]))).all()


def test_many_examples_are_compared_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    scores, labels = patients(101, seed=2)
    whole = errors(scores, labels)
    monkeypatch.setattr(measures, "_PAIRS_AT_ONCE", 707)
    assert errors(scores, labels) == pytest.approx(whole, rel=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize(("size", "seed"), [(40, 3), (150, 4), (400, 5)])
def test_the_spread_of_errors_is_that_of_drawing_patients_again(size: int, seed: int) -> None:
    """The standard error from the pseudo-values against the bootstrap, which is its meaning."""
    scores, labels = patients(size, seed)
    each = errors(scores, labels)
    rng = np.random.default_rng(0)
    drawn = [rng.integers(0, size, size) for _ in range(1_000)]
    again = np.array([errors(scores[one], labels[one]).mean() for one in drawn])
    assert each.std() / np.sqrt(size) == pytest.approx(again.std(), rel=0.1)
    # and draw by draw, to first order
    assert np.corrcoef([each[one].mean() for one in drawn], again)[0, 1] > 0.9


@pytest.mark.slow
def test_two_models_are_compared_patient_by_patient() -> None:
    """The difference of errors has the spread of the difference of concordances."""
    scores, labels = patients(200, seed=6)
    other = scores + np.random.default_rng(1).normal(scale=0.3, size=200)
    gains = errors(other, labels) - errors(scores, labels)
    rng = np.random.default_rng(0)
    again = []
    for _ in range(1_000):
        one = rng.integers(0, 200, 200)
        again.append(
            errors(other[one], labels[one]).mean() - errors(scores[one], labels[one]).mean()
        )
    assert gains.std() / np.sqrt(200) == pytest.approx(np.std(again), rel=0.1)


def test_accuracy_counts_wrong_classes() -> None:
    outputs = torch.tensor([[0.1, 0.9], [0.8, 0.2], [0.3, 0.7]])
    assert ACCURACY.errors(outputs, torch.tensor([1, 1, 0])).tolist() == [0.0, 1.0, 1.0]

"""Profiles compared with each other, seed by seed."""

import math

import numpy as np
import pytest
from scipy import stats

from fedaccord.training.comparison import compare_runs, estimate
from fedaccord.training.course import Score, SlotRecord, TrainingRun


def run(profile: str, seed: int, accuracy: float, total: int = 10) -> TrainingRun:
    score = Score(1.0 - accuracy, accuracy)
    return TrainingRun(profile, seed, (SlotRecord(1, "", total, (score,), score),), {})


def test_intervals_are_those_of_a_t_test() -> None:
    values = [0.71, 0.74, 0.70, 0.79]
    low, high = stats.ttest_1samp(values, 0.0).confidence_interval(0.95)
    here = estimate(values)
    assert here.mean - here.half_width == pytest.approx(low)
    assert here.mean + here.half_width == pytest.approx(high)


def test_the_last_slot_counts() -> None:
    first, last = Score(2.0, 0.3), Score(0.5, 0.8)
    slots = (SlotRecord(1, "", 10, (first,), first), SlotRecord(2, "", 30, (last,), last))
    (score,) = compare_runs([TrainingRun("agreed", 0, slots, {})])
    assert (score.loss.mean, score.accuracy.mean, score.total) == (0.5, 0.8, 20)


def test_one_seed_has_no_interval() -> None:
    assert estimate([0.5]).mean == 0.5
    assert math.isnan(estimate([0.5]).half_width)


def test_gains_are_paired_by_seed_in_any_order() -> None:
    accuracies = {0: 0.5, 1: 0.7, 2: 0.9}
    runs = [run("alone", seed, accuracy) for seed, accuracy in accuracies.items()]
    runs += [run("agreed", seed, accuracies[seed] + 0.01, total=20) for seed in (2, 0, 1)]
    alone, agreed = compare_runs(runs)
    assert (alone.profile, agreed.profile) == ("alone", "agreed")
    assert agreed.total == 20
    assert agreed.accuracy.half_width > 0.4  # the seeds differ a lot,
    assert agreed.accuracy_gain.mean == pytest.approx(0.01)
    assert agreed.accuracy_gain.half_width == pytest.approx(0.0, abs=1e-12)  # but the gain does not
    assert alone.accuracy_gain.mean == 0.0
    assert np.isclose(alone.loss.mean, 0.3)

"""Thresholds and measures against NumPy and scikit-learn."""

import warnings

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from sklearn.metrics import precision_score, recall_score, roc_auc_score

import fedaccord as fa
from fedaccord.mechanisms.detection.detector import by_percentile, by_reference, measure

# few distinct scores, so that there are ties
clients = st.lists(st.tuples(st.integers(-5, 5).map(float), st.booleans()), min_size=2, max_size=40)


@given(clients, st.integers(-6, 6).map(float))
def test_measures_match_scikit_learn(given_: list[tuple[float, bool]], threshold: float) -> None:
    scores, truth = (np.array(column) for column in zip(*given_, strict=True))
    assume(0 < truth.sum() < len(truth))
    quality = measure(scores, truth, threshold)
    dropped = scores > threshold
    assert quality.area == pytest.approx(roc_auc_score(truth, scores), abs=1e-12)
    assert quality.recall == recall_score(truth, dropped)
    if dropped.any():
        assert quality.precision == precision_score(truth, dropped)
    else:
        assert quality.precision is None
    assert quality.dropped == dropped.sum()
    assert quality.dropped_contributors == (dropped & ~truth).sum()


@given(st.integers(1, 200), st.integers(0, 199), st.integers(0, 99))
def test_a_percentile_drops_the_right_number(clients: int, dropped: int, seed: int) -> None:
    """For every number of suspects, whatever 100 (1 - suspects / clients) rounds to."""
    assume(dropped < clients)
    scores = np.random.default_rng(seed).permutation(clients).astype(float)
    threshold = by_percentile(scores, 100.0 * (1.0 - dropped / clients))
    assert (scores > threshold).sum() == dropped


@given(st.lists(st.integers(-9, 9).map(float), min_size=1, max_size=50), st.integers(1, 100))
def test_percentiles_match_numpy(scores: list[float], percentile: int) -> None:
    expected = np.percentile(scores, percentile, method="inverted_cdf")
    assert by_percentile(scores, percentile) == expected


def test_the_false_alarm_rate_is_as_promised() -> None:
    """4,000 times 40 reference scores and an honest one: dropped in 5 % at most, but not in 0."""
    rng = np.random.default_rng(3)
    scores = rng.standard_normal((4_000, 40))
    dropped = np.mean([rng.standard_normal() > by_reference(row, 0.05) for row in scores])
    # 2 of 41 ranks are above the threshold; four standard deviations
    assert dropped == pytest.approx(2 / 41, abs=4 * np.sqrt(0.05 * 0.95 / 4_000))


def test_rejected() -> None:
    with pytest.raises(fa.InvalidInput, match="at least 19 honest updates, got 18"):
        by_reference(range(18), 0.05)
    assert by_reference(range(19), 0.05) == 18.0
    with pytest.raises(fa.InvalidInput, match="false_alarms: must be between 0 and 1"):
        by_reference(range(19), 0.0)
    with pytest.raises(fa.InvalidInput, match="percentile: must be more than 0"):
        by_percentile([1.0], 0.0)
    for scores in ([], [1.0, np.nan]):
        with pytest.raises(fa.InvalidInput, match="scores: must be numbers"):
            by_percentile(scores, 50.0)
    with pytest.raises(fa.InvalidInput, match="both free riders and contributors"):
        measure([1.0, 2.0], [True, True], 0.0)
    with pytest.raises(fa.InvalidInput, match="2 scores, but the truth about 1"):
        measure([1.0, 2.0], [True], 0.0)


def test_no_warning_if_nobody_is_dropped() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        quality = measure([1.0, 2.0], [True, False], 5.0)
    assert (quality.precision, quality.recall, quality.area) == (None, 0.0, 0.0)

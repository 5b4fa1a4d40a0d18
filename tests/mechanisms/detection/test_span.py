"""Coordinates in the span keep lengths, angles and features."""

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from fedaccord.mechanisms.detection.methods import (
    SHORTEST,
    Seen,
    all_parameters,
    cosine_similarity,
    relative_distance,
    span_of,
    squared_distance,
    typical_length,
)
from fedaccord.numbers import FloatArray

# 32-bit coordinates of sums of up to 50 products
CLOSE = 1e-4
sizes = st.tuples(st.integers(1, 12), st.integers(1, 50), st.integers(0, 999))


def draw(size: tuple[int, int, int]) -> FloatArray:
    n, p, seed = size
    rng = np.random.default_rng(seed)
    return rng.standard_normal(p) + rng.standard_normal((n, p))


@given(sizes)
def test_inner_products_are_kept(size: tuple[int, int, int]) -> None:
    updates = draw(size)
    span = span_of(updates)
    seen = span.see(updates).inside.double().numpy()
    expected = updates @ updates.T / typical_length(updates) ** 2 * seen.shape[1]
    np.testing.assert_allclose(seen @ seen.T, expected, rtol=1e-4, atol=1e-4 * seen.shape[1])
    assert seen.shape[1] <= min(updates.shape)


@given(sizes)
def test_later_updates_keep_their_length(size: tuple[int, int, int]) -> None:
    updates = draw(size)
    later = np.random.default_rng(1).standard_normal((4, updates.shape[1]))
    span = span_of(updates)
    seen = span.see(later)
    lengths = np.linalg.norm(later, axis=1) / span.unit * seen.typical
    np.testing.assert_allclose(seen.lengths, lengths, rtol=1e-5)


@given(sizes)
def test_features_are_those_of_all_parameters(size: tuple[int, int, int]) -> None:
    """Expected updates are in the span, so that both can represent them."""
    updates = draw(size)
    later = np.random.default_rng(1).standard_normal((4, updates.shape[1]))
    expected = np.tile(updates.mean(axis=0), (4, 1))
    values = []
    for span in (span_of(updates), all_parameters(updates)):
        seen, other = span.see(later), span.see(expected).inside
        values.append(_features(seen, other))
        np.testing.assert_allclose(values[-1][1], _cosine(later, expected), rtol=CLOSE, atol=CLOSE)
    np.testing.assert_allclose(values[0], values[1], rtol=CLOSE, atol=CLOSE)


def test_features_by_hand() -> None:
    seen = Seen(torch.tensor([[3.0, 4.0], [0.0, 0.0]]), torch.tensor([0.0, 0.0]), torch.ones(2))
    expected = torch.tensor([[3.0, 0.0], [3.0, 0.0]])
    distance, cosine = _features(seen, expected)
    np.testing.assert_allclose(distance, [4 / 5, 3 / (SHORTEST * np.sqrt(2))], rtol=1e-6)
    np.testing.assert_allclose(cosine, [3 / 5, 0.0], rtol=1e-6)


def test_the_part_outside_the_span_counts() -> None:
    seen = Seen(torch.tensor([[3.0]]), torch.tensor([16.0]), torch.ones(1))
    distance, cosine = _features(seen, torch.tensor([[3.0]]))
    np.testing.assert_allclose([distance[0], cosine[0]], [4 / 5, 3 / 5], rtol=1e-6)


def test_the_typical_length_is_robust_to_half_of_the_updates() -> None:
    updates = np.ones((5, 4))
    updates[:2] *= [[0.0], [1e200]]
    assert typical_length(updates) == 2.0
    assert typical_length(np.zeros((3, 4))) == 1.0


def _features(seen: Seen, expected: torch.Tensor) -> FloatArray:
    distance = relative_distance(seen, squared_distance(seen, expected))
    return torch.stack([distance, cosine_similarity(seen, expected)]).double().numpy()


def _cosine(x: FloatArray, y: FloatArray) -> FloatArray:
    lengths = np.linalg.norm(x, axis=1) * np.linalg.norm(y, axis=1)
    return np.asarray((x * y).sum(axis=1) / lengths)

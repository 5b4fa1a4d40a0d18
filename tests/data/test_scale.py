"""Sizes that fit a dataset."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fedaccord as fa
from fedaccord.data.dataset import load_dataset
from fedaccord.data.partition import whole_contributions
from fedaccord.data.scale import fitting_scale, scaled_sizes

DIGITS = load_dataset("digits")  # 1,438 examples


def test_what_fits_is_left_alone() -> None:
    assert fitting_scale(DIGITS, [1438, 1438, 3]) == 1.0


@given(st.lists(st.floats(1.0, 1e9), min_size=1, max_size=50))
def test_what_does_not_fit_is_drawn_without_sharing(samples: list[float]) -> None:
    scale = fitting_scale(DIGITS, samples)
    sizes = scaled_sizes(samples, scale)
    assert min(sizes) >= 1
    if max(samples) > DIGITS.size:
        assert sum(sizes) <= DIGITS.size


@given(
    st.lists(st.tuples(st.floats(1.0, 1e6), st.floats(0.0, 1.0)), min_size=1, max_size=20),
    st.floats(1e-4, 10.0),
)
def test_nobody_is_asked_for_more_than_it_has(
    clients: list[tuple[float, float]], scale: float
) -> None:
    samples = np.array([size for size, _ in clients])
    asked = samples * np.array([part for _, part in clients])
    sizes = scaled_sizes(samples, scale)
    assert (whole_contributions(asked * scale) <= sizes).all()


@pytest.mark.parametrize("scale", [0.0, -1.0, float("nan"), float("inf")])
def test_refusals(scale: float) -> None:
    with pytest.raises(fa.InvalidInput, match="scale: must be more than 0"):
        scaled_sizes([10], scale)


def test_a_scale_beyond_all_numbers() -> None:
    with pytest.raises(fa.InvalidInput, match=r"scale: 1e\+308 makes more examples than a number"):
        scaled_sizes([100], 1e308)

"""Samples as examples: sizes that fit a dataset, and the one rounding rule."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fedaccord as fa
from fedaccord.data.dataset import load_dataset
from fedaccord.data.scale import examples_for, fitting_scale, rounding_note, scaled_sizes

DIGITS = load_dataset("digits")  # 1,438 examples


def test_sizes_that_fit_are_not_scaled() -> None:
    assert fitting_scale(DIGITS, [1438, 1438, 3]) == 1.0


@given(st.lists(st.floats(1.0, 1e9), min_size=1, max_size=50))
def test_sizes_that_do_not_fit_are_drawn_without_sharing(samples: list[float]) -> None:
    scale = fitting_scale(DIGITS, samples)
    sizes = scaled_sizes(samples, scale)
    assert min(sizes) >= 1
    if max(samples) > DIGITS.size:
        assert sum(sizes) <= DIGITS.size


@given(
    st.lists(st.tuples(st.floats(1.0, 1e6), st.floats(0.0, 1.0)), min_size=1, max_size=20),
    st.floats(1e-4, 10.0),
)
def test_no_client_is_asked_for_more_than_it_has(
    clients: list[tuple[float, float]], scale: float
) -> None:
    samples = np.array([size for size, _ in clients])
    asked = samples * np.array([part for _, part in clients])
    sizes = scaled_sizes(samples, scale)
    assert (examples_for(asked, scale) <= sizes).all()


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=50), st.floats(1e-4, 10.0))
def test_each_contribution_is_rounded_separately(profile: list[float], scale: float) -> None:
    whole = examples_for(profile, scale)
    assert whole.tolist() == [int(examples_for(amount, scale)) for amount in profile]
    assert ((whole > 0) == (np.array(profile) > 0)).all()
    exact = np.array(profile) * scale
    assert (np.abs(whole - exact) <= np.where(exact >= 0.5, 0.5, 1.0)).all()


def test_small_contributions_are_rounded_alike_for_everyone() -> None:
    assert examples_for([150.0] * 4, 0.002).tolist() == [1, 1, 1, 1]


def test_a_note_when_rounding_changes_the_total_by_more_than_5_percent() -> None:
    assert rounding_note([100, 90, 80]) is None
    assert rounding_note([0, 0]) is None
    assert rounding_note([2.4, 2.4, 2.4]) == (
        "at this scale the contributions make 7.2 examples, which are rounded to 6"
    )


def test_halves_round_to_even() -> None:
    assert examples_for([0.5, 1.5, 2.5, 3.5]).tolist() == [1, 2, 2, 4]


@pytest.mark.parametrize("scale", [0.0, -1.0, float("nan"), float("inf")])
def test_a_scale_must_be_positive_and_finite(scale: float) -> None:
    with pytest.raises(fa.InvalidInput, match="scale: must be more than 0"):
        scaled_sizes([10], scale)


def test_a_scale_that_leads_to_too_many_examples() -> None:
    for convert in (scaled_sizes, examples_for):
        with pytest.raises(fa.InvalidInput, match=r"scale: 1e\+308 leads to more examples than"):
            convert([100], 1e308)


def test_the_old_name_says_what_to_use_now() -> None:
    with pytest.raises(ImportError, match=r"is now examples_for\(contributions, scale\)"):
        from fedaccord.data import whole_contributions  # noqa: F401

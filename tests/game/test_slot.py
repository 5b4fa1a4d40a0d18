"""How long a slot is, and the discount factor that follows."""

from math import inf, nan
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedaccord.errors import InvalidInput
from fedaccord.game.slot import (
    ending_within_a_year,
    per_slot_discount_factor,
    slot_in_words,
    slots_per_year,
)


@pytest.mark.parametrize(
    ("text", "slots"),
    [
        ("3 months", 4),
        ("1 month", 12),
        ("monthly", 12),
        ("Quarterly", 4),
        ("quarter", 4),
        ("every quarter", 4),
        ("2 weeks", 26),
        ("every 2 weeks", 26),
        ("weekly", 52),
        ("1 year", 1),
        ("2 years", 0.5),
        ("annually", 1),
        ("30 days", 365 / 30),
        ("1.5 months", 8),
        ("  6   Months ", 2),
    ],
)
def test_slots_per_year(text: str, slots: float) -> None:
    assert slots_per_year(text) == pytest.approx(slots)
    assert slots_per_year(slot_in_words(text)) == slots_per_year(text)
    assert slot_in_words(slot_in_words(text)) == slot_in_words(text)


def test_a_slot_in_words_fits_into_a_sentence() -> None:
    assert [slot_in_words(each) for each in ("monthly", "Every quarter", "1.5 months")] == [
        "1 month",
        "1 quarter",
        "1.5 months",
    ]


@pytest.mark.parametrize(
    "text",
    ["", "3", "months 3", "0 months", "-3 months", "3 moons", "3months?", "nan days", 3, None],
)
def test_what_is_no_stretch_of_time(text: Any) -> None:
    with pytest.raises(InvalidInput, match=r"slot: must be a stretch of time like") as refused:
        slots_per_year(text)
    assert "\n" not in str(refused.value)


def test_five_percent_and_quarterly_training() -> None:
    assert round(per_slot_discount_factor(4, interest=0.05), 3) == 0.988


@given(st.floats(0.25, 365), st.floats(0, 2), st.floats(0, 1))
def test_the_slots_of_a_year_multiply_to_its_factor(
    n: float, interest: float, ending: float
) -> None:
    delta = per_slot_discount_factor(n, interest=interest, ending=ending)
    assert 0 <= delta <= 1
    assert delta**n == pytest.approx((1 - ending) / (1 + interest), abs=1e-12)


@given(st.floats(0.25, 52), st.floats(1, 50))
def test_a_project_lasts_as_long_as_its_horizon_on_average(n: float, years: float) -> None:
    """Slots until the first that is the last, each with the same chance: a geometric series."""
    go_on = per_slot_discount_factor(n, ending=ending_within_a_year(years, n))
    assert 1 / (1 - go_on) / n == pytest.approx(max(years, 1 / n), rel=1e-6)


@pytest.mark.parametrize(
    "wrong",
    [
        {"interest": -0.1},
        {"interest": nan},
        {"ending": 1.1},
        {"ending": -0.1},
        {"interest": inf},
        {"slots_per_year": 0},
    ],
)
def test_factors_of_nonsense(wrong: dict[str, float]) -> None:
    with pytest.raises(InvalidInput, match="must be"):
        per_slot_discount_factor(wrong.pop("slots_per_year", 4), **wrong)
    with pytest.raises(InvalidInput, match="horizon"):
        ending_within_a_year(0, 4)


@pytest.mark.parametrize("wrong", [0.0, -1.0, float("nan"), float("inf")])
def test_the_numbers_of_a_year_are_checked(wrong: float) -> None:
    with pytest.raises(InvalidInput, match="slots_per_year"):
        ending_within_a_year(5, wrong)
    with pytest.raises(InvalidInput, match="horizon"):
        ending_within_a_year(wrong, 4)
    with pytest.raises(InvalidInput, match="slots_per_year"):
        per_slot_discount_factor(wrong)
    assert ending_within_a_year(0.1, 4) == 1.0  # less than a slot on average
    assert ending_within_a_year(5, 4) == pytest.approx(1 - (1 - 1 / 20) ** 4)

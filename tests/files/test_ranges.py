"""Ranges as people write them, and ranges of formulas."""

import random
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedaccord.errors import InvalidInput
from fedaccord.files.ranges import Range, as_range, read_range, spread, units_of


@pytest.mark.parametrize(
    ("text", "low", "likely", "high"),
    [
        ("600", 600, 600, 600),
        ("12 000", 12_000, 12_000, 12_000),
        ("12'000", 12_000, 12_000, 12_000),
        ("0,004", 0.004, 0.004, 0.004),
        ("2,50", 2.5, 2.5, 2.5),
        ("6,5 %", 0.065, 0.065, 0.065),
        ("1.250,50", 1250.5, 1250.5, 1250.5),
        ("0,004 to 0,005", 0.004, 0.0045, 0.005),
        ("600 ± 12,5 %", 525, 600, 675),
        ("1,234,567.5", 1_234_567.5, 1_234_567.5, 1_234_567.5),
        ("12_000", 12_000, 12_000, 12_000),
        ("1e-5", 1e-5, 1e-5, 1e-5),
        (".5", 0.5, 0.5, 0.5),
        ("€ 80", 80, 80, 80),
        ("80 EUR", 80, 80, 80),
        ("80 eur", 80, 80, 80),
        ("5 k€", 5_000, 5_000, 5_000),
        ("Fr. 250.-", 250, 250, 250),
        ("250.- to 300.-", 250, 275, 300),
        ("600k", 600_000, 600_000, 600_000),
        ("1.5 million", 1.5e6, 1.5e6, 1.5e6),
        ("5 %", 0.05, 0.05, 0.05),
        ("5-8", 5, 6.5, 8),
        ("5 – 8", 5, 6.5, 8),
        ("5 to 8", 5, 6.5, 8),
        ("between 5 and 8", 5, 6.5, 8),
        ("5-8 %", 0.05, 0.065, 0.08),
        ("5 % - 8 %", 0.05, 0.065, 0.08),
        ("40-90k", 40_000, 65_000, 90_000),
        ("about 600", 480, 600, 720),
        ("about 600, give or take 30 %", 420, 600, 780),
        ("600 give or take 50", 550, 600, 650),
        ("600 ± 50", 550, 600, 650),
        ("600 +- 10%", 540, 600, 660),
        ("600 (400-900)", 400, 600, 900),
        ("10 % (5-20 %)", 0.05, 0.1, 0.2),
    ],
)
def test_what_people_write(text: str, low: float, likely: float, high: float) -> None:
    assert read_range(text) == pytest.approx((low, likely, high))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "must be a number or a range"),
        ("many", "must be a number or a range"),
        ("1..5", "must be a number or a range"),
        ("8-5", "must go from low to high"),
        ("12.000", "'12.000' is either 12 or 12000; write the one that is meant"),
        ("12,000", "'12,000' is either 12 or 12000; write the one that is meant"),
        ("1,234 %", "'1,234' is either 1.2340 or 1234; write the one that is meant"),
        ("4,000 to 9", "'4,000' is either 4 or 4000; write the one that is meant"),
        ("1,23,456", "must have numbers like 12000 or 1.5, got '1,23,456'"),
        (".12 000", "must have numbers like 12000 or 1.5"),
        ("5 % give or take 2 %", "could mean points or a share of 5 %"),
        ("1e999", "must be finite"),
        ("nan", "must be a number or a range"),
        ("5 - 6 - 7", "must be a number or a range"),
        ("9" * 5000, "must be a number or a range"),
        ("1" + ",000" * 3000 + "x", "must be a number or a range"),
    ],
)
def test_what_is_unclear_is_refused(text: str, words: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        read_range(text)
    assert words in str(refused.value)
    assert len(str(refused.value)) < 200


def test_computed_ends_have_no_noise() -> None:
    assert read_range("~0.004") == (0.0032, 0.004, 0.0048)
    assert read_range("0.004 to 0.005") == (0.004, 0.0045, 0.005)


@pytest.mark.parametrize(
    ("text", "units"),
    [
        ("2.50 USD", ("USD",)),
        ("2 to 3 €", ("EUR",)),
        ("5 %", ("%",)),
        ("5-8 %", ("%",)),
        ("600 ± 30 %", ()),
        ("5 € ± 30 %", ("EUR",)),
        ("5 MIN", ("MIN",)),  # whoever reads it knows no such currency
    ],
)
def test_units(text: str, units: tuple[str, ...]) -> None:
    assert units_of(text) == units


@given(st.text(alphabet="0123456789.,-–%±+e k()toabu", max_size=30))
def test_any_text_is_a_range_or_refused(text: str) -> None:
    try:
        found = read_range(text)
    except InvalidInput:
        return
    assert found.low <= found.likely <= found.high


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (3, (3, 3, 3)),
        ([1, 3], (1, 2, 3)),
        ((1, 1.5, 3), (1, 1.5, 3)),
        ({"low": 1, "likely": 2, "high": 5}, (1, 2, 5)),
        ({"low": 1, "high": 5}, (1, 3, 5)),
    ],
)
def test_data(given: Any, expected: tuple[float, float, float]) -> None:
    assert as_range(given) == expected


@pytest.mark.parametrize("given", [True, None, [1], [1, "2"], {"low": 1}, {"low": 1, "up": 2}, []])
def test_other_data(given: Any) -> None:
    with pytest.raises(InvalidInput):
        as_range(given)


def test_a_formula_lies_between_its_ends_everywhere_inside() -> None:
    """q M + (1 - q) F rises in q or falls, depending on M and F; no sample lies outside."""

    def formula(at: Mapping[str, float]) -> float:
        return at["q"] * at["M"] + (1 - at["q"]) * at["F"]

    known = {"q": Range(0.1, 0.2, 0.9), "M": Range(1, 5, 10), "F": Range(2, 3, 20)}
    found = spread(formula, known)
    draw = random.Random(1)
    inside = [
        formula({name: draw.uniform(each.low, each.high) for name, each in known.items()})
        for _ in range(10_000)
    ]
    assert found.low <= min(inside) < found.low + 1
    assert found.high - 1.5 < max(inside) <= found.high
    assert found.likely == formula({"q": 0.2, "M": 5, "F": 3})

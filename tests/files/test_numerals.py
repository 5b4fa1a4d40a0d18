"""Numbers as people write them: read as they were meant, or refused, never another number."""

from decimal import Decimal
from math import isnan

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from fedaccord.files.clients import read_clients
from fedaccord.files.numerals import read_numeral, unambiguous
from fedaccord.files.reading import guarded

SETTLED = {
    "42": 42,
    "007": 7,
    "+5": 5,
    "-5": -5,
    "\u22125": -5,
    "0.85": 0.85,
    "0,85": 0.85,
    ".5": 0.5,
    "5.": 5,
    "12.5": 12.5,
    "12,50": 12.5,
    "0.0040": 0.004,
    "0,004": 0.004,  # nobody separates the thousands of 0
    "0.000": 0,
    "1e-8": 1e-8,
    "1.234e5": 123_400,  # digits are not grouped before a power of ten
    "1,23E-05": 1.23e-5,
    "1234.567": 1234.567,  # 4 digits without a separator: so it is none
    "1.234.567": 1_234_567,
    "1,234,567": 1_234_567,
    "1.234,5": 1234.5,
    "1,234.567": 1234.567,
    "1 234": 1234,
    "1 234 567,891": 1_234_567.891,
    "1\u00a0234,5": 1234.5,
    "1\u202f234,5": 1234.5,
    "1\u2009234": 1234,
    "1'234.50": 1234.5,
    "1’234": 1234,
    "860_000": 860_000,
    "97 %": 0.97,
    "97,5%": 0.975,
    "110 %": 1.1,
    "5 €": 5,
    "€5": 5,
    "EUR 1.234,50": 1234.5,
    "$1,234.50": 1234.5,
    "-€ 5": -5,
    "£-5": -5,
    "CHF 1'200.50": 1200.5,
    "200 kr": 200,
    "1'250'000.-": 1_250_000,
    "CHF 1’250.–": 1250,
    "1.250,-": 1250,
    "5,-- €": 5,
    "12 chf": 12,
}


@pytest.mark.parametrize(("text", "number"), SETTLED.items(), ids=SETTLED.keys())
def test_one_reading(text: str, number: float) -> None:
    numeral = read_numeral(f" {text}\t")
    assert numeral is not None
    assert not numeral.is_ambiguous
    assert numeral.point == number


@pytest.mark.parametrize(
    ("text", "point", "comma"),
    [
        ("42.000", 42, 42_000),
        ("1,234", 1234, 1.234),
        ("-1,234 €", -1234, -1.234),
        ("97.500 %", 0.975, 975),
    ],
)
def test_two_readings(text: str, point: float, comma: float) -> None:
    numeral = read_numeral(text)
    assert numeral is not None
    assert (numeral.under("."), numeral.under(","), numeral.mark) == (point, comma, "")


NOT_NUMBERS = [
    *("", "-", ".", ",", "€", "%", "x", "twelve", "n/a", "nan", "inf", "0x10", "1/2", "(5)"),
    *("1.2.2024", "2026-01-31", "12:30", "12.34.56", "1,23,456", "1.234,567.8", "1.234.56"),
    *("1_0", "12 34", "1'23", "0 123", "1 234'567", "1. 5", "1\n234", "1\t234", "1.234.567e5"),
    *("5 kEUR", "5 Mio", "5k", "5 €€", "€5€", "% 5", "5 %%", "--5", "-€-5", "5²", "５", "٥"),
    *("1e", "e5", "1e99999", "9" * 401),
]


@pytest.mark.parametrize("text", NOT_NUMBERS)
def test_no_reading(text: str) -> None:
    assert read_numeral(text) is None


# --- Properties ----------------------------------------------------------------------------

LOCALES = [
    (decimal, thousands)
    for decimal in ".,"
    for thousands in ("", ".", ",", " ", "\u00a0", "\u202f", "\u2009", "'", "’", "_")
    if thousands != decimal
]
NUMBERS = st.decimals(0, 10**9, places=6).map(lambda number: number.normalize())
UNITS = st.sampled_from(["{}", "{} €", "€{}", "EUR {}", "{}EUR", " {} "])


def written(number: Decimal, locale: tuple[str, str], least_decimals: int) -> str:
    """The number in the style of a locale, with zeros at the end if it has few decimals."""
    decimals = max(least_decimals, -int(number.as_tuple().exponent))
    text = f"{number:,.{decimals}f}"
    return text.translate({ord("."): locale[0], ord(","): locale[1]})


@given(
    st.lists(st.tuples(NUMBERS, st.integers(0, 4), UNITS), min_size=1, max_size=5),
    st.sampled_from(LOCALES),
    st.sampled_from(";\t"),
)
@example([(Decimal(42), 3, "{}")], (".", ""), ";")
@example([(Decimal(42_000), 0, "{}")], (",", "."), ";")
@example([(Decimal(42_000), 0, "{}"), (Decimal("0.5"), 1, "{}")], (",", "."), ";")
@example([(Decimal("1.234"), 0, "{}"), (Decimal("12.5"), 1, "{}")], (".", ","), "\t")
def test_a_file_in_one_style_is_read_exactly_or_refused(
    numbers: list[tuple[Decimal, int, str]], locale: tuple[str, str], separator: str
) -> None:
    cells = [unit.format(written(number, locale, zeros)) for number, zeros, unit in numbers]
    rows = [["name", "valuation", "samples", "cost per sample"]]
    rows += [[f"client {n}", cell, "7", "1"] for n, cell in enumerate(cells)]
    read = read_clients("\n".join(map(separator.join, rows)))
    assert read.table is not None
    refused = {problem.place for problem in read.problems}
    for n, (number, _, _) in enumerate(numbers):
        value = read.table.numbers["valuation"][n]
        if f"line {n + 2}, valuation" not in refused:
            assert value == float(number)
        elif number > 0:  # zero is read, and is not a valuation
            assert isnan(value)


@given(st.text(alphabet="0123456789.,' _-+eE%€\u00a0", max_size=12))
def test_what_python_reads_is_read_the_same_or_refused(text: str) -> None:
    try:
        number = float(text)
    except ValueError:
        assume(False)
    numeral = read_numeral(text)
    if numeral is not None:
        assert numeral.under(".") == number


@given(st.floats(allow_nan=False, allow_infinity=False))
@example(450.123)
@example(-1.234)
@example(42.0)
def test_no_number_that_fedaccord_writes_is_ambiguous(number: float) -> None:
    numeral = read_numeral(str(guarded(number)))
    assert numeral is not None
    assert not numeral.is_ambiguous
    assert numeral.point == number
    assert float(unambiguous(repr(number))) == number

"""A number as people write it, with decimal commas, thousands separators, units; never guessed.

A point or a comma is the decimal mark unless it can only separate thousands. It can be either in a
numeral like `42.000`: one to three digits, the first not 0, then one mark and three digits. Such a
numeral has two readings, and only other numerals of the same file can say which one is meant.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_CURRENCIES = {"€": "EUR", "£": "GBP", "₹": "INR", "fr.": "CHF", "sfr.": "CHF"} | {
    code.casefold(): code
    for code in (
        *("AUD", "BGN", "BRL", "CAD", "CHF", "CNY", "CZK", "DKK", "EUR", "GBP", "HKD", "HUF"),
        *("ILS", "INR", "ISK", "JPY", "KRW", "MXN", "NOK", "NZD", "PLN", "RON", "SEK", "SGD"),
        *("TRY", "USD", "ZAR", "$", "¥", "kr", "zł"),
    )
}
"""Signs and codes; a sign that several currencies have stands for itself."""
_SHARED_SIGNS = {
    "$": ("AUD", "CAD", "HKD", "MXN", "NZD", "SGD", "USD"),
    "¥": ("CNY", "JPY"),
    "kr": ("DKK", "ISK", "NOK", "SEK"),
    "zł": ("PLN",),
}

_KEYS = str.maketrans(
    dict.fromkeys("\u00a0\u2007\u2009\u202f", " ")
    | dict.fromkeys("\u2019\u02bc", "'")
    | {"\u2212": "-"}
)
"""Typographic spaces, apostrophes and the minus sign as the keys of a keyboard."""
_NO_CENTS = re.compile(r"(?<=[0-9])([.,])(?:--?|[–—])(?!\s*[0-9])")
"""The dash for no cents, as in "250.-" and "250,- €"."""
_WORD = r"[^\W\d_]{1,3}\.?|[%$€£¥₹]"
_WITH_UNIT = re.compile(
    rf"([+-]?) ?({_WORD})? ?([+-]?[0-9.,' _]*[0-9.,](?:e[+-]?[0-9]+)?) ?({_WORD})?", re.I
)
_MANTISSA = re.compile(r"([+-]?)([0-9.,' _]+)(?:e([+-]?[0-9]{1,4}))?", re.I)
_GROUPS = {
    mark: re.compile(rf"[1-9][0-9]{{0,2}}(?:{re.escape(mark)}[0-9]{{3}})+") for mark in ".,' _"
}
_EITHER = re.compile(r"[1-9][0-9]{0,2}[.,][0-9]{3}")
_LONGEST = 400
"""Characters of a numeral; the longest that stands for a number that a float can hold."""


@dataclass(frozen=True)
class Numeral:
    """What a numeral says: the number, in which unit, and which decimal mark its writer uses."""

    point: float
    """The number, if the decimal mark is a point."""
    comma: float
    """The number, if the decimal mark is a comma."""
    mark: str = ""
    """The decimal mark that this numeral gives away: "." or ",", or empty for neither."""
    unit: str = ""
    """A currency or %; the number of a percentage is divided by 100 already."""

    @property
    def is_ambiguous(self) -> bool:
        """Whether the number depends on the decimal mark."""
        return self.point != self.comma

    def under(self, mark: str) -> float:
        """The number with this decimal mark."""
        return self.comma if mark == "," else self.point


def plain(text: str) -> str:
    """A text with the keys of a keyboard, and zeros for the dash that stands for no cents.

    >>> plain("CHF 1’250.–"), plain("5 - 8")
    ("CHF 1'250.00", '5 - 8')
    """
    return _NO_CENTS.sub(r"\g<1>00", text.translate(_KEYS))


def read_numeral(text: str) -> Numeral | None:
    """What a text says if it is a number, possibly with a unit; None if it is not.

    >>> read_numeral("1.234,50 €")
    Numeral(point=1234.5, comma=1234.5, mark=',', unit='EUR')
    >>> read_numeral("97 %")
    Numeral(point=0.97, comma=0.97, mark='', unit='%')
    >>> read_numeral("42.000")
    Numeral(point=42.0, comma=42000.0, mark='', unit='')
    >>> read_numeral("1.2.2024"), read_numeral("twelve")
    (None, None)
    """
    if len(text) > _LONGEST:
        return None
    parts = _WITH_UNIT.fullmatch(plain(text.strip()))
    if parts is None:
        return None
    sign, before, amount, after = parts.groups()
    if (before and after) or (sign and amount[0] in "+-"):
        return None
    unit = _unit(before or after)
    mantissa = _MANTISSA.fullmatch(sign + amount)
    if unit is None or mantissa is None or before == "%":
        return None
    return _numeral(mantissa[1], mantissa[2], mantissa[3], unit)


def _unit(word: str | None) -> str | None:
    """The unit that a word stands for, empty for no word, or None if it is none that we know."""
    return "" if not word else "%" if word == "%" else currency(word)


def currency(word: str) -> str | None:
    """The currency that a sign or a code stands for.

    >>> currency("€"), currency("chf"), currency("kEUR")
    ('EUR', 'CHF', None)
    """
    return _CURRENCIES.get(word.casefold())


def may_be(unit: str, counted: str) -> bool:
    """Whether an amount in this currency may be one in the currency that others are counted in.

    >>> may_be("EUR", "€"), may_be("$", "USD"), may_be("$", "EUR")
    (True, True, False)
    """
    known = currency(counted.strip()) or counted.strip()
    return (
        unit == known
        or known in _SHARED_SIGNS.get(unit, ())
        or unit in _SHARED_SIGNS.get(known, ())
    )


def _numeral(sign: str, digits: str, power: str | None, unit: str) -> Numeral | None:
    """The numeral with these digits and marks, times ten to the power."""
    digits = digits.strip(" ")

    def number(whole: str, fraction: str = "") -> float:
        exponent = int(power or 0) - 2 * (unit == "%")
        return float(f"{sign}{whole}.{fraction}e{exponent}")

    if not power and _EITHER.fullmatch(digits):
        decimal, thousands = number(digits[:-4], digits[-3:]), number(digits[:-4] + digits[-3:])
        either = (decimal, thousands) if digits[-4] == "." else (thousands, decimal)
        return Numeral(*either, unit=unit)
    whole, mark, fraction = _split(digits)
    plain = _ungrouped(whole)
    usable = plain is not None and re.fullmatch("[0-9]*", fraction) and (plain or fraction)
    if not usable or plain is None or (power and plain != whole):
        return None
    both = number(plain, fraction)
    if not mark:  # a mark that separates thousands is not the decimal mark
        mark = {".": ",", ",": "."}.get(next((c for c in whole if c in ".,"), ""), "")
    return Numeral(both, both, mark, unit)


def _split(digits: str) -> tuple[str, str, str]:
    """What is before the decimal mark, the mark, and what is after it."""
    last = max(digits.rfind("."), digits.rfind(","))
    if last < 0 or digits.count(digits[last]) > 1:
        return digits, "", ""
    return digits[:last], digits[last], digits[last + 1 :]


def _ungrouped(whole: str) -> str | None:
    """The digits without thousands separators; None if they are not in groups of three."""
    if re.fullmatch("[0-9]*", whole):
        return whole
    separator = next(c for c in whole if not c.isdigit())
    return whole.replace(separator, "") if _GROUPS[separator].fullmatch(whole) else None


class InThreeDecimals(float):
    """A number of a TOML file with three decimals, like `42.000`: where one could expect thousands.

    TOML says that it is 42, and its writer may have meant 42 thousand.
    """

    written: str


def toml_float(text: str) -> float:
    """A float as a TOML file has it; one that could be meant otherwise remembers its text.

    >>> toml_float("0.5"), toml_float("42.000").written
    (0.5, '42.000')
    """
    if not _EITHER.fullmatch(text):
        return float(text)
    number = InThreeDecimals(text)
    number.written = text
    return number


def unambiguous(text: str) -> str:
    """A number that Python wrote, with a 0 at its end if it could be read in two ways.

    >>> unambiguous("450.123"), unambiguous("450.5"), unambiguous("42000")
    ('450.1230', '450.5', '42000')
    """
    return text + "0" if _EITHER.fullmatch(text.removeprefix("-")) else text

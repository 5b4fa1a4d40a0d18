"""A range in a cell of a spreadsheet, whose numbers may be written as those of any other cell.

`ranges.read_range` knows the words ("10 to 20", "600 give or take 30 %"). Here each number among
them is first read as a numeral, because "400.000 - 900.000" depends on the decimal mark, too.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from fedaccord.errors import InvalidInput
from fedaccord.files.numerals import PLAIN, Numeral, currency, read_numeral, unambiguous
from fedaccord.files.ranges import CURRENCY, Range, read_range

_NUMERAL = re.compile(r"[0-9]+(?:[.,' _][0-9]+)*(?:e[+-]?[0-9]+)?", re.IGNORECASE)
_GAP = re.compile(r"(?:give or take|±|\+/?-|plus or minus) ?[0-9.,]+ ?%")
_LONGEST = 100
"""Characters of a cell."""


@dataclass(frozen=True)
class RangeCell:
    """A range under either decimal mark."""

    point: Range
    comma: Range
    marks: frozenset[str]
    """The decimal marks that its numerals give away."""
    units: tuple[str, ...]
    """The currencies in it, and % unless only the width of the range is a percentage."""

    @property
    def is_ambiguous(self) -> bool:
        """Whether it depends on the decimal mark."""
        return self.point != self.comma

    def under(self, mark: str) -> Range:
        """The range with this decimal mark."""
        return self.comma if mark == "," else self.point


def read_range_cell(text: str) -> RangeCell | None:
    """The range that a cell says; None if it says none.

    >>> read_range_cell("0,7 to 0,9").point
    Range(low=0.7, likely=0.8, high=0.9)
    >>> read_range_cell("4.000 - 9.000").comma
    Range(low=4000.0, likely=6500.0, high=9000.0)
    """
    plain = text.strip().translate(PLAIN)
    if len(plain) > _LONGEST:
        return None
    numerals = {found: read_numeral(found) for found in _NUMERAL.findall(plain)}
    known = {found: numeral for found, numeral in numerals.items() if numeral is not None}
    units = _units(plain)
    if len(known) < len(numerals) or units is None:
        return None
    try:
        point, comma = (read_range(_under(plain, known, mark)) for mark in ".,")
    except InvalidInput:
        return None
    marks = frozenset(numeral.mark for numeral in known.values() if numeral.mark)
    return RangeCell(point, comma, marks, units)


def _under(text: str, numerals: dict[str, Numeral], mark: str) -> str:
    """The text with each numeral as Python writes it."""

    def written(found: re.Match[str]) -> str:
        number = repr(numerals[found[0]].under(mark)).removesuffix(".0")
        return unambiguous(number)

    return _NUMERAL.sub(written, text)


def _units(text: str) -> tuple[str, ...] | None:
    """The units in the text; None if there is one that is not known."""
    found = [currency(sign) for sign in CURRENCY.findall(text)]
    if "%" in _GAP.sub("", text.lower()):
        found.append("%")
    return None if None in found else tuple(unit for unit in found if unit)

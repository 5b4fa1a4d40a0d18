"""A range in a cell of a spreadsheet, which other cells may settle if it has two readings.

"400.000 - 900.000" depends on the decimal mark, as "400.000" does.
"""

from __future__ import annotations

from dataclasses import dataclass

from fedaccord.errors import InvalidInput
from fedaccord.files.numerals import currency
from fedaccord.files.ranges import Range, numerals_in, read_range, units_of


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
    try:
        point, comma = (read_range(text, mark) for mark in ".,")
    except InvalidInput:
        return None
    units = units_of(text)
    if any(unit != "%" and currency(unit) is None for unit in units):
        return None
    marks = frozenset(each.mark for each in numerals_in(text).values() if each and each.mark)
    return RangeCell(point, comma, marks, units)

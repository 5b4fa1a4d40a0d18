"""The numbers of a table, of which each may be evidence of how the others are to be read.

A numeral like `42.000` has two readings. If other numerals of the file show which decimal mark its
writer uses, that settles it, and a note says so. Otherwise, or if it would then have decimals that
nobody writes (`42.000` samples), it is refused with both readings, and a form can ask.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from math import floor, isfinite, nan
from typing import NamedTuple

import numpy as np

from fedaccord.checks import shown
from fedaccord.files.cells import Broken, Cell, Stored, as_written, is_blank
from fedaccord.files.headings import perhaps_a_rate, wrong_currency, wrong_unit
from fedaccord.files.numerals import Numeral, read_numeral, unambiguous
from fedaccord.files.questions import Answers, Doubt, decimal_mark
from fedaccord.files.range_cells import RangeCell, read_range_cell
from fedaccord.files.ranges import Range, spelled
from fedaccord.game.ranges import RANGED
from fedaccord.numbers import FloatArray, as_text, count

_PLAIN = (
    r"(?:[+-]?(?![1-9][0-9]{{0,2}}{0}[0-9]{{3}}(?:\n|\Z))"
    r"(?:[0-9]++(?:{0}[0-9]*+)?|{0}[0-9]++)(?:e[+-]?[0-9]{{1,4}})?)?+"
)
_PLAIN_COLUMN = {
    mark: re.compile(r"{0}(?:\n{0})*+".format(_PLAIN.format(escaped)), re.IGNORECASE)
    for mark, escaped in ((".", r"\."), (",", ","))
}
"""By decimal mark: numerals without a doubt, a unit or a thousands separator, or none, in lines."""
_MARKS = {".": "decimal points", ",": "decimal commas"}
_WRITE = "write the one that is meant"

Wrong = tuple[int, str, str]
"""The row of a number, its field, and what is wrong with it."""


class _Written(NamedTuple):
    """A numeral or a range, and where it is."""

    row: int
    field: str
    text: str
    numeral: Numeral | RangeCell


class NumberColumns:
    """Reads the columns of a table part by part, and what could not be settled at the end."""

    def __init__(
        self,
        units: Mapping[str, str],
        place: Callable[[int, str], str],
        answers: Answers | None = None,
        counted: str = "",
    ) -> None:
        """Start with the units in the headings; `place` says where in the file a number is.

        All amounts must be in the currency `counted`; or in that of the first, if it is not known.
        """
        self._units = units
        self._place = place
        self._answers = answers or {}
        self._marks: dict[str, _Written] = {}
        self._unsettled: list[_Written] = []
        self.ranges: dict[str, dict[int, Range]] = {}
        """Cells like "400,000 - 900,000", by field and row."""
        self.doubts: list[Doubt] = []
        """Numbers that nothing settled."""
        self.currency = counted
        """The currency of the amounts; empty if nothing names one."""
        self._shown_by = ""
        for field, unit in units.items():
            if unit not in ("", "%") and not self.currency:
                self.currency, self._shown_by = unit, f"the heading of {field}"

    def read(
        self, field: str, cells: Sequence[Cell | None], first: int, required: bool
    ) -> tuple[FloatArray, list[Wrong]]:
        """The numbers of a part of a column, which starts in row `first`, and what is wrong.

        NaN stands for a number that is missing, wrong, or not settled yet.
        """
        if (values := self._plain(field, cells, first, required)) is not None:
            return values, []
        values = np.full(len(cells), nan)
        wrongs: list[Wrong] = []
        for k, cell in enumerate(cells):
            number = self._number(field, cell, first + k, required)
            if isinstance(number, str):
                wrongs.append((first + k, field, number))
            else:
                values[k] = number
        return values, wrongs

    def _plain(
        self, field: str, cells: Sequence[Cell | None], first: int, required: bool
    ) -> FloatArray | None:
        """The numbers, if nothing about them needs a closer look."""
        try:
            text = "\n".join(cells)  # type: ignore[arg-type]
        except TypeError:  # not all are text
            return None
        mark = "," if "," in text else "."
        if self._units.get(field) == "%" or not _PLAIN_COLUMN[mark].fullmatch(text):
            return None
        lines = text.replace(",", ".").split("\n")
        values = np.fromiter((float(line) if line else nan for line in lines), np.float64)
        blank = lines.count("")
        if len(lines) != len(cells) or np.isfinite(values).sum() + blank != len(lines):
            return None
        if mark not in self._marks and mark in text:
            k = next(k for k, line in enumerate(lines) if "." in line)
            self._marks[mark] = _Written(first + k, field, str(cells[k]), Numeral(nan, nan))
        return None if required and blank else values

    def _number(self, field: str, cell: Cell | None, row: int, required: bool) -> float | str:
        """The number in a cell, NaN if there is none or not yet; or what is wrong."""
        if cell is None:
            return nan
        if isinstance(cell, Broken):
            return cell.why
        if is_blank(cell):
            return "is missing" if required else nan
        numeral = _numeral(cell)
        text = cell if isinstance(cell, str) else as_text(cell.value)
        if numeral is None:
            return self._range(field, row, text)
        if wrong := self._wrong_unit(field, row, text, numeral.unit):
            return wrong
        if self._units.get(field) == "%" and not numeral.unit:
            numeral = _percentage(cell)
            if numeral is None or 0 < abs(numeral.point) <= 0.01:
                return f"{shown(text)} under a heading with % could be a share; write it with a %"
        if wrong := _perhaps_a_rate(field, _as_shown(cell), numeral.point, numeral.unit):
            return wrong
        return self._noted(_Written(row, field, text.strip(), numeral))

    def _range(self, field: str, row: int, text: str) -> float | str:
        """The likely number of a range in a cell; or what is wrong."""
        found = read_range_cell(text) if field in RANGED else None
        if found is None:
            return _not_a_number(text)
        for unit in found.units:
            if wrong := self._wrong_unit(field, row, text, unit):
                return wrong
        if wrong := _perhaps_a_rate(field, text, found.point, *found.units):
            return wrong
        written = _Written(row, field, text.strip(), found)
        if found.is_ambiguous:
            self._unsettled.append(written)
            return nan
        for mark in found.marks:
            self._marks.setdefault(mark, written)
        return self._taken(written, ".")

    def _wrong_unit(self, field: str, row: int, text: str, unit: str) -> str | None:
        """What is wrong with the unit of a number; a currency counts for those that follow."""
        if wrong := wrong_unit(field, unit):
            return f"{wrong}, got {shown(text)}"
        if unit not in ("", "%") and not self.currency:
            self.currency, self._shown_by = unit, self._place(row, field)
        return wrong_currency(unit, self.currency, self._shown_by)

    def _taken(self, written: _Written, mark: str) -> float:
        """The number with this decimal mark; a range is kept."""
        row, field, _, numeral = written
        value = numeral.under(mark)
        if not isinstance(value, Range):
            return value
        if not value.exact:
            self.ranges.setdefault(field, {})[row] = value
        return float(floor(value.likely)) if field == "samples" else value.likely

    def _noted(self, written: _Written) -> float | str:
        """The number, and what it shows about others remembered."""
        numeral = written.numeral
        assert isinstance(numeral, Numeral)
        if numeral.is_ambiguous:
            self._unsettled.append(written)
            return nan
        if numeral.mark:
            self._marks.setdefault(numeral.mark, written)
        if not isfinite(numeral.point):
            return f"must be a finite number, got {numeral.point}"
        return numeral.point

    def settle(self, columns: Mapping[str, FloatArray], notes: list[str]) -> Iterator[Wrong]:
        """Put the numbers in that are settled by others; yield what is wrong with the rest."""
        seen = next(iter(self._marks)) if len(self._marks) == 1 else None
        settled: list[_Written] = []
        for written in self._unsettled:
            row, field, text, numeral = written
            mark = decimal_mark(text, self._answers)
            if mark is None and seen is not None and not _strange(field, text, seen):
                mark = seen
                settled.append(written)
            if mark is not None:
                columns[field][row] = self._taken(written, mark)
                continue
            small, large = _readings(numeral)
            self.doubts.append(Doubt(row, field, text, small, large))
            yield row, field, f"{shown(text)} is either {small} or {large}; {_WRITE}"
        if seen is not None and settled:
            notes.append(self._settled_note(seen, settled))

    def _settled_note(self, mark: str, settled: Sequence[_Written]) -> str:
        row, field, text, numeral = settled[0]
        witness = self._marks[mark]
        others = len(settled) - 1
        like = f" ({count(others, 'number')} like it in the same way)" if others else ""
        return (
            f"{self._place(row, field)}: {shown(text)} was read as {_as_said(numeral.under(mark))}"
            f"{like}, because {shown(witness.text)} ({self._place(witness.row, witness.field)}) "
            f"shows that the file has {_MARKS[mark]}"
        )

    def contradictions(self) -> Iterator[str]:
        """What is wrong with the file as a whole: two decimal marks."""
        if len(self._marks) > 1:
            shows = " and ".join(
                f"{_MARKS[mark]} ({shown(seen.text)}, {self._place(seen.row, seen.field)})"
                for mark, seen in sorted(self._marks.items(), reverse=True)
            )
            yield f"has {shows}; use one of them"


def _numeral(cell: Cell) -> Numeral | None:
    if isinstance(cell, Stored):
        return Numeral(cell.value, cell.value, unit=cell.unit)
    return read_numeral(cell) if isinstance(cell, str) else None


def _as_shown(cell: Cell) -> str:
    """The text of a cell; a percentage of a workbook as it is shown there."""
    if isinstance(cell, Stored) and cell.unit == "%":
        return f"{as_text(100 * cell.value)} %"
    return as_written(cell)


def _percentage(cell: Cell) -> Numeral | None:
    """The numeral in a cell whose heading says %."""
    if isinstance(cell, Stored):
        share = read_numeral(f"{unambiguous(repr(cell.value))} %")
        return share and Numeral(share.point, share.point, unit="%")
    return read_numeral(f"{cell} %") if isinstance(cell, str) else None


def _perhaps_a_rate(field: str, text: str, found: float | Range, *units: str) -> str | None:
    """What is wrong with a discount factor in per cent that was probably meant otherwise."""
    if field != "discount_factor" or "%" not in units:
        return None
    return perhaps_a_rate(text.strip(), found)


def _not_a_number(text: str) -> str:
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if isfinite(number):
        return f"must be a number, got {shown(text)}"
    return f"must be a finite number, got {number}"


def _strange(field: str, text: str, mark: str) -> bool:
    """Whether a numeral with two readings would have decimals that nobody writes.

    These are three zeros, and any for samples, which are counted.
    """
    return mark in text and (field == "samples" or f"{mark}000" in text)


def _readings(numeral: Numeral | RangeCell) -> tuple[str, str]:
    """Both readings, the smaller first, each as it can be written instead."""
    if isinstance(numeral, RangeCell):
        ranges = sorted((numeral.point, numeral.comma), key=lambda found: abs(found.likely))
        return spelled(ranges[0]), spelled(ranges[1])
    numbers = sorted((numeral.point, numeral.comma), key=abs)
    return spelled(numbers[0]), spelled(numbers[1])


def _as_said(value: float | Range) -> str:
    if isinstance(value, Range) and not value.exact:
        return f"{as_text(value.low)} to {as_text(value.high)}"
    return as_text(value.likely if isinstance(value, Range) else value)

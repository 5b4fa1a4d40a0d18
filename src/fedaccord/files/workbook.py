"""The rows of an XLSX workbook, read with openpyxl (extra `spreadsheets`)."""

from __future__ import annotations

import io
import re
import warnings
import zipfile
from collections.abc import Iterator, Sequence
from datetime import date, time, timedelta
from math import isfinite
from typing import Any

from fedaccord.checks import check_installed, in_brief, shown
from fedaccord.errors import InvalidInput
from fedaccord.files.cells import Broken, Cell, Row, Sheet, Stored, is_blank
from fedaccord.files.numerals import currency
from fedaccord.files.reading import MEGABYTE

_MOST_ROWS = 1_048_576
"""Rows of a sheet in Excel."""
_UNPACKED = 400 * MEGABYTE
"""An XLSX file is a ZIP archive, and a small one can unpack to any size."""
_FORMULA = re.compile(rb"<(?:\w+:)?f[\s/>]")
_CURRENCY_FORMAT = re.compile(r"\[\$([^\]-]+)|([€£])")
_QUOTED = re.compile(r'"[^"]*"')


def read_workbook(data: bytes) -> Sheet:
    """The sheet called "clients", or else the first, of a workbook.

    A formula has the value that was saved with it.
    """
    check_installed("an XLSX file", "openpyxl")
    notes: list[str] = []
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # openpyxl warns of charts and styles that it drops
            rows = list(_rows(data, notes))
    except InvalidInput:
        raise
    except Exception as error:  # openpyxl raises anything at all on damaged files
        why = in_brief(str(error).splitlines()[0] if str(error) else type(error).__name__)
        raise InvalidInput(f"cannot be read as XLSX: {why}") from None
    width = max((len(cells) for _, cells in rows), default=0)
    full = ((number, [*cells, *[""] * (width - len(cells))]) for number, cells in rows)
    return Sheet(full, cell_name, notes)


def cell_name(row: int, column: int | None) -> str:
    """What Excel calls a cell; the column counts from 0.

    >>> cell_name(7, 2), cell_name(7, 27), cell_name(7, None)
    ('cell C7', 'cell AB7', 'row 7')
    """
    if column is None:
        return f"row {row}"
    letters = ""
    column += 1
    while column:
        column, letter = divmod(column - 1, 26)
        letters = chr(ord("A") + letter) + letters
    return f"cell {letters}{row}"


def _rows(data: bytes, notes: list[str]) -> Iterator[Row]:
    """The rows that are not blank; formulas are looked at only if there are any."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        if sum(part.file_size for part in archive.infolist()) > _UNPACKED:
            raise InvalidInput(f"is too large: it unpacks to more than {_UNPACKED // MEGABYTE} MB")
        if not any(part.startswith("xl/") for part in archive.namelist()):
            raise InvalidInput("is not a workbook of Excel; save it as XLSX or as CSV")
        sheets = [part for part in archive.namelist() if part.startswith("xl/worksheets/")]
        has_formulas = any(_FORMULA.search(archive.read(part)) for part in sheets)
    values = _sheet(data, notes, values=True).iter_rows()
    formulas = _sheet(data, [], values=False).iter_rows() if has_formulas else None
    for number, row in enumerate(values, start=1):
        if number > _MOST_ROWS:
            raise InvalidInput(f"has more than {_MOST_ROWS:,} rows")
        beside = next(formulas, ()) if formulas is not None else ()
        cells = [_cell(cell, _at(beside, k)) for k, cell in enumerate(row)]
        while cells and is_blank(cells[-1]):
            cells.pop()
        if cells:
            yield number, cells


def _sheet(data: bytes, notes: list[str], values: bool) -> Any:
    """The sheet to read, with the values of formulas or the formulas themselves."""
    import openpyxl

    book = openpyxl.load_workbook(io.BytesIO(data), read_only=True, data_only=values)
    sheets = book.worksheets
    if not sheets:
        raise InvalidInput("has no sheet with cells")
    named = [sheet for sheet in sheets if sheet.title.strip().casefold() == "clients"]
    chosen = (named or sheets)[0]
    if len(sheets) > 1 and not named:
        notes.append(
            f"has {len(sheets)} sheets, none of them called 'clients'; "
            f"the first was read, {shown(chosen.title)}"
        )
    chosen.reset_dimensions()  # what a file says of its size need not be true
    return chosen


def _at(row: Sequence[Any], k: int) -> Any:
    return row[k] if k < len(row) else None


def _cell(cell: Any, formula: Any) -> Cell:
    """A cell as the reader of tables takes it."""
    value = cell.value
    if value is None:
        is_formula = formula is not None and formula.data_type == "f"
        return Broken("has a formula without a saved value") if is_formula else ""
    if cell.data_type == "e":
        return Broken(f"has the error {shown(str(value))}")
    if isinstance(value, date | time | timedelta):
        return Broken("is a date or a time; write it as a number or as text")
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        if not isfinite(value):
            return Broken(f"must be a finite number, got {value}")
        return Stored(float(value), _unit(cell.number_format or ""))
    return str(value)


def _unit(number_format: str) -> str:
    """The unit that a number format shows: %, or a currency that does not depend on the country."""
    found = _CURRENCY_FORMAT.search(number_format)
    if found:
        sign = (found[1] or found[2]).strip()
        return currency(sign) or sign
    return "%" if "%" in _QUOTED.sub("", number_format) else ""

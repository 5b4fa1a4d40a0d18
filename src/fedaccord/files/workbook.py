"""The rows of a workbook: XLSX, read with openpyxl, XLS and ODS, read with calamine.

A file may come from anybody, and a small one can stand for any number of cells. So what there is
is counted before it is read. Calamine holds a sheet as a full table from its first cell to its
last, and ends the process if there is no room for it; so it runs in a process of its own, which
has a limit of memory and of time. Both libraries are in the extra `spreadsheets`.
"""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys
import warnings
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import date, time, timedelta
from itertools import dropwhile
from math import isfinite
from typing import Any

from fedaccord.checks import check_installed, in_brief, shown
from fedaccord.errors import FedaccordError, InvalidInput
from fedaccord.files.cells import Broken, Cell, Row, Sheet, Stored, is_blank
from fedaccord.files.numerals import currency
from fedaccord.files.reading import MEGABYTE

_ZIP, _OLE = b"PK\x03\x04", b"\xd0\xcf\x11\xe0"
"""What an XLSX or ODS file begins with, and an XLS file."""
_ODS = b"application/vnd.oasis.opendocument.spreadsheet"
_MOST_ROWS = 100_000
"""Rows of a sheet. Openpyxl reads some 10,000 a second; CSV has no such limit."""
_MOST_CELLS = 1_000_000
"""Cells of a sheet, with the empty ones before the last of a row."""
_LAST_ROW = 1_048_576
"""Rows of a sheet in Excel, which may have gaps."""
_MOST_TAGS = 5_000_000
"""Tags of a workbook that are parsed, whatever they mean: texts, and a few for each cell."""
_MOST_STYLE_TAGS = 500_000
"""The same for all parts but sheets and texts; Excel allows 65,490 formats of cells."""
_UNPACKED = 400 * MEGABYTE
"""An XLSX or ODS file is a ZIP archive, and a small one can unpack to any size."""
_MEMORY = 1_024 * MEGABYTE
"""Of the process that reads XLS and ODS: a sheet of XLS with its last cell takes half of it."""
_SECONDS = 10
"""Of that process: calamine reads a million cells in one, and may go on for ever with a damaged
file."""
_PIECE = 1 << 20
_FORMULA = re.compile(rb"<(?:\w+:)?f[\s/>]")
_ROW = re.compile(rb"<(?:\w+:)?row[\s/>]")
_CELL = re.compile(rb"<(?:\w+:)?c[\s/>]")
_CURRENCY_FORMAT = re.compile(r"\[\$([^\]-]+)|([€£])")
_QUOTED = re.compile(r'"[^"]*"')


def is_workbook(data: bytes) -> bool:
    """Whether it begins as a workbook does."""
    return data.startswith((_ZIP, _OLE))


def read_workbook(data: bytes) -> Sheet:
    """The sheet called "clients", or else the first, of a workbook.

    A formula has the value that was saved with it.
    """
    notes: list[str] = []
    try:
        if data.startswith(_OLE) or _is_ods(data):
            check_installed("an XLS or ODS file", "python_calamine")
            rows = list(_old_rows(data, notes))
        else:
            check_installed("an XLSX file", "openpyxl")
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of charts and styles that openpyxl drops
                rows = list(_rows(data, notes))
    except FedaccordError:
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


# --- XLSX ----------------------------------------------------------------------------------


def _rows(data: bytes, notes: list[str]) -> Iterator[Row]:
    """The rows that are not blank; formulas are looked at only if there are any."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        names = archive.namelist()
        if not any(part.startswith("xl/") for part in names):
            raise InvalidInput("is not a workbook of Excel; save it as XLSX or as CSV")
        texts = [part for part in names if part.lower() == "xl/sharedstrings.xml"]
        sheets = [part for part in names if part.startswith("xl/worksheets/")]
        others = set(names) - {*texts, *sheets}
        _check_counted(archive, texts, b"<", _MOST_TAGS)
        _check_counted(archive, sorted(others), b"<", _MOST_STYLE_TAGS)
        sheet = _sheet(data, notes, values=True)
        own = [part for part in names if part == sheet._worksheet_path]
        _check_counted(archive, own, b"<", _MOST_TAGS)
        _check_size(archive, own)
        has_formulas = any(_FORMULA.search(piece) for piece in _pieces(archive, own))
    formulas = _sheet(data, [], values=False).iter_rows() if has_formulas else None
    counted = 0
    for number, row in enumerate(sheet.iter_rows(), start=1):
        if number > _LAST_ROW:
            raise InvalidInput(f"has more than {_LAST_ROW:,} rows")
        beside = next(formulas, ()) if formulas is not None else ()
        counted += max(len(row), len(beside))
        if counted > _MOST_CELLS:
            raise InvalidInput(_TOO_MANY_CELLS)
        cells = [_cell(cell, _at(beside, k)) for k, cell in enumerate(row)]
        if cells := _without_end(cells):
            yield number, cells


_INSTEAD = "delete those that are not needed, or save the sheet as CSV"
_TOO_MANY_ROWS = f"has more than {_MOST_ROWS:,} rows, with the empty ones; {_INSTEAD}"
_TOO_MANY_CELLS = f"has more than {_MOST_CELLS:,} cells, with the empty ones; {_INSTEAD}"


def _pieces(archive: zipfile.ZipFile, parts: Sequence[str]) -> Iterator[bytes]:
    """The content of some parts of an archive, piece by piece, each of whole tags."""
    for part in parts:
        with archive.open(part) as file:
            rest = b""
            while piece := file.read(_PIECE):
                whole, tag, rest = (rest + piece).rpartition(b"<")
                yield whole
                rest = (tag + rest)[:_PIECE]  # no tag is so long
            yield rest


def _check_counted(archive: zipfile.ZipFile, parts: Sequence[str], tag: bytes, most: int) -> None:
    """Refuse an archive that has too many tags in some of its parts, or unpacks to too much."""
    if sum(part.file_size for part in archive.infolist()) > _UNPACKED:
        raise InvalidInput(f"is too large: it unpacks to more than {_UNPACKED // MEGABYTE} MB")
    counted = 0
    for piece in _pieces(archive, parts):
        counted += piece.count(tag)
        if counted > most:
            raise InvalidInput(f"is too large; {_INSTEAD}")


def _check_size(archive: zipfile.ZipFile, sheet: Sequence[str]) -> None:
    """Refuse a sheet that has too many rows or cells, with anything in them or not."""
    rows = cells = 0
    for piece in _pieces(archive, sheet):
        rows += len(_ROW.findall(piece))
        cells += len(_CELL.findall(piece))
        if rows > _MOST_ROWS:
            raise InvalidInput(_TOO_MANY_ROWS)
        if cells > _MOST_CELLS:
            raise InvalidInput(_TOO_MANY_CELLS)


def _sheet(data: bytes, notes: list[str], values: bool) -> Any:
    """The sheet to read, with the values of formulas or the formulas themselves."""
    import openpyxl

    book = openpyxl.load_workbook(io.BytesIO(data), read_only=True, data_only=values)
    sheets = book.worksheets
    chosen = sheets[_chosen([sheet.title for sheet in sheets], notes)]
    chosen.reset_dimensions()  # what a file says of its size need not be true
    return chosen


def _chosen(titles: Sequence[str], notes: list[str]) -> int:
    """Which sheet is read: that called "clients", or else the first, with a note."""
    if not titles:
        raise InvalidInput("has no sheet with cells")
    named = [k for k, title in enumerate(titles) if title.strip().casefold() == "clients"]
    if len(titles) > 1 and not named:
        notes.append(
            f"has {len(titles)} sheets, none of them called 'clients'; "
            f"the first was read, {shown(titles[0])}"
        )
    return (named or [0])[0]


def _without_end(cells: Sequence[Cell]) -> list[Cell]:
    """The cells up to the last that is not blank."""
    return list(dropwhile(is_blank, reversed(cells)))[::-1]


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


# --- XLS and ODS ---------------------------------------------------------------------------


def _is_ods(data: bytes) -> bool:
    """Whether an archive says that it is a spreadsheet of LibreOffice."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        if "mimetype" not in archive.namelist():
            return False
        with archive.open("mimetype") as file:
            return file.read(len(_ODS)) == _ODS


def _old_rows(data: bytes, notes: list[str]) -> Iterator[Row]:
    """The rows of an XLS or ODS file that are not blank, from a process that reads them."""
    if data.startswith(_ZIP):
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            _check_counted(archive, archive.namelist(), b"<", _MOST_TAGS)
    wrong = (
        "cannot be read as XLS or ODS: it is damaged, has a password, or has cells too far apart; "
        "save the sheet as XLSX or as CSV"
    )
    try:
        read = subprocess.run(
            [sys.executable, "-P", "-m", __name__],
            input=data,
            capture_output=True,
            timeout=_SECONDS,
            check=True,
        )
        found: dict[str, Any] = json.loads(read.stdout)
    except (subprocess.SubprocessError, ValueError):
        raise InvalidInput(wrong) from None
    if "wrong" in found:
        raise InvalidInput(found["wrong"])
    notes += found["notes"]
    for number, row in enumerate(found["rows"], start=found["first"]):
        if cells := _without_end([*[""] * found["left"], *map(_old_cell, row)]):
            yield number, cells


def _old_cell(value: str | float | None) -> Cell:
    """A cell as the reader of tables takes it; None is a date or a time."""
    if value is None:
        return Broken("is a date or a time; write it as a number or as text")
    if isinstance(value, str):
        return Broken(f"has the error {shown(value)}") if _ERROR.fullmatch(value) else value
    if not isfinite(value):
        return Broken(f"must be a finite number, got {value}")
    return Stored(float(value))


_ERROR = re.compile(r"#(?:DIV/0!|N/A|NAME\?|NULL!|NUM!|REF!|VALUE!)")


def _read_alone() -> dict[str, Any]:
    """What the process says that reads an XLS or ODS file from its stdin."""
    with suppress(ImportError, ValueError):  # not on Windows; a lower limit stands already
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
        resource.setrlimit(resource.RLIMIT_CPU, (_SECONDS, _SECONDS))
    from python_calamine import SheetTypeEnum, load_workbook

    book = load_workbook(io.BytesIO(sys.stdin.buffer.read()))
    titles = [each.name for each in book.sheets_metadata if each.typ == SheetTypeEnum.WorkSheet]
    notes: list[str] = []
    try:
        sheet = book.get_sheet_by_name(titles[_chosen(titles, notes)])
    except InvalidInput as error:
        return {"wrong": error.problems[0].message}
    if sheet.height > _MOST_ROWS:
        return {"wrong": _TOO_MANY_ROWS}
    if sheet.height * sheet.width > _MOST_CELLS:
        return {"wrong": _TOO_MANY_CELLS}
    top, left = sheet.start or (0, 0)
    rows = [[_plain(value) for value in row] for row in sheet.to_python()]
    return {"notes": notes, "first": top + 1, "left": left, "rows": rows}


def _plain(value: Any) -> str | float | None:
    """A value as JSON has it."""
    if isinstance(value, bool):
        return str(value).lower()
    return value if isinstance(value, str | int | float) else None


if __name__ == "__main__":
    sys.stdout.write(json.dumps(_read_alone()))

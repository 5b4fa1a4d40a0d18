"""What somebody pasted or uploaded: a consortium file, a table of members, or neither."""

import io
import json
import re
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from fedaccord.checks import in_brief
from fedaccord.console.workshop.members_form import BASIC, COLUMNS, MOST_MEMBERS
from fedaccord.console.workshop.written_table import Written
from fedaccord.errors import InvalidInput, Problem
from fedaccord.files.cells import Broken, Cell, Row, Sheet, Stored, as_written, is_blank
from fedaccord.files.clients import CPU_FIELDS
from fedaccord.files.headings import Layout, below_titles, not_used, read_heading, read_layout
from fedaccord.files.reading import MEGABYTE
from fedaccord.files.spreadsheet import SEARCHED, check_kind, decode
from fedaccord.files.tables import sheet_of
from fedaccord.files.workbook import is_workbook

LARGEST = 4 * MEGABYTE
"""Bytes of a file."""
_UNPACKED = 30 * MEGABYTE
_KNOWN = (*COLUMNS, *CPU_FIELDS)
_MOST_COLUMNS = 60
_TOML = re.compile(r"(?m)^[ \t]*(?:\[\[ *clients *\]\]|(?:clients|rounds)[ \t]*=)")
_TWO_NUMBERS = re.compile(r"[0-9]\s+[0-9.,]*[0-9]")
_ZIP = b"PK\x03\x04"
_BRACKETS = re.compile(r"[(\[][^()\[\]]*[)\]]\s*$")


@dataclass(frozen=True)
class Unclear:
    """A table whose columns have to be asked about."""

    rows: Sequence[Sequence[Cell]]
    problems: Sequence[str]

    @property
    def width(self) -> int:
        """How many columns there are."""
        return max(map(len, self.rows))

    @property
    def packed(self) -> str:
        """The rows as a form carries them; numbers of a workbook stay numbers."""
        return json.dumps(
            [
                [list(cell) if isinstance(cell, Stored) else as_written(cell) for cell in row]
                for row in self.rows
            ]
        )

    def guess(self, k: int) -> str:
        """The field that the k-th column's heading means, if it means one."""
        return read_heading(self.heading(k), _KNOWN).field

    def heading(self, k: int) -> str:
        """What stands first in the k-th column."""
        return as_written(self.rows[0][k]).strip() if k < len(self.rows[0]) else ""

    def examples(self, k: int) -> list[str]:
        """Some of what stands in the k-th column."""
        first = 1 if self.has_headings else 0
        cells = [as_written(row[k]) for row in self.rows[first : first + 3] if k < len(row)]
        return [in_brief(cell, 40) for cell in cells if cell.strip()]

    @property
    def has_headings(self) -> bool:
        """Whether the first row looks like headings: without a digit."""
        return not any(any(map(str.isdigit, as_written(cell))) for cell in self.rows[0])


def read_upload(
    data: bytes | str, filename: str = "", *, complete: bool = True
) -> str | Written | Unclear:
    """The text of a consortium file, a table, or a table whose columns are not clear.

    A table that is to be `complete` is not clear if it lacks a column that every member needs, and
    has numbers in one that means nothing to us.
    """
    if len(data) > LARGEST:
        raise InvalidInput(f"is too large: at most {LARGEST // MEGABYTE} MB")
    if not data.strip():
        raise InvalidInput("is empty")
    notes: list[str] = []
    if isinstance(data, bytes):
        check_unpacked(data)
        if not is_workbook(data):
            check_kind(data)
            data = decode(data, notes)
    if isinstance(data, str) and (filename.lower().endswith(".toml") or _TOML.search(data)):
        return data.removeprefix("\ufeff").replace("\r\n", "\n")
    if isinstance(data, str) and (names := _lines_of_names(data, notes)):
        return Written(["name"], ["name"], [[name] for name in names], notes)
    sheet = sheet_of(data, _KNOWN)
    return _written(Sheet(sheet.rows, sheet.place, [*notes, *sheet.notes]), complete)


def _lines_of_names(text: str, notes: list[str]) -> list[str]:
    """The lines, if they are names, which may have commas; below a heading that means names.

    Without that heading they are names if there is nothing but commas in them that could separate
    cells, and no number.
    """
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if any(re.search(r"[\t;|]", line) for line in lines):
        return []
    if read_heading(lines[0], ["name"]).field == "name":
        return lines[1 : MOST_MEMBERS + 2]
    headings = [read_heading(each, _KNOWN).field for each in lines[0].split(",")]
    if len(lines) < 2 or "," not in text or re.search(r'[\d"]', text) or any(headings):
        return []
    notes.append("each line was read as one name, with its commas")
    return lines[: MOST_MEMBERS + 2]


def check_unpacked(data: bytes) -> None:
    """Refuse a workbook that is small and unpacks to a large one."""
    if not data.startswith(_ZIP):
        return
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            size = sum(part.file_size for part in archive.infolist())
    except (zipfile.BadZipFile, ValueError, NotImplementedError):
        raise InvalidInput("cannot be read as XLSX: it is damaged") from None
    if size > _UNPACKED:
        raise InvalidInput(f"is too large: it unpacks to more than {_UNPACKED // MEGABYTE} MB")


def _written(sheet: Sheet, complete: bool) -> Written | Unclear:
    rows = list(islice(sheet.rows, MOST_MEMBERS + SEARCHED + 2))
    if len(rows) > MOST_MEMBERS + SEARCHED:
        raise InvalidInput(f"has too many rows; the page takes at most {MOST_MEMBERS:,} members")
    if not rows:
        raise InvalidInput("is empty")
    if max(len(cells) for _, cells in rows) > _MOST_COLUMNS:
        raise InvalidInput(f"has more than {_MOST_COLUMNS} columns; keep those of the members")
    if names := _only_names([cells for _, cells in rows]):
        return Written(["name"], ["name"], [[name] for name in names], sheet.notes)
    below = below_titles(Sheet(iter(rows), sheet.place, sheet.notes), _KNOWN, SEARCHED)
    kept = list(below.rows)
    try:
        layout = read_layout(Sheet(iter(kept), sheet.place), ["name"], _KNOWN)
    except InvalidInput as error:
        wrong = [each.message for each in error.problems]
        if any("unknown unit" in each or "one currency" in each for each in wrong):
            raise
        return Unclear([cells for _, cells in rows], wrong if len(rows) > 1 else [])
    missing = _missing(layout) if complete and _numbers_aside(layout, kept[1:]) else []
    if missing:
        return Unclear([cells for _, cells in kept], missing)
    aside = [
        text
        for text, k in layout.extra.items()
        if any(k < len(row) and not is_blank(row[k]) for _, row in kept[1:])
    ]
    if aside:
        below.notes.append(not_used(aside))
    for number, row in kept[1:]:
        if not all(map(is_blank, row[layout.width :])):
            raise InvalidInput(
                Problem("", "has more cells than there are columns", sheet.place(number, None))
            )
    headings = [as_written(kept[0][1][k]) for k in layout.columns.values()]
    cells = [
        [row[k] if k < len(row) else "" for k in layout.columns.values()] for _, row in kept[1:]
    ]
    filled = [row for row in cells if not all(map(is_blank, row))]
    if not filled:
        raise InvalidInput("has headings and no member")
    return Written(list(layout.columns), headings, filled, below.notes)


def _missing(layout: Layout) -> list[str]:
    """What to say of columns that every member needs, and that no heading means."""
    known = layout.columns.keys() | ({"cost_per_sample"} if "chip" in layout.columns else set())
    return [
        f"There is no column for {each.replace('_', ' ')}." for each in BASIC if each not in known
    ]


def _numbers_aside(layout: Layout, rows: Sequence[Row]) -> bool:
    """Whether a column that means nothing to us has a number."""
    cells = (row[k] for _, row in rows for k in layout.extra.values() if k < len(row))
    return any(any(map(str.isdigit, as_written(cell))) for cell in cells)


def _only_names(rows: Sequence[Sequence[Cell]]) -> list[Cell]:
    """The cells of a table of one column, without its heading if that means names."""
    if any(not is_blank(cell) for row in rows for cell in row[1:]):
        return []
    names = [row[0] for row in rows if row and not is_blank(row[0])]
    if any(isinstance(name, Broken) for name in names):
        return []
    if any(_TWO_NUMBERS.search(as_written(name)) for name in names):
        raise InvalidInput("has one column; put tabs, semicolons or commas between the cells")
    first = as_written(names[0]) if names else ""
    is_heading = read_heading(first, ["name"]).field == "name" and len(names) > 1
    return names[1:] if is_heading else names


def chosen_columns(packed: str, chosen: Mapping[int, str], *, headings: bool) -> Written:
    """The table of an earlier `Unclear`, with the columns that somebody chose."""
    rows = [[_cell(cell) for cell in row] for row in _lists(packed)]
    columns = {k: name for k, name in chosen.items() if name in COLUMNS}
    if "name" not in columns.values():
        raise InvalidInput("choose the column that has the members' names")
    for name in columns.values():
        if list(columns.values()).count(name) > 1:
            raise InvalidInput(f"two columns cannot both be {name.replace('_', ' ')}")

    def heading(k: int, name: str) -> str:
        first = as_written(rows[0][k]) if headings and rows and k < len(rows[0]) else ""
        unit = _BRACKETS.search(first)
        return f"{name} {unit[0]}" if unit else name

    cells = [[row[k] if k < len(row) else "" for k in columns] for row in rows[headings:]]
    filled = [row for row in cells if not all(map(is_blank, row))]
    if not filled:
        raise InvalidInput("has no member")
    names = list(columns.values())
    return Written(names, [heading(k, name) for k, name in columns.items()], filled)


def _lists(packed: str) -> list[list[Any]]:
    try:
        found = json.loads(packed)
    except (ValueError, RecursionError):
        found = None
    if isinstance(found, list) and all(isinstance(row, list) for row in found):
        return found[: MOST_MEMBERS + SEARCHED + 1]
    raise InvalidInput("the table did not arrive; go back and paste it again")


def _cell(given: Any) -> Cell:
    if isinstance(given, list) and len(given) == 2 and isinstance(given[0], int | float):
        return Stored(float(given[0]), str(given[1]))
    return str(given)

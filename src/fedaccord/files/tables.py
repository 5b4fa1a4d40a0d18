"""Tables of clients in spreadsheets and JSON files, and the profiles among them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from math import isfinite, nan
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fedaccord.checks import compared, no_such_client, normalised, shown, unusable_names
from fedaccord.errors import InvalidInput, Problem
from fedaccord.files.cells import Broken, Cell, Row, Sheet, as_written, is_blank
from fedaccord.files.columns import NumberColumns
from fedaccord.files.headings import (
    Layout,
    below_titles,
    not_used,
    read_heading,
    read_layout,
)
from fedaccord.files.questions import Answers, Doubt
from fedaccord.files.ranges import Range
from fedaccord.files.reading import (
    TABLE_LIMIT,
    Mistakes,
    load_json,
    read_bytes,
    tell,
    unguarded,
)
from fedaccord.files.spreadsheet import SEARCHED, read_sheet
from fedaccord.game.consortium import Consortium
from fedaccord.numbers import FloatArray, as_text

_ROWS_AT_ONCE = 2_000
"""Rows parsed at a time: text takes many times the memory of its numbers."""


@dataclass(frozen=True)
class ClientTable:
    """Columns of numbers by client; NaN where there is none, or none that could be read."""

    names: Sequence[str | None]
    """None where the name could not be read, which has been noted as a problem."""
    numbers: dict[str, FloatArray]
    place: Callable[[int, str], str]
    """Where client n's field is in the file; with an empty field, where the client is."""
    other: Callable[[int], str]
    """How to refer to client n in a problem of another one."""
    extra: Mapping[str, Sequence[str]] = dataclasses.field(default_factory=dict)
    """Columns that mean nothing to fedaccord, as text by heading."""
    notes: list[str] = dataclasses.field(default_factory=list)
    """How the table was read, where that is not obvious."""
    currency: str = ""
    """The currency of its amounts, if it names one."""
    ranges: Mapping[str, Mapping[int, Range]] = dataclasses.field(default_factory=dict)
    """Numbers that are ranges, by field and client; `numbers` has the likely ones."""
    doubts: Sequence[Doubt] = ()
    """Numbers with two readings, which have been noted as problems."""

    def add(self, mistakes: Mistakes, n: int, field: str, message: str) -> None:
        """Note a problem of client n, with its name unless the place shows it already."""
        place, name = self.place(n, field), self.names[n]
        known = name is None or field == "name" or shown(name) in place
        mistakes.add(Problem(field, message, place), n, None if known else name)


def load_table(
    path: Path,
    mistakes: Mistakes,
    required: Sequence[str],
    optional: Sequence[str] = (),
    called: str = "",
) -> ClientTable:
    """The table in a spreadsheet; see `read_table`."""
    return read_table(read_bytes(path, TABLE_LIMIT), mistakes, required, optional, called)


def read_table(
    data: bytes | str | Sheet,
    mistakes: Mistakes,
    required: Sequence[str],
    optional: Sequence[str] = (),
    called: str = "",
    *,
    answers: Answers | None = None,
    counted: str = "",
    leave_out: Callable[[str], bool] = lambda _: False,
    one_of: Sequence[str] = (),
    chosen: Mapping[str, str] | None = None,
) -> ClientTable:
    """The table in the content of a spreadsheet, with a column of names and others of numbers.

    The columns can be in any order. `called` is the file's name in the places of problems, if
    another file is their source. A file that cannot be read as such a table at all raises at once.
    Amounts must be in the currency `counted`, if there is one. Rows with a name for which
    `leave_out` holds are no clients. See `read_layout` for `one_of` and `chosen`.
    """
    known = ["name", *required, *optional]
    sheet = below_titles(sheet_of(data, known), known, SEARCHED)
    layout = read_layout(sheet, ["name", *required], known, counted, one_of=one_of, chosen=chosen)
    numbers = partial(NumberColumns, answers=answers, counted=counted)
    reader = _Reader(sheet, layout, required, called, mistakes=mistakes, numbers=numbers)
    at = layout.columns["name"]
    rows = (
        (number, cells)
        for number, cells in sheet.rows
        if len(cells) <= at or not leave_out(_name(cells[at]) or "")
    )
    while chunk := list(islice(rows, _ROWS_AT_ONCE)):
        reader.take(chunk)
    return reader.finished()


def sheet_of(data: bytes | str | Sheet, known: Sequence[str]) -> Sheet:
    """The rows of the content of a file whose headings should be among the `known`."""
    if isinstance(data, Sheet):
        return data
    return read_sheet(data, lambda text: bool(read_heading(text, known).field))


class _Reader:
    """Fills a table from a sheet, some rows at a time."""

    def __init__(
        self,
        sheet: Sheet,
        layout: Layout,
        required: Sequence[str],
        called: str,
        *,
        mistakes: Mistakes,
        numbers: Callable[[Mapping[str, str], Callable[[int, str], str]], NumberColumns],
    ) -> None:
        self._sheet, self._layout, self._mistakes = sheet, layout, mistakes
        self._required, self._called = required, called
        self._rows: list[int] = []
        self._names: list[str | None] = []
        self._extra: dict[str, list[str]] = {text: [] for text in layout.extra}
        self._parts: dict[str, list[FloatArray]] = {f: [] for f in layout.columns if f != "name"}
        self._numbers = numbers(layout.units, self._within)
        self._table = ClientTable(
            names=self._names,
            numbers={},
            place=lambda n, field: f"{called} {self._within(n, field)}".lstrip(),
            other=lambda n: f"the client on {sheet.place(self._rows[n], None)}",
            notes=sheet.notes,
        )

    def _within(self, n: int, field: str) -> str:
        """Where in the file client n's field is."""
        at = self._sheet.place(self._rows[n], self._layout.columns.get(field))
        return f"{at}, {field}" if field else at

    def take(self, chunk: Sequence[Row]) -> None:
        """Add some rows."""
        first, layout = len(self._rows), self._layout
        self._rows.extend(number for number, _ in chunk)
        fitted = (self._fitted(n, row) for n, (_, row) in enumerate(chunk, first))
        columns = list(zip(*fitted, strict=True))
        for n, cell in enumerate(columns[layout.columns["name"]], first):
            self._names.append(_name(cell))
            if isinstance(cell, Broken):
                self._table.add(self._mistakes, n, "name", cell.why)
        for text, k in layout.extra.items():
            self._extra[text].extend(map(as_written, columns[k]))
        for field, values in self._parts.items():
            cells = columns[layout.columns[field]]
            read, wrongs = self._numbers.read(field, cells, first, field in self._required)
            values.append(read)
            for wrong in wrongs:
                self._table.add(self._mistakes, *wrong)

    def _fitted(self, n: int, row: Sequence[Cell | None]) -> Sequence[Cell | None]:
        """The row with a cell for every column, headings or not.

        If it has too few or too many, it has None in all: which is in which column is unknown.
        """
        width = self._layout.width
        if len(row) == width:
            return row
        if len(row) < self._layout.least or not all(map(is_blank, row[width:])):
            wrong = f"has {len(row)} cells, the first line has {self._layout.least}"
            self._mistakes.add(Problem("", wrong, self._table.place(n, "")), n)
            return [None] * width
        return [*row[:width], *[""] * (width - len(row))]

    def finished(self) -> ClientTable:
        """The table, after what only the file as a whole shows."""
        numbers = {field: np.concatenate([*values, []]) for field, values in self._parts.items()}
        self._table.numbers.update(numbers)
        extra = {text: cells for text, cells in self._extra.items() if any(map(str.strip, cells))}
        if extra:
            self._table.notes.append(not_used(list(extra)))
        for wrong in self._numbers.settle(numbers, self._table.notes):
            self._table.add(self._mistakes, *wrong)
        for message in self._numbers.contradictions():
            self._mistakes.add(Problem("", message, self._called))
        return replace(
            self._table,
            extra=extra,
            currency=self._numbers.currency,
            ranges=self._numbers.ranges,
            doubts=self._numbers.doubts,
        )


def _name(cell: Cell | None) -> str | None:
    if cell is None or isinstance(cell, Broken):
        return None
    return normalised(unguarded(as_written(cell).strip()))


def finite_number(value: Any) -> float:
    """The value if it is a number and finite, otherwise NaN."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return nan
    try:
        return float(value) if isfinite(value) else nan
    except OverflowError:  # an integer too large for a float
        return nan


def check_names(table: ClientTable, mistakes: Mistakes) -> None:
    """Note names that are empty, taken, or not one line of text."""
    positions = [n for n, name in enumerate(table.names) if name is not None]
    readable = [name for name in table.names if name is not None]
    for k, message in unusable_names(readable, lambda first: table.other(positions[first])):
        table.add(mistakes, positions[k], "name", message)
    for k, name in enumerate(readable):
        if not name.isprintable():  # it could control the terminal
            table.add(mistakes, positions[k], "name", "must be one line of printable text")


def rows_in_order(
    given: ClientTable, consortium: Consortium, mistakes: Mistakes, lacking: str
) -> npt.NDArray[np.int64]:
    """The row of each client, of which each must have exactly one; -1 stands for none.

    `lacking` is what a client without a row is said to lack.
    """
    check_names(given, mistakes)
    positions = {name: n for n, name in enumerate(consortium.names)}
    strange = [name for name in given.names if name and name not in positions]
    meant = {compared(name): n for name, n in positions.items()} if strange else {}
    positions |= {each: meant[compared(each)] for each in strange if compared(each) in meant}
    rows = np.full(consortium.size, -1, dtype=np.int64)
    for k, name in enumerate(given.names):
        n = positions.get(name or "")
        if n is not None:
            rows[n] = k if rows[n] < 0 else rows[n]  # a repeated name has been noted above
        elif name:
            given.add(mistakes, k, "name", no_such_client(name, consortium.names))
    for n in np.flatnonzero(rows < 0).tolist():
        without = Problem("", f"{shown(consortium.names[n])} has no {lacking}")
        mistakes.add(without, len(given.names))
    return rows


def read_entries(data: Any, mistakes: Mistakes) -> ClientTable:
    """The names and contributions in any of the forms that a JSON profile may have."""
    path = ""
    for key, form in (("agreement", dict), ("clients", list)):
        if isinstance(data, dict) and isinstance(data.get(key), form):
            data, path = data[key], f"{path}.{key}".lstrip(".")
    if isinstance(data, dict):
        entries = [{"name": name, "contribution": amount} for name, amount in data.items()]
    elif isinstance(data, list):
        entries = [entry if isinstance(entry, dict) else {} for entry in data]
    else:
        raise InvalidInput("must be a list or an object of the clients' contributions")
    names = [_name_of_entry(entry) for entry in entries]
    amounts = np.array([finite_number(entry.get("contribution")) for entry in entries])

    def place(n: int, field: str) -> str:
        return shown(names[n]) if isinstance(data, dict) else f"{path}[{n}].{field}"

    table = ClientTable(names, {"contribution": amounts}, place, lambda n: place(n, "name"))
    for n, entry in enumerate(entries):
        if names[n] is None:
            mistakes.add(Problem("name", "is missing", place(n, "name")), n)
        if "contribution" not in entry:
            table.add(mistakes, n, "contribution", "is missing")
        elif np.isnan(amounts[n]):
            wrong = f"must be a finite number, got {shown(entry['contribution'])}"
            table.add(mistakes, n, "contribution", wrong)
    return table


def _name_of_entry(entry: dict[str, Any]) -> str | None:
    name = entry.get("name")
    return normalised(name.strip()) if isinstance(name, str) else None


def in_order(given: ClientTable, consortium: Consortium, mistakes: Mistakes) -> FloatArray:
    """The contributions in the order of the consortium's clients, exactly one for each."""
    rows = rows_in_order(given, consortium, mistakes, "contribution")
    profile = np.append(given.numbers["contribution"], np.nan)[rows]  # row -1 is the last, NaN
    outside = (profile < 0) | (profile > consortium.samples)
    for n in np.flatnonzero(outside).tolist():
        most = as_text(consortium.samples[n])
        wrong = f"must be from 0 to {most}, got {as_text(profile[n])}"
        given.add(mistakes, int(rows[n]), "contribution", wrong)
    if mistakes:
        raise mistakes.error()
    profile.flags.writeable = False
    return profile


def load_profile(path: str | Path, consortium: Consortium) -> FloatArray:
    """The contributions in a file, in the order of the consortium's clients.

    Args:
        path: A spreadsheet with the columns name and contribution; or JSON: a list of objects with
            the keys name and contribution, an object {name: contribution}, or the JSON that
            `fedaccord solve` prints.
        consortium: The clients, each of which must have exactly one contribution in the file.

    Raises:
        InvalidInput: with every problem found in the file, each with its place.
    """
    path = Path(path)
    mistakes = Mistakes(str(path))
    try:
        if path.suffix.lower() == ".json":
            given = read_entries(load_json(path), mistakes)
        else:
            given = load_table(path, mistakes, ["contribution"])
    except InvalidInput as error:
        raise InvalidInput(error.problems, str(path)) from None
    profile = in_order(given, consortium, mistakes)
    tell(given.notes, path)
    return profile

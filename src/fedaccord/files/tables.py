"""Tables of clients in CSV and JSON files, and the profiles among them."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from math import isfinite, nan
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fedaccord.checks import no_such_client, normalised, shown, unknown, unusable_names
from fedaccord.errors import InvalidInput, Problem
from fedaccord.files.reading import TABLE_LIMIT, Mistakes, load_json, read_text, unguarded
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

    def add(self, mistakes: Mistakes, n: int, field: str, message: str) -> None:
        """Note a problem of client n, with its name unless the place shows it already."""
        place, name = self.place(n, field), self.names[n]
        known = name is None or field == "name" or name in place
        mistakes.add(Problem(field, message, place), n, None if known else name)


def read_csv(
    path: Path,
    mistakes: Mistakes,
    required: Sequence[str],
    optional: Sequence[str] = (),
    called: str = "",
) -> ClientTable:
    """The table in a CSV file with a column `name` and columns of numbers, in any order.

    `called` is the file's name in the places of problems, if another file is their source.
    A file that cannot be read as such a table at all raises at once.
    """
    reader = csv.reader(io.StringIO(read_text(path, TABLE_LIMIT), newline=""), strict=True)
    rows = _rows(reader)
    header = [cell.strip() for cell in next(rows, (0, [""]))[1]]
    if wrong_header := list(_header_problems(header, ["name", *required], optional)):
        raise InvalidInput(wrong_header)

    lines: list[int] = []
    names: list[str | None] = []
    lead = f"{called} " if called else ""

    def place(n: int, field: str) -> str:
        return f"{lead}line {lines[n]}" + (f", {field}" if field else "")

    table = ClientTable(names, {}, place, lambda n: f"the client on line {lines[n]}")
    numbers: dict[str, list[FloatArray]] = {field: [] for field in header if field != "name"}
    while chunk := list(islice(rows, _ROWS_AT_ONCE)):
        first = len(lines)
        lines.extend(line for line, _ in chunk)
        cells = [
            row if len(row) == len(header) else _misfit(row, header, table, n, mistakes)
            for n, (_, row) in enumerate(chunk, first)
        ]
        columns = dict(zip(header, zip(*cells, strict=True), strict=True))
        names.extend(map(_name, columns["name"]))
        for field, parts in numbers.items():
            values, wrongs = _numbers(columns[field], field in required)
            parts.append(values)
            for k, wrong in wrongs:
                table.add(mistakes, first + k, field, wrong)
    table.numbers.update({f: np.concatenate([*parts, []]) for f, parts in numbers.items()})
    return table


def _name(cell: str | None) -> str | None:
    return None if cell is None else normalised(unguarded(cell.strip()))


def _rows(reader: Iterator[list[str]]) -> Iterator[tuple[int, list[str]]]:
    """The rows that are not blank, each with its line number."""
    try:
        for row in reader:
            if row:
                yield reader.line_num, row  # type: ignore[attr-defined]
    except csv.Error as error:
        line = reader.line_num  # type: ignore[attr-defined]
        raise InvalidInput(Problem("", f"is not CSV: {error}", f"line {line}")) from None


def _header_problems(
    header: list[str], required: Sequence[str], optional: Sequence[str]
) -> Iterator[Problem]:
    if header == [""]:
        yield Problem("", "is empty; its first line must name the columns")
        return
    known = [*required, *optional]
    for n, field in enumerate(header):
        if field not in known:
            wrong = f"unknown column {shown(field)}; {unknown(field, known)}"
            yield Problem(field, wrong, "line 1")
        elif field in header[:n]:
            yield Problem(field, f"there are two columns {field!r}", "line 1")
    for field in required:
        if field not in header:
            yield Problem(field, f"column {field!r} is missing", "line 1")


def _misfit(
    row: list[str], header: list[str], table: ClientTable, n: int, mistakes: Mistakes
) -> Sequence[str | None]:
    """Empty cells for a row of too few or too many: which is in which column is unknown."""
    wrong = f"has {len(row)} cells, the first line has {len(header)}"
    mistakes.add(Problem("", wrong, table.place(n, "")), n)
    return [None] * len(header)


def _numbers(
    cells: Sequence[str | None], required: bool
) -> tuple[FloatArray, list[tuple[int, str]]]:
    """A column's numbers, and what is wrong; cell by cell only if something is."""
    try:
        values = np.fromiter(map(float, cells), np.float64, len(cells))  # type: ignore[arg-type]
        if np.isfinite(values).all():
            return values, []
    except (TypeError, ValueError):
        values = np.empty(len(cells))
    wrongs = []
    for k, cell in enumerate(cells):
        values[k], wrong = _number(cell, required)
        if wrong:
            wrongs.append((k, wrong))
    return values, wrongs


def _number(cell: str | None, required: bool) -> tuple[float, str | None]:
    """The number in a cell (NaN if none), and what is wrong with it, if anything."""
    if cell is None:
        return nan, None
    if not cell.strip():
        return nan, "is missing" if required else None
    try:
        value = float(cell)
    except ValueError:
        return nan, f"must be a number, got {shown(cell)}"
    return (value, None) if isfinite(value) else (nan, f"must be a finite number, got {value}")


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
        path: CSV with the columns name and contribution; or JSON: a list of objects with the keys
            name and contribution, an object {name: contribution}, or the JSON that
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
            given = read_csv(path, mistakes, ["contribution"])
    except InvalidInput as error:
        raise InvalidInput(error.problems, str(path)) from None
    return in_order(given, consortium, mistakes)

"""Curve files: CSV with the columns samples, seed and value, and example if it was kept.

A row with a seed has the mean over all test examples of that seed; a row with an example and no
seed has the mean over all seeds of that example. `fedaccord calibrate` writes such a file, and so
can anyone who has a learning curve.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from fedaccord.checks import LARGEST_COUNT, shown, unknown
from fedaccord.errors import InvalidInput, Problem
from fedaccord.files.reading import TABLE_LIMIT, Mistakes, read_text
from fedaccord.game.curve import LARGEST_VALUE, Curve
from fedaccord.numbers import FloatArray

_COLUMNS = ("samples", "seed", "value", "example")
_REQUIRED = ("samples", "value")


class _Row(NamedTuple):
    line: int
    samples: int
    seed: int | None
    example: int | None
    value: float


def load_curve(path: str | Path, measure: str = "error") -> Curve:
    """The curve in a CSV file, of this measure.

    Raises:
        InvalidInput: with every problem found in the file, each with its line.
    """
    path = Path(path)
    text = read_text(path, TABLE_LIMIT)
    mistakes = Mistakes(str(path))
    rows = list(_rows(text, mistakes))
    _check_twice(rows, mistakes)
    if mistakes:
        raise mistakes.error()
    try:
        return _curve(rows, measure)
    except InvalidInput as error:
        problems = [Problem("", problem.message) for problem in error.problems]
        raise InvalidInput(problems, str(path)) from None


def curve_text(curve: Curve) -> str:
    """The text of a curve file; `load_curve` reads the same curve from it."""
    kept = curve.by_example is not None
    lines = ["samples,seed,value,example" if kept else "samples,seed,value"]
    tail = "," if kept else ""
    for size, row in zip(curve.sizes, curve.values, strict=True):
        lines += [
            f"{size:.0f},{seed},{value!r}{tail}"
            for seed, value in zip(curve.seeds, row.tolist(), strict=True)
            if not np.isnan(value)
        ]
    if curve.by_example is not None:
        for size, row in zip(curve.sizes, curve.by_example, strict=True):
            lines += [f"{size:.0f},,{value!r},{n}" for n, value in enumerate(row.tolist())]
    return "\n".join(lines) + "\n"


def _rows(text: str, mistakes: Mistakes) -> Iterator[_Row]:
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        header = [cell.strip().lower() for cell in next(reader, [])]
        if wrong := _wrong_header(header):
            mistakes.add(Problem("", wrong, "line 1"))
            return
        for cells in reader:
            if any(cell.strip() for cell in cells):
                row = _row(header, cells, reader.line_num, mistakes)
                if row is not None:
                    yield row
    except csv.Error as error:
        mistakes.add(Problem("", f"is not CSV: {error}", f"line {reader.line_num}"))


def _wrong_header(header: list[str]) -> str | None:
    if not header:
        return "is empty; its first line must name the columns samples, seed, value"
    for n, name in enumerate(header):
        if name not in _COLUMNS:
            return f"unknown column {shown(name)}; {unknown(name, _COLUMNS)}"
        if name in header[:n]:
            return f"there are two columns {name!r}"
    missing = [name for name in _REQUIRED if name not in header]
    return f"column {missing[0]!r} is missing" if missing else None


def _row(header: list[str], cells: list[str], line: int, mistakes: Mistakes) -> _Row | None:
    """One row; None if something is wrong with it, which is noted."""
    if len(cells) != len(header):
        wrong = f"has {len(cells)} cells, the first line has {len(header)}"
        mistakes.add(Problem("", wrong, f"line {line}"))
        return None
    found = dict(zip(header, cells, strict=True))
    samples = _whole(found["samples"], "samples", line, mistakes, least=1)
    seed = _whole(found.get("seed", ""), "seed", line, mistakes, empty=True)
    example = _whole(found.get("example", ""), "example", line, mistakes, empty=True)
    least = 0.0 if example is None else -LARGEST_VALUE  # of pairs, an example has a pseudo-value
    value = _value(found["value"], least)
    if value is None:
        more = ", 0 or more" if example is None else ""
        wrong = f"must be a number{more}, got {shown(found['value'].strip())}"
        mistakes.add(Problem("value", wrong, f"line {line}, value"))
    if seed is not None and example is not None:
        wrong = "has a seed and an example: give the mean over the one or over the other"
        mistakes.add(Problem("", wrong, f"line {line}"))
    if samples is None or value is None:
        return None
    if example is None and seed is None:
        seed = 0
    return _Row(line, samples, seed, example, value)


def _whole(
    cell: str, field: str, line: int, mistakes: Mistakes, *, least: int = 0, empty: bool = False
) -> int | None:
    text = cell.strip()
    if not text and empty:
        return None
    try:
        number = int(text)
    except ValueError:
        number = least - 1
    if least <= number <= LARGEST_COUNT:
        return number
    wrong = f"must be a whole number, {least} or more, got {shown(text)}" if text else "is missing"
    mistakes.add(Problem(field, wrong, f"line {line}, {field}"))
    return None


def _value(cell: str, least: float) -> float | None:
    try:
        value = float(cell)
    except ValueError:
        return None
    return value if least <= value <= LARGEST_VALUE else None


def _check_twice(rows: list[_Row], mistakes: Mistakes) -> None:
    seen: dict[tuple[int, int | None, int | None], int] = {}
    for row in rows:
        key = row.samples, row.seed, row.example
        first = seen.setdefault(key, row.line)
        if first != row.line:
            wrong = f"the same samples and seed as on line {first}"
            if row.example is not None:
                wrong = f"the same samples and example as on line {first}"
            mistakes.add(Problem("", wrong, f"line {row.line}"))


def _curve(rows: list[_Row], measure: str) -> Curve:
    by_seed = [row for row in rows if row.seed is not None]
    by_example = [row for row in rows if row.example is not None]
    sizes = sorted({row.samples for row in by_seed})
    seeds = sorted({row.seed for row in by_seed if row.seed is not None})
    values = _table(by_seed, sizes, [row.seed for row in by_seed], seeds)
    if not by_example:
        return Curve(sizes, seeds, values, measure)
    if odd := next((row for row in by_example if row.samples not in sizes), None):
        raise InvalidInput(f"line {odd.line}: no seed has a value at {odd.samples:,} samples")
    examples = sorted({row.example for row in by_example if row.example is not None})
    kept = _table(by_example, sizes, [row.example for row in by_example], examples)
    if np.isnan(kept).any():
        row, column = np.argwhere(np.isnan(kept))[0]
        raise InvalidInput(
            f"example {examples[column]} has no value at {sizes[row]:,} samples: keep all or none"
        )
    return Curve(sizes, seeds, values, measure, kept)


def _table(
    rows: list[_Row], sizes: list[int], keys: list[int | None], columns: list[int]
) -> FloatArray:
    """The values by size and column; NaN where there is none."""
    row_of = {size: n for n, size in enumerate(sizes)}
    column_of: dict[int | None, int] = {key: n for n, key in enumerate(columns)}
    table = np.full((len(sizes), len(columns)), np.nan)
    for row, key in zip(rows, keys, strict=True):
        table[row_of[row.samples], column_of[key]] = row.value
    return table

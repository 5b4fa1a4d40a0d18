"""The cells of a spreadsheet of any kind."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias


class Stored(NamedTuple):
    """A number in a cell of a workbook, with the unit of its format: a currency, % or none."""

    value: float
    unit: str = ""


class Broken(NamedTuple):
    """A cell without a usable value."""

    why: str


Cell: TypeAlias = str | Stored | Broken
Row: TypeAlias = tuple[int, Sequence[Cell]]
"""The number of a row, counted from 1 (in CSV, of its last line), and its cells."""


@dataclass(frozen=True)
class Sheet:
    """A spreadsheet; its rows can be read once."""

    rows: Iterator[Row]
    """Those that are not blank, the headings first."""
    place: Callable[[int, int | None], str]
    """What a cell is called, by row and column; without a column, what the row is called."""
    notes: list[str] = field(default_factory=list)
    """How it was read, where that is not obvious."""


def is_blank(cell: Cell | None) -> bool:
    """Whether there is nothing in a cell."""
    return isinstance(cell, str) and not cell.strip()


def as_written(cell: Cell | None) -> str:
    """The text of a cell, such as a name or a heading; a whole number has no decimals."""
    if isinstance(cell, Stored):
        return str(int(cell.value)) if cell.value.is_integer() else repr(cell.value)
    return cell if isinstance(cell, str) else ""

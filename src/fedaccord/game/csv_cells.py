"""Text in a CSV file that no spreadsheet takes for a formula.

A spreadsheet runs a cell that begins with = + - or @ (also after a tab or a carriage return). Such
text is written with an apostrophe before it, which spreadsheets know as the mark of plain text, and
read without it. Numbers are written as they are.

>>> guarded("=1+1"), guarded(-1.5), guarded("Hospital")
("'=1+1", -1.5, 'Hospital')
>>> unguarded("'=1+1"), unguarded("'t Zicht")
('=1+1', "'t Zicht")
"""

import re
from typing import TypeVar

_FORMULA = re.compile(r"'*[=+\-@\t\r]")
_GUARDED = re.compile(r"'+[=+\-@\t\r]")

Cell = TypeVar("Cell")


def guarded(cell: Cell) -> Cell | str:
    """What to write for a cell; apostrophes that stand there already get another one."""
    return f"'{cell}" if isinstance(cell, str) and _FORMULA.match(cell) else cell


def unguarded(cell: str) -> str:
    """What `guarded` was given."""
    return cell[1:] if _GUARDED.match(cell) else cell

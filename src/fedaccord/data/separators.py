"""CSV of examples as spreadsheets of many countries write it: semicolons or tabs, decimal commas.

>>> with_commas(["age;dose;label", "63;0,5;1", "41;1,250;0"])
['age,dose,label', '63,0.5,1', '41,1.25,0']
"""

import csv
import io
from collections.abc import Sequence

from fedaccord.checks import shown
from fedaccord.files.numerals import Numeral, read_numeral


def with_commas(lines: list[str]) -> list[str]:
    """The lines with commas between their cells and decimal points.

    A number with a comma is converted only if the file has decimal commas throughout; ValueError if
    that is not certain.
    """
    separator = next((each for each in ";\t" if _separates(each, lines[:2])), None)
    if separator is None:
        return lines
    rows = list(csv.reader(lines, delimiter=separator, skipinitialspace=True))
    if any("," in cell for row in rows for cell in row):
        rows = _with_points(rows)
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue().splitlines()


def _separates(separator: str, lines: Sequence[str]) -> bool:
    """Whether cells are between these separators: a comma is then only in numbers."""
    rows = list(csv.reader(lines, delimiter=separator, skipinitialspace=True))
    whole = all("," not in cell or _number(cell) is not None for row in rows for cell in row)
    return bool(rows) and whole and all(len(row) > 1 for row in rows)


def _number(cell: str) -> Numeral | None:
    """The numeral in a cell with a point or a comma; nothing else depends on the decimal mark."""
    numeral = read_numeral(cell) if "," in cell or "." in cell else None
    return numeral if numeral is not None and not numeral.unit else None


def _with_points(rows: list[list[str]]) -> list[list[str]]:
    found = {cell: _number(cell) for row in rows for cell in row}
    numbers = {cell: numeral for cell, numeral in found.items() if numeral is not None}
    if {each.mark for each in numbers.values() if each.mark} != {","}:
        unclear = next((cell for cell in numbers if "," in cell), None)
        if unclear is None:
            return rows  # the commas are in text
        raise ValueError(
            f"it is not certain that {shown(unclear)} has a decimal comma: "
            "write all numbers with decimal points"
        )
    return [
        [repr(numbers[cell].comma) if cell in numbers else cell for cell in row] for row in rows
    ]

"""Posted amounts as text: a line for each member, as one pastes it from a spreadsheet."""

import csv
import io
from collections.abc import Callable, Sequence

from fedaccord.console.web.typed_numbers import typed_count, typed_number, typed_text
from fedaccord.errors import InvalidInput, Problem
from fedaccord.protocol.terms import Terms

FIELD = "amounts"
_COLUMNS: dict[str, Callable[[str], float]] = {
    "samples": lambda text: typed_count(text, "samples"),
    "contribution": typed_count,
    "lowest_ratio": typed_number,
    "lowest_discount_factor": lambda text: typed_number(text, "discount_factor"),
}
"""What follows a member's name, as the terms call it, and how it is read."""
_WORDS = {
    "samples": "samples",
    "contribution": "amount",
    "lowest_ratio": "lowest ratio",
    "lowest_discount_factor": "lowest discount factor",
}

Public = dict[str, dict[str, float]]
"""By member: what everyone knows of it."""


def amounts_text(terms: Terms) -> str:
    """What the terms post; if they post nothing, the members' names, to be filled in."""
    lines = io.StringIO()
    writer = csv.writer(lines, delimiter=";", lineterminator="\n")
    for name in terms.clients:
        public = (terms.public or {}).get(name)
        numbers = [None if public is None else getattr(public, column) for column in _COLUMNS]
        writer.writerow([name, *("" if one is None else f" {typed_text(one)}" for one in numbers)])
    return lines.getvalue()


def read_amounts(text: str, members: Sequence[str]) -> tuple[Public, list[Problem]]:
    """What the lines post for these members, and everything that is wrong with them."""
    found: Public = {}
    wrong: list[str] = []
    for number, cells in enumerate(_rows(text), start=1):
        name, *rest = cells
        if number == 1 and name not in members and not any(c.isdigit() for c in "".join(rest)):
            continue  # the columns' names
        if name in found:
            wrong.append(f"{name[:40]}: has two lines")
        elif name not in members:
            wrong.append(f"{name[:40]}: is not a member")
        elif len(rest) != len(_COLUMNS):
            wrong.append(f"{name[:40]}: needs {len(_COLUMNS)} numbers, got {len(rest)}")
        else:
            found[name] = _numbers(name, rest, wrong)
    wrong += [f"{name[:40]}: has no line" for name in members if name not in found]
    return found, [Problem(FIELD, one) for one in dict.fromkeys(wrong)]


def _rows(text: str) -> list[list[str]]:
    lines = [line for line in text.splitlines() if line.strip()]
    mark = "\t" if any("\t" in line for line in lines) else ";"
    return [[cell.strip() for cell in row] for row in csv.reader(lines, delimiter=mark)]


def _numbers(name: str, cells: Sequence[str], wrong: list[str]) -> dict[str, float]:
    found = {}
    for (column, read), cell in zip(_COLUMNS.items(), cells, strict=True):
        try:
            found[column] = read(cell)
        except InvalidInput as error:
            wrong.append(f"{name[:40]}: {_WORDS[column]} {error}")
    return found


def placed(problem: Problem) -> Problem:
    """A problem of the terms' table of public numbers, at the field of the form."""
    name, _, column = problem.field.removeprefix("public").removeprefix(".").rpartition(".")
    lead = f"{name}: {_WORDS.get(column, column)} " if name else ""
    return Problem(FIELD, f"{lead}{problem.message}")

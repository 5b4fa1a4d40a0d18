"""The table of members as a form, and what it shows of a draft."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import isclose
from typing import Any, NamedTuple

from fedaccord.checks import in_brief, is_number
from fedaccord.console.workshop.draft import Draft
from fedaccord.errors import InvalidInput
from fedaccord.files.consortium import perhaps_thousands
from fedaccord.files.numerals import InThreeDecimals, unambiguous
from fedaccord.files.ranges import Range, as_range
from fedaccord.numbers import as_text

BASIC = ("name", "samples", "valuation", "cost_per_sample")
MORE = ("discount_factor", "communication_cost", "quality")
COLUMNS = (*BASIC, *MORE)
"""What the table shows of each member."""
TEXTS = ("name", "currency", "slot")
NUMBERS = ("rounds", "discount_factor", "server_fee")
SHARED = (*TEXTS, *NUMBERS)
"""What all members share."""
MOST_MEMBERS = 1_000
"""Rows of the table; a page with more inputs is slow in any browser."""


@dataclass(frozen=True)
class FormRow:
    """One member, as typed."""

    was: int | None = None
    """Its position in the draft; None for a new one."""
    cells: Mapping[str, str] = field(default_factory=dict)

    def text(self, column: str) -> str:
        """What is typed in a column."""
        return self.cells.get(column, "").strip()

    @property
    def is_blank(self) -> bool:
        """Whether nothing is typed."""
        return not any(map(self.text, COLUMNS))


@dataclass(frozen=True)
class Form:
    """What all members share, and the members, as typed."""

    shared: Mapping[str, str]
    rows: Sequence[FormRow]


class Place(NamedTuple):
    """A cell of the form; what all share is in row -1."""

    row: int
    field: str


def form_of(draft: Draft) -> Form:
    """The form of a draft."""
    data = draft.data
    clients = data.get("clients", [])
    if not isinstance(clients, list) or not all(isinstance(each, dict) for each in clients):
        raise InvalidInput("must be tables [[clients]]", field="clients")
    check_size(len(clients))
    rows = [
        FormRow(n, {column: _as_found(client, column) for column in COLUMNS})
        for n, client in enumerate(clients)
    ]
    return Form({each: _as_found(data, each) for each in SHARED}, rows)


def _as_found(table: Mapping[str, Any], field: str) -> str:
    """A value of a file as a cell; one that could be meant otherwise is as it is written."""
    value = table.get(field)
    if isinstance(value, InThreeDecimals) and perhaps_thousands(field, value):
        return value.written
    return as_cell(value)


def check_size(members: int) -> None:
    """Refuse more members than the page takes."""
    if members > MOST_MEMBERS:
        raise InvalidInput(
            f"the page takes at most {MOST_MEMBERS:,} members; the command line takes any number "
            "of them"
        )


def as_cell(value: Any) -> str:
    """A value of a file as a cell shows it, so that it can be read again.

    >>> as_cell(860_000), as_cell(0.0042), as_cell([1, 2]), as_cell(450.123)
    ('860 000', '0.0042', '1 to 2', '450.1230')
    >>> as_cell(as_range("~0.004"))
    '0.0032 to 0.0048'
    """
    if value is None or value == "unknown":
        return ""
    if is_number(value):
        return _number(float(value))
    if isinstance(value, Range):
        return _range(value)
    if isinstance(value, str | list | dict):
        try:
            found = as_range(value)
        except InvalidInput:
            return value if isinstance(value, str) else ""
        return value if isinstance(value, str) else _range(found)
    return str(value)


def _number(value: float) -> str:
    if value.is_integer() and abs(value) < 1e15:
        return f"{int(value):,}".replace(",", " ") if abs(value) >= 10_000 else str(int(value))
    return unambiguous(repr(value))


def _rounded(value: float) -> str:
    """An end of a range, which may have been computed, without the noise of its last digits."""
    return _number(float(as_text(value)))


def _range(found: Range) -> str:
    low, likely, high = map(_rounded, found)
    if isclose(found.likely, (found.low + found.high) / 2, rel_tol=1e-12):
        return f"{low} to {high}"
    return f"{likely} ({low} to {high})"


def hint_of(client: Mapping[str, Any], column: str) -> str:
    """What an empty cell means, if the file says it in another way."""
    if column == "cost_per_sample" and "cpu" in client:
        return "its machine"
    if column == "valuation" and "ratio" in client:
        return "its ratio"
    return in_brief(client["class"]) if isinstance(client.get("class"), str) else ""

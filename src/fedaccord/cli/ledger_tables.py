"""The entries of a ledger, as rows of a table or as JSON, without holding all of them."""

from collections.abc import Iterable
from itertools import islice
from textwrap import indent
from typing import TYPE_CHECKING, Any

import typer
from rich.table import Table

from fedaccord.checks import escaped
from fedaccord.cli.console import json_for_people, output

if TYPE_CHECKING:
    from fedaccord.ledger.chain import Entry

Row = tuple[str, str, str, str, str]
"""Number, slot, kind, client, content."""

_HEADINGS = ("number", "slot", "kind", "client", "content")
_AT_ONCE = 500
"""Rows in one batch."""


def row_of(entry: "Entry") -> Row:
    """An entry as a row of the table."""
    body = entry.body
    if "suspended" in body:  # a report is about its own slot, a settlement about the next one
        first = entry.slot + (entry.kind not in ("report", "presence"))
        body = body | {"suspended": _suspended(body["suspended"], first)}
    content = ", ".join(f"{key} {_short(value)}" for key, value in body.items())
    number, slot, client = str(entry.number), str(entry.slot), escaped(entry.client or "")
    return number, slot, escaped(entry.kind), client, escaped(content)


def _suspended(out: Any, first: int) -> Any:
    """Who is suspended from when until when and why, in words; `first` is the next slot of it."""
    said = []
    try:
        for name, one in out.items():
            slipped, left = one["slipped_in"], one["slots_left"]
            end = "for ever" if left is None else f"until slot {first + left - 1}"
            said.append(f"{name} from slot {slipped + 1} {end} (it slipped in slot {slipped})")
    except (AttributeError, KeyError, TypeError):  # no server of ours wrote this
        return out
    return "; ".join(said) or "nobody"


class Widths:
    """The widths of all columns of a table but the last."""

    def __init__(self) -> None:
        """Begin with the headings."""
        self.widths = [len(heading) for heading in _HEADINGS[:-1]]

    def make_room(self, entry: "Entry") -> None:
        """Make room for one more entry."""
        from rich.cells import cell_len

        texts = (str(entry.number), str(entry.slot), escaped(entry.kind), entry.client or "")
        found = (*map(len, texts[:3]), cell_len(escaped(texts[3])))
        self.widths = [max(pair) for pair in zip(self.widths, found, strict=True)]


def print_table(entries: Iterable["Entry"], room: Widths) -> None:
    """Print the entries as a table, some rows at a time."""
    rows, first = iter(map(row_of, entries)), True
    console = output()
    while part := list(islice(rows, _AT_ONCE)):
        table = _table(room, headed=first)
        for row in part:
            table.add_row(*row)
        console.print(table)
        first = False


def _table(room: Widths, *, headed: bool) -> "Table":
    from rich.table import Table

    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, show_header=headed)
    for heading, width in zip(_HEADINGS, [*room.widths, None], strict=True):
        number = heading in ("number", "slot")
        table.add_column(
            heading, justify="right" if number else "left", width=width, overflow="fold"
        )
    return table


def print_json(entries: Iterable["Entry"]) -> None:
    """Print the entries as a JSON list, one at a time."""
    lead = "[\n"
    for entry in entries:
        typer.echo(lead + _json(entry), nl=False)
        lead = ",\n"
    typer.echo("[]" if lead == "[\n" else "\n]")


def _json(entry: "Entry") -> str:
    record: dict[str, Any] = entry._asdict()
    del record["text"]
    return indent(json_for_people(record | {"body": entry.body}), "  ")


def _short(value: Any) -> str:
    if isinstance(value, dict):
        if value.keys() == {"statement", "signature"}:  # somebody signed it: one of them will do
            return _short(value["signature"])
        return " ".join(f"{key}={_short(inner)}" for key, inner in value.items())
    if isinstance(value, list):
        return " ".join(_short(inner) for inner in value) or "nobody"
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "none"}[value]
    text = str(value)
    return text[:12] + "..." if len(text) in (64, 128) and text.isalnum() else text

"""The entries of a ledger, as rows of a table or as JSON, without holding all of them."""

from collections.abc import Iterable, Iterator
from datetime import datetime
from itertools import islice
from textwrap import indent
from typing import TYPE_CHECKING, Any, NamedTuple

import typer
from rich.table import Table

from fedaccord.checks import escaped
from fedaccord.cli.console import json_for_people, output

if TYPE_CHECKING:
    from fedaccord.ledger.chain import Entry

Row = tuple[str, str, str, str, str, str]
"""Number, time, slot, kind, client, content."""

_HEADINGS = ("number", "time (UTC)", "slot", "kind", "client", "content")
_AT_ONCE = 500
"""Rows in one batch."""


class Timed(NamedTuple):
    """An entry, and how long the round took if it is the end of one."""

    entry: "Entry"
    seconds: int | None = None


_OF_A_ROUND = ("contribution", "absence", "fault")
"""Entries that are written along with the end of a round, before it."""


def timed(entries: Iterable["Entry"]) -> Iterator[Timed]:
    """All entries of a ledger, with the durations of rounds: since what was written before."""
    since = ""
    for entry in entries:
        seconds = _seconds(since, entry.at) if entry.kind == "round" else None
        yield Timed(entry, seconds)
        if entry.kind not in _OF_A_ROUND:
            since = entry.at


def _seconds(since: str, until: str) -> int | None:
    """How long it was between two times; None if somebody else wrote them."""
    try:
        return int((datetime.fromisoformat(until) - datetime.fromisoformat(since)).total_seconds())
    except (TypeError, ValueError):
        return None


def row_of(one: Timed) -> Row:
    """An entry as a row of the table."""
    entry, body = one.entry, one.entry.body
    if "suspended" in body:  # a report is about its own slot, a settlement about the next one
        first = entry.slot + (entry.kind not in ("report", "presence"))
        body = body | {"suspended": _suspended(body["suspended"], first)}
    content = ", ".join(f"{key} {_short(value)}" for key, value in body.items())
    if one.seconds is not None:
        content += f", took {one.seconds} s"
    return *_texts(entry), escaped(content)


def _texts(entry: "Entry") -> tuple[str, str, str, str, str]:
    """All columns but the last."""
    at = escaped(entry.at.removesuffix("+00:00").replace("T", " "))
    who = escaped(entry.client or "")
    return str(entry.number), at, str(entry.slot), escaped(entry.kind), who


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

        found = map(cell_len, _texts(entry))
        self.widths = [max(pair) for pair in zip(self.widths, found, strict=True)]


def print_table(entries: Iterable[Timed], room: Widths) -> None:
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


def print_json(entries: Iterable[Timed]) -> None:
    """Print the entries as a JSON list, one at a time."""
    lead = "[\n"
    for one in entries:
        typer.echo(lead + _json(one), nl=False)
        lead = ",\n"
    typer.echo("[]" if lead == "[\n" else "\n]")


def _json(one: Timed) -> str:
    record: dict[str, Any] = one.entry._asdict()
    del record["text"]
    record["body"] = one.entry.body
    if one.seconds is not None:
        record["seconds"] = one.seconds
    return indent(json_for_people(record), "  ")


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

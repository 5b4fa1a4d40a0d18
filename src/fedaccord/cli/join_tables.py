"""What `fedaccord join` prints."""

from typing import TYPE_CHECKING

from rich import box
from rich.console import Console
from rich.table import Table

from fedaccord.cli.tables import print_certificate, print_wide
from fedaccord.summaries.joining import (
    INTERVAL_NOTE,
    WAY_HEADINGS,
    agreement_sentences,
    data_notes,
    group_headings,
    group_note,
    group_rows,
    held_out_sentences,
    joining_sentences,
    prospect_headings,
    prospect_rows,
    way_rows,
)

if TYPE_CHECKING:
    from fedaccord.membership.agreeing import GroupAgreement
    from fedaccord.membership.joining import Joining


def print_joining(console: Console, joining: "Joining", agreed: "GroupAgreement | None") -> None:
    """Who loses and who gains, the groups, the ways that were tried, and the agreement."""
    for sentence in joining_sentences(joining):
        console.print(sentence)
    headings = prospect_headings(joining)
    numbers = range(1, len(headings) - 1)
    tables = [words_table(headings, prospect_rows(joining), numbers)]
    tables.append(words_table(group_headings(joining), group_rows(joining)))
    if len(joining.ways.tried) > 1:
        tables.append(words_table(WAY_HEADINGS, way_rows(joining), numbers=range(1, 3)))
    print_wide(console, *tables)
    for note in (INTERVAL_NOTE, group_note(joining), *held_out_sentences(joining)):
        console.print(note)
    for note in data_notes(joining):
        console.print(note)
    if agreed is not None:
        print_agreement(console, agreed)
    elif joining.consortium is None and joining.recommended is not None:
        console.print(
            "For an agreement, give a FILE with what an error and a sample cost each of them "
            "(`fedaccord init` writes one to start from)."
        )


def print_agreement(console: Console, agreed: "GroupAgreement") -> None:
    """What the group can agree on, or that no law fits."""
    console.print()
    for sentence in agreement_sentences(agreed):
        console.print(sentence)
    if agreed.certificate is not None:
        print_certificate(console, agreed.certificate, every=False)


def words_table(
    headings: tuple[str, ...], rows: list[tuple[str, ...]], numbers: range = range(0)
) -> Table:
    """Words wrap, numbers do not; a column is never too narrow for a word or a number of it."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold")
    for n, (heading, *cells) in enumerate(zip(headings, *rows, strict=True)):
        right = n in numbers
        parts = cells if right else [word for cell in cells for word in cell.split()]
        table.add_column(
            heading,
            justify="right" if right else "left",
            no_wrap=right,
            min_width=max(12 if n == 0 else 0, *map(len, [*heading.split(), *parts])),
        )
    for row in rows:
        table.add_row(*row)
    return table

"""What `fedaccord value` prints: sentences, and tables of who helps whom."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

from fedaccord.cli.tables import fits, plain_table, print_wide
from fedaccord.summaries.value import (
    QUALITY_NOTE,
    Unit,
    quality_sentences,
    setting_sentence,
    tables_note,
    value_notes,
    value_sentences,
)

if TYPE_CHECKING:
    from fedaccord.membership.estimates import Estimates
    from fedaccord.membership.values import DataValues

Cell = Callable[..., str]
"""Writes one of some estimates, given its place."""


def print_values(console: Console, values: "DataValues") -> None:
    """Whose data helps whom."""
    for sentence in value_sentences(values):
        console.print(sentence)
    tables, note = _fitting(console, values)
    print_wide(console, *tables)
    console.print(f"{tables_note(values)}{note}", style="dim")
    console.print(setting_sentence(values), style="dim")
    for line in value_notes(values):
        console.print(f"Note: {line}.")
    said = quality_sentences(values)
    if said:
        console.print()
    for sentence in [*said, *([QUALITY_NOTE] if values.quality else [])]:
        console.print(sentence)


def _fitting(console: Console, values: "DataValues") -> tuple[list[Table], str]:
    """The tables in the first form that fits the terminal, and what it leaves out."""
    full = _tables(values, list(range(values.tests)))
    if all(fits(console, table) for table in full):
        return full, ""
    brief = _tables(values, list(range(values.tests)), short=True)
    if all(fits(console, table) for table in brief):
        return brief, " A wider terminal shows how far each number may be off; JSON has it."
    note = " --picture draws who helps whom, and --format json has all numbers."
    return _tables(values, [0]), note


def _tables(values: "DataValues", tests: list[int], *, short: bool = False) -> list[Table]:
    """Shapley values, with what they lead from and to, and leave-one-out."""
    unit = Unit(values.measure)
    write, level = (unit.short_cell, unit.short_level) if short else (unit.cell, unit.level)
    shapley = _table(values, values.shapley, "Shapley value", tests, write)
    shapley.add_section()
    for name, found in (("Untrained", values.untrained), ("All together", values.together)):
        shapley.add_row(f"{name}{unit.heading}", *(level(found, test) for test in tests))
    if len(tests) > 1:
        alone = [level(values.alone, test - 1) for test in tests[1:]]
        shapley.add_row(f"It alone{unit.heading}", "", *alone)
    return [shapley, _table(values, values.leave_one_out, "Leave-one-out", tests, write)]


def _table(
    values: "DataValues", found: "Estimates", heading: str, tests: list[int], write: Cell
) -> Table:
    """A row for each client's data, a column for each test."""
    columns = [
        f"on\n{values.names[test - 1]}'s" if test else "on the\ncommon test" for test in tests
    ]
    table = plain_table(f"{heading}\nof the data of", columns)
    for n, name in enumerate(values.names):
        table.add_row(name, *(write(found, test, n) for test in tests))
    return table

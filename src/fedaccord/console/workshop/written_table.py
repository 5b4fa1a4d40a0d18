"""A table of members from elsewhere, and the draft with what was understood of it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isnan

from fedaccord.console.workshop.draft import Draft
from fedaccord.console.workshop.filled_form import (
    FormRead,
    counted_in,
    put_beside_cells,
    take_currency,
    value_of,
)
from fedaccord.console.workshop.members_form import (
    COLUMNS,
    Form,
    FormRow,
    Place,
    as_cell,
    check_size,
    form_of,
)
from fedaccord.errors import InvalidInput, Problem
from fedaccord.files.cells import Cell, Sheet, Stored
from fedaccord.files.clients import CPU_FIELDS, read_clients
from fedaccord.files.table_text import TableRow, Value, with_table
from fedaccord.files.tables import ClientTable


@dataclass(frozen=True)
class Written:
    """The columns of a spreadsheet that mean something, row by row."""

    fields: Sequence[str]
    headings: Sequence[str]
    """With their units."""
    rows: Sequence[Sequence[Cell]]
    notes: Sequence[str] = ()

    def text(self, n: int, column: str) -> str:
        """What a cell says, as it is written; empty without the column."""
        cell = self.rows[n][self.fields.index(column)] if column in self.fields else ""
        if isinstance(cell, Stored):
            money = cell.unit if cell.unit != "%" else ""
            return f"{as_cell(cell.value)} {money}".rstrip()
        return cell.strip() if isinstance(cell, str) else ""


def with_written(draft: Draft, written: Written) -> FormRead:
    """The draft with the members of a spreadsheet: those with a known name get its numbers.

    What was understood is in the result's draft, also if there are problems. These are about the
    other cells, which the form has as they were written: an amount in another currency stays one
    until somebody corrects it.
    """
    before = form_of(draft)
    rows = [(n, row) for n, row in enumerate(written.rows, 1)]
    sheet = Sheet(iter([(0, list(written.headings)), *rows]), lambda row, _: f"row {row}")
    read = read_clients(sheet, partial=True, counted=counted_in(before))
    if read.table is None:
        raise InvalidInput([Problem(each.field, each.message) for each in read.problems])
    typed = [FormRow(None, {"name": written.text(n, "name")}) for n in range(len(rows))]
    problems: dict[Place, str] = {}
    others: list[str] = []
    shared: dict[str, Value] = {}
    put_beside_cells(read.problems, Form({}, typed), problems, others)
    take_currency(before, read, shared)
    at, changed = _merged(before, read.table, problems)
    understood = Draft(with_table(draft.text, shared, changed))
    form = form_of(understood)
    shown_rows = list(form.rows)
    for n, column in problems:
        cells = {**shown_rows[at[n]].cells, column: written.text(n, column)}
        shown_rows[at[n]] = replace(shown_rows[at[n]], cells=cells)
    beside = {Place(at[n], column): message for (n, column), message in problems.items()}
    notes = [*written.notes, *read.notes]
    return FormRead(
        Form(form.shared, shown_rows), understood, beside, others, read.questions, notes
    )


def _merged(
    before: Form, table: ClientTable, problems: Mapping[Place, str]
) -> tuple[list[int], list[TableRow]]:
    """Where each client of a table goes, and what changes there."""
    known = {row.text("name"): n for n, row in enumerate(before.rows)}
    changed = [TableRow(n, {}) for n in range(len(before.rows))]
    at = []
    for n, name in enumerate(table.names):
        position = known.get(name or "")
        values = dict(_understood(table, n, problems))
        if position is None:
            at.append(len(changed))
            changed.append(TableRow(None, {"name": name or "", **values}))
        else:
            at.append(position)
            changed[position] = TableRow(position, {**changed[position].changes, **values})
    check_size(len(changed))
    return at, changed


def _understood(
    table: ClientTable, n: int, problems: Mapping[Place, str]
) -> Iterator[tuple[str, Value]]:
    """The numbers of a client that were understood."""
    for column in COLUMNS[1:]:
        value = value_of(table, n, column)
        if value is not None and Place(n, column) not in problems:
            yield column, value
    figures = {each: float(table.numbers[each][n]) for each in CPU_FIELDS}
    if not any(map(isnan, figures.values())) and Place(n, "cost_per_sample") not in problems:
        yield "cpu", figures

"""What a filled-in form of members says: the changed draft, what is wrong, and what to ask.

A cell that still has the text that the page put there is left alone, so that ranges, comments and
spellings of a file stay. Only cells that somebody changed are read, as people write numbers; and
only they tell which decimal mark that person uses.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isnan
from pathlib import Path
from typing import Any

from fedaccord.checks import in_brief, is_number
from fedaccord.console.workshop.draft import Draft
from fedaccord.console.workshop.law_fields import read_law
from fedaccord.console.workshop.members_form import (
    COLUMNS,
    SHARED,
    Form,
    FormRow,
    Place,
    form_of,
)
from fedaccord.console.workshop.shared_fields import read_shared
from fedaccord.errors import FedaccordError, InvalidInput, Problem
from fedaccord.files.cells import Cell, Sheet, Stored
from fedaccord.files.clients import CPU_FIELDS, ClientsRead, read_clients
from fedaccord.files.consortium import build_consortium
from fedaccord.files.questions import Question, mark_questions
from fedaccord.files.ranges import as_range
from fedaccord.files.states import build_changing
from fedaccord.files.table_text import TableRow, Value, with_table
from fedaccord.files.tables import ClientTable

_SHOWN_IN = dict.fromkeys((*CPU_FIELDS, "cpu"), "cost_per_sample") | {"ratio": "valuation"}
"""The column beside which problems of a key stand that has none."""
_MISSING = "is missing"
_ROW = re.compile(r"row (\d+)(?:, (\w+))?")
_CLIENT = re.compile(r"clients\[(\d+)\](?:\.(\w+))?")


@dataclass(frozen=True)
class FormRead:
    """What a form says."""

    form: Form
    """What to show again; blank rows are left out."""
    draft: Draft | None
    """The draft with the changes; None if something is wrong."""
    problems: Mapping[Place, str]
    others: Sequence[str] = ()
    """What is wrong with no cell in particular."""
    questions: Sequence[Question] = ()
    notes: Sequence[str] = ()


def read_form(draft: Draft, form: Form, *, may_be_empty: bool = False) -> FormRead:
    """The draft with what was changed in the form; or everything that is wrong, and questions."""
    form = without_blanks(form)
    before = form_of(draft)
    shared, shared_doubts, problems, percent = read_shared(form, before)
    law, wrong = read_law(form)
    shared |= law
    problems |= wrong
    read = ClientsRead(None, (), ())
    others: list[str] = []
    if form.rows:
        read = read_clients(as_sheet(draft, form, before), partial=True, counted=counted_in(form))
    elif not may_be_empty:
        others.append("A consortium needs at least one member.")
    put_beside_cells(read.problems, form, problems, others)
    take_currency(form, read, shared)
    questions = _once([*mark_questions(shared_doubts), *percent, *read.questions])
    if problems or others:
        return FormRead(form, None, problems, others, questions, read.notes)
    rows = [
        TableRow(row.was, dict(_changes(row, n, before, read))) for n, row in enumerate(form.rows)
    ]
    try:
        changed = Draft(with_table(draft.text, shared, rows))
    except FedaccordError as error:
        return FormRead(form, None, {}, [str(error)])
    _check_draft(changed, form, problems, others)
    return FormRead(
        form, None if problems or others else changed, problems, others, questions, read.notes
    )


def review(draft: Draft) -> FormRead:
    """The form of a draft, with what is wrong with it; what is missing is not."""
    form = form_of(draft)
    problems: dict[Place, str] = {}
    others: list[str] = []
    if form.rows:
        _check_draft(draft, form, problems, others)
    return FormRead(form, draft, problems, others)


def without_blanks(form: Form) -> Form:
    """The form without blank rows, and new ones last, as in the file."""
    rows = [row for row in form.rows if not row.is_blank]
    return Form(form.shared, sorted(rows, key=lambda row: row.was is None))


def as_sheet(draft: Draft, form: Form, before: Form) -> Sheet:
    """The form as a spreadsheet; what nobody typed is a stored number and shows no mark."""
    clients = draft.data.get("clients", [])

    def cell(row: FormRow, column: str) -> Cell:
        text = row.text(column)
        if column == "name" or row.was is None or text != before.rows[row.was].text(column):
            return text
        return _stored(clients[row.was].get(column))

    rows = [(n, [cell(row, column) for column in COLUMNS]) for n, row in enumerate(form.rows, 1)]
    return Sheet(iter([(0, list(COLUMNS)), *rows]), lambda row, _: f"row {row}")


def _stored(value: Any) -> Cell:
    if is_number(value):
        return Stored(float(value))
    try:
        return "" if value is None else Stored(as_range(value).likely)
    except InvalidInput:
        return str(value)


def _changes(row: FormRow, n: int, before: Form, read: ClientsRead) -> Iterator[tuple[str, Value]]:
    """What is other in a row than in the draft."""
    assert read.table is not None
    for column in COLUMNS:
        text = row.text(column)
        if text != ("" if row.was is None else before.rows[row.was].text(column)):
            yield column, value_of(read.table, n, column) if text else None


def value_of(table: ClientTable, n: int, column: str) -> Value:
    """What a table of clients says of one of them; None if it says nothing, or nothing right."""
    if column == "name":
        return table.names[n]
    found = table.ranges.get(column, {}).get(n)
    number = float(table.numbers[column][n])
    return found if found is not None else None if isnan(number) else number


def put_beside_cells(
    found: Sequence[Problem], form: Form, problems: dict[Place, str], others: list[str]
) -> None:
    """Put each problem beside its cell, or with the others."""
    for problem in found:
        place = _ROW.match(problem.place) or _CLIENT.match(problem.place)
        if place is None:
            if problem.field in SHARED:
                problems.setdefault(Place(-1, problem.field), problem.message)
            else:
                others.append(_about_the_table(str(problem).replace("clients", "members")))
            continue
        row = int(place[1]) - (1 if problem.place.startswith("row") else 0)
        name = in_brief(form.rows[row].text("name"))
        message = problem.message.removesuffix(f" ({name})")
        column = place[2] if place[2] in COLUMNS else _SHOWN_IN.get(place[2], "name")
        problems.setdefault(Place(row, column), message)


def _about_the_table(problem: str) -> str:
    """A problem of no cell in particular; one that begins with its verb is about the table."""
    return f"The table {problem}." if problem.startswith(("has ", "is ")) else problem


def counted_in(form: Form) -> str:
    """The currency of the consortium; empty if it has none yet."""
    return form.shared.get("currency", "").strip()


def take_currency(form: Form, read: ClientsRead, shared: dict[str, Value]) -> None:
    """Let the consortium count in the currency of typed amounts, if it has none yet."""
    if read.table is not None and read.table.currency and not counted_in(form):
        shared["currency"] = read.table.currency


def _check_draft(draft: Draft, form: Form, problems: dict[Place, str], others: list[str]) -> None:
    """Note what only the whole file shows to be wrong; what is missing can follow later."""
    data = draft.data
    try:
        if {"states", "transitions"} & data.keys():
            build_changing(data, Path("consortium.toml"))
        else:
            build_consortium(data, Path("consortium.toml"))
    except InvalidInput as error:
        wrong = [each for each in error.problems if not each.message.startswith(_MISSING)]
        put_beside_cells(wrong, form, problems, others)


def _once(questions: Sequence[Question]) -> list[Question]:
    """The first question of each kind."""
    return list({question.key: question for question in reversed(questions)}.values())[::-1]

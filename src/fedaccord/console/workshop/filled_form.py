"""What a filled-in form of members says: the changed draft, what is wrong, and what to ask.

A cell that still has the text that the page put there is left alone, so that ranges, comments and
spellings of a file stay. Only cells that somebody changed are read, as people write numbers; and
only they tell which decimal mark that person uses. What is wrong in the file is read as if somebody
had typed it just now: so it is asked about, and taken as it stands in the cell if that is right.
"""

import re
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from math import isnan
from pathlib import Path
from typing import Any, NamedTuple

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
from fedaccord.errors import UNKNOWN_KEY, FedaccordError, InvalidInput, Problem
from fedaccord.files.cells import Cell, Sheet, Stored
from fedaccord.files.clients import CPU_FIELDS, ClientsRead, read_clients
from fedaccord.files.consortium import build_consortium, unknown_keys, unlikely
from fedaccord.files.questions import Question, mark_questions, unknown_question
from fedaccord.files.ranges import as_range
from fedaccord.files.states import build_changing
from fedaccord.files.table_text import TableRow, Value, with_table
from fedaccord.files.tables import ClientTable

_SHOWN_IN = dict.fromkeys((*CPU_FIELDS, "cpu"), "cost_per_sample") | {"ratio": "valuation"}
"""The column beside which problems of a key stand that has none."""
_IN_THE_FILE = "if it is not in this table, correct it in the file and upload the file again"
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
    wrong = wrong_in(draft)
    typed = _typed(draft, form, before, wrong)
    shared, problems, others, read = typed.shared, typed.problems, typed.others, typed.read
    law, wrong_law = read_law(form)
    shared |= law
    problems |= wrong_law
    if not form.rows and not may_be_empty:
        others.append("A consortium needs at least one member.")
    take_currency(form, read, shared)
    if problems or others:
        return FormRead(form, None, problems, others, typed.questions, read.notes)
    rows = [
        TableRow(row.was, dict(_changes(row, n, before, wrong, read)))
        for n, row in enumerate(form.rows)
    ]
    try:
        changed = Draft(with_table(draft.text, shared, rows))
    except FedaccordError as error:
        return FormRead(form, None, {}, [str(error)])
    _check_draft(changed, form, problems, others)
    questions = [*typed.questions, *_unknown(changed)]
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
    if not problems and not others:
        return FormRead(form, draft, {}, questions=_unlikely(draft))
    typed = _typed(draft, form, form, problems.keys())
    questions = [*typed.questions, *_unknown(draft)]
    return FormRead(form, draft, problems | typed.problems, others, questions)


def wrong_in(draft: Draft) -> Set[Place]:
    """The cells that are wrong in the file itself."""
    problems: dict[Place, str] = {}
    _check_draft(draft, form_of(draft), problems, [])
    return problems.keys()


class _Typed(NamedTuple):
    """What the cells of a form say that are to be read."""

    shared: dict[str, Value]
    read: ClientsRead
    problems: dict[Place, str]
    others: list[str]
    questions: list[Question]


def _typed(draft: Draft, form: Form, before: Form, wrong: Set[Place]) -> _Typed:
    """What is other than before, or wrong in the file."""
    shared, doubts, problems, percent = read_shared(form, before, wrong)
    read = ClientsRead(None, (), ())
    others: list[str] = []
    if form.rows:
        sheet = as_sheet(draft, form, before, wrong)
        read = read_clients(sheet, partial=True, counted=counted_in(form))
    put_beside_cells(read.problems, form, problems, others)
    questions = _once([*mark_questions(doubts), *percent, *read.questions])
    return _Typed(shared, read, problems, others, questions)


def _unknown(draft: Draft) -> list[Question]:
    """Whether the keys that mean nothing are to be left out, if there are any."""
    keys = dict.fromkeys(str(way[-1]) for way in unknown_keys(draft.data))
    return [unknown_question(list(keys))] if keys else []


def _unlikely(draft: Draft) -> list[Question]:
    """What is asked about unlikely numbers of a table that is complete."""
    return unlikely(draft.consortium, draft.data) if draft.is_complete else []


def surely(draft: Draft, keys: Sequence[str]) -> Draft:
    """The draft which says that the numbers are right that these questions are about."""
    data = draft.data
    sure: Value = sorted({*data.get("sure", ()), *keys})
    rows = [TableRow(n, {}) for n in range(len(data.get("clients", [])))]
    return Draft(with_table(draft.text, {"sure": sure}, rows))


def without_blanks(form: Form) -> Form:
    """The form without blank rows, and new ones last, as in the file."""
    rows = [row for row in form.rows if not row.is_blank]
    return Form(form.shared, sorted(rows, key=lambda row: row.was is None))


def as_sheet(draft: Draft, form: Form, before: Form, wrong: Set[Place]) -> Sheet:
    """The form as a spreadsheet; what nobody typed is a stored number and shows no mark."""
    clients = draft.data.get("clients", [])

    def cell(row: FormRow, column: str) -> Cell:
        text = row.text(column)
        if column == "name" or row.was is None or _is_read(row, column, before, wrong):
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


def _is_read(row: FormRow, column: str, before: Form, wrong: Set[Place]) -> bool:
    """Whether a cell is other than in the draft, or wrong there."""
    if row.was is None:
        return row.text(column) != ""
    return row.text(column) != before.rows[row.was].text(column) or (row.was, column) in wrong


def _changes(
    row: FormRow, n: int, before: Form, wrong: Set[Place], read: ClientsRead
) -> Iterator[tuple[str, Value]]:
    """What is other in a row than in the draft."""
    assert read.table is not None
    for column in COLUMNS:
        if _is_read(row, column, before, wrong):
            yield column, value_of(read.table, n, column) if row.text(column) else None


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
            if problem.where in SHARED:
                problems.setdefault(Place(-1, problem.where), problem.message)
            else:
                others.append(_about_the_table(problem))
            continue
        row = int(place[1]) - (1 if problem.place.startswith("row") else 0)
        name = in_brief(form.rows[row].text("name"))
        message = problem.message.removesuffix(f" ({name})")
        if place[2] in COLUMNS:
            problems.setdefault(Place(row, place[2]), message)
        else:
            key = problem.place[place.start(2) :] if place[2] else ""
            said = f"{key}: {message}" if key else message
            if key and place[2] not in _SHOWN_IN and not problem.is_unknown_key:
                said = f"{said}; {_IN_THE_FILE}"
            problems.setdefault(Place(row, _SHOWN_IN.get(place[2], "name")), said)


def _about_the_table(problem: Problem) -> str:
    """A problem of no cell in particular; one that begins with its verb is about the table."""
    if problem.is_unknown_key:
        return str(problem)
    text = str(problem).replace("clients", "members")
    return f"The table {text}." if text.startswith(("has ", "is ")) else text


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
        wrong = [each for each in error.problems if not each.is_missing]
        nowhere: list[str] = []
        put_beside_cells(wrong, form, problems, nowhere)
        others += [
            each if UNKNOWN_KEY in each else f"{each.rstrip('.')}; {_IN_THE_FILE}."
            for each in nowhere
        ]


def _once(questions: Sequence[Question]) -> list[Question]:
    """The first question of each kind."""
    return list({question.key: question for question in reversed(questions)}.values())[::-1]

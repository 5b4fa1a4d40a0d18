"""The table of members as a form: what it shows of a draft, and what a filled-in one says.

A cell that still has the text that the page put there is left alone, so that ranges, comments and
spellings of a file stay. Only cells that somebody changed are read, as people write numbers; and
only they tell which decimal mark that person uses.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import isnan
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from fedaccord.checks import in_brief, is_number
from fedaccord.console.workshop.draft import Draft
from fedaccord.errors import FedaccordError, InvalidInput, Problem
from fedaccord.files.cells import Cell, Sheet, Stored
from fedaccord.files.clients import CPU_FIELDS, ClientsRead, read_clients
from fedaccord.files.columns import NumberColumns
from fedaccord.files.consortium import build_consortium
from fedaccord.files.numerals import currency, unambiguous
from fedaccord.files.questions import (
    PERCENT,
    SUMS,
    YES,
    Answers,
    Doubt,
    Question,
    mark_questions,
    percent_question,
)
from fedaccord.files.ranges import Range, as_range
from fedaccord.files.states import build_changing
from fedaccord.files.table_text import TableRow, Value, with_table
from fedaccord.files.tables import ClientTable

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
_TOO_MANY = (
    f"the page takes at most {MOST_MEMBERS:,} members; the command line takes any number of them"
)
_READ_AS = {"server_fee": "communication_cost"}
"""Whose rules for units a shared number follows."""
_SHOWN_IN = dict.fromkeys((*CPU_FIELDS, "cpu"), "cost_per_sample") | {"ratio": "valuation"}
"""The column beside which problems of a key stand that has none."""
_MISSING = "is missing"
_ROW = re.compile(r"row (\d+)(?:, (\w+))?")
_CLIENT = re.compile(r"clients\[(\d+)\](?:\.(\w+))?")


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


# --- What a form shows ---------------------------------------------------------------------


def form_of(draft: Draft) -> Form:
    """The form of a draft."""
    data = draft.data
    clients = data.get("clients", [])
    if not isinstance(clients, list) or not all(isinstance(each, dict) for each in clients):
        raise InvalidInput("must be tables [[clients]]", field="clients")
    if len(clients) > MOST_MEMBERS:
        raise InvalidInput(_TOO_MANY)
    rows = [
        FormRow(n, {column: as_cell(client.get(column)) for column in COLUMNS})
        for n, client in enumerate(clients)
    ]
    return Form({each: as_cell(data.get(each)) for each in SHARED}, rows)


def as_cell(value: Any) -> str:
    """A value of a file as a cell shows it, so that it can be read again.

    >>> as_cell(860_000), as_cell(0.0042), as_cell([1, 2]), as_cell(450.123)
    ('860 000', '0.0042', '1 to 2', '450.1230')
    """
    if value is None or value == "unknown":
        return ""
    if is_number(value):
        return _number(float(value))
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


def _range(found: Range) -> str:
    low, likely, high = map(_number, found)
    if found.likely == (found.low + found.high) / 2:
        return f"{low} to {high}"
    return f"{likely} ({low} to {high})"


def hint_of(client: Mapping[str, Any], column: str) -> str:
    """What an empty cell means, if the file says it in another way."""
    if column == "cost_per_sample" and "cpu" in client:
        return "its machine"
    if column == "valuation" and "ratio" in client:
        return "its ratio"
    return in_brief(client["class"]) if isinstance(client.get("class"), str) else ""


# --- What a form says ----------------------------------------------------------------------


def read_form(draft: Draft, form: Form, *, may_be_empty: bool = False) -> FormRead:
    """The draft with what was changed in the form; or everything that is wrong, and questions."""
    form = _filled(form)
    before = form_of(draft)
    shared, shared_doubts, problems, percent = _read_shared(form, before)
    read = ClientsRead(None, (), ())
    others: list[str] = []
    if form.rows:
        read = read_clients(_sheet(draft, form, before), partial=True)
    elif not may_be_empty:
        others.append("A consortium needs at least one member.")
    _sort(read.problems, form, problems, others)
    _check_currency(form, read, shared, others)
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


def _filled(form: Form) -> Form:
    """The form without blank rows, and new ones last, as in the file."""
    rows = [row for row in form.rows if not row.is_blank]
    return Form(form.shared, sorted(rows, key=lambda row: row.was is None))


def _sheet(draft: Draft, form: Form, before: Form) -> Sheet:
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


def _read_shared(
    form: Form, before: Form
) -> tuple[dict[str, Value], list[Doubt], dict[Place, str], list[Question]]:
    """What all share: what is changed, in doubt, wrong, and perhaps a percentage."""
    values: dict[str, Value] = {}
    doubts: list[Doubt] = []
    problems: dict[Place, str] = {}
    percent: list[Question] = []
    for each in SHARED:
        text = form.shared.get(each, "").strip()
        if text == before.shared[each].strip():
            continue
        if each in TEXTS or not text:
            values[each] = text or None
            continue
        value, doubt, wrong = read_shared_number(each, text)
        doubts += doubt
        if wrong:
            problems[Place(-1, each)] = wrong
        else:
            values[each] = value
        if each == "discount_factor" and isinstance(value, float) and 10 <= value < 100:
            percent.append(percent_question(-1, value, 0))
    for problem in _wrong_shared(values, problems):
        problems.setdefault(Place(-1, problem.field), problem.message)
    return values, doubts, problems, percent


def read_shared_number(
    each: str, text: str, answers: Answers | None = None
) -> tuple[Value, list[Doubt], str]:
    """A number that all share; what is in doubt about it; and what is wrong with it."""
    name = _READ_AS.get(each, each)
    columns = NumberColumns({}, lambda *_: each, answers)
    numbers, wrongs = columns.read(name, [text], 0, required=False)
    wrongs += list(columns.settle({name: numbers}, []))
    found = columns.ranges.get(name, {}).get(0)
    doubts = [doubt._replace(row=-1, field=each) for doubt in columns.doubts]
    return found or float(numbers[0]), doubts, wrongs[0][2] if wrongs else ""


def _wrong_shared(values: Mapping[str, Value], problems: Mapping[Place, str]) -> Iterator[Problem]:
    """What is wrong with the new values that all share, whatever the members are."""
    member = {"name": "x", "valuation": 1.0, "cost_per_sample": 1.0, "samples": 1}
    data: dict[str, Any] = {"rounds": 1, "clients": [member]}
    for key, value in values.items():
        if value is not None and Place(-1, key) not in problems:
            data[key] = value.to_dict() if isinstance(value, Range) else value
    if isinstance(data["rounds"], float) and data["rounds"].is_integer():
        data["rounds"] = int(data["rounds"])
    data.setdefault("discount_factor", 0.5)
    try:
        build_consortium(data, Path("consortium.toml"))
    except InvalidInput as error:
        yield from error.problems


def _sort(
    found: Sequence[Problem], form: Form, problems: dict[Place, str], others: list[str]
) -> None:
    """Put each problem beside its cell, or with the others."""
    for problem in found:
        place = _ROW.match(problem.place) or _CLIENT.match(problem.place)
        if place is None:
            if problem.field in SHARED:
                problems.setdefault(Place(-1, problem.field), problem.message)
            else:
                others.append(str(problem).replace("clients", "members"))
            continue
        row = int(place[1]) - (1 if problem.place.startswith("row") else 0)
        name = in_brief(form.rows[row].text("name"))
        message = problem.message.removesuffix(f" ({name})")
        column = place[2] if place[2] in COLUMNS else _SHOWN_IN.get(place[2], "name")
        problems.setdefault(Place(row, column), message)


def _check_currency(
    form: Form, read: ClientsRead, shared: dict[str, Value], others: list[str]
) -> None:
    """Take the currency of typed amounts, unless the consortium counts in another."""
    typed = read.table.currency if read.table is not None else ""
    counted = form.shared.get("currency", "").strip()
    if typed and not counted:
        shared["currency"] = typed
    elif typed.isalpha() and len(typed) == 3 and (currency(counted) or counted) != typed:
        others.append(f"There are amounts in {typed}, and this consortium counts in {counted}.")


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
        _sort(wrong, form, problems, others)


def _once(questions: Sequence[Question]) -> list[Question]:
    """The first question of each kind."""
    return list({question.key: question for question in reversed(questions)}.values())[::-1]


# --- Answers to questions ------------------------------------------------------------------


def answered(draft: Draft, form: Form, answers: Answers) -> Form:
    """The form with what the answers settle written out."""
    form = _filled(form)
    before = form_of(draft)
    open_, settled = (
        read_clients(_sheet(draft, form, before), answers=given, partial=True)
        for given in ({}, {key: each for key, each in answers.items() if key != SUMS})
    )
    rows = list(form.rows)
    if open_.table is not None and settled.table is not None:
        for n, column in _settled(open_.table, settled.table):
            value = value_of(settled.table, n, column)
            text = _range(value) if isinstance(value, Range) else as_cell(value)
            rows[n] = replace(rows[n], cells={**rows[n].cells, column: text})
        if answers.get(SUMS) == YES:
            sums = {each.row for each in open_.questions if each.key == SUMS}
            rows = [row for n, row in enumerate(rows) if n not in sums]
    return Form(dict(_answered_shared(form, before, answers)), rows)


def _settled(before: ClientTable, after: ClientTable) -> Iterator[tuple[int, str]]:
    """The cells that the answers changed."""
    for column in COLUMNS[1:]:
        old, new = before.numbers[column], after.numbers[column]
        same = (old == new) | (np.isnan(old) & np.isnan(new))
        yield from ((n, column) for n in np.flatnonzero(~same).tolist())


def _answered_shared(form: Form, before: Form, answers: Answers) -> Iterator[tuple[str, str]]:
    for each, text in form.shared.items():
        yield each, text
        if each not in NUMBERS or text.strip() == before.shared[each].strip():
            continue
        value, _, wrong = read_shared_number(each, text, answers)
        doubtful = bool(read_shared_number(each, text)[1])
        is_percent = each == "discount_factor" and isinstance(value, float) and 10 <= value < 100
        if is_percent and answers.get(PERCENT) == YES:
            yield each, as_cell(float(f"{value}e-2"))
        elif doubtful and not wrong:
            yield each, _range(value) if isinstance(value, Range) else as_cell(value)


# --- A table from elsewhere ----------------------------------------------------------------


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
            return as_cell(cell.value)
        return cell.strip() if isinstance(cell, str) else ""


def with_written(draft: Draft, written: Written) -> FormRead:
    """The draft with the members of a spreadsheet: those with a known name get its numbers.

    What was understood is in the result's draft, also if there are problems. These are about the
    other cells, which the form has as they were written.
    """
    rows = [(n, row) for n, row in enumerate(written.rows, 1)]
    sheet = Sheet(iter([(0, list(written.headings)), *rows]), lambda row, _: f"row {row}")
    read = read_clients(sheet, partial=True)
    if read.table is None:
        raise InvalidInput(read.problems)
    typed = [FormRow(None, {"name": written.text(n, "name")}) for n in range(len(rows))]
    before = form_of(draft)
    problems: dict[Place, str] = {}
    others: list[str] = []
    shared: dict[str, Value] = {}
    _sort(read.problems, Form({}, typed), problems, others)
    _check_currency(before, read, shared, others)
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
    if len(changed) > MOST_MEMBERS:
        raise InvalidInput(_TOO_MANY)
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

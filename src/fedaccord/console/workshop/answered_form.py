"""A form of members with what the answers to its questions settle written out."""

from collections.abc import Iterator, Set
from dataclasses import replace
from typing import Any

import numpy as np

from fedaccord.console.workshop.draft import Draft
from fedaccord.console.workshop.filled_form import (
    as_sheet,
    counted_in,
    take_currency,
    value_of,
    without_blanks,
    wrong_in,
)
from fedaccord.console.workshop.members_form import (
    COLUMNS,
    NUMBERS,
    Form,
    Place,
    as_cell,
    form_of,
)
from fedaccord.console.workshop.shared_fields import read_shared_number
from fedaccord.files.clients import read_clients
from fedaccord.files.questions import PERCENT, SUMS, YES, Answers
from fedaccord.files.tables import ClientTable


def answered(draft: Draft, form: Form, answers: Answers) -> Form:
    """The form with what the answers settle written out."""
    form = without_blanks(form)
    before, wrong = form_of(draft), wrong_in(draft)
    open_, settled = (
        read_clients(
            as_sheet(draft, form, before, wrong),
            answers=given,
            partial=True,
            counted=counted_in(form),
        )
        for given in ({}, {key: each for key, each in answers.items() if key != SUMS})
    )
    rows = list(form.rows)
    shared: dict[str, Any] = {}
    take_currency(form, settled, shared)  # what is written out has no unit any more
    if open_.table is not None and settled.table is not None:
        for n, column in _settled(open_.table, settled.table):
            value = value_of(settled.table, n, column)
            rows[n] = replace(rows[n], cells={**rows[n].cells, column: as_cell(value)})
        if answers.get(SUMS) == YES:
            sums = {each.row for each in open_.questions if each.key == SUMS}
            rows = [row for n, row in enumerate(rows) if n not in sums]
    return Form(dict(_answered_shared(form, before, wrong, answers)) | shared, rows)


def _settled(before: ClientTable, after: ClientTable) -> Iterator[tuple[int, str]]:
    """The cells that the answers changed."""
    for column in COLUMNS[1:]:
        old, new = before.numbers[column], after.numbers[column]
        same = (old == new) | (np.isnan(old) & np.isnan(new))
        yield from ((n, column) for n in np.flatnonzero(~same).tolist())


def _answered_shared(
    form: Form, before: Form, wrong_before: Set[Place], answers: Answers
) -> Iterator[tuple[str, str]]:
    for each, text in form.shared.items():
        yield each, text
        same = text.strip() == before.shared.get(each, "").strip()
        if each not in NUMBERS or (same and Place(-1, each) not in wrong_before):
            continue
        value, _, wrong = read_shared_number(each, text, answers, counted_in(form))
        doubtful = bool(read_shared_number(each, text)[1])
        is_percent = each == "discount_factor" and isinstance(value, float) and 10 <= value < 100
        if is_percent and answers.get(PERCENT) == YES:
            yield each, as_cell(float(f"{value}e-2"))
        elif doubtful and not wrong:
            yield each, as_cell(value)

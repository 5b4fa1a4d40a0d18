"""What all members share, as it was typed into the form: the values that somebody changed."""

from collections.abc import Iterator, Mapping, Set
from pathlib import Path
from typing import Any

from fedaccord.console.workshop.members_form import SHARED, TEXTS, Form, Place
from fedaccord.errors import InvalidInput, Problem
from fedaccord.files.columns import NumberColumns
from fedaccord.files.consortium import build_consortium
from fedaccord.files.questions import Answers, Doubt, Question, percent_question
from fedaccord.files.ranges import Range
from fedaccord.files.table_text import Value

_READ_AS = {"server_fee": "communication_cost"}
"""Whose rules for units a shared number follows."""


def read_shared(
    form: Form, before: Form, wrong_before: Set[Place]
) -> tuple[dict[str, Value], list[Doubt], dict[Place, str], list[Question]]:
    """What all share: what is changed, in doubt, wrong, and perhaps a percentage."""
    values: dict[str, Value] = {}
    doubts: list[Doubt] = []
    problems: dict[Place, str] = {}
    percent: list[Question] = []
    for each in SHARED:
        text = form.shared.get(each, "").strip()
        if text == before.shared[each].strip() and Place(-1, each) not in wrong_before:
            continue
        if each in TEXTS or not text:
            values[each] = text or None
            continue
        counted = form.shared.get("currency", "").strip()
        value, doubt, wrong = read_shared_number(each, text, counted=counted)
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
    each: str, text: str, answers: Answers | None = None, counted: str = ""
) -> tuple[Value, list[Doubt], str]:
    """A number that all share; what is in doubt about it; and what is wrong with it.

    An amount must be in the currency `counted`, if there is one.
    """
    name = _READ_AS.get(each, each)
    columns = NumberColumns({}, lambda *_: each, answers, counted)
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

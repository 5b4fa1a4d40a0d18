"""The clients of a consortium in a spreadsheet, and the rules for the numbers of any client."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from fedaccord.checks import check_choice, shown
from fedaccord.errors import InvalidInput, Problem
from fedaccord.files.cells import Sheet
from fedaccord.files.headings import UnknownColumns
from fedaccord.files.questions import (
    CHOICES,
    PERCENT,
    SUMS,
    YES,
    Answers,
    Question,
    asks_now,
    column_question,
    mark_questions,
    percent_question,
    sums_question,
    unusual,
)
from fedaccord.files.reading import TABLE_LIMIT, Mistakes, read_bytes
from fedaccord.files.tables import ClientTable, check_names, read_table
from fedaccord.game.cost import cost_per_sample_of_cpu
from fedaccord.game.rules import broken_rules, extreme_together
from fedaccord.numbers import FloatArray, as_text

CPU_FIELDS = ("chip", "cycles_per_sample", "hertz")
_ALWAYS = ("valuation", "samples")
_SOMETIMES = ("cost_per_sample", *CPU_FIELDS, "communication_cost", "discount_factor", "quality")
FIELDS = (*_ALWAYS, *_SOMETIMES)
"""The numbers of a client."""
_SUMS = ("total", "totals", "sum", "gesamt", "summe", "somme", "suma", "totale")
"""What people call the last row of a spreadsheet."""


@dataclass(frozen=True)
class ClientsRead:
    """What a spreadsheet says about clients, right or wrong."""

    table: ClientTable | None
    """The clients, with NaN for numbers that are missing or wrong; None if it is not a table."""
    problems: tuple[Problem, ...]
    """All that is wrong with it, each with its place."""
    notes: tuple[str, ...]
    """How it was read, where that is not obvious."""
    questions: tuple[Question, ...] = ()
    """What a person could be asked; with the answers, the same content can be read again."""


def read_clients(
    data: bytes | str | Sheet,
    filename: str = "",
    answers: Answers | None = None,
    *,
    partial: bool = False,
    counted: str = "",
) -> ClientsRead:
    r"""The clients in the content of a spreadsheet, or in text pasted from one.

    Unlike `load_consortium` it raises nothing for a wrong file, so that a form can show what was
    understood beside what is wrong. The kind of file follows from its content; `filename` only
    appears in the places of problems. `answers` are those to the `questions` of an earlier reading.
    In a `partial` table nothing but the names need be there. Amounts must be in the currency
    `counted`, if there is one.

    >>> read = read_clients("Hospital;Cases;Value;Cost per case\nNorth;20 000;700 000 €;0,0042 €\n")
    >>> read.table.names, read.table.numbers["cost_per_sample"].tolist(), read.table.currency
    (['North'], [0.0042], 'EUR')
    >>> [str(problem) for problem in read.problems], read.notes
    ([], ())

    >>> content = "name;samples;value;cost per sample\nNorth;42.000;3;1\n"
    >>> [(question.key, question.text) for question in read_clients(content).questions]
    [('dot', "What does '42.000' mean?")]
    >>> read_clients(content, answers={"dot": "thousands"}).table.numbers["samples"].tolist()
    [42000.0]
    """
    mistakes = Mistakes(filename)
    questions: tuple[Question, ...] = ()
    table = None
    try:
        table = _read(data, filename, mistakes, answers or {}, counted, partial=partial)
        questions = tuple(_questions(table))
        check_clients(table, mistakes, partial=partial)
        if not mistakes:
            sure = [key for key, answer in (answers or {}).items() if answer == YES]
            questions += tuple(_unlikely(table, counted or table.currency, sure))
    except InvalidInput as error:
        for problem in error.problems:
            mistakes.add(problem.inside(filename) if filename else problem)
    problems = mistakes.error().problems if mistakes else ()
    return ClientsRead(table, problems, tuple(table.notes) if table else (), questions)


def load_clients(
    path: Path, mistakes: Mistakes, counted: str = "", called: str | None = None
) -> ClientTable:
    """The clients in a spreadsheet that another file names; not yet checked.

    It is `called` by its name in the places of problems, unless these are about that file anyway.

    Amounts must be in the currency `counted`, if there is one. What the table leaves open is asked
    if somebody is there to answer.
    """
    called = path.name if called is None else called
    try:
        data = read_bytes(path, TABLE_LIMIT)
        answers, columns = _asked(data, called, counted)
        return _read(data, called, mistakes, answers, counted, columns=columns)
    except InvalidInput as error:
        for problem in error.problems:
            mistakes.add(problem.inside(called) if called else problem)
        raise mistakes.error() from None


def _asked(data: bytes, called: str, counted: str) -> tuple[Answers, Mapping[str, str]]:
    """What a person says about a table, and which column is which; nothing if nobody is there."""
    answers: dict[str, str] = {}
    columns: dict[str, str] = {}
    while asks := asks_now():
        try:
            table = _read(data, called, Mistakes(called), answers, counted, columns=columns)
        except UnknownColumns as error:
            fields = [*dict.fromkeys((*error.missing, *_SOMETIMES))]
            left = [each for each in fields if each not in columns.values()]
            columns[error.texts[0]] = asks(column_question(error.texts[0], error.examples, left))
            continue
        except InvalidInput:
            break
        open_ = [each for each in _questions(table) if each.key not in answers]
        given = {each.key: asks(each) for each in open_}
        answers |= {key: answer for key, answer in given.items() if answer}
        if not all(given.values()) or not given:
            break
    return answers, columns


def _read(
    data: bytes | str | Sheet,
    called: str,
    mistakes: Mistakes,
    answers: Answers,
    counted: str,
    *,
    partial: bool = False,
    columns: Mapping[str, str] | None = None,
) -> ClientTable:
    check_answers(answers)
    required, optional = ((), FIELDS) if partial else (_ALWAYS, _SOMETIMES)
    without_sums = _is_sum if answers.get(SUMS) == YES else lambda _: False
    table = read_table(
        *(data, mistakes, required, optional, called),
        answers=answers,
        counted=counted,
        leave_out=without_sums,
        one_of=() if partial else ("cost_per_sample", *CPU_FIELDS),
        chosen=columns,
    )
    if not table.names:
        raise InvalidInput("has no clients; a consortium needs at least one")
    for n, name in enumerate(table.names):
        if _is_sum(name or ""):
            wrong = f"{shown(name)} looks like a row of sums; remove it, or rename the client"
            table.add(mistakes, n, "name", wrong)
    absent = np.full(len(table.names), np.nan)  # nothing is ever written to it
    table.numbers.update({field: absent for field in optional if field not in table.numbers})
    if answers.get(PERCENT) == YES:
        factors = table.numbers["discount_factor"]
        for n in _percentages(table).tolist():
            factors[n] = float(f"{as_text(factors[n])}e-2")
    return table


def check_answers(answers: Answers) -> None:
    """Refuse answers to questions that are never asked."""
    for key, answer in answers.items():
        check_choice("answers", key, tuple(CHOICES))
        check_choice(key, answer, CHOICES[key])


def _is_sum(name: str) -> bool:
    return name.rstrip(":").strip().casefold() in _SUMS


def _percentages(table: ClientTable) -> npt.NDArray[np.int64]:
    """Clients whose discount factor is wrong, and would be right as a percentage."""
    factors = table.numbers["discount_factor"]
    return np.flatnonzero((factors >= 10) & (factors < 100))


def _questions(table: ClientTable) -> Iterator[Question]:
    """What the table leaves open."""
    yield from mark_questions(table.doubts)
    if (percent := _percentages(table)).size:
        first = int(percent[0])
        value = table.numbers["discount_factor"][first]
        yield percent_question(first, value, percent.size - 1)
    sums = [n for n, name in enumerate(table.names) if _is_sum(name or "")]
    if sums:
        yield sums_question(sums[0], str(table.names[sums[0]]))


def _unlikely(table: ClientTable, currency: str, sure: Sequence[str]) -> Iterator[Question]:
    """What is asked about numbers that are possible and unlikely."""
    yield from unusual(table.numbers, [str(name) for name in table.names], currency, sure)


def check_clients(clients: ClientTable, mistakes: Mistakes, *, partial: bool = False) -> FloatArray:
    """Note what is wrong with names and numbers; return each client's cost per sample."""
    check_names(clients, mistakes)
    _check_numbers(clients, mistakes)
    return _cost_per_sample(clients, mistakes, partial)


def _check_numbers(clients: ClientTable, mistakes: Mistakes) -> None:
    for field in FIELDS:
        for n, message in broken(field, clients.numbers[field]):
            clients.add(mistakes, n, field, message)
    samples = clients.numbers["samples"]
    for n in np.flatnonzero(samples > np.floor(samples)).tolist():
        if clients.place(n, "samples") not in mistakes:
            message = f"must be a whole number, got {as_text(samples[n])}"
            clients.add(mistakes, n, "samples", message)


def _cost_per_sample(clients: ClientTable, mistakes: Mistakes, partial: bool) -> FloatArray:
    """E_n as given, or from the CPU's figures (eq. 4): each client must have one or the other."""
    given = clients.numbers["cost_per_sample"]
    figures = np.array([clients.numbers[field] for field in CPU_FIELDS])
    has_given = ~np.isnan(given)
    has_figure = ~np.isnan(figures)
    has_some, has_all = has_figure.any(axis=0), has_figure.all(axis=0)
    for n in np.flatnonzero((has_given == has_all) | (has_some & ~has_all)).tolist():
        noted = (clients.place(n, field) for field in ("", "cpu", "cost_per_sample", *CPU_FIELDS))
        if any(place in mistakes for place in noted):
            continue
        if has_given[n]:
            clients.add(mistakes, n, "", "has a cost_per_sample and figures of a cpu; give one")
        elif has_some[n]:
            for field in CPU_FIELDS:
                if np.isnan(clients.numbers[field][n]):
                    clients.add(mistakes, n, field, "is missing")
        elif not partial:
            clients.add(mistakes, n, "cost_per_sample", "is missing (or the figures of a cpu)")
    with np.errstate(over="ignore", under="ignore"):
        worked_out = np.asarray(cost_per_sample_of_cpu(*figures))
    for n, message in broken("cost_per_sample", np.where(has_given, np.nan, worked_out)):
        if not any(clients.place(n, field) in mistakes for field in CPU_FIELDS):
            clients.add(mistakes, n, "", f"cost_per_sample from its cpu {message}")
    result: FloatArray = np.where(has_given, given, worked_out)
    valuation, samples = clients.numbers["valuation"], clients.numbers["samples"]
    for n, message in extreme_together(valuation, result, samples):
        clients.add(mistakes, n, "", message)
    return result


def broken(field: str, values: FloatArray) -> Iterator[tuple[int, str]]:
    """Positions of numbers that break the field's rule, and how; missing ones (NaN) do not."""
    present = np.flatnonzero(~np.isnan(values))
    # each figure of a CPU obeys the rule of the cost that they make up together
    rule = "cost_per_sample" if field in CPU_FIELDS else field
    for k, message in broken_rules(rule, values[present]):
        yield int(present[k]), message

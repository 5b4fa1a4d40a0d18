"""The questions of the interview: what is asked, what an answer is for, and what it may be.

A question that has no default must be answered, unless the answers so far make it unnecessary. No
amount of money has a default other than 0: nobody else knows what things cost.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from fedaccord.checks import check_choice, normalised, shown
from fedaccord.errors import InvalidInput, Problem
from fedaccord.files.headings import wrong_currency
from fedaccord.files.ranges import Range, as_range, units_of
from fedaccord.game.slot import slot_in_words

Given: TypeAlias = Mapping[str, Any]
"""Answers as they were given, by question."""

_LARGEST = 1e12
"""Of an answer; no product of answers is then beyond what a number can hold."""
MEASURES = ("error", "loss", "1 - AUC", "1 - concordance")
"""What can be lost: error is 1 - accuracy."""


@dataclass(frozen=True)
class Question:
    """One question."""

    key: str
    """What the answer is called in JSON."""
    asks: str
    """The question itself."""
    meaning: str
    """What the answer is for, or what to count, in a sentence."""
    kind: Literal["name", "currency", "slot", "measure", "whole", "amount", "money", "share"] = (
        "amount"
    )
    """What an answer may be. Amounts, of money or of anything else, and shares may be ranges."""
    positive: bool = True
    """Whether a number must be more than 0."""
    default: str | None = None
    """The answer that is assumed if none is given."""
    assumed: str = ""
    """The same in words."""
    instead_of: str = ""
    """The question that this one can replace; it is asked if that one was skipped."""
    spoken: bool = True
    """Whether a person is asked. Few people know the others, and all of these have a default."""
    when: Callable[[Given], bool] = lambda _: True
    """Whether the answers so far make this question necessary."""

    def asked(self, given: Given) -> bool:
        """Whether it needs to be asked after these answers."""
        others = alternatives_to(self) + ([BY_KEY[self.instead_of]] if self.instead_of else [])
        answered = any(other.key in given and other.when(given) for other in others)
        return self.when(given) and not answered

    def may_be_skipped(self, given: Given) -> bool:
        """Whether it has a default, or another question asks for the same in another way."""
        if not self.instead_of:
            return self.default is not None or bool(alternatives_to(self))
        first = BY_KEY[self.instead_of]
        return first.default is not None and first.when(given)

    def read(self, given: Any, others: Given | None = None) -> Any:
        """The value of an answer: text, a whole number, or a `Range`.

        The other answers say which currency an amount of money must be in.
        """
        try:
            value = _READERS[self.kind](given, self)
            if isinstance(value, Range | int):
                _check_units(given, self, others or {})
            return value
        except InvalidInput as error:
            raise InvalidInput(Problem(self.key, error.problems[0].message)) from None


def _name(given: Any, _: Question) -> str:
    if not isinstance(given, str) or not given.strip() or not given.strip().isprintable():
        raise InvalidInput(f"must be one line of printable text, got {shown(given)}")
    return normalised(given.strip())


def _currency(given: Any, _: Question) -> str:
    if not isinstance(given, str) or not (given.isascii() and given.isalpha() and len(given) == 3):
        raise InvalidInput(f"must be three letters like EUR, got {shown(given)}")
    return given.upper()


def _slot(given: Any, _: Question) -> str:
    return slot_in_words(given)


def _measure(given: Any, question: Question) -> str:
    check_choice(question.key, given, MEASURES)
    return str(given)


def _whole(given: Any, _: Question) -> int:
    found = as_range(given)
    if not found.exact or not found.likely.is_integer() or not 1 <= found.likely <= 2**53:
        raise InvalidInput(f"must be a whole number, 1 or more, got {shown(given)}")
    return int(found.likely)


def _amount(given: Any, question: Question) -> Range:
    found = as_range(given)
    if found.high > _LARGEST or 0 < found.low < 1 / _LARGEST:
        raise InvalidInput(f"must be from {1 / _LARGEST:g} to {_LARGEST:g}, got {shown(given)}")
    if found.low < 0 or (question.positive and found.low == 0):
        least = "more than 0" if question.positive else "0 or more"
        raise InvalidInput(f"must be {least}, got {shown(given)}")
    return found


def _share(given: Any, question: Question) -> Range:
    found = _amount(given, question)
    if found.high > 1:
        percent = isinstance(given, str) and "%" not in given and found.high <= 100
        hint = f"; write {shown(given)[1:-1]} % if that is meant" if percent else ""
        raise InvalidInput(f"must be from 0 to 100 % (0 to 1), got {shown(given)}{hint}")
    return found


def _check_units(given: Any, question: Question, others: Given) -> None:
    """Refuse a percentage that is no share, and money that is none or in another currency."""
    counted = others.get("currency") or BY_KEY["currency"].default
    for unit in units_of(given):
        if unit == "%" and question.kind != "share":
            raise InvalidInput(f"must be a number, not a percentage, got {shown(given)}")
        if unit != "%" and question.kind != "money":
            raise InvalidInput(f"must be a number, not an amount in {unit}, got {shown(given)}")
        if wrong := wrong_currency(unit, str(counted).upper(), "all amounts are"):
            raise InvalidInput(wrong)


_READERS: dict[str, Callable[[Any, Question], Any]] = {
    "name": _name,
    "currency": _currency,
    "slot": _slot,
    "measure": _measure,
    "whole": _whole,
    "amount": _amount,
    "money": _amount,
    "share": _share,
}


def _of_errors(given: Given) -> bool:
    return bool(given.get("measure", "error") == "error")


def _from_cases(given: Given) -> bool:
    return _of_errors(given) and "cases_per_year" in given and "point_worth" not in given


def _of_staff(given: Given) -> bool:
    return "annotation_minutes" in given or "staff_hours" in given


QUESTIONS = (
    Question("name", "What is the organisation called?", "Its name in the file.", "name"),
    Question(
        "currency",
        "In which currency are all amounts?",
        "Three letters. All members of a consortium must use the same.",
        "currency",
        default="EUR",
        assumed="amounts in euros",
    ),
    Question(
        "slot",
        "How often is the model retrained?",
        "This is the length of a slot: all results are per slot.",
        "slot",
        default="3 months",
        assumed="a training every three months",
    ),
    Question(
        "rounds",
        "How many rounds of federated averaging does one training have?",
        "A case that is used is trained on once in every round.",
        "whole",
        default="50",
        assumed="50 rounds in a training",
        spoken=False,
    ),
    Question(
        "cases_per_month",
        "How many new cases that the model could train on come in each month?",
        "With the time for which a case is used, this is how many samples it has.",
    ),
    Question(
        "samples",
        "How many cases can it train on, then?",
        "All that it could use in one training.",
        instead_of="cases_per_month",
    ),
    Question(
        "years_used",
        "For how many years is a case used before it is too old?",
        "Annotation is paid once, and shared by all trainings in which the case is used.",
        default="0",
        assumed="each case is used in one training only",
        positive=False,
    ),
    Question(
        "annotation_cost",
        "What does it cost to annotate one case?",
        "Only what would not be spent anyway: 0 if the labels come with daily work.",
        "money",
        positive=False,
        default="0",
        assumed="labels come with daily work and cost nothing",
    ),
    Question(
        "annotation_minutes",
        "How many minutes of work is the annotation of one case, then?",
        "At the hourly wage below. Skip it if the labels come with daily work.",
        positive=False,
        instead_of="annotation_cost",
    ),
    Question(
        "gpu_price",
        "What does an hour of the machine that trains cost?",
        "The price of a rented GPU, or of your own: purchase and power by the hour.",
        "money",
    ),
    Question(
        "samples_per_second",
        "How many cases does it train on in a second?",
        "The throughput of training, forward and backward.",
    ),
    Question(
        "seconds_per_sample",
        "How many seconds does it need for one case, then?",
        "In one round. The command fedaccord calibrate measures it.",
        instead_of="samples_per_second",
    ),
    Question(
        "staff_hours",
        "How many staff hours does it take to prepare the data for one training?",
        "Export, pseudonymisation, checks. Leave out what does not grow with the number of cases.",
        positive=False,
        default="0",
        assumed="preparing the data takes no staff",
    ),
    Question(
        "hourly_wage",
        "What does an hour of this work cost?",
        "Wage, social security, overheads.",
        "money",
        when=_of_staff,
    ),
    Question(
        "measure",
        "What is lost when the model is worse?",
        "error is 1 - accuracy; or " + ", ".join(MEASURES[1:]) + ".",
        "measure",
        default="error",
        assumed="accuracy, the share of cases that it gets right",
        spoken=False,
    ),
    Question(
        "cases_per_year",
        "How many cases does the model read in a year?",
        "In daily work at this organisation, whether or not a person reads them as well.",
        when=_of_errors,
    ),
    Question(
        "point_worth",
        "What is a percentage point (0.01) of it worth in a year, then?",
        "What the organisation would pay for a model that is better by that much.",
        "money",
        instead_of="cases_per_year",
    ),
    Question(
        "missed_cost",
        "What does a missed finding cost?",
        "Later treatment, lost money, liability: on average, for one case.",
        "money",
        positive=False,
        when=_from_cases,
    ),
    Question(
        "false_cost",
        "What does a false finding cost?",
        "Further examinations, calls, complaints: on average, for one case.",
        "money",
        positive=False,
        when=_from_cases,
    ),
    Question(
        "prevalence",
        "What share of these cases has a finding?",
        "It says how many of the wrong cases are missed findings, and how many false ones.",
        "share",
        positive=False,
        when=_from_cases,
    ),
    Question(
        "uncaught",
        "What share of the model's mistakes does nobody notice in time?",
        "100 % if nobody else looks at the cases.",
        "share",
        default="100 %",
        assumed="nobody else looks at the cases",
        when=_from_cases,
    ),
    Question(
        "interest",
        "Which yearly interest rate does the organisation use?",
        "Money saved later is worth less by this much.",
        "share",
        positive=False,
        default="5 % (3-8 %)",
        assumed="interest of 5 % a year (3 to 8 %)",
    ),
    Question(
        "ending",
        "How likely is it that the project ends within a year?",
        "Agreements rest on what comes later, so this counts like interest.",
        "share",
        positive=False,
        default="10 % (5-20 %)",
        assumed="a chance of 10 % a year that it ends (5 to 20 %)",
    ),
    Question(
        "horizon",
        "For how many years will it go on, on average, then?",
        "The budget horizon, if there is no fixed last training.",
        instead_of="ending",
    ),
)
"""In the order in which they are asked."""


def alternatives_to(question: Question) -> list[Question]:
    """The questions that ask for the same in another way."""
    return [each for each in QUESTIONS if each.instead_of == question.key]


BY_KEY = {question.key: question for question in QUESTIONS}

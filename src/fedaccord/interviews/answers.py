"""Answers to the questions: read, completed with defaults, and checked together."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from fedaccord.checks import check_type, shown, unknown
from fedaccord.errors import MISSING, InvalidInput, Problem
from fedaccord.files.questions import UNUSUAL
from fedaccord.files.ranges import Range
from fedaccord.interviews.questions import BY_KEY, QUESTIONS, Question, alternatives_to

SURE = "sure"
"""The key of the questions whose unlikely answers are right."""
_UNUSUAL = [each.key for each in UNUSUAL]


@dataclass(frozen=True)
class Answers:
    """What is known after the interview."""

    given: dict[str, Any]
    """The answers as they were given, by question."""
    values: dict[str, Any]
    """Their values, and those that were assumed."""
    assumed: frozenset[str]
    """The questions that were not answered, and have a default."""
    sure: frozenset[str] = frozenset()
    """The questions whose unlikely answers are right: nothing is asked about them again."""

    def numbers(self, *keys: str) -> dict[str, Range]:
        """Those of these questions that have a value, with their ranges."""
        return {key: self.values[key] for key in keys if key in self.values}


def read_answers(given: Mapping[str, Any]) -> Answers:
    """The values of all answers.

    Args:
        given: Answers by question: numbers, text ("5-8", "600 give or take 30 %"), pairs
            [low, high] or tables of low, likely and high. None counts as not answered. `sure` lists
            the questions whose answers are unlikely and right.

    Raises:
        InvalidInput: with every answer that is wrong or missing.
    """
    check_type("answers", given, Mapping)
    given = {key: value for key, value in given.items() if value is not None}
    problems = [*wrong_in(given), *missing_in(given)]
    if problems:
        raise InvalidInput(problems)
    return _completed(given)


def answers_so_far(given: Mapping[str, Any]) -> tuple[Answers, frozenset[str]]:
    """The values of the answers that are right, and the questions that still need one."""
    wrong = {problem.field for problem in wrong_in(given)}
    right = {key: value for key, value in given.items() if key not in wrong}
    return _completed(right), frozenset(problem.field for problem in missing_in(right))


def _completed(given: Mapping[str, Any]) -> Answers:
    """These answers, which are right, and those that are assumed beside them."""
    assumed = {question.key: question for question in QUESTIONS if _is_assumed(question, given)}
    values = {
        question.key: question.read(given.get(question.key, question.default), given)
        for question in QUESTIONS
        if question.key in given or question.key in assumed
    }
    answered = {key: value for key, value in given.items() if key != SURE}
    return Answers(answered, values, frozenset(assumed), frozenset(given.get(SURE, ())))


def wrong_in(given: Mapping[str, Any]) -> Iterator[Problem]:
    """What is wrong with these answers."""
    for key, value in given.items():
        if key == SURE:
            yield from _wrong_sure(value)
            continue
        if key not in BY_KEY:
            yield Problem(key, f"there is no such question; {unknown(key, BY_KEY)}")
            continue
        try:
            BY_KEY[key].read(value, given)
        except InvalidInput as error:
            yield from error.problems
        first = BY_KEY[key].instead_of
        # what a point is worth may be compared with what the cases say
        if first in given and key != "point_worth":
            yield Problem(key, f"{first} says the same; give one of them")


def _wrong_sure(given: Any) -> Iterator[Problem]:
    listed = given if isinstance(given, list | tuple) else [given]
    for key in listed:
        if key not in _UNUSUAL:
            yield Problem(
                SURE, f"nothing is asked about {shown(key)}; {unknown(str(key), _UNUSUAL)}"
            )
    if listed is not given:
        yield Problem(SURE, f"must be a list of questions, got {shown(given)}")


def missing_in(given: Mapping[str, Any]) -> Iterator[Problem]:
    """Questions that still need an answer."""
    for question in QUESTIONS:
        if question.key in given or not question.asked(given):
            continue
        if question.instead_of and BY_KEY[question.instead_of].when(given):
            continue  # reported there
        if question.default is None:
            others = "".join(f" (or give {each.key})" for each in alternatives_to(question))
            yield Problem(question.key, f"{MISSING}: {question.asks}{others}")


def _is_assumed(question: Question, given: Mapping[str, Any]) -> bool:
    return question.default is not None and question.key not in given and question.asked(given)

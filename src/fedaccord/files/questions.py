"""What a table leaves open, as questions that a person can answer once for all numbers alike.

A form or a terminal asks them, and the table is read again with the answers. Without answers
nothing is guessed: what is in question is a problem of the file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NamedTuple, TypeAlias

from fedaccord.checks import shown
from fedaccord.numbers import as_text

Answers = Mapping[str, str]
"""The chosen answers by the keys of their questions."""
DOT, COMMA, PERCENT, SUMS, UNKNOWN = "dot", "comma", "percent", "sums", "unknown"
THOUSANDS, DECIMAL, YES = "thousands", "decimal", "yes"
CHOICES = {
    DOT: (THOUSANDS, DECIMAL),
    COMMA: (THOUSANDS, DECIMAL),
    PERCENT: (YES,),
    SUMS: (YES,),
}
"""The answers that each question has."""
_SIGNS = {DOT: ".", COMMA: ","}
_SIGN_NAMES = {DOT: "dot", COMMA: "comma"}


class Doubt(NamedTuple):
    """A number with two readings that nothing else in the table decides."""

    row: int
    field: str
    text: str
    small: str
    """What it says if the mark in it is the decimal mark."""
    large: str
    """What it says if the mark in it separates thousands."""


class Choice(NamedTuple):
    """One answer, and what follows from it."""

    answer: str
    meaning: str


class Question(NamedTuple):
    """Something about a table that has to be asked."""

    key: str
    """Under which the answer is given."""
    text: str
    """The question."""
    field: str
    """The first column that it is about."""
    row: int
    """The first row that it is about, counted from 0."""
    choices: Sequence[Choice]
    otherwise: str = "I correct it in the table below"
    """What somebody does who has no answer."""


Asks: TypeAlias = Callable[[Question], str]
"""Puts a question to a person; returns the answer, empty if the person has none."""
_asks: ContextVar[Asks | None] = ContextVar("asks", default=None)


@contextmanager
def asking(asks: Asks) -> Iterator[None]:
    """Put the questions about files that are read meanwhile to a person."""
    token = _asks.set(asks)
    try:
        yield
    finally:
        _asks.reset(token)


def asks_now() -> Asks | None:
    """How to ask; None if nobody is there."""
    return _asks.get()


def key_of(text: str) -> str:
    """Which question a numeral with two readings belongs to: that of its mark."""
    return DOT if "." in text else COMMA


def decimal_mark(text: str, answers: Answers) -> str | None:
    """The decimal mark of a numeral with two readings, as answered; None if it was not.

    >>> decimal_mark("42.000", {"dot": "thousands"}), decimal_mark("42,000", {"dot": "thousands"})
    (',', None)
    """
    key = key_of(text)
    answer = answers.get(key)
    if answer not in CHOICES[key]:
        return None
    sign = _SIGNS[key]
    return sign if answer == DECIMAL else {".": ",", ",": "."}[sign]


def mark_questions(doubts: Iterable[Doubt]) -> Iterator[Question]:
    """One question for all numerals with a dot, and one for those with a comma."""
    found = list(doubts)
    for key, name in _SIGN_NAMES.items():
        alike = [doubt for doubt in found if key_of(doubt.text) == key]
        if not alike:
            continue
        first, others = alike[0], len(alike) - 1
        like = f" (and {others} more like it)" if others else ""
        yield Question(
            key,
            f"What does {shown(first.text)}{like} mean?",
            first.field,
            first.row,
            (
                Choice(THOUSANDS, f"{first.large}: the {name} separates thousands"),
                Choice(DECIMAL, f"{first.small}: the {name} is the decimal mark"),
            ),
        )


def percent_question(row: int, value: float, others: int) -> Question:
    """Whether discount factors above 1 are percentages."""
    like = f" (and {others} more like it)" if others else ""
    return Question(
        PERCENT,
        f"Is the discount factor {as_text(value)}{like} a percentage?",
        "discount_factor",
        row,
        (Choice(YES, f"yes: {as_text(value / 100)}"),),
    )


def unknown_question(keys: Sequence[str]) -> Question:
    """Whether keys of a consortium file that mean nothing are to be left out.

    A table has no keys, so nobody asks this about one.
    """
    listed, one = ", ".join(map(shown, keys)), len(keys) == 1
    return Question(
        UNKNOWN,
        f"The file has a key that means nothing here: {listed}. Leave it out?"
        if one
        else f"The file has keys that mean nothing here: {listed}. Leave them out?",
        "",
        -1,
        (Choice(YES, "yes"),),
        "I correct the file and upload it again",
    )


def column_question(text: str, examples: str, fields: Sequence[str]) -> Question:
    """What a column is whose heading means nothing to us."""
    begins = f", which begins with {examples}" if examples else ""
    return Question(
        "column",
        f"I don't know the column {shown(text)}{begins}. What is it?",
        fields[0],
        -1,
        tuple(Choice(field, field) for field in fields),
    )


def sums_question(row: int, name: str) -> Question:
    """Whether a row is no client but the sum of all."""
    return Question(
        SUMS,
        f"Is the row {shown(name)} the sum of the others?",
        "name",
        row,
        (Choice(YES, "yes: leave it out"),),
    )

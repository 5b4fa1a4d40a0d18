"""What a table leaves open, as questions that a person can answer once for all numbers alike.

A number can also be right and unusual. `UNUSUAL` lists what is asked about such numbers in tables,
in consortium files and in the interview; nothing is refused for it, and whoever is sure is not
asked again.

A form or a terminal asks them, and the table is read again with the answers. Without answers
nothing is guessed: what is in question is a problem of the file.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NamedTuple, TypeAlias

import numpy as np

from fedaccord.checks import shown
from fedaccord.numbers import BoolArray, FloatArray, as_text

Answers = Mapping[str, str]
"""The chosen answers by the keys of their questions."""
DOT, COMMA, PERCENT, SUMS, UNKNOWN = "dot", "comma", "percent", "sums", "unknown"
THOUSANDS, DECIMAL, YES = "thousands", "decimal", "yes"
VALUATION, COST = "valuation", "cost_per_sample"
CHOICES = {
    DOT: (THOUSANDS, DECIMAL),
    COMMA: (THOUSANDS, DECIMAL),
    PERCENT: (YES,),
    SUMS: (YES,),
    VALUATION: (YES,),
    COST: (YES,),
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


# --- Numbers that are possible, and unusual ------------------------------------------------

_COFFEE = {"JPY": 400.0, "KRW": 4000.0, "INR": 150.0, "CNY": 25.0, "HUF": 1000.0, "CZK": 70.0}
_COFFEE_ELSEWHERE = 4.0
"""What a coffee costs, roughly, in euros, dollars, pounds or francs."""
_APART = (40.0, 250.0)
"""Times by which a valuation differs from the others' median if it is meant per percentage point,
and the others per loss of 1: 100, for a client that is up to 2.5 times as large or small."""
_GAP = 10.0
"""Times from the valuations of one kind to those of the other, with none in between: clients whose
sizes differ a hundredfold are seldom without any of a size in between."""
_SAME_SCALE = 3.0
"""Times by which a valuation per sample may differ from the others' median, and the size of the
client still explains the valuation."""
_DEAR_SAMPLE = 2_500.0
"""Coffees, 10,000 EUR: the most laborious annotations, by panels of experts, cost some hundreds. A
sample must also cost more than a percentage point is worth, whatever unit amounts are in."""
_POINTS = 100.0
_OLDEST = 30.0
"""Years: hospitals, banks and plants hardly have digital records that are older."""
_RARE = 0.01
"""A share of findings below which one who never finds anything is wrong in less than one case of a
hundred: no percentage point of accuracy is left to gain."""


def coffee_in(currency: str) -> float:
    """The price of a coffee, by which amounts in any currency are judged."""
    return _COFFEE.get(currency, _COFFEE_ELSEWHERE)


Columns: TypeAlias = Mapping[str, FloatArray]
"""Numbers by name, one for each client."""


class Unusual(NamedTuple):
    """A question about numbers that are possible and unlikely."""

    key: str
    """Under which it is answered: the field or the answer that it is about."""
    needs: Sequence[str]
    """The numbers without which it is not asked."""
    is_odd: Callable[[Columns, float], BoolArray]
    """For which clients it is asked; the second argument is the price of a coffee."""
    asks: Callable[[Mapping[str, float], str, str], str]
    """The question, from the client's numbers, its name and the currency."""


def unusual(
    numbers: Columns, names: Sequence[str], currency: str = "", sure: Collection[str] = ()
) -> Iterator[Question]:
    """The questions about unlikely numbers, one of each kind, but for those that are `sure`.

    >>> numbers = {"valuation": np.array([1_501.0, 120_100, 98_000]), "samples": np.full(3, 900.0)}
    >>> for question in unusual(numbers, ["North", "South", "West"]):
    ...     print(question.text.partition(" or more")[0])
    The valuation of North is 1501, and half of the others have 109050
    """
    coffee = coffee_in(currency)
    money = f" {currency}" if currency else ""
    for each in UNUSUAL:
        if each.key in sure or not numbers.keys() >= {*each.needs}:
            continue
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            odd = np.flatnonzero(each.is_odd(numbers, coffee)).tolist()
        if odd:
            n = odd[0]
            own = {field: float(numbers[field][n]) for field in each.needs}
            if each.key == VALUATION:
                own["others"] = float(_median_of_others(numbers[VALUATION])[n])
            text = each.asks(own, names[n], money)
            choices = (Choice(YES, "yes, the numbers are right"),)
            yield Question(each.key, text, each.key, n, choices)


def _median_of_others(values: FloatArray) -> FloatArray:
    """For each number the median of all others; NaN if there is none."""
    known = np.sort(values[~np.isnan(values)])
    if known.size < 2:
        return np.full(values.shape, np.nan)
    own = np.searchsorted(known, values)
    low, high = (known.size - 2) // 2, (known.size - 1) // 2
    middle = known[low + (low >= own)] + known[high + (high >= own)]
    result: FloatArray = np.where(np.isnan(values), np.nan, middle / 2)
    return result


def _valuation_apart(numbers: Columns, _: float) -> BoolArray:
    """The clients with a valuation of another kind than the others', by all appearances."""
    values = numbers[VALUATION]
    per_sample = values / numbers["samples"]
    other_size = per_sample / _median_of_others(per_sample)
    unexplained = np.maximum(other_size, 1 / other_size) > _SAME_SCALE
    ratio = values / _median_of_others(values)
    for times, sizes in ((1 / ratio, values), (ratio, 1 / values)):  # too small, or too large
        apart = (times >= _APART[0]) & (times <= _APART[1]) & unexplained
        if apart.any():
            largest = np.max(sizes[apart])
            if np.min(sizes[sizes > largest]) >= _GAP * largest:
                return apart
    return np.zeros(values.shape, dtype=bool)


def _scored_by_never(at: Mapping[str, float]) -> str:
    most = max(at["prevalence"], 1 - at["prevalence"])
    answer = "no finding" if at["prevalence"] < 0.5 else "a finding"
    return (
        f"A model that always says '{answer}' is right in {100 * most:.3g} % of the cases, so less "
        "than a percentage point of accuracy can be gained: is accuracy what counts, or the cost "
        "of a missed finding, or 1 - AUC?"
    )


UNUSUAL = (
    Unusual(
        VALUATION,
        (VALUATION, "samples"),
        _valuation_apart,
        lambda at, name, money: (
            f"The valuation of {name} is {as_text(at[VALUATION])}{money}, and half of the others "
            f"have {as_text(at['others'])}{money} or more: is one for a percentage point (0.01), "
            "and the others for a loss of 1?"
        ),
    ),
    Unusual(
        COST,
        (COST, VALUATION),
        lambda at, coffee: (
            (at[COST] > _DEAR_SAMPLE * coffee) & (at[COST] > at[VALUATION] / _POINTS)
        ),
        lambda at, name, money: (
            f"One sample of {name} costs {at[COST]:,.6g}{money} in every slot, and a loss of 1 "
            f"costs it {as_text(at[VALUATION])}{money}: is that the cost of one sample, or of many?"
        ),
    ),
    Unusual(
        "years_used",
        ("years_used",),
        lambda at, _: at["years_used"] > _OLDEST,
        lambda at, *_: (
            f"A case would be used for {as_text(at['years_used'])} years: are records so old, or "
            "are these not years?"
        ),
    ),
    Unusual(
        "annotation_cost",
        ("annotation_cost",),
        lambda at, coffee: at["annotation_cost"] > _DEAR_SAMPLE * coffee,
        lambda at, _, money: (
            f"Annotating one case would cost {as_text(at['annotation_cost'])}{money}: is that one "
            "case, or all of them?"
        ),
    ),
    Unusual(
        "prevalence",
        ("prevalence",),
        lambda at, _: (at["prevalence"] < _RARE) | (at["prevalence"] > 1 - _RARE),
        lambda at, *_: _scored_by_never(at),
    ),
    Unusual(
        "uncaught",
        ("uncaught_assumed",),
        lambda at, _: at["uncaught_assumed"] > 0,
        lambda at, *_: (
            f"{100 * at['uncaught_assumed']:g} % of the model's mistakes would have consequences, "
            "because it was not answered what share nobody notices in time: does really nobody "
            "else look at the cases?"
        ),
    ),
)
"""All of them. A threshold is where a number is more likely a mistake than true; see above."""

"""Questions about numbers that are possible but unlikely: each a sentence to think about."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from fedaccord.files.questions import coffee_in, unusual
from fedaccord.files.ranges import Range
from fedaccord.interviews import formulas
from fedaccord.interviews.answers import Answers
from fedaccord.interviews.estimates import Estimate, Known, brief, percent
from fedaccord.interviews.questions import BY_KEY, QUESTIONS, Given
from fedaccord.numbers import FloatArray

_DEAR = 1e6
"""A wrong case that costs more than this on average is rare in any trade."""
_WIDE = 100.0
"""Times that the highest value is the lowest; beyond this a number says little."""
_DAY = 86400.0
_SECONDS_PER_YEAR = 365 * _DAY


@dataclass(frozen=True)
class Doubts:
    """What is known of a client, seen by someone who does not believe it yet."""

    known: Known
    estimates: dict[str, Estimate]
    """By field."""

    def __iter__(self) -> Iterator[str]:
        """What should be looked at again."""
        yield from self._unlikely()
        yield from self._a_point()
        yield from self._a_wrong_case()
        yield from self._time()
        yield from self._width()
        yield from self._unused()

    @property
    def _currency(self) -> str:
        return str(self.known.answers.values["currency"])

    def _range(self, key: str) -> Range | None:
        found = self.known.answers.values.get(key)
        return found if isinstance(found, Range) else None

    def _unlikely(self) -> Iterator[str]:
        """What is asked about the numbers of any client, and about answers by themselves."""
        answers = self.known.answers
        numbers = unlikely_in(answers.given, answers)
        numbers |= {key: np.array([each.value.likely]) for key, each in self.estimates.items()}
        name = str(answers.values["name"])
        for question in unusual(numbers, [name], self._currency, answers.sure):
            yield question.text

    def _a_point(self) -> Iterator[str]:
        """A percentage point worth next to nothing, or more than the cases could cost."""
        point = point_worth(self.estimates["valuation"], self.known).likely
        if point < coffee_in(self._currency):
            yield (
                f"A percentage point would be worth {brief(point)} {self._currency} a year, less "
                "than a coffee: is a better model worth so little, or is an answer too small?"
            )
        cases = self._range("cases_per_year")
        if cases is None or "point_worth" not in self.known:
            return
        wrong = cases.likely / formulas.POINTS
        costs = [each.high for key in ("missed_cost", "false_cost") if (each := self._range(key))]
        if costs and point > wrong * max(costs):
            yield (
                f"A percentage point is {brief(wrong)} cases a year, which cost at most "
                f"{brief(wrong * max(costs))} {self._currency} if they are wrong, but it is said "
                f"to be worth {brief(point)}: which of the two is right?"
            )
        elif not costs and point > wrong * _DEAR:
            yield (
                f"A percentage point is {brief(wrong)} cases a year, so each of them would cost "
                f"{brief(point / wrong)} {self._currency}: can one wrong case cost so much?"
            )

    def _a_wrong_case(self) -> Iterator[str]:
        """Costs of a wrong case, or a prevalence, that are rarely seen."""
        missed, false = self._range("missed_cost"), self._range("false_cost")
        if missed and false:
            most = max(missed.likely, false.likely)
            if most > _DEAR:
                yield (
                    f"One wrong case would cost up to {brief(most)} {self._currency}: is that the "
                    "average, or the worst that can happen?"
                )
            if false.likely > missed.likely:
                yield (
                    "A false finding would cost more than a missed one: are they the wrong way "
                    "round?"
                )
        prevalence = self._range("prevalence")
        if prevalence and prevalence.likely > 0.5:
            yield (
                f"{percent(prevalence.likely)} of the cases would have a finding: is that the "
                "share among all cases that the model reads?"
            )

    def _time(self) -> Iterator[str]:
        """A training that does not fit into its slot, or a next slot that hardly counts."""
        speed, seconds = self._range("samples_per_second"), self._range("seconds_per_sample")
        each = 1.0 / speed.likely if speed else seconds.likely if seconds else 0.0
        needed = self.estimates["samples"].value.likely * self.known.rounds * each
        available = _SECONDS_PER_YEAR / self.known.slots_per_year
        if needed > available:
            yield (
                f"Training on all samples would take {brief(needed / _DAY)} days, and a slot has "
                f"{brief(available / _DAY)}: is the machine so slow, or are there several?"
            )
        if self.estimates["discount_factor"].value.likely < 0.5:
            yield (
                "Money in the next slot would be worth less than half of money now: is the project "
                "so close to its end?"
            )

    def _width(self) -> Iterator[str]:
        """Numbers of which too little is known."""
        for estimate in self.estimates.values():
            low, _, high = estimate.value
            if high > _WIDE * low:
                yield (
                    f"The {estimate.field} is known only from {brief(low)} to {brief(high)}: which "
                    "answer could be narrower?"
                )

    def _unused(self) -> Iterator[str]:
        """Answers that change nothing."""
        given = self.known.answers.given
        used = {question.key for question in QUESTIONS if question.when(given)}
        if {"cases_per_year", "point_worth"} <= given.keys() & used:
            used |= {"missed_cost", "false_cost"}  # compared with each other above
        if unused := [key for key in given if key not in used]:
            yield f"Not needed with the other answers, and so not used: {', '.join(unused)}."


def unlikely_in(given: Given, answers: Answers) -> dict[str, FloatArray]:
    """The answers that questions about unlikely numbers are about, if they are used."""
    numbers = {
        key: np.array([value.likely])
        for key, value in answers.values.items()
        if isinstance(value, Range) and key in given and BY_KEY[key].when(given)
    }
    if "uncaught" in answers.assumed:
        numbers["uncaught_assumed"] = np.array([answers.values["uncaught"].likely])
    return numbers


def point_worth(valuation: Estimate, known: Known) -> Range:
    """What a percentage point (0.01) of the measure is worth in a year."""
    return Range(*(each * known.slots_per_year / formulas.POINTS for each in valuation.value))

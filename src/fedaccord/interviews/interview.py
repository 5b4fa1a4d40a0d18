"""`interview`: answers in, a client's numbers out, each with a range and where it came from."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from math import floor, log10
from pathlib import Path
from typing import Any

from fedaccord.errors import InvalidInput
from fedaccord.files.client_text import (
    Entry,
    client_text,
    new_file,
    with_client,
    with_client_in,
)
from fedaccord.files.ranges import Range
from fedaccord.game.consortium import Client
from fedaccord.game.slot import slots_per_year
from fedaccord.interviews.answers import Answers, answers_so_far, read_answers
from fedaccord.interviews.doubts import Doubts, point_worth
from fedaccord.interviews.estimates import (
    NEEDED,
    Estimate,
    Known,
    brief,
    estimate_cost_per_sample,
    estimate_discount_factor,
    estimate_samples,
    estimate_valuation,
)
from fedaccord.interviews.questions import QUESTIONS
from fedaccord.record import Columns, Record, Tables, jsonable, rows_of

_DIGITS = 4
"""Significant digits of the numbers in a file: no answer is known more precisely."""


@dataclass(frozen=True, eq=False, repr=False)
class Interview(Record):
    """What an organisation answered, and the numbers that follow from it."""

    known: Known
    """The answers."""
    estimates: dict[str, Estimate]
    """The client's numbers by field, in the order in which a file has them."""

    _headline = ("name", "valuation", "cost_per_sample", "samples", "discount_factor")

    @property
    def answers(self) -> Answers:
        """What was answered, and what was assumed."""
        return self.known.answers

    @property
    def name(self) -> str:
        """What the organisation is called."""
        return str(self.answers.values["name"])

    @property
    def currency(self) -> str:
        """Of all amounts."""
        return str(self.answers.values["currency"])

    @property
    def slot(self) -> str:
        """The length of a slot, in words."""
        return str(self.answers.values["slot"])

    @property
    def slots_per_year(self) -> float:
        """How many slots a year has."""
        return self.known.slots_per_year

    @property
    def rounds(self) -> int:
        """G, in a slot."""
        return self.known.rounds

    @property
    def measure(self) -> str:
        """What is lost when the model is worse."""
        return str(self.answers.values["measure"])

    @property
    def valuation(self) -> Range:
        """rho_n: what a loss of 1 costs in a slot."""
        return self.estimates["valuation"].value

    @property
    def cost_per_sample(self) -> Range:
        """E_n: what training on one sample costs in a slot, annotation and staff included."""
        return self.estimates["cost_per_sample"].value

    @property
    def samples(self) -> Range:
        """D_n: how many samples it has."""
        return self.estimates["samples"].value

    @property
    def discount_factor(self) -> Range:
        """delta_n: what 1 saved in the next slot is worth now."""
        return self.estimates["discount_factor"].value

    @property
    def point_worth(self) -> Range:
        """What a percentage point (0.01) of the measure is worth in a year."""
        return point_worth(self.estimates["valuation"], self.known)

    @cached_property
    def doubts(self) -> list[str]:
        """Questions about numbers that are unlikely."""
        return list(Doubts(self.known, self.estimates))

    @property
    def client(self) -> Client:
        """The client, its numbers rounded to four digits; of the discount factor, what it lacks."""
        return Client(
            name=self.name,
            valuation=_rounded(self.valuation.likely),
            cost_per_sample=_rounded(self.cost_per_sample.likely),
            samples=float(max(1, round(self.samples.likely))),
            discount_factor=round(1.0 - _rounded(1.0 - self.discount_factor.likely), 15),
        )

    def written_into(self, path: str | Path, *, ranges: bool = False) -> str:
        """The text of a consortium file with this client; of a new one if there is no such file.

        Comments and all other clients stay as they are. A client of the same name is replaced. With
        `ranges` the agreement is to hold for all numbers within them; otherwise they are comments.
        """
        if Path(path).exists():
            return with_client(path, self.name, self._entries(ranges=ranges), self._rests_on)
        return new_file(self.name, self._entries(ranges=ranges), self._rests_on)

    def put_into(self, text: str, *, ranges: bool = False) -> str:
        """As `written_into`, for the text of a consortium file, which need not be complete."""
        return with_client_in(text, self.name, self._entries(ranges=ranges), self._rests_on)

    @property
    def _rests_on(self) -> dict[str, Any]:
        """What the numbers rest on, and all clients share."""
        return {"slot": self.slot, "currency": self.currency, "rounds": self.rounds}

    def table(self, *, ranges: bool = False) -> str:
        """The client's table for a consortium file."""
        return client_text(self.name, self._entries(ranges=ranges))

    def _entries(self, *, ranges: bool) -> dict[str, Entry]:
        """The numbers by field, each with the comment that says where it came from."""
        entries = {}
        for estimate in self.estimates.values():
            low, _, high = estimate.value
            value = float(getattr(self.client, estimate.field))
            if ranges and low < high:
                within = Range(min(_rounded(low), value), value, max(_rounded(high), value))
                entries[estimate.field] = Entry(within, f"interview: {estimate.source}")
                continue
            width = "" if low == high else f", {brief(low)} to {brief(high)}"
            entries[estimate.field] = Entry(value, f"interview{width}: {estimate.source}")
        return entries

    def to_dict(self) -> dict[str, Any]:
        """Answers, results with their ranges and steps, and doubts."""
        return {
            **{name: jsonable(value) for name, value in self._shared().items()},
            "point_worth_per_year": self.point_worth.to_dict(),
            "client": {
                name: value
                for name, value in self.client.to_dict().items()
                if name != "communication_cost"
            },
            "results": [estimate.to_dict() for estimate in self.estimates.values()],
            "answers": rows_of(self._answers()),
            "doubts": self.doubts,
        }

    def _shared(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "currency": self.currency,
            "slot": self.slot,
            "slots_per_year": self.slots_per_year,
            "rounds": self.rounds,
            "measure": self.measure,
        }

    def _facts(self) -> dict[str, Any]:
        return self._shared() | {each.field: each.value.likely for each in self.estimates.values()}

    def _tables(self) -> Tables:
        return {"results": self._results, "answers": self._answers}

    def _results(self) -> Columns:
        return {
            "field": [each.field for each in self.estimates.values()],
            **{
                end: [getattr(each.value, end) for each in self.estimates.values()]
                for end in Range._fields
            },
            "source": [each.source for each in self.estimates.values()],
        }

    def _answers(self) -> Columns:
        asked = [question for question in QUESTIONS if question.key in self.answers.values]
        return {
            "question": [question.key for question in asked],
            "asks": [question.asks for question in asked],
            "value": [_plain(self.answers.values[question.key]) for question in asked],
            "assumed": [question.key in self.answers.assumed for question in asked],
        }


def interview(answers: Mapping[str, Any]) -> Interview:
    """A client's numbers from what its people know.

    Args:
        answers: By question (`fedaccord.interviews.questions.QUESTIONS`): numbers, or text like
            "5-8" or "600 give or take 30 %", or pairs [low, high]. Questions with a default may be
            left out.

    Raises:
        InvalidInput: with every answer that is wrong or missing.
    """
    known = _known(read_answers(answers))
    return Interview(known, {field: estimate(known) for field, estimate in _ESTIMATES.items()})


def estimates_so_far(answers: Mapping[str, Any]) -> dict[str, Estimate]:
    """The numbers that follow from the answers so far; answers that are wrong do not count."""
    read, missing = answers_so_far(answers)
    known, found = _known(read), {}
    for field, estimate in _ESTIMATES.items():
        if not missing.intersection(NEEDED[field]):
            with suppress(InvalidInput):  # answers that do not go together
                found[field] = estimate(known)
    return found


def _known(read: Answers) -> Known:
    return Known(read, slots_per_year(read.values["slot"]), read.values["rounds"])


_ESTIMATES = {
    "valuation": estimate_valuation,
    "cost_per_sample": estimate_cost_per_sample,
    "samples": estimate_samples,
    "discount_factor": estimate_discount_factor,
}
"""In the order in which a file has them."""


def _rounded(value: float) -> float:
    """The number with four significant digits.

    >>> _rounded(1234567.0), _rounded(0.000123456)
    (1235000.0, 0.0001235)
    """
    return round(value, _DIGITS - 1 - floor(log10(value)))


def _plain(value: Any) -> Any:
    return value.to_dict() if isinstance(value, Range) else value

"""The interview as a page sees it: which questions are asked now, and what follows so far."""

import re
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from fedaccord.checks import normalised, unusable_names
from fedaccord.console.workshop.draft import Draft
from fedaccord.errors import InvalidInput, Problem
from fedaccord.files.law import law_of
from fedaccord.files.ranges import Range, spelled
from fedaccord.files.reading import parse_toml
from fedaccord.interviews.answers import missing_in, wrong_in
from fedaccord.interviews.estimates import percent
from fedaccord.interviews.interview import Interview, estimates_so_far, interview
from fedaccord.interviews.questions import (
    BY_KEY,
    MEASURES,
    QUESTIONS,
    Question,
    alternatives_to,
)
from fedaccord.summaries.interview import EstimateInWords, estimate_in_words

NEW = "new"
"""Who is interviewed, unless it is somebody who is in the consortium already."""
_SHARED = ("slot", "currency", "rounds")
_LONGEST = 400
"""Characters of an answer that are read."""
_PLAIN = re.compile(r"\d+(\.\d+)?( ?%)?")
"""Answers that nobody needs to hear again."""
_GROUPS = {
    "The organisation": ("name", "currency", "slot"),
    "The cases it trains on": ("cases_per_month", "samples", "years_used"),
    "What training on them costs": (
        "annotation_cost",
        "annotation_minutes",
        "gpu_price",
        "samples_per_second",
        "seconds_per_sample",
        "staff_hours",
        "hourly_wage",
    ),
    "What a better model is worth": (
        "cases_per_year",
        "point_worth",
        "missed_cost",
        "false_cost",
        "prevalence",
        "uncaught",
    ),
    "How much the future counts": ("interest", "ending", "horizon"),
    "What usually stays as it is": ("measure", "rounds"),
}


@dataclass(frozen=True)
class Field:
    """A question as it stands on the page."""

    question: Question
    value: str
    """As it was typed."""
    asks: str
    skipped: str
    """What happens if it is left empty; empty if it must not be."""
    understood: str
    """What the answer was read as; empty if that is plain to see."""
    problem: str
    alternative: bool
    """Whether it asks for the same as the question before it, in another way."""
    choices: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """What the answer is called."""
        return self.question.key


@dataclass(frozen=True)
class Group:
    """Questions about one thing."""

    title: str
    fields: tuple[Field, ...]


@dataclass(frozen=True)
class Questionnaire:
    """An interview for a consortium file that is being worked on."""

    draft: Draft
    typed: dict[str, str]
    """Answers as they stand in the form, by question; empty if there is none."""
    who: str = NEW
    """`new`, or the position of a member, from 1."""
    ranges: bool = False
    """Whether the file gets ranges, for all of which an agreement is then to hold."""
    final: bool = False
    """Whether answers that are missing are mistakes by now."""

    @cached_property
    def _file(self) -> dict[str, Any]:
        return parse_toml(self.draft.text, "consortium.toml")

    @cached_property
    def members(self) -> list[str]:
        """The names in the file, which may lack everything else."""
        listed = self._file.get("clients", [])
        tables = listed if isinstance(listed, list) else []
        return [str(each.get("name", "")) for each in tables if isinstance(each, dict)]

    @cached_property
    def chosen(self) -> str | None:
        """The member whose numbers are replaced; None if it is a new one."""
        if not self.who.isdecimal() or not 1 <= int(self.who[:6]) <= len(self.members):
            return None
        return self.members[int(self.who[:6]) - 1]

    @property
    def number(self) -> int:
        """The member's number in the file, from 1: a new one comes last."""
        return len(self.members) + 1 if self.chosen is None else int(self.who)

    @cached_property
    def shared(self) -> dict[str, Any]:
        """The answers that the consortium has given already."""
        return {key: self._file[key] for key in _SHARED if key in self._file}

    @cached_property
    def given(self) -> dict[str, Any]:
        """All answers."""
        typed = {key: text.strip()[:_LONGEST] for key, text in self.typed.items() if text.strip()}
        chosen = {} if self.chosen is None else {"name": self.chosen}
        return typed | self.shared | chosen

    @cached_property
    def problems(self) -> list[Problem]:
        """What is wrong with the answers; at the end, what is missing as well."""
        found = list(wrong_in(self.given))
        found += self._name_problems()
        if self.final or not self.missing:
            found += missing_in(self.given)
            if not found and isinstance(self._outcome, InvalidInput):
                found += self._outcome.problems
        return found

    def _name_problems(self) -> list[Problem]:
        name = normalised(self.typed.get("name", ""))
        if self.chosen is not None or not name:
            return []
        names = [*map(normalised, self.members), name]
        wrong = dict(unusable_names(names, lambda n: f"member {n + 1}")).get(len(names) - 1)
        if wrong and "looks like" in wrong:
            return [Problem("name", wrong)]
        return (
            [Problem("name", "there is such a member already: choose it at the top")]
            if wrong
            else []
        )

    @cached_property
    def missing(self) -> list[Question]:
        """The questions that still need an answer."""
        return [BY_KEY[problem.field] for problem in missing_in(self.given)]

    @cached_property
    def _outcome(self) -> Interview | InvalidInput:
        try:
            return interview(self.given)
        except InvalidInput as error:
            return error

    @property
    def result(self) -> Interview | None:
        """The interview, once every answer is there and right."""
        done = isinstance(self._outcome, Interview) and not self.problems
        return self._outcome if done and isinstance(self._outcome, Interview) else None

    @cached_property
    def groups(self) -> list[Group]:
        """The questions that are needed now, in the order in which they are asked."""
        groups = [
            Group(title, tuple(self._field(BY_KEY[key]) for key in keys if self._is_shown(key)))
            for title, keys in _GROUPS.items()
        ]
        return [group for group in groups if group.fields]

    def _is_shown(self, key: str) -> bool:
        if key in self.shared or (key == "name" and self.chosen is not None):
            return False
        return bool(self.typed.get(key, "").strip()) or BY_KEY[key].asked(self.given)

    def _field(self, question: Question) -> Field:
        value = self.typed.get(question.key, "")
        alternative = bool(question.instead_of) and self._is_shown(question.instead_of)
        return Field(
            question=question,
            value=value,
            asks=_asked(question, alternative=alternative),
            skipped=self._if_skipped(question),
            understood=self._understood(question, value),
            problem=self._problem_of(question.key),
            alternative=alternative,
            choices=MEASURES if question.kind == "measure" else (),
        )

    def _problem_of(self, key: str) -> str:
        found = [each for each in self.problems if key in each.field.split(", ")]
        if not found:
            return ""
        if found[0].is_missing:
            return "This one needs an answer."
        message = found[0].message
        return message[0].upper() + message[1:] + ("" if message.endswith("?") else ".")

    def _understood(self, question: Question, value: str) -> str:
        """What an answer was read as, unless that is plain to see."""
        if not value.strip() or _PLAIN.fullmatch(value.strip()):
            return ""
        try:
            read = question.read(value.strip(), self.given)
        except InvalidInput:
            return ""
        if not isinstance(read, Range | int):
            return ""
        if isinstance(read, int):
            return f"Read as {read}"
        write = percent if question.kind == "share" else spelled
        if read.exact:
            return f"Read as {write(read.likely)}"
        return f"Read as {write(read.likely)}, from {write(read.low)} to {write(read.high)}"

    def _if_skipped(self, question: Question) -> str:
        if not question.may_be_skipped(self.given):
            return ""
        if question.assumed:
            return f"If you leave it empty: {question.assumed}."
        if alternatives_to(question) and not self.typed.get(question.key, "").strip():
            return "Or answer the next question instead."
        return ""

    @cached_property
    def numbers(self) -> list[EstimateInWords]:
        """The numbers that follow from the answers so far."""
        known = {key: self.given.get(key) or BY_KEY[key].default for key in ("currency", "slot")}
        wrong = {problem.field for problem in wrong_in(self.given)}
        usual = {
            key: BY_KEY[key].read(BY_KEY[key].default if key in wrong else known[key])
            for key in known
        }
        measure = str(self.given.get("measure", "error"))
        return [
            estimate_in_words(each, usual["currency"], usual["slot"], measure)
            for each in estimates_so_far(self.given).values()
        ]

    @property
    def doubts(self) -> list[str]:
        """What should be looked at again."""
        if self.result is None:
            return []
        law = law_of(self._file)
        measures = self.result.measure, "loss" if law is None else law.measure
        if measures[0] == measures[1]:
            return self.result.doubts
        other = (
            f"The valuation is in units of the {measures[0]}, and the law of this consortium is in "
            f"units of the {measures[1]}. Under Members you can say how the model gets better with "
            "data in the same measure."
        )
        return [*self.result.doubts, other]

    @property
    def assumed(self) -> list[str]:
        """What was assumed because it was not answered."""
        if self.result is None:
            return []
        keys = self.result.answers.assumed
        return [question.assumed for question in QUESTIONS if question.key in keys]

    def put_in(self) -> Draft:
        """The consortium file with this member; `InvalidInput` if an answer is wrong or missing."""
        if self.result is None:
            raise InvalidInput(self.problems)
        return Draft(self.result.put_into(self.draft.text, ranges=self.ranges))


def _asked(question: Question, *, alternative: bool) -> str:
    """The question; what replaces the one before is asked as an alternative."""
    asks = question.asks.replace(", then?", "?")
    return f"Or: {asks[0].lower()}{asks[1:]}" if alternative else asks

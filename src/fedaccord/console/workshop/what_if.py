"""The consortium of a draft under settings: other patience, ranges, and what if.

All but the ranges is done to the data of the file, before it is read: so every kind of number that
a file may have, ranges and classes and machines, is changed as if the file said so.
"""

import re
import warnings
from copy import deepcopy
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from fedaccord.checks import in_brief, is_number, normalised, shown, unusable_names
from fedaccord.console.workshop.draft import Draft
from fedaccord.console.workshop.settings import Settings
from fedaccord.errors import FileNote, InvalidInput, Problem
from fedaccord.files.consortium import build_consortium
from fedaccord.files.ranges import as_range
from fedaccord.files.reading import parse_toml
from fedaccord.game.consortium import Consortium

JOINING = "New member"
_CLIENT = re.compile(r"clients\[(\d+)\](?:\.(\w+))?")


@dataclass(frozen=True)
class Situation:
    """A consortium, and which of the file's members are in it."""

    consortium: Consortium
    numbers: tuple[int, ...]
    """For each client its number in the file, from 1; one that joins has the next."""

    def position(self, number: int) -> int | None:
        """Where the member with this number is; None if it is not there."""
        return self.numbers.index(number) if number in self.numbers else None


@lru_cache(maxsize=64)
def situation(draft: Draft, settings: Settings) -> Situation:
    """The consortium of the draft under these settings."""
    stated = draft.consortium
    numbers = tuple(range(1, stated.size + 1))
    if settings.asks_what_if or settings.discount_factor is not None:
        _check_numbers(settings, stated)
        stated, numbers = _changed(draft, settings, stated)
    if settings.as_stated:
        stated = stated.without_ranges()
    if settings.within:
        if stated.ranges is not None:
            wrong = "the file has ranges already; take its numbers as exact first"
            raise InvalidInput(wrong, field="within")
        stated = stated.within(settings.within / 100.0)
    return Situation(stated, numbers)


def has_states(draft: Draft) -> bool:
    """Whether the file has states, which the workshop leaves out."""
    return not {"states", "transitions"}.isdisjoint(_data(draft.text))


def _check_numbers(settings: Settings, stated: Consortium) -> None:
    problems = [
        Problem(field, f"there are {stated.size} members, and no number {number}")
        for field in ("without", "doubles", "impatient", "joins")
        if (number := getattr(settings, field)) is not None and number > stated.size
    ]
    joins = normalised(settings.joins_name)
    if joins and any(unusable_names([*stated.names, joins], str)):
        taken = f"{shown(settings.joins_name)} is the name of another member already"
        problems.append(Problem("joins_name", taken))
    if settings.without is not None and stated.size == 1 and settings.joins is None:
        problems.append(Problem("without", "if the only member leaves, nobody is left"))
    if problems:
        raise InvalidInput(problems)


def _changed(
    draft: Draft, settings: Settings, stated: Consortium
) -> tuple[Consortium, tuple[int, ...]]:
    """The consortium of the changed file."""
    data = deepcopy(_data(draft.text))
    rows: list[dict[str, Any]] = data["clients"]
    if settings.discount_factor is not None:
        data["discount_factor"] = settings.discount_factor
        for row in rows:
            row.pop("discount_factor", None)
        for ranges in data.get("classes", {}).values():
            ranges.pop("discount_factor", None)
    numbers = list(range(1, len(rows) + 1))
    if settings.asks_what_if:
        numbers += [len(rows) + 1] if settings.joins is not None else []
        _change_members(data, settings, stated)
        if settings.without is not None:
            numbers.remove(settings.without)
        for row in rows:  # what was observed was another consortium
            row.pop("observed", None)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FileNote)
            return build_consortium(data, Path("consortium.toml")), tuple(numbers)
    except InvalidInput as error:
        found = [_of_setting(each, settings, numbers, rows) for each in error.problems]
        raise InvalidInput(found) from None


def _of_setting(
    problem: Problem, settings: Settings, numbers: list[int], rows: list[dict[str, Any]]
) -> Problem:
    """A problem of a changed file as one of the setting that it follows from."""
    place = _CLIENT.match(problem.place)
    if place is None:
        return problem
    n = int(place[1])
    message = problem.message.removesuffix(f" ({in_brief(str(rows[n]['name']))})")
    if numbers[n] == settings.doubles:
        return Problem("doubles", message)
    own = f"joins_{place[2]}"
    return Problem(own if own in Settings.model_fields else "joins", message)


def _change_members(data: dict[str, Any], settings: Settings, stated: Consortium) -> None:
    rows: list[dict[str, Any]] = data["clients"]
    if settings.joins is not None:
        rows.append(_joining(rows[settings.joins - 1], settings, stated))
    if settings.doubles is not None:
        row = rows[settings.doubles - 1]
        given = row.get("samples", "unknown")
        if given == "unknown":
            given = data["classes"][row["class"]]["samples"]
        row["samples"] = _doubled(given)
    if settings.impatient is not None:
        n = settings.impatient - 1
        delta = settings.discount_factor
        if delta is None:
            delta = float(as_range(_patience(data, rows[n])).likely)
        rows[n]["discount_factor"] = half_as_patient(delta)
    if settings.without is not None:
        del rows[settings.without - 1]


def _joining(like: dict[str, Any], settings: Settings, stated: Consortium) -> dict[str, Any]:
    """The table of one that joins."""
    row = deepcopy(like) | {"name": settings.joins_name or _free_name(stated.names)}
    if settings.joins_samples is not None:
        row["samples"] = settings.joins_samples
    if settings.joins_valuation is not None:
        row.pop("ratio", None)
        row["valuation"] = settings.joins_valuation
    if settings.joins_cost_per_sample is not None:
        row.pop("cpu", None)
        row["cost_per_sample"] = settings.joins_cost_per_sample
    return row


def _free_name(names: tuple[str, ...]) -> str:
    name, n = JOINING, 1
    while name in names:
        n += 1
        name = f"{JOINING} {n}"
    return name


def _doubled(given: Any) -> Any:
    """Twice a number, or a range."""
    if is_number(given):
        return 2 * given
    low, likely, high = as_range(given)
    return {"low": 2 * low, "likely": 2 * likely, "high": 2 * high}


def _patience(data: dict[str, Any], row: dict[str, Any]) -> Any:
    """The discount factor that a file gives a member, in any of the ways it may."""
    given = row.get("discount_factor", "unknown")
    if given == "unknown":
        given = data.get("classes", {}).get(row.get("class"), {}).get("discount_factor")
    return data["discount_factor"] if given is None else given


def half_as_patient(delta: float) -> float:
    """The discount factor for which all later slots together count half as much.

    They count d + d^2 + ... = d / (1 - d); half of that belongs to d / (2 - d).

    >>> round(half_as_patient(0.8), 3), half_as_patient(0.0)
    (0.667, 0.0)
    """
    return delta / (2.0 - delta)


@lru_cache(maxsize=16)
def _data(text: str) -> dict[str, Any]:
    return parse_toml(text, "consortium.toml")

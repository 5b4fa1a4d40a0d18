"""What is set on the pages about an agreement, as the query of their addresses has it."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any, Literal
from urllib.parse import urlencode

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.requests import Request

from fedaccord.agreement.agreement import USUAL_MARGIN, Objective
from fedaccord.agreement.monitoring import Monitoring
from fedaccord.agreement.punishment import Punishment, Reversion, Suspension
from fedaccord.checks import LARGEST_COUNT, shown
from fedaccord.errors import InvalidInput, Problem
from fedaccord.files.numerals import read_numeral, unambiguous
from fedaccord.numbers import as_text

_OBJECTIVES: dict[str, Objective] = {
    "most-data": "most data",
    "least-total-cost": "least total cost",
    "fair-share": "fair share",
}


class Settings(BaseModel):
    """What is agreed on, and what if. The defaults are those of `solve` for a file."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, strict=True)

    kind: Literal["individual", "uniform"] = "individual"
    """An amount for each member, or one level for many."""
    objective: Literal["most-data", "least-total-cost", "fair-share"] | None = None
    """What the agreement optimises; None: the least total cost with suspension, else most data."""
    punishment: Literal["suspension", "reversion"] = "suspension"
    """What follows a slip."""
    punishment_slots: Literal["for-ever"] | Annotated[int, Field(ge=1, le=LARGEST_COUNT)] | None = (
        None
    )
    """For how many slots; None: one of suspension, reversion for ever."""
    margin: float = Field(USUAL_MARGIN, ge=0, lt=1)
    """How much less patient than stated the members may be."""
    within: float = Field(0.0, ge=0, lt=100)
    """By how many per cent every ratio of valuation to cost may be off."""
    as_stated: bool = False
    """Whether numbers are taken to be exact that have ranges in the file."""
    nobody_worse: bool = False
    """Whether nobody may pay more than without an agreement."""
    discount_factor: float | None = Field(None, ge=0, lt=1)
    """One for all members, instead of their own."""
    audit_rate: float = Field(1.0, ge=0, le=1)
    """The probability that a member is audited in a slot; 1: every slip is seen."""
    whole_samples: bool = False

    without: int | None = Field(None, ge=1)
    """What if this member leaves? Members are counted from 1, in the order of the file."""
    doubles: int | None = Field(None, ge=1)
    """What if this one has twice as many samples?"""
    impatient: int | None = Field(None, ge=1)
    """What if this one is half as patient?"""
    joins: int | None = Field(None, ge=1)
    """What if one joins that is like this one, but for what follows?"""
    joins_name: str = Field("", max_length=200)
    joins_samples: float | None = Field(None, gt=0)
    joins_valuation: float | None = Field(None, gt=0)
    joins_cost_per_sample: float | None = Field(None, gt=0)

    @property
    def query(self) -> str:
        """What follows the path of an address: nothing if all is as usual."""
        given = self.model_dump(exclude_defaults=True)
        for name, value in given.items():
            if isinstance(value, bool):
                given[name] = "yes" if value else "no"
            elif isinstance(value, float):
                given[name] = unambiguous(as_text(value))
        return f"?{urlencode(given)}" if given else ""

    def changed(self, **changes: Any) -> "Settings":
        """The same settings but for these."""
        return Settings(**(self.model_dump(exclude_defaults=True) | changes))

    @property
    def base(self) -> "Settings":
        """The same settings without any what-if."""
        return self.changed(**dict.fromkeys(("without", "doubles", "impatient", "joins")))._tidy()

    @property
    def asks_what_if(self) -> bool:
        """Whether anything about the members is not as in the file."""
        return self != self.base

    def _tidy(self) -> "Settings":
        """Without the numbers of one that joins if nobody does."""
        if self.joins is not None:
            return self
        return self.changed(**dict.fromkeys(_JOINING[1:]), joins_name="")

    @property
    def chosen_objective(self) -> Objective | None:
        """The objective as solvers have it."""
        return None if self.objective is None else _OBJECTIVES[self.objective]

    @property
    def chosen_punishment(self) -> Punishment:
        """The punishment as solvers have it."""
        usual: Punishment = Suspension() if self.punishment == "suspension" else Reversion()
        if self.punishment_slots is None:
            return usual
        slots = None if self.punishment_slots == "for-ever" else self.punishment_slots
        chosen: Punishment = usual.lasting(slots)
        return chosen

    @property
    def monitoring(self) -> Monitoring:
        """How a slip is seen."""
        return Monitoring(audit=self.audit_rate)


AS_USUAL = Settings()
_JOINING = ("joins_name", "joins_samples", "joins_valuation", "joins_cost_per_sample")
_MUST_BE = {
    "kind": "must be individual or uniform",
    "objective": f"must be one of {', '.join(_OBJECTIVES)}",
    "punishment": "must be suspension or reversion",
    "punishment_slots": "must be a whole number, 1 or more, or for-ever",
    "margin": "must be from 0 to less than 1",
    "within": "must be a percentage, from 0 to less than 100",
    "discount_factor": "must be from 0 to less than 1",
    "audit_rate": "must be from 0 to 1",
    "joins_name": "must be text of at most 200 characters",
    **dict.fromkeys(("as_stated", "nobody_worse", "whole_samples"), "must be yes or no"),
    **dict.fromkeys(("without", "doubles", "impatient", "joins"), "must be a member's number"),
    **dict.fromkeys(_JOINING[1:], "must be a number, more than 0"),
}
_NUMBERS = _JOINING[1:]
"""What people type: read as in the table of members."""
_NAMES = {
    "kind": "amounts",
    "objective": "aim",
    "punishment": "after a slip",
    "punishment_slots": "for how long after a slip",
    "within": "how far off the numbers may be",
    "as_stated": "numbers taken as exact",
    "nobody_worse": "nobody may pay more",
    "discount_factor": "discount factor",
    "audit_rate": "audits",
    "whole_samples": "whole samples only",
    "without": "who leaves",
    "doubles": "who has twice the data",
    "impatient": "who is half as patient",
    "joins": "who joins",
    "joins_name": "name of the one that joins",
    "joins_samples": "samples of the one that joins",
    "joins_valuation": "valuation of the one that joins",
    "joins_cost_per_sample": "cost per sample of the one that joins",
}


def read_settings(query: Mapping[str, str]) -> tuple[Settings, list[Problem]]:
    """The settings in a query; what is wrong in it is as usual instead, and a problem.

    Forms send empty fields, too. Whoever chooses `own_patience` wants no discount factor for all,
    wherever the slider stands.

    >>> read_settings({"margin": "0.02", "objective": "", "slot": "?"})[0].query
    '?margin=0.02'
    >>> [str(one) for one in read_settings({"margin": "2"})[1]]
    ["margin: must be from 0 to less than 1, got '2'"]
    """
    given = {
        name: text.strip()
        for name in Settings.model_fields
        if (text := query.get(name, "")).strip()
    }
    if query.get("own_patience"):
        given.pop("discount_factor", None)
    problems = []
    for name in [each for each in _NUMBERS if each in given]:
        numeral = read_numeral(given[name])
        if numeral is None or numeral.unit == "%":
            continue  # said below
        if numeral.is_ambiguous:
            readings = " or ".join(as_text(each) for each in (numeral.point, numeral.comma))
            wrong = f"could mean {readings}: write it without separators, got {shown(given[name])}"
            problems.append(Problem(name, wrong))
            del given[name]
        else:
            given[name] = as_text(numeral.point)
    try:
        return _read(given), problems
    except ValidationError as error:
        for name in dict.fromkeys(str(one["loc"][0]) for one in error.errors()):
            wrong = f"{_MUST_BE[name]}, got {shown(given.pop(name))}"
            problems.append(Problem(name, wrong))
    return _read(given), problems


def named(problem: Problem) -> Problem:
    """A problem of a setting, with the setting's name on the page.

    >>> str(named(Problem("within", "must be a percentage")))
    'how far off the numbers may be: must be a percentage'
    """
    return replace(problem, field=_NAMES.get(problem.field, problem.field))


def _read(given: Mapping[str, str]) -> Settings:
    """The settings in texts."""
    return Settings.model_validate_strings(given, strict=False)._tidy()


def settings_of(request: Request) -> Settings:
    """The settings of a page's address; `InvalidInput` if anything in them is wrong."""
    settings, problems = read_settings(request.query_params)
    if problems:
        raise InvalidInput(problems)
    return settings

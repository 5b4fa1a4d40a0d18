"""A new version of the terms from a form: the main rules by themselves, or all of them as TOML."""

from typing import Any

from pydantic import BaseModel

from fedaccord.console.room import posted_amounts
from fedaccord.console.room.member_names import names_in, wrong_names
from fedaccord.console.room.posted_amounts import amounts_text, read_amounts
from fedaccord.console.room.versions import terms_of
from fedaccord.console.room.wire import Text
from fedaccord.console.web.rules import posts_amounts
from fedaccord.console.web.typed_numbers import typed_count, typed_number, typed_text
from fedaccord.errors import InvalidInput, Problem
from fedaccord.protocol.terms import FOR_EVER, FROM_REPORTS, Terms, read_terms
from fedaccord.protocol.terms_text import terms_text

_WHOLE = ("rounds", "quorum")
_NUMBERS = (
    "discount_factor",
    "margin",
    "tolerance",
    "server_fee",
    "answer_seconds",
    "training_seconds",
)
_WORDS = ("agreement", "punishment", "on_refusal", "objective")


class RulesForm(BaseModel):
    """The main rules, as they were typed."""

    after: int
    """The version that this one changes."""
    note: Text = ""
    members: Text = ""
    rounds: Text = ""
    agreement: Text = "individual"
    amounts: Text = ""
    """For amounts that are posted: a line for each member."""
    objective: Text = "least total cost"
    punishment: Text = "suspension"
    punishment_slots: Text = "1"
    on_refusal: Text = "without"
    quorum: Text = "0"
    tolerance: Text = "0"
    margin: Text = "0"
    discount_factor: Text = "0.9"
    server_fee: Text = "0"
    answer_seconds: Text = "120"
    training_seconds: Text = "3600"


def form_for(terms: Terms, number: int) -> RulesForm:
    """The form as it is before anything is changed."""
    given = terms.model_dump(mode="json")
    slots = given["punishment_slots"]
    return RulesForm(
        after=number,
        members="\n".join(terms.clients),
        amounts=amounts_text(terms),
        punishment_slots=FOR_EVER if slots is None else str(slots),
        **{
            name: typed_text(given[name]) if name in _NUMBERS else str(given[name])
            for name in _TAKEN
        },
    )


_TAKEN = (*_WHOLE, *_NUMBERS, *_WORDS)


def terms_from(form: RulesForm, before: Terms) -> str:
    """The terms with what the form changes, as TOML, or every mistake in the form."""
    clients = names_in(form.members)
    problems = wrong_names(clients)
    rules: dict[str, Any] = before.model_dump(mode="json") | {"clients": clients}
    for name in (*_WHOLE, *_NUMBERS, "punishment_slots"):
        try:
            rules[name] = _number(name, getattr(form, name))
        except InvalidInput as error:
            problems.append(Problem(name, str(error)))  # and what was there before stays
    rules |= {name: getattr(form, name) for name in _WORDS}
    rules |= _reports(rules, form, problems)
    if form.punishment == "reversion":
        rules |= {"model_keeps": 0.0, "fees_saved": False}
    known = {problem.field for problem in problems}
    try:
        terms = read_terms({name: rule for name, rule in rules.items() if rule is not None}, "")
    except InvalidInput as error:
        found = map(_placed, error.problems)
        raise InvalidInput([*problems, *(one for one in found if one.field not in known)]) from None
    if problems:
        raise InvalidInput(problems)
    return checked(terms_text(terms), before)


def _number(name: str, text: str) -> float | int | str:
    if name == "punishment_slots" and text.strip() == FOR_EVER:
        return FOR_EVER
    return typed_number(text, name) if name in _NUMBERS else typed_count(text)


def _reports(rules: dict[str, Any], form: RulesForm, problems: list[Problem]) -> dict[str, Any]:
    """The rules that follow from how amounts are found; None are left out."""
    if form.agreement in FROM_REPORTS:
        return {"reports": "ratio", "public": None, "clock_steps": None}
    if form.agreement != "posted":
        return {}
    public, wrong = read_amounts(form.amounts, rules["clients"])
    problems += wrong
    return {"reports": "none", "public": public, "clock_steps": None}


def _placed(problem: Problem) -> Problem:
    """A problem of the terms, at the field of the form that it comes from."""
    if problem.field.partition(".")[0] == "public":
        return posted_amounts.placed(problem)
    name = problem.field.partition(".")[0]
    return Problem("members" if name == "clients" else problem.field, problem.message)


def checked(text: str, before: Terms) -> str:
    """A text of terms, if a room with those before can go on with it."""
    from fedaccord.flower.local import empty_model, local_steps  # and PyTorch

    terms = terms_of(text)
    problems = wrong_names(terms.clients)
    if terms.name != before.name:
        problems.append(Problem("name", f"must stay {before.name!r}: members' cards are for it"))
    if posts_amounts(terms) and any("<" in name for name in (terms.name, *terms.clients)):
        problems.append(Problem("", "a name with < cannot be in an agreement file"))
    if terms.digest == before.digest:
        problems.append(Problem("", "these are the rules that are put forward already"))
    if problems:
        raise InvalidInput(problems)
    empty_model(terms)  # can it be trained?
    local_steps(terms)
    return text

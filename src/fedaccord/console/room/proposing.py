"""A new version of the terms from a form: the main rules by themselves, or all of them as TOML."""

from typing import Any

from pydantic import BaseModel

from fedaccord.checks import normalised
from fedaccord.console.room.versions import terms_of
from fedaccord.console.room.wire import Text
from fedaccord.errors import InvalidInput, Problem
from fedaccord.protocol.terms import FOR_EVER, Terms, read_terms
from fedaccord.protocol.terms_text import terms_text

_LONGEST_NAME = 200
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
        punishment_slots=FOR_EVER if slots is None else str(slots),
        **{name: f"{given[name]:g}" if name in _NUMBERS else str(given[name]) for name in _TAKEN},
    )


_TAKEN = (*_WHOLE, *_NUMBERS, *_WORDS)


def terms_from(form: RulesForm, before: Terms) -> str:
    """The terms with what the form changes, as TOML, or every mistake in the form."""
    problems: list[Problem] = []
    rules: dict[str, Any] = before.model_dump(mode="json") | {
        "clients": [normalised(line.strip()) for line in form.members.splitlines() if line.strip()]
    }
    for name in _WHOLE:
        rules[name] = _number(problems, name, getattr(form, name), whole=True)
    for name in _NUMBERS:
        rules[name] = _number(problems, name, getattr(form, name), whole=False)
    rules |= {name: getattr(form, name) for name in _WORDS}
    slots = form.punishment_slots.strip()
    rules["punishment_slots"] = (
        FOR_EVER if slots == FOR_EVER else _number(problems, "punishment_slots", slots, whole=True)
    )
    if problems:
        raise InvalidInput(problems)
    if form.punishment == "reversion":
        rules |= {"model_keeps": 0.0, "fees_saved": False}
    try:
        terms = read_terms(rules, "")
    except InvalidInput as error:
        placed = [Problem(_PLACES.get(one.field, one.field), one.message) for one in error.problems]
        raise InvalidInput(placed) from None
    return checked(terms_text(terms), before)


_PLACES = {"clients": "members"}


def checked(text: str, before: Terms) -> str:
    """A text of terms, if a room with those before can go on with it."""
    from fedaccord.flower.local import empty_model, local_steps  # and PyTorch

    terms = terms_of(text)
    problems = []
    if terms.name != before.name:
        problems.append(Problem("name", f"must stay {before.name!r}: members' cards are for it"))
    for client in terms.clients:
        if len(client) > _LONGEST_NAME or "/" in client or "\\" in client or client == "test":
            problems.append(Problem("members", f"{client[:40]}: cannot be the name of a file"))
    if problems:
        raise InvalidInput(problems)
    empty_model(terms)  # can it be trained?
    local_steps(terms)
    return text


def _number(problems: list[Problem], field: str, text: str, *, whole: bool) -> float | int:
    try:
        return int(text) if whole else float(text)
    except ValueError:
        what = "a whole number" if whole else "a number with a decimal point"
        problems.append(Problem(field, f"must be {what}"))
        return 0

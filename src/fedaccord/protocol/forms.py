"""Reading records out of entries that may have been written by anyone.

There is one way to write a record. What does not have its form is refused, in words that name the
key but not its content.
"""

from typing import Any, TypeVar

from pydantic import ValidationError

from fedaccord.errors import FedaccordError
from fedaccord.ledger.chain import Fact
from fedaccord.protocol.messages import FORMAT, Content


class WrongForm(FedaccordError):
    """What is wrong with the form of an entry."""


def check_format(fact: Fact) -> None:
    """Refuse entries of another version by its name, before anything in them looks wrong."""
    if fact.body.get("format") != FORMAT:
        raise WrongForm(
            f"is not in format {FORMAT}, the only one that this fedaccord reads: the fedaccord "
            "that wrote it can verify it"
        )


Form = TypeVar("Form", bound=Content)


def read_as(form: type[Form], fact: Fact, place: dict[str, Any]) -> Form:
    """The record of this form in an entry that is at this place."""
    body = fact.body
    if "slot" in body or "client" in body:
        raise WrongForm("has an unknown key, " + ("slot" if "slot" in body else "client"))
    try:
        record = form.model_validate({**body, **place})
    except ValidationError as error:
        raise WrongForm(_mistake(error)) from None
    for key in form.optional:  # such a key is left out where there is nothing to say
        if body.get(key, 0) is None:
            raise WrongForm(f"has something else for {key} than belongs there")
    for key in form.numbers:  # pydantic takes 1 for 1.0, and a number has one spelling only
        if type(body.get(key)) is int:
            raise WrongForm(f"has something else for {key} than belongs there")
    return record


def _mistake(error: ValidationError) -> str:
    mistake = error.errors(include_input=False, include_url=False)[0]
    if not mistake["loc"]:
        return mistake["msg"].removeprefix("Value error, ")
    key = ".".join(map(str, mistake["loc"]))[:40]
    if mistake["type"] == "extra_forbidden":
        return f"has an unknown key, {key}"
    if mistake["type"] == "missing":
        return f"has no {key}"
    return f"has something else for {key} than belongs there"

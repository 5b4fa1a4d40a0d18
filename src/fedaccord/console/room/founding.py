"""A new room from names alone: its form, its first terms, and the server's directory.

Nothing that is asked here is private to a member: who takes part, where the server is reached, and
what is trained. Members' numbers stay with them.
"""

import re
import shutil
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from fedaccord.agreement.agreement import USUAL_MARGIN
from fedaccord.console.room.member_names import LONGEST_NAME, names_in, wrong_names
from fedaccord.console.room.wire import Text
from fedaccord.console.web.rehearsals import REHEARSALS
from fedaccord.data.dataset import Dataset, load_dataset
from fedaccord.deployment.app_directory import PORT, SUPERLINK, write_app
from fedaccord.deployment.data_format import save_examples
from fedaccord.deployment.invitation import Reach, host_of
from fedaccord.errors import FedaccordError, InvalidInput, Problem
from fedaccord.flower.running import OWN_EXAMPLES
from fedaccord.protocol.terms import Terms, read_terms

OWN = "own"
_MOST_PORT = 65_535


class FoundingForm(BaseModel):
    """What was typed, as text, so that a form that was refused comes back as it was."""

    name: Text = ""
    members: Text = ""
    address: Text = f"localhost:{PORT}"
    dataset: Text = "digits"
    """`own` if members bring their own examples, which have this shape and so many classes."""
    shape: Text = ""
    classes: Text = ""
    rounds: Text = "50"
    superlink: Text = str(SUPERLINK)

    @property
    def clients(self) -> list[str]:
        """The members' names."""
        return names_in(self.members)


@dataclass(frozen=True)
class Founded:
    """What a new room needs."""

    terms: Terms
    host: str
    port: int
    superlink: int
    rehearsed: Dataset | None = None
    """The data set of a rehearsal, whose test examples the server gets."""


def read_form(form: FoundingForm) -> Founded:
    """The first terms, or every mistake in the form; each names its field."""
    from fedaccord.flower.local import empty_model, local_steps  # and PyTorch

    problems: list[Problem] = []
    rounds = _whole(problems, "rounds", form.rounds)
    superlink = _whole(problems, "superlink", form.superlink, most=_MOST_PORT)
    host, port = _reached(problems, form.address.strip())
    rehearsed = None if form.dataset == OWN else _rehearsed(problems, form.dataset)
    training = _form_of(rehearsed) if form.dataset != OWN else _own_examples(problems, form)
    problems += _wrong_names(form)
    if problems:
        raise InvalidInput(problems)
    rules: dict[str, Any] = {
        "name": form.name.strip(),
        "clients": form.clients,
        "rounds": rounds,
        "discount_factor": 0.9,
        "margin": USUAL_MARGIN,
        "punishment": "suspension",
        "training": training,
    }
    try:
        terms = read_terms(rules, "the form")
        empty_model(terms)  # can it be trained?
        local_steps(terms)
    except InvalidInput as error:
        raise InvalidInput([_placed(one) for one in error.problems]) from None
    return Founded(terms, host, port, superlink, rehearsed)


def write_server(app: Path, founded: Founded, now: datetime) -> None:
    """Write the server's directory.

    One that is there already is of a room that was never created, since it was interrupted: it is
    set aside.
    """
    if app.exists():
        app.rename(app.with_name(f"app.unused-{now:%Y%m%d%H%M%S}"))
    try:
        write_app(
            app, founded.terms, [founded.host], port=founded.port, superlink=founded.superlink
        )
        if (data := founded.rehearsed) is not None:
            examples = app / OWN_EXAMPLES[0]
            save_examples(examples, data.test_inputs, data.test_labels, founded.terms)
    except InvalidInput as error:
        raise InvalidInput([_placed(one) for one in error.problems]) from None
    except BaseException:
        shutil.rmtree(app, ignore_errors=True)
        raise


def _wrong_names(form: FoundingForm) -> list[Problem]:
    name, wrong = form.name.strip(), wrong_names(form.clients)
    if not name or not name.isprintable() or len(name) > LONGEST_NAME:
        needed = f"is needed: 1 to {LONGEST_NAME} printable characters"
        return [Problem("name", needed), *wrong]
    return wrong


def _reached(problems: list[Problem], address: str) -> tuple[str, int]:
    if ":" not in address.rpartition("]")[2]:
        address = f"{address}:{PORT}"
    try:
        Reach(address=address, authority="-----BEGIN CERTIFICATE-----\n")
        return host_of(address)
    except ValueError:
        problems.append(
            Problem("address", "must be a name or an address and a port: server.example:8443")
        )
        return "", 0


def _rehearsed(problems: list[Problem], name: str) -> Dataset | None:
    if name not in REHEARSALS:
        problems.append(Problem("dataset", "is not one that this page knows"))
        return None
    try:
        return load_dataset(name)
    except FedaccordError as error:
        problems.append(Problem("dataset", str(error)))
        return None


def _form_of(data: Dataset | None) -> dict[str, Any]:
    return {} if data is None else {"shape": list(data.shape), "classes": data.classes}


def _own_examples(problems: list[Problem], form: FoundingForm) -> dict[str, Any]:
    found = re.findall(r"\d{1,9}", form.shape)
    if not found or re.search(r"[^\d,x ×]", form.shape):
        problems.append(Problem("shape", "must be whole numbers, such as 13 or 28 x 28"))
    classes = _whole(problems, "classes", form.classes, least=0)
    return {"shape": [int(one) for one in found], "classes": classes}


def _whole(
    problems: list[Problem], field: str, text: str, *, least: int = 1, most: int = 2**31 - 1
) -> int:
    plain = text.strip()
    if plain.isascii() and plain.isdigit() and len(plain) < 12 and least <= int(plain) <= most:
        return int(plain)
    problems.append(Problem(field, f"must be a whole number from {least} to {most:,}"))
    return least


_FIELDS = {"clients": "members", "host": "address", "hosts": "address"}


def _placed(problem: Problem) -> Problem:
    """A problem of the terms, at the field of the form that it comes from."""
    field = problem.field.removeprefix("training.").split(".")[0].split("[")[0]
    return Problem(_FIELDS.get(field, field), problem.message)

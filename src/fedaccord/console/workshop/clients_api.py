"""Tables of members for programs: what was read, what is wrong with it, and what to ask."""

import base64
import binascii
from math import isnan
from typing import Annotated, Literal

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field

from fedaccord.console.web.problems import declared
from fedaccord.console.workshop.uploads import LARGEST, check_unpacked
from fedaccord.errors import InvalidInput
from fedaccord.files.clients import FIELDS, ClientsRead, read_clients
from fedaccord.files.tables import ClientTable

router = APIRouter(prefix="/api")


class GivenAnswers(BaseModel):
    """Answers to the questions of an earlier reading."""

    model_config = ConfigDict(extra="forbid")
    dot: Literal["thousands", "decimal"] | None = None
    comma: Literal["thousands", "decimal"] | None = None
    percent: Literal["yes"] | None = None
    sums: Literal["yes"] | None = None
    valuation: Literal["yes"] | None = None
    cost_per_sample: Literal["yes"] | None = None


class GivenTable(BaseModel):
    """The content of a spreadsheet, as text or in base64."""

    model_config = ConfigDict(extra="forbid")
    text: Annotated[str, Field(max_length=LARGEST)] = ""
    content: Annotated[str, Field(max_length=2 * LARGEST)] = ""
    """The bytes of a file in base64, instead of `text`."""
    filename: Annotated[str, Field(max_length=300)] = ""
    """For the places of problems."""
    answers: GivenAnswers = GivenAnswers()


class ReadNumber(BaseModel):
    """A number, and its range if it is not known exactly."""

    value: float
    low: float | None = None
    high: float | None = None


class ReadClient(BaseModel):
    """What a row says; a number that is missing or wrong is not there."""

    name: str
    numbers: dict[str, ReadNumber]


class ReadProblem(BaseModel):
    """One thing that is wrong."""

    field: str
    place: str
    message: str


class ReadChoice(BaseModel):
    """One answer to a question."""

    answer: str
    meaning: str


class ReadQuestion(BaseModel):
    """Something that a person has to be asked; send the same again with `answers`."""

    key: str
    text: str
    field: str
    row: int
    choices: list[ReadChoice]


class ReadTable(BaseModel):
    """What a table says about clients, right or wrong."""

    clients: list[ReadClient]
    currency: str
    problems: list[ReadProblem]
    notes: list[str]
    questions: list[ReadQuestion]


@router.post("/clients", response_model=ReadTable, responses=declared(400, 413, 422))
def clients(given: GivenTable) -> ReadTable:
    """Read a table of members, as it is pasted from a spreadsheet or uploaded."""
    answers = given.answers.model_dump(exclude_none=True)
    return _answer(read_clients(_content(given), given.filename, answers))


def _content(given: GivenTable) -> str | bytes:
    if not given.content:
        return given.text
    if given.text:
        raise InvalidInput("give text or content, not both", field="content")
    try:
        data = base64.b64decode(given.content, validate=True)
    except (binascii.Error, ValueError):
        raise InvalidInput("must be in base64", field="content") from None
    check_unpacked(data)
    return data


def _answer(read: ClientsRead) -> ReadTable:
    table = read.table
    return ReadTable(
        clients=[_client(table, n) for n in range(len(table.names))] if table else [],
        currency=table.currency if table else "",
        problems=[
            ReadProblem(field=each.field, place=each.place, message=each.message)
            for each in read.problems
        ],
        notes=list(read.notes),
        questions=[
            ReadQuestion(
                key=each.key,
                text=each.text,
                field=each.field,
                row=each.row,
                choices=[ReadChoice(**choice._asdict()) for choice in each.choices],
            )
            for each in read.questions
        ],
    )


def _client(table: ClientTable, n: int) -> ReadClient:
    numbers = {}
    for field in FIELDS:
        value = float(table.numbers[field][n])
        if isnan(value):
            continue
        found = table.ranges.get(field, {}).get(n)
        ends = {"low": found.low, "high": found.high} if found is not None else {}
        numbers[field] = ReadNumber(value=value, **ends)
    return ReadClient(name=table.names[n] or "", numbers=numbers)

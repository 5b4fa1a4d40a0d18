"""The interview for programs: answers in, a client's numbers out."""

from typing import Any, Literal

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field

from fedaccord.console.web.problems import declared
from fedaccord.interviews.interview import interview

router = APIRouter()

_Ends = tuple[float, float] | tuple[float, float, float] | dict[str, float | str]


class Answers(BaseModel):
    """Answers by question: numbers, or text such as "5-8", or ranges."""

    model_config = ConfigDict(extra="forbid", strict=True)

    answers: dict[str, float | str | _Ends | None] = Field(max_length=100)


class Range(BaseModel):
    """What is known of a number."""

    low: float
    likely: float
    high: float


class Step(Range):
    """One step of a calculation, and its value."""

    name: str
    formula: str
    calculation: str


class Result(Range):
    """One of the client's numbers, per slot, and where it came from."""

    field: Literal["valuation", "cost_per_sample", "samples", "discount_factor"]
    source: str
    steps: list[Step]


class Answer(BaseModel):
    """The answer to one question, and whether it is the default."""

    question: str
    asks: str
    value: str | int | Range
    assumed: bool


class InterviewedClient(BaseModel):
    """The numbers as a file gets them."""

    name: str
    valuation: float
    cost_per_sample: float
    samples: float
    discount_factor: float
    quality: float


class Interviewed(BaseModel):
    """What an organisation answered, and the numbers that follow from it."""

    name: str
    currency: str
    slot: str
    slots_per_year: float
    rounds: int
    measure: str
    point_worth_per_year: Range
    client: InterviewedClient
    results: list[Result]
    answers: list[Answer]
    doubts: list[str]


@router.post("/api/interview", responses=declared(400, 413, 422))
def evaluate(asked: Answers) -> Interviewed:
    """A client's numbers from what its people know, as `interview --format json` prints them."""
    record: dict[str, Any] = interview(asked.answers).to_dict()
    return Interviewed.model_validate(record)

"""Trainings for programs: start one, ask how far it is, end it."""

from typing import Annotated, Any

from fastapi import APIRouter, Path, Request
from pydantic import BaseModel

from fedaccord.checks import check_installed, shown
from fedaccord.console.web.problems import declared
from fedaccord.console.workshop.answers import answer_for
from fedaccord.console.workshop.draft import Draft
from fedaccord.console.workshop.jobs import State, Training, trainings_of
from fedaccord.console.workshop.orders import MOST_ROUNDS, Order
from fedaccord.data.dataset import datasets_here
from fedaccord.errors import InvalidInput

router = APIRouter()

Id = Annotated[str, Path(description="As the answer to the start says.", max_length=100)]


class Curve(BaseModel):
    """The mean score of a profile after each round so far."""

    profile: str
    scores: list[float]


class TrainingState(BaseModel):
    """How far a training is, and what came out."""

    job: str
    state: State
    done: int
    """Rounds."""
    of: int
    """0: not known yet."""
    doing: str
    measure: str
    curves: list[Curve]
    problems: list[str]
    """Why it failed."""
    result: dict[str, Any] | None
    """What `train --format json` prints; null until it is finished."""


def _state(training: Training) -> TrainingState:
    return TrainingState(
        job=training.id,
        state=training.state,
        done=training.done,
        of=training.of,
        doing=training.doing,
        measure=training.measure,
        curves=[Curve(profile=name, scores=scores) for name, scores in training.curves.items()],
        problems=training.problems,
        result=training.outcome.record if training.outcome else None,
    )


@router.post("/api/trainings", status_code=202, responses=declared(400, 409, 413, 422))
def start_training(request: Request, order: Order) -> TrainingState:
    """Start a training; two run at once."""
    check_installed("training", "torch", "sklearn")
    known = datasets_here()
    if order.dataset not in known:
        wrong = f"must be one of {', '.join(known)}, got {shown(order.dataset)}"
        raise InvalidInput(wrong, field="dataset")
    consortium = answer_for(Draft(order.consortium), order.settings).consortium
    rounds = order.rounds or min(int(consortium.rounds), MOST_ROUNDS)
    return _state(trainings_of(request).start(order.model_copy(update={"rounds": rounds})))


@router.get("/api/trainings/{job}", responses=declared(404, 422))
def training(request: Request, job: Id) -> TrainingState:
    """How far it is, and the result once it is finished."""
    return _state(trainings_of(request).find(job))


@router.delete("/api/trainings/{job}", responses=declared(404, 422))
def cancel_training(request: Request, job: Id) -> TrainingState:
    """End it; one that is over stays as it is."""
    found = trainings_of(request).find(job)
    found.cancel()
    return _state(found)

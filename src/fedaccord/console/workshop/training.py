"""Training a real model under the agreement: started, watched while it runs, and cancelled."""

import json
import shutil
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, FastAPI, File, Form, Query, Request, UploadFile
from starlette.exceptions import HTTPException
from starlette.responses import RedirectResponse, Response, StreamingResponse

from fedaccord.checks import check_installed
from fedaccord.console.web.streams import stream_of
from fedaccord.console.workshop import training_api
from fedaccord.console.workshop.answers import Answer, answer_for
from fedaccord.console.workshop.draft import Draft, unpack
from fedaccord.console.workshop.jobs import Training, trainings_of
from fedaccord.console.workshop.orders import (
    MOST_EPOCHS,
    MOST_ROUNDS,
    MOST_SEEDS,
    OPTIMISERS,
    PROFILES,
    UPLOADED,
    Order,
    Upload,
    dataset_choices,
    time_in_words,
)
from fedaccord.console.workshop.settings import settings_of
from fedaccord.console.workshop.training_files import check_names, kept
from fedaccord.console.workshop.training_form import OPTIMISER, TrainingForm
from fedaccord.console.workshop.ways import Complete
from fedaccord.errors import FedaccordError, InvalidInput, Problem
from fedaccord.game.alone import alone_contribution
from fedaccord.plots.growing_curves import growing_curves

_REFUSED = 422


@asynccontextmanager
async def _ending_all(app: FastAPI) -> AsyncIterator[None]:
    """Trainings end with the server."""
    yield
    if found := getattr(app.state, "trainings", None):
        found.close()


router = APIRouter(lifespan=_ending_all)
router.include_router(training_api.router)


@router.get("/w/{packed}/train", include_in_schema=False)
def plan(request: Request, draft: Complete, form: Annotated[TrainingForm, Query()]) -> Response:
    """The form; roughly how long it will take."""
    return _form_page(request, draft, answer_for(draft, settings_of(request)), form)


@router.post("/w/{packed}/train", include_in_schema=False)
def start(
    request: Request,
    packed: str,
    draft: Complete,
    *,
    dataset: Annotated[str, Form()] = "",
    profile: Annotated[list[str] | None, Form()] = None,
    seeds: Annotated[str, Form()] = "",
    rounds: Annotated[str, Form()] = "",
    optimiser: Annotated[str, Form()] = OPTIMISER,
    fine_tuning: Annotated[str, Form()] = "",
    files: Annotated[list[UploadFile] | None, File()] = None,
) -> Response:
    """Start it, and go where it can be watched."""
    form = TrainingForm(
        dataset=dataset[:100],
        profile=profile or [],
        seeds=seeds,
        rounds=rounds,
        optimiser=optimiser[:100],
        fine_tuning=fine_tuning,
    )
    settings = settings_of(request)
    answer = answer_for(draft, settings)
    given = [file for file in files or [] if file.filename]
    try:
        check_installed("training", "torch", "sklearn")
        order = form.order(draft, settings, answer.consortium)
        if form.dataset == UPLOADED:
            whose = check_names([str(file.filename) for file in given], answer.consortium.names)
            training = _with_files(request, order, given, whose)
        else:
            training = trainings_of(request).start(order)
    except InvalidInput as error:
        return _form_page(
            request, draft, answer, form, problems=list(error.problems), status=_REFUSED
        )
    except FedaccordError as error:
        return _form_page(
            request, draft, answer, form, problems=[Problem("", str(error))], status=_REFUSED
        )
    except HTTPException as error:
        problem = Problem("", f"{error.detail[0].upper()}{error.detail[1:]}.")
        return _form_page(
            request, draft, answer, form, problems=[problem], status=error.status_code
        )
    return RedirectResponse(f"/w/{packed}/train/{training.id}{settings.query}", 303)


def _with_files(
    request: Request, order: Order, files: list[UploadFile], whose: list[str]
) -> Training:
    """Start a training on files, which are kept for as long as it runs."""
    folder = Path(tempfile.mkdtemp(prefix="fedaccord-training-"))
    try:
        paths = [
            kept(file.file, str(file.filename), folder / str(n)) for n, file in enumerate(files)
        ]
        uploads = [
            Upload(path=str(path), client=client) for path, client in zip(paths, whose, strict=True)
        ]
        return trainings_of(request).start(order, uploads=uploads, folder=str(folder))
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def _form_page(
    request: Request,
    draft: Draft,
    answer: Answer,
    form: TrainingForm,
    *,
    problems: list[Problem] | None = None,
    status: int = 200,
) -> Response:
    rounds = form.rounds_of(answer.consortium)
    page: Response = request.app.state.pages.show(
        request,
        "train.html.j2",
        status,
        title="Train",
        current="train",
        draft=draft,
        settings=answer.settings,
        form=form,
        rounds=rounds,
        problems={problem.field: problem.message for problem in problems or []},
        missing=_what_is_missing(),
        datasets=dataset_choices(),
        optimisers=OPTIMISERS,
        profiles=[(name, about, _amount(answer, name)) for name, about in PROFILES.items()],
        time=form.time(rounds),
        usual_time=lambda name: time_in_words(name, form.chosen, form.seeds_or_usual, rounds),
        names=answer.consortium.names,
        most={"seeds": MOST_SEEDS, "rounds": MOST_ROUNDS, "fine_tuning": MOST_EPOCHS},
        running=trainings_of(request).running,
    )
    return page


def _what_is_missing() -> str:
    """How to install what training needs; empty if it is there."""
    try:
        check_installed("training", "torch", "sklearn")
    except FedaccordError as error:
        return str(error)
    return ""


def _amount(answer: Answer, profile: str) -> float | None:
    """How many samples are trained on under a profile, in a slot; None if there is no such."""
    agreement, consortium = answer.agreement, answer.consortium
    if profile == "agreement":
        return agreement.total if agreement.exists else None
    if profile == "equilibrium":
        return agreement.equilibrium.total
    amounts = alone_contribution(consortium) if profile == "alone" else consortium.samples
    return float(amounts.sum())


# --- One training --------------------------------------------------------------------------


@router.get("/w/{packed}/train/{job}", include_in_schema=False)
def watch(request: Request, packed: str, job: str) -> Response:
    """How far it is, or what came out; only that part if htmx asks."""
    training = trainings_of(request).find(job)
    live = request.headers.get("hx-request") == "true"
    settings = settings_of(request)
    page: Response = request.app.state.pages.show(
        request,
        "training_progress.html.j2" if live else "training_job.html.j2",
        title=training.outcome.title if training.outcome else "Training",
        current="train",
        draft=unpack(packed),
        settings=settings,
        here=f"/w/{packed}/train/{job}",
        query=settings.query,
        training=training,
        **_shown(training),
    )
    return page


def _shown(training: Training) -> dict[str, Any]:
    curves = training.curves
    in_order = {str(name): curves[name] for name in training.order.in_order if name in curves}
    return {
        "outcome": training.outcome if training.state == "finished" else None,
        "share": training.done / training.of if training.of else None,
        "picture": growing_curves(in_order, training.order.rounds or 1, training.measure),
    }


@router.get("/w/{packed}/train/{job}/events", include_in_schema=False)
async def follow(request: Request, packed: str, job: str) -> StreamingResponse:
    """Tells the page when there is something new."""
    unpack(packed)
    training = trainings_of(request).find(job)

    async def version() -> str:
        return f"{training.state} {training.version}"

    return stream_of(request, version, lambda found: not found.startswith("running"))


@router.post("/w/{packed}/train/{job}/cancel", include_in_schema=False)
def cancel(request: Request, packed: str, job: str) -> Response:
    """End it."""
    unpack(packed)
    trainings_of(request).find(job).cancel()
    return RedirectResponse(f"/w/{packed}/train/{job}{settings_of(request).query}", 303)


@router.get("/w/{packed}/train/{job}/training.json", include_in_schema=False)
def download(request: Request, packed: str, job: str) -> Response:
    """Everything that was measured, as `train` prints it for programs."""
    unpack(packed)
    training = trainings_of(request).find(job)
    if training.outcome is None:
        raise HTTPException(404, "this training is not finished")
    content = json.dumps(training.outcome.record, indent=2, allow_nan=False)
    headers = {"Content-Disposition": 'attachment; filename="training.json"'}
    return Response(content, media_type="application/json", headers=headers)

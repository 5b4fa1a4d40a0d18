"""Running: the coordinator starts the server and slots, as soon as everyone has signed."""

from dataclasses import replace
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Form, Query, Request
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.responses import RedirectResponse, Response

from fedaccord.console.room.access import Coordinator
from fedaccord.console.room.api import room_of
from fedaccord.console.room.following import follower_of
from fedaccord.console.room.pages import created, show
from fedaccord.console.room.room import Room
from fedaccord.console.room.running import JOBS
from fedaccord.console.web.streams import stream_of
from fedaccord.deployment.check import Finding
from fedaccord.deployment.server_check import START, check_app
from fedaccord.flower.running import named_examples, own_examples
from fedaccord.protocol.messages import LAST_SLOT

router = APIRouter(include_in_schema=False)


@router.get("/run", response_class=Response)
def run(
    request: Request, viewer: Coordinator, check: Annotated[Literal["", "yes"], Query()] = ""
) -> Response:
    """What runs, what it prints, and a check of everything that a slot needs."""
    room = created(request)
    findings = [_on_this_page(one) for one in check_app(room.app)] if check else []
    values = _values(request, room)
    return show(request, "run.html.j2", viewer, "/run", title="Run", findings=findings, **values)


@router.get("/run/output", response_class=Response)
def output(request: Request, viewer: Coordinator) -> Response:
    """The parts of the page that change."""
    return show(request, "run_output.html.j2", viewer, "/run", **_values(request, created(request)))


@router.get("/run/stream", response_class=Response)
async def stream(request: Request, viewer: Coordinator) -> Response:
    """Tells when there is something new, while the session is open."""
    room = room_of(request)

    def version() -> str | None:
        if not room.doors.is_open(viewer):
            return None
        return f"{room.bell.number}: {room.running.version}"

    return stream_of(request, lambda: run_in_threadpool(version))


@router.post("/run/server", response_class=Response)
def start_server(request: Request, viewer: Coordinator) -> Response:
    """Start Flower, and the proxy before it."""
    room = _signed(request)
    room.running.start_server()
    room.store.tell(viewer, "started the server")
    return _back()


@router.post("/run/slots", response_class=Response)
def run_slots(
    request: Request, viewer: Coordinator, last: Annotated[int, Form(ge=1, le=LAST_SLOT)]
) -> Response:
    """Run slots until this one is settled."""
    room = _signed(request)
    room.running.run_slots(last)
    room.store.tell(viewer, f"runs slots until slot {last}")
    return _back()


@router.post("/run/stop", response_class=Response)
def stop(
    request: Request, viewer: Coordinator, job: Annotated[Literal["server", "slots"], Form()]
) -> Response:
    """End what runs."""
    room = created(request)
    if room.running.runs(job):
        room.running.stop(job)
        room.store.tell(viewer, f"stopped the {job}")
    return _back()


_DO = {
    "members": "they send their cards and sign on their own pages",
    "nodes": "they start their nodes on their own pages",
}


def _on_this_page(finding: Finding) -> Finding:
    """What to do about it here, instead of on the command line."""
    if finding.do == START:
        return replace(finding, do="start the server on this page")
    return replace(finding, do=_DO.get(finding.about, finding.do)) if finding.do else finding


def _signed(request: Request) -> Room:
    """The room, if everyone has signed the version that is put forward, and its files say so."""
    room = created(request)
    now = room.store.snapshot()
    if not now.complete:
        missing = ", ".join(now.without_card or now.unsigned)
        raise HTTPException(409, f"Nothing runs before everyone has signed: {missing} did not.")
    room.files.align()
    if room.files.trouble:
        raise HTTPException(409, f"The server's files are not in order: {room.files.trouble}")
    return room


def _back() -> Response:
    return RedirectResponse("/run", 303)


def _next_slot(request: Request) -> int:
    """The first slot that is not settled."""
    latest = follower_of(request).now().slot
    return 1 if latest is None else latest.slot + latest.settled


def _values(request: Request, room: Room) -> dict[str, Any]:
    return {
        "next_slot": _next_slot(request),
        "now": room.store.snapshot(),
        "standing": {job: room.running.standing(job) for job in JOBS},
        "said": {job: room.running.said(job) for job in JOBS},
        "trouble": room.files.trouble,
        "examples": named_examples(room.app) or own_examples(room.app),
        "app": room.app,
    }

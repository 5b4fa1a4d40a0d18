"""Observers: directors and auditors, who read and change nothing."""

from datetime import timedelta
from typing import Annotated, Any

from fastapi import APIRouter, Form, Request
from starlette.responses import RedirectResponse, Response

from fedaccord.console.room.access import Coordinator, Viewer
from fedaccord.console.room.pages import created, show
from fedaccord.console.room.wire import Name

router = APIRouter(include_in_schema=False)


@router.get("/observers", response_class=Response)
def observers(request: Request, viewer: Coordinator) -> Response:
    """Who may look, and until when."""
    return _show(request, viewer)


@router.post("/observers", response_class=Response)
def invite(
    request: Request,
    viewer: Coordinator,
    name: Annotated[Name, Form()],
    days: Annotated[int, Form(ge=1, le=365)] = 30,
) -> Response:
    """Make a link for an observer; it is shown this once."""
    room = created(request)
    code = room.doors.invite_observer(name.strip() or name, timedelta(days=days))
    return _show(request, viewer, invited=name, link=f"{room.address}/observe#{code}")


@router.post("/observers/withdraw", response_class=Response)
def withdraw(
    request: Request,
    viewer: Coordinator,  # noqa: ARG001
    number: Annotated[int, Form(ge=1, le=2**31 - 1)],
) -> Response:
    """Make a link useless, and end the sessions that it opened."""
    created(request).doors.withdraw_observer(number)
    return RedirectResponse("/observers", 303)


def _show(request: Request, viewer: Viewer, **values: Any) -> Response:
    room = created(request)
    at = room.store.clock()
    rows = [{"link": link, "state": link.state(at)} for link in room.doors.observers()]
    filled = {"invited": None, "link": ""} | values
    return show(
        request, "observers.html.j2", viewer, "/observers", title="Observers", rows=rows, **filled
    )

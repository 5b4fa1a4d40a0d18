"""Pages at which somebody gets in or out: join, enter, observe, leave.

The code is after # in the address, which browsers send to nobody; the page's form posts it.
"""

from typing import Annotated

from fastapi import APIRouter, Form, Request
from starlette.responses import RedirectResponse, Response

from fedaccord.console.room.access import Anyone, Reader, Viewer, forget, remember
from fedaccord.console.room.api import room_of
from fedaccord.console.room.moments import SESSION
from fedaccord.console.room.wire import Secret

router = APIRouter(include_in_schema=False)
Code = Annotated[Secret, Form()]


@router.get("/join", response_class=Response)
def join(request: Request, viewer: Anyone) -> Response:
    """What to do with an invitation."""
    return _show(request, "join.html.j2", viewer, "You are invited")


@router.get("/enter", response_class=Response)
def enter_form(request: Request, viewer: Anyone) -> Response:
    """Where a ticket leads."""
    return _show(request, "code.html.j2", viewer, "Enter the room", action="/enter")


@router.post("/enter", response_class=Response)
def enter(request: Request, viewer: Anyone, code: Code) -> Response:  # noqa: ARG001
    """Open a session with a ticket."""
    room = room_of(request)
    room.rates.secrets.check(request)
    return _opened(request, room.doors.enter(code.strip()))


@router.get("/observe", response_class=Response)
def observe_form(request: Request, viewer: Anyone) -> Response:
    """Where an observer's link leads."""
    return _show(request, "code.html.j2", viewer, "Observe the room", action="/observe")


@router.post("/observe", response_class=Response)
def observe(
    request: Request,
    viewer: Anyone,
    code: Code,
    instead: Annotated[str, Form(max_length=10)] = "",
) -> Response:
    """Open a session with an observer's link.

    Anyone may have made this link follow itself, so it replaces an open session only if its owner
    says so. This is asked here and not before: browsers that come from elsewhere show no cookie.
    """
    room = room_of(request)
    room.rates.secrets.check(request)
    if viewer.role != "nobody" and not instead:
        title = "You are in this room already"
        return _show(request, "instead.html.j2", viewer, title, code=code)
    return _opened(request, room.doors.observe(code.strip()))


@router.post("/leave", response_class=Response)
def leave(request: Request, viewer: Reader) -> Response:
    """End the session."""
    room_of(request).doors.leave(viewer)
    response = RedirectResponse("/", 303)
    forget(request, response)
    return response


def _opened(request: Request, token: str) -> Response:
    response = RedirectResponse("/", 303)
    remember(request, response, token, int(SESSION.total_seconds()))
    return response


def _show(request: Request, template: str, viewer: Viewer, title: str, **values: str) -> Response:
    response: Response = request.app.state.pages.show(
        request, template, viewer=viewer, current="", title=title, **values
    )
    return response

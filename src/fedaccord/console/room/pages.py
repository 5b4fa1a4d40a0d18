"""What the pages of the room share."""

from typing import Any

from fastapi import Request
from starlette.exceptions import HTTPException
from starlette.responses import Response

from fedaccord.console.room.access import Viewer
from fedaccord.console.room.room import Room
from fedaccord.errors import InvalidInput


def created(request: Request) -> Room:
    """The room, if it is created."""
    room: Room = request.app.state.room
    if room.name is None:
        raise HTTPException(409, "The room is not created yet: that is the first page.")
    return room


def show(
    request: Request, template: str, viewer: Viewer, current: str, status: int = 200, **values: Any
) -> Response:
    """A page; `current` is its address in the navigation."""
    response: Response = request.app.state.pages.show(
        request, template, status, viewer=viewer, current=current, **values
    )
    return response


def problems_by_field(error: InvalidInput | None) -> dict[str, str]:
    """What is wrong with each field of a form."""
    found: dict[str, str] = {}
    for problem in error.problems if error else ():
        known = found.get(problem.field)
        found[problem.field] = f"{known}; {problem.message}" if known else problem.message
    return found

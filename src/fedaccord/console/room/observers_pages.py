"""Observers: directors and auditors, who read and change nothing."""

from datetime import timedelta
from typing import Annotated, Any

from fastapi import APIRouter, Form, Request
from starlette.responses import RedirectResponse, Response

from fedaccord.console.room.access import Coordinator, Viewer
from fedaccord.console.room.moments import OBSERVER
from fedaccord.console.room.pages import created, problems_by_field, show
from fedaccord.console.room.wire import Text
from fedaccord.console.web.app import REFUSED
from fedaccord.console.web.typed_numbers import typed_count
from fedaccord.errors import InvalidInput, Problem

router = APIRouter(include_in_schema=False)
_LONGEST_NAME, _MOST_DAYS = 500, 365
_USUAL = str(OBSERVER.days)


@router.get("/observers", response_class=Response)
def observers(request: Request, viewer: Coordinator) -> Response:
    """Who may look, and until when."""
    return _show(request, viewer)


@router.post("/observers", response_class=Response)
def invite(
    request: Request,
    viewer: Coordinator,
    name: Annotated[Text, Form()] = "",
    days: Annotated[Text, Form()] = _USUAL,
) -> Response:
    """Make a link for an observer; it is shown this once."""
    room = created(request)
    typed = {"name": name, "days": days}
    try:
        who, valid = _read(name, days)
    except InvalidInput as error:
        wrong = problems_by_field(error)
        return _show(request, viewer, REFUSED, typed=typed, wrong=wrong)
    code = room.doors.invite_observer(who, valid)
    return _show(request, viewer, invited=who, link=f"{room.address}/observe#{code}")


def _read(name: str, days: str) -> tuple[str, timedelta]:
    """Whom the link is for and how long it works, or everything that is wrong."""
    wrong, number = [], 0
    if not 1 <= len(name.strip()) <= _LONGEST_NAME:
        wrong.append(Problem("name", f"is needed: 1 to {_LONGEST_NAME} characters"))
    try:
        number = typed_count(days)
    except InvalidInput as error:
        wrong.append(Problem("days", str(error)))
    else:
        if not 1 <= number <= _MOST_DAYS:
            wrong.append(Problem("days", f"must be from 1 to {_MOST_DAYS}"))
    if wrong:
        raise InvalidInput(wrong)
    return name.strip(), timedelta(days=number)


@router.post("/observers/withdraw", response_class=Response)
def withdraw(
    request: Request,
    viewer: Coordinator,  # noqa: ARG001
    number: Annotated[int, Form(ge=1, le=2**31 - 1)],
) -> Response:
    """Make a link useless, and end the sessions that it opened."""
    created(request).doors.withdraw_observer(number)
    return RedirectResponse("/observers", 303)


def _show(request: Request, viewer: Viewer, status: int = 200, **values: Any) -> Response:
    room = created(request)
    at = room.store.clock()
    rows = [{"link": link, "state": link.state(at)} for link in room.doors.observers()]
    empty = {"name": "", "days": _USUAL}
    filled = {"invited": None, "link": "", "typed": empty, "wrong": {}} | values
    return show(
        request,
        "observers.html.j2",
        viewer,
        "/observers",
        status,
        title="Observers",
        rows=rows,
        **filled,
    )

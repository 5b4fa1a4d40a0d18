"""Members: their invitations, their cards, and fingerprints to compare by telephone."""

from typing import Annotated, Any

from fastapi import APIRouter, Form, Request
from starlette.responses import RedirectResponse, Response

from fedaccord.console.room.access import Coordinator, Reader, Viewer
from fedaccord.console.room.api import room_of
from fedaccord.console.room.pages import created, show
from fedaccord.console.room.wire import Name

router = APIRouter(include_in_schema=False)
Number = Annotated[int, Form(ge=1, le=2**31 - 1)]


@router.get("/members", response_class=Response)
def members(request: Request, viewer: Reader) -> Response:
    """Who takes part, and how far each of them is."""
    return _show(request, viewer)


@router.post("/members/invite", response_class=Response)
def invite(request: Request, viewer: Coordinator, client: Annotated[Name, Form()]) -> Response:
    """Make a link that invites a member; it is shown this once."""
    room = created(request)
    code = room.doors.invite(client)
    return _show(request, viewer, invited=client, link=f"{room.address}/join#{code}")


@router.post("/members/withdraw", response_class=Response)
def withdraw(request: Request, viewer: Coordinator, number: Number) -> Response:  # noqa: ARG001
    """Make an invitation useless."""
    created(request).doors.withdraw_invitation(number)
    return RedirectResponse("/members", 303)


@router.post("/members/compare", response_class=Response)
def compare(
    request: Request,
    viewer: Coordinator,  # noqa: ARG001
    client: Annotated[Name, Form()],
    fingerprint: Annotated[Name, Form()],
) -> Response:
    """Note that a fingerprint is the one that the member reads out."""
    created(request).doors.compare(client, fingerprint)
    return RedirectResponse("/members", 303)


def _show(request: Request, viewer: Viewer, **values: Any) -> Response:
    room = room_of(request)
    created(request)
    now, at = room.store.snapshot(), room.store.clock()
    invitations = room.doors.invitations()
    rows = [
        {
            "name": name,
            "card": now.cards.get(name),
            "invitation": invitations.get(name),
            "state": invitations[name].state(at) if name in invitations else "",
            "signed": now.last_signed(name),
        }
        for name in now.clients
    ]
    filled = {"invited": None, "link": ""} | values
    return show(
        request,
        "members.html.j2",
        viewer,
        "/members",
        title="Members",
        rows=rows,
        now=now,
        **filled,
    )

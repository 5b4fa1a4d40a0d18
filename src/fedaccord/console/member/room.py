"""Opening the room in the browser: a ticket that is good once, for a minute."""

from fastapi import APIRouter, Request
from starlette.responses import RedirectResponse, Response

from fedaccord.console.member.home import Home

router = APIRouter()


@router.get("/room", response_class=Response)
def room(request: Request) -> Response:
    """The button."""
    return _page(request, ticket="")


@router.post("/room/open", response_class=Response)
def open_room(request: Request) -> Response:
    """Log in with the member's key, and lead the browser there."""
    home: Home = request.app.state.home
    return _page(request, ticket=home.room.ticket())


def _page(request: Request, *, ticket: str) -> Response:
    home: Home = request.app.state.home
    place = home.place if home.exists else None
    if place is None:
        return RedirectResponse("/join", 303)
    response: Response = request.app.state.pages.show(
        request,
        "room.html.j2",
        title="The room",
        current="room",
        address=place.address,
        ticket=ticket,
    )
    return response

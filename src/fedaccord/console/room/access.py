"""Who looks at the room, and what they may do.

Nobody has a password. A member logs in with a signed challenge, and opens its browser with a ticket
that is good for a minute; the coordinator has a ticket from whoever owns the room's directory; an
observer has a link. All of them lead to a session, which ends.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from fastapi import Depends, Request
from starlette.exceptions import HTTPException
from starlette.responses import Response

Role = Literal["nobody", "observer", "member", "coordinator"]

_HOW = (
    "Members open the room from their own page; observers and the coordinator with the link that "
    "they were sent. A session ends after twelve hours."
)


@dataclass(frozen=True)
class Viewer:
    """Who looks."""

    role: Role
    client: str | None = None
    """The member's name."""
    session: str = ""
    """The digest of the session's secret."""

    @property
    def name(self) -> str:
        """What people call them."""
        return self.client or f"the {self.role}"


NOBODY = Viewer("nobody")


def cookie_name(request: Request) -> str:
    """Of the session; browsers accept `__Host-` by TLS only, and then for this host only.

    The port is in the name since cookies know no ports, and one machine may have two rooms.
    """
    room = request.app.state.room
    port = request.url.port or "room"
    return f"{'__Host-' if room.secure else ''}fedaccord-{port}"


def viewer_of(request: Request) -> Viewer:
    """Who sent this request: by a token in a header, or by a cookie."""
    known: Viewer | None = getattr(request.state, "viewer", None)
    if known is None:
        known = _viewer_of(request)
        request.state.viewer = known
    return known


def _viewer_of(request: Request) -> Viewer:
    room = request.app.state.room
    kind, _, token = request.headers.get("authorization", "").partition(" ")
    if not (token and kind.lower() == "bearer"):
        token = request.cookies.get(cookie_name(request), "")
    found: Viewer | None = room.doors.session(token) if token else None
    if found is None:
        room.rates.visits.check(request)
        return NOBODY
    return found


def needs(*roles: Role) -> Callable[[Request], Viewer]:
    """A dependency: the viewer, if it has one of these roles."""

    def viewer(request: Request) -> Viewer:
        found = viewer_of(request)
        if found.role == "nobody":
            raise HTTPException(401, _HOW, {"WWW-Authenticate": "Bearer"})
        if found.role not in roles:
            raise HTTPException(403, f"This is not for {_ARTICLES[found.role]}.")
        return found

    return viewer


_ARTICLES = {"observer": "observers", "member": "members", "coordinator": "the coordinator"}

Anyone = Annotated[Viewer, Depends(viewer_of)]
"""Whoever it is, with `nobody` if not logged in."""
Reader = Annotated[Viewer, Depends(needs("observer", "member", "coordinator"))]
Party = Annotated[Viewer, Depends(needs("member", "coordinator"))]
Member = Annotated[Viewer, Depends(needs("member"))]
Coordinator = Annotated[Viewer, Depends(needs("coordinator"))]


def remember(request: Request, response: Response, token: str, seconds: int) -> None:
    """Give a browser its session."""
    cookie: dict[str, Any] = {"httponly": True, "samesite": "strict", "path": "/"}
    secure = request.app.state.room.secure
    response.set_cookie(cookie_name(request), token, max_age=seconds, secure=secure, **cookie)


def forget(request: Request, response: Response) -> None:
    """Take a browser's session away."""
    secure = request.app.state.room.secure
    response.delete_cookie(
        cookie_name(request), path="/", secure=secure, httponly=True, samesite="strict"
    )

"""Who looks at the room, and what they may do.

Nobody has a password. A member logs in with a signed challenge, and opens its browser with a ticket
that is good for a minute; the coordinator has a ticket from whoever owns the room's directory; an
observer has a link. All of them lead to a session, which ends.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from fastapi import Depends, Request
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from fedaccord.console.web.app import refusal
from fedaccord.console.web.guards import Counted, declared_length

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


class Threshold:
    """The middleware: finds out who calls, before anything of the request is read.

    Whoever has no session may ask for so much in a minute, files and pages alike, and send little:
    a form is read before it is known which route refuses it.
    """

    def __init__(self, app: ASGIApp) -> None:
        """`app` is everything behind the threshold."""
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, with who sent it, or refuse it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request = Request(scope)
        viewer = request.state.viewer = await run_in_threadpool(_viewer_of, request)
        if viewer is NOBODY:
            receive = Counted(receive, _STRANGERS)
            try:
                _check_stranger(request)
            except HTTPException as error:
                answer = refusal(request, error.status_code, [error.detail], error.headers)
                await answer(scope, receive, send)
                return
        await self._app(scope, receive, send)


_STRANGERS = 64 * 1024
"""Bytes that somebody without a session may send: a card has two thousand."""


def _check_stranger(request: Request) -> None:
    request.app.state.room.rates.visits.check(request)
    if declared_length(request.headers) > _STRANGERS:
        raise HTTPException(
            413, f"At most {_STRANGERS // 1024} kilobytes without a session. {_HOW}"
        )


def viewer_of(request: Request) -> Viewer:
    """Who sent this request."""
    viewer: Viewer = request.state.viewer
    return viewer


def _viewer_of(request: Request) -> Viewer:
    """By a token in a header, or by a cookie."""
    room = request.app.state.room
    kind, _, token = request.headers.get("authorization", "").partition(" ")
    if not (token and kind.lower() == "bearer"):
        token = request.cookies.get(cookie_name(request), "")
    found: Viewer | None = room.doors.session(token) if token else None
    return found or NOBODY


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

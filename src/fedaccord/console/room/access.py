"""Who looks at the room, and what they may do.

Nobody has a password. A member logs in with a signed challenge, and opens its browser with a ticket
that is good for a minute; the coordinator has a ticket from whoever owns the room's directory; an
observer has a link. All of them lead to a session, which ends.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from fastapi import Depends, Request
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from fedaccord.console.room.database import DatabaseTrouble
from fedaccord.console.room.moments import digest_of
from fedaccord.console.web.app import refusal
from fedaccord.console.web.guards import Counted, declared_length

_LOG = logging.getLogger(__name__)
_UNREACHABLE = "The room's database cannot be reached right now. Try again in a moment."
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
    observer: int | None = None
    """The number of the observer's link."""

    @property
    def link(self) -> str:
        """The same for all sessions of one observer's link, of one member, and of the coordinator.

        A link opens as many sessions as its owner likes, so limits are for the link.
        """
        return f"{self.role} {self.observer if self.client is None else self.client}"

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
    a form is read before it is known which route refuses it. A token that opened nothing yet may be
    guessed, so it counts before the database is asked.
    """

    def __init__(self, app: ASGIApp) -> None:
        """`app` is everything behind the threshold."""
        self._app = app
        self._opened: dict[str, None] = {}
        """Digests of tokens that opened a session, the latest last."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, with who sent it, or refuse it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request = Request(scope)
        try:
            viewer = request.state.viewer = await self._let_in(request)
        except HTTPException as error:
            answer = refusal(request, error.status_code, [error.detail], error.headers)
            await answer(scope, receive, send)
            return
        except DatabaseTrouble as error:
            await unreachable(request, error)(scope, receive, send)
            return
        if viewer is NOBODY:
            receive = Counted(receive, _STRANGERS)
        await self._app(scope, receive, send)

    async def _let_in(self, request: Request) -> Viewer:
        """Who calls; refused if strangers may not ask for this."""
        token = _token_of(request)
        digest = digest_of(token)
        if digest not in self._opened:
            request.app.state.room.rates.visits.check(request)
        viewer: Viewer | None = None
        if token:
            viewer = await run_in_threadpool(request.app.state.room.doors.session, token)
        self._opened.pop(digest, None)
        if viewer is None:
            _check_size(request)
            return NOBODY
        self._opened[digest] = None
        while len(self._opened) > _SESSIONS:
            del self._opened[next(iter(self._opened))]
        return viewer


_STRANGERS = 64 * 1024
"""Bytes that somebody without a session may send: a card has two thousand."""
_SESSIONS = 10_000
"""Tokens that are remembered; the limit protects our memory."""


def _check_size(request: Request) -> None:
    if declared_length(request.headers) > _STRANGERS:
        raise HTTPException(
            413, f"At most {_STRANGERS // 1024} kilobytes without a session. {_HOW}"
        )


def unreachable(request: Request, error: DatabaseTrouble) -> Response:
    """What people and programs are told; the driver's own words are for the log."""
    _LOG.error("%s", error)
    return refusal(request, 503, [_UNREACHABLE], {"Retry-After": "5"})


def viewer_of(request: Request) -> Viewer:
    """Who sent this request."""
    viewer: Viewer = request.state.viewer
    return viewer


def _token_of(request: Request) -> str:
    """Of a header, or else of a cookie."""
    kind, _, token = request.headers.get("authorization", "").partition(" ")
    if token and kind.lower() == "bearer":
        return token
    return request.cookies.get(cookie_name(request), "")


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

"""The page of one member as one application, on the member's own machine."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

from fastapi import FastAPI
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware

from fedaccord.console.member import access, copy, data, joining, node, numbers, room, start, terms
from fedaccord.console.member.access import Access, Gate
from fedaccord.console.member.home import Home
from fedaccord.console.member.joining import Joining
from fedaccord.console.member.node import Node
from fedaccord.console.member.room_client import RoomTrouble
from fedaccord.console.room.moments import shown
from fedaccord.console.web.app import create_app, told
from fedaccord.console.web.guards import MEGABYTE, Limits
from fedaccord.console.web.pages import Pages
from fedaccord.console.web.problems import as_sentence
from fedaccord.console.web.serving import LOOPBACK

PARTS = (access, start, joining, numbers, terms, data, node, copy, room)
"""Each has a router."""
BAD_GATEWAY = 502
_LARGEST_UPLOAD = 1024 * MEGABYTE
"""A member's data, which goes from its browser to a folder on the same machine."""


def create_member_page(directory: Path, authority: Path | None = None) -> FastAPI:
    """The page of the member in `directory`, which the page makes if it is new.

    `app.state.access.code` opens it. The node ends with the application.
    """
    app = create_app(
        "fedaccord member",
        Pages("fedaccord.console.member", when=when),
        hosts=LOOPBACK,
        limits=Limits(body=_LARGEST_UPLOAD),
    )
    home = Home(directory, authority)
    app.state.access = Access()
    app.state.home = home
    app.state.joining = Joining(home)
    app.state.node = Node(home.directory)
    app.user_middleware.append(Middleware(Gate, access=app.state.access))  # behind the guards
    app.add_exception_handler(RoomTrouble, told(lambda e: (BAD_GATEWAY, [as_sentence(str(e))])))
    app.router.lifespan_context = _lifespan
    for part in PARTS:
        app.include_router(part.router, include_in_schema=False)
    return app


def when(text: str) -> str:
    """A time that a room told, for people; whatever else it told, as it is.

    >>> when("2026-11-08T05:24:03Z"), when("yesterday")
    ('8 Nov 2026, 05:24 UTC', 'yesterday')
    """
    try:
        return shown(datetime.fromisoformat(text).astimezone(UTC))
    except (ValueError, OverflowError):
        return text


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    yield
    await run_in_threadpool(app.state.node.stop)

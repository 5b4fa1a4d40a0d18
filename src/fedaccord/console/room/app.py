"""The room as one application."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from fastapi import FastAPI
from starlette.middleware import Middleware

from fedaccord.console.room import (
    agreement_pages,
    api,
    doors_pages,
    evidence_pages,
    ledger_pages,
    members_pages,
    observers_pages,
    overview,
    run_pages,
    terms_pages,
    watch_pages,
)
from fedaccord.console.room.access import Threshold, unreachable
from fedaccord.console.room.agreements import slot_length
from fedaccord.console.room.database import DatabaseTrouble
from fedaccord.console.room.following import Follower
from fedaccord.console.room.moments import Clock, shown, wall_clock
from fedaccord.console.room.room import Rates, Room
from fedaccord.console.room.verifying import Verifying
from fedaccord.console.web.app import create_app
from fedaccord.console.web.guards import Limits
from fedaccord.console.web.pages import Pages
from fedaccord.console.web.serving import LOOPBACK

_PARTS = (
    overview,
    doors_pages,
    terms_pages,
    members_pages,
    observers_pages,
    run_pages,
    watch_pages,
    ledger_pages,
    evidence_pages,
    agreement_pages,
    api,
)


def create_room(
    directory: Path,
    *,
    database: str = "",
    address: str = "http://127.0.0.1:8321",
    hosts: Sequence[str] = LOOPBACK,
    secure: bool = False,
    clock: Clock = wall_clock,
    rates: Rates | None = None,
) -> FastAPI:
    """The application for the room in a directory, which is made if it is new.

    Args:
        directory: It has `room.db`, and `app` as soon as the room is created.
        database: A path or a URL instead of `room.db`.
        address: Where the room is reached, without a slash at the end.
        hosts: The names at which browsers may reach it, without ports.
        secure: Whether it is reached by TLS only.
        clock: Tells the time.
        rates: Limits for whoever has no session.
    """
    room = Room(
        directory, database=database, address=address, secure=secure, clock=clock, rates=rates
    )
    room.files.align()
    pages = Pages("fedaccord.console.room", room=room, shown_time=shown)
    app = create_app("fedaccord room", pages, hosts=hosts, limits=Limits(secure=secure))
    app.user_middleware.append(Middleware(Threshold))  # behind the guards
    app.add_exception_handler(DatabaseTrouble, unreachable)  # type: ignore[arg-type]
    app.state.room = room
    app.state.standings = overview.Standings(room, pages)
    app.state.follower = Follower(lambda: room.ledger_place, lambda: slot_length(room))
    app.state.verifying = Verifying(lambda: room.ledger_place, room.doors.is_open)
    for part in _PARTS:
        app.include_router(part.router)
    app.router.lifespan_context = _until_closed
    return app


@asynccontextmanager
async def _until_closed(app: FastAPI) -> AsyncIterator[None]:
    yield
    app.state.follower.close()
    app.state.room.close()

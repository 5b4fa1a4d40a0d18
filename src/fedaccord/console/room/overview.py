"""The first page of the room: what the next step is, for whoever looks."""

import threading
from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Form, Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from fedaccord.console.room.access import Anyone, Coordinator, Reader, Viewer
from fedaccord.console.room.api import room_of
from fedaccord.console.room.founding import FoundingForm, read_form, write_server
from fedaccord.console.room.live import stream_of_events
from fedaccord.console.room.pages import created, problems_by_field, show
from fedaccord.console.room.records import Snapshot
from fedaccord.console.room.room import Room
from fedaccord.console.web.pages import Pages
from fedaccord.console.web.rehearsals import REHEARSALS
from fedaccord.console.web.rules import reports_in_words
from fedaccord.errors import InvalidInput
from fedaccord.protocol.terms_text import terms_text

router = APIRouter(include_in_schema=False)


@router.get("/", response_class=Response)
def overview(request: Request, viewer: Anyone) -> Response:
    """Where the room stands."""
    room = room_of(request)
    if viewer.role == "nobody":
        return show(request, "outside.html.j2", viewer, "/", title=room.name or "A room")
    if room.name is None:
        return _form(request, viewer, FoundingForm())
    part = _part(request, room, viewer)
    return show(request, "overview.html.j2", viewer, "/", title=room.name, part=part)


@router.get("/now", response_class=Response)
def now_part(request: Request, viewer: Reader) -> Response:
    """The part of the first page that changes."""
    return HTMLResponse(_part(request, created(request), viewer))


@router.get("/live", response_class=Response)
async def live(request: Request, viewer: Reader) -> Response:
    """Tells pages that something happened."""
    room = room_of(request)
    return stream_of_events(room.bell, lambda: room.doors.is_open(viewer))


@router.post("/room", response_class=Response)
def create(
    request: Request, viewer: Coordinator, form: Annotated[FoundingForm, Form()]
) -> Response:
    """Create the room."""
    room = room_of(request)
    try:
        founded = read_form(form)
        room.store.create(
            founded.terms.name,
            terms_text(founded.terms),
            lambda: write_server(room.app, founded, room.store.clock()),
        )
    except InvalidInput as error:
        return _form(request, viewer, form, error)
    room.files.align()
    return RedirectResponse("/members", 303)


def _form(
    request: Request, viewer: Viewer, form: FoundingForm, error: InvalidInput | None = None
) -> Response:
    return show(
        request,
        "create.html.j2",
        viewer,
        "/",
        422 if error else 200,
        title="A new room",
        form=form,
        wrong=problems_by_field(error),
        rehearsals=REHEARSALS,
    )


@dataclass(frozen=True)
class Standing:
    """Where the room stood after an event."""

    version: tuple[int, bool]
    now: Snapshot
    text: str
    """The part of the page that is the same for everyone."""


class Standings:
    """Where the room stands, looked up once for everyone who watches, however many there are."""

    def __init__(self, room: Room, pages: Pages) -> None:
        """Nothing is looked up yet."""
        self._room, self._pages = room, pages
        self._lock = threading.Lock()
        self._latest: Standing | None = None

    def latest(self) -> Standing:
        """What there is after the latest event; for any thread."""
        room = self._room
        version = (room.bell.number, room.running.runs("server"))
        with self._lock:
            if self._latest is None or self._latest.version != version:
                now = room.store.snapshot()
                assert now.current is not None  # a room that is created has terms
                text = self._pages.text(
                    "overview_part.html.j2",
                    now=now,
                    reports=reports_in_words(now.current.terms),
                    events=room.store.events(30),
                    server_runs=version[1],
                )
                self._latest = Standing(version, now, text)
            return self._latest


def _part(request: Request, room: Room, viewer: Viewer) -> str:
    """The part of the page that changes: the viewer's next step, and where the room stands."""
    standings: Standings = request.app.state.standings
    pages: Pages = request.app.state.pages
    standing = standings.latest()
    step = pages.text(
        "overview_step.html.j2",
        viewer=viewer,
        step=next_step(room, standing.now, viewer),
        trouble=room.files.trouble if viewer.role == "coordinator" else "",
    )
    return step + standing.text


def next_step(room: Room, now: Snapshot, viewer: Viewer) -> tuple[str, str, str]:
    """What the viewer does next: in words, the address where it is done, and the link's words."""
    if viewer.role == "coordinator":
        return _coordinators_step(room, now)
    asked = [name for name, missing in now.unconfirmed.items() if viewer.client in missing]
    if asked and viewer.client not in now.unconfirmed:
        return (
            f"{_listed(asked)} sent new keys. Ask by telephone whether they are its own, and "
            "confirm them on your own page, with the terms.",
            "/members",
            "See the fingerprints",
        )
    if viewer.client in now.unconfirmed:
        return _waiting(room, now), "/members", "See the members"
    if viewer.role == "member" and now.to_sign is not None and viewer.client in now.unsigned:
        number = now.current.number if now.current else 0
        return (
            f"Read version {number} of the terms. Sign it on your own page, where your key is.",
            "/terms",
            "Read the terms",
        )
    if now.complete:
        return _waiting(room, now), "/watch", "Watch slots"
    return _waiting(room, now), "/terms", "Read the terms"


def _coordinators_step(room: Room, now: Snapshot) -> tuple[str, str, str]:
    if now.without_card:
        invitations = room.doors.invitations()
        fresh = [
            name
            for name in now.without_card
            if name not in invitations
            or invitations[name].state(room.store.clock()) not in ("open",)
        ]
        if fresh:
            return f"Invite {_listed(fresh)}.", "/members", "Invite members"
    elif not_compared := [name for name in now.clients if now.cards[name].compared is None]:
        what = f"Compare fingerprints with {_listed(not_compared)}, by telephone."
        return what, "/members", "Compare fingerprints"
    if now.complete and not room.running.runs("server"):
        return "Everyone has signed. Start the server, and run a slot.", "/run", "Start the server"
    if now.complete:
        return "The server runs. Run slots, and watch them.", "/run", "Run a slot"
    return _waiting(room, now), "/members", "See the members"


def _waiting(room: Room, now: Snapshot) -> str:
    if now.without_card:
        return f"The room waits for the cards of {_listed(now.without_card)}."
    if now.unconfirmed:
        name, missing = next(iter(now.unconfirmed.items()))
        return f"{name} has new keys. The room waits for {_listed(missing)} to confirm them."
    if now.unsigned:
        number = now.current.number if now.current else 0
        return f"The room waits for {_listed(now.unsigned)} to sign version {number}."
    if room.running.runs("server"):
        return "Everyone has signed, and the server runs."
    return "Everyone has signed. The coordinator starts the server."


_LISTED = 5


def _listed(names: list[str]) -> str:
    """Some names, for a sentence."""
    if len(names) > _LISTED:
        return f"{', '.join(names[:_LISTED])} and {len(names) - _LISTED} more"
    return " and ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else names[0]

"""A slot, watched while it runs: the latest one live, and all earlier ones."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Annotated

from fastapi import APIRouter, Path, Query, Request
from fastapi.responses import StreamingResponse
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.responses import HTMLResponse, Response

from fedaccord.checks import escaped
from fedaccord.console.room.access import Reader
from fedaccord.console.room.api import refusals
from fedaccord.console.room.following import Follower, Look, follower_of
from fedaccord.console.room.past_slots import PastSlot
from fedaccord.console.room.watched_slot import RoundInSlot, WatchedSlot
from fedaccord.console.web.pages import Pages
from fedaccord.console.web.streams import stream_of
from fedaccord.flower.events import score_in_words, value_of
from fedaccord.numbers import count
from fedaccord.plots.rounds import round_curve
from fedaccord.protocol.limits import MOST
from fedaccord.summaries.slots import PHASES, VERDICTS
from fedaccord.summaries.words import listed

router = APIRouter()

SlotNumber = Annotated[int, Path(ge=1, le=MOST)]
_STILL_OPEN = 10.0
"""Seconds between two looks at whether a watcher's session has expired."""
_LISTED = 8
"""Earlier slots on the live page."""
_TABULATED = 50
"""Rounds in the table of losses."""


@router.get("/watch", response_class=HTMLResponse, include_in_schema=False)
def watch(request: Request, viewer: Reader) -> Response:
    """The latest slot."""
    follower = follower_of(request)
    return _shown(
        request, "watch.html.j2", viewer=viewer, part=_live(request, follower), title="Watch"
    )


@router.get("/watch/part", response_class=HTMLResponse, include_in_schema=False)
def watch_part(request: Request, _: Reader) -> Response:
    """The live part of that page."""
    return HTMLResponse(_live(request, follower_of(request)))


@router.get("/watch/stream", response_class=StreamingResponse, include_in_schema=False)
async def watch_stream(request: Request, viewer: Reader) -> StreamingResponse:
    """Tells whenever the ledger has grown, until the session ends."""
    follower, room = follower_of(request), request.app.state.room
    looked, endings = time.monotonic(), room.bell.endings

    async def version() -> str | None:
        nonlocal looked, endings
        if room.bell.endings != endings or time.monotonic() - looked > _STILL_OPEN:
            looked, endings = time.monotonic(), room.bell.endings
            if not await run_in_threadpool(room.doors.is_open, viewer):
                return None
        return await follower.version()

    return stream_of(request, version)


@router.get("/watch/{slot}", response_class=HTMLResponse, include_in_schema=False)
def watch_slot(request: Request, viewer: Reader, slot: SlotNumber) -> Response:
    """One slot, as it ended or stands."""
    follower = follower_of(request)
    found = follower.earlier(slot)
    if found is None:
        raise HTTPException(404, f"slot {slot} was not begun")
    return _shown(
        request,
        "watch_slot.html.j2",
        viewer=viewer,
        title=f"Slot {slot}",
        slot=found,
        past=follower.past(slot),
        latest=follower.now().slot,
        **words_for(found),
    )


@dataclass(frozen=True)
class Watched:
    """The answer of `/api/watch`."""

    entries: int
    """How many entries the ledger has."""
    version: str
    """Changes whenever the ledger does."""
    slot: WatchedSlot | None
    """None: no slot was begun yet."""
    problem: str
    """Why the ledger cannot be read; empty if it can."""


@router.get("/api/watch", response_model=Watched, responses=refusals(401, 404))
def watch_api(
    request: Request,
    _: Reader,
    slot: Annotated[int | None, Query(ge=1, le=MOST)] = None,
) -> Watched:
    """The latest slot, or another one, as far as the ledger says."""
    follower = follower_of(request)
    look = follower.now()
    found = look.slot
    if slot is not None:
        found = follower.earlier(slot)
        if found is None:
            raise HTTPException(404, f"slot {slot} was not begun")
    return Watched(look.entries, look.version, found, look.problem)


# --- The page ------------------------------------------------------------------------------


def _shown(request: Request, template: str, **values: object) -> Response:
    pages: Pages = request.app.state.pages
    return pages.show(request, template, current="/watch", at=shown_at, day=shown_day, **values)


def _live(request: Request, follower: Follower) -> str:
    pages: Pages = request.app.state.pages

    def render(look: Look) -> str:
        values = words_for(look.slot) if look.slot is not None else {}
        return pages.text(
            "watch_part.html.j2",
            look=look,
            slot=look.slot,
            past=_before(look)[:_LISTED],
            at=shown_at,
            day=shown_day,
            **values,
        )

    return follower.part(render)


def _before(look: Look) -> list[PastSlot]:
    return [one for one in look.past if look.slot is None or one.slot != look.slot.slot]


def words_for(slot: WatchedSlot) -> dict[str, object]:
    """What the template says about a slot."""
    scored = [one for one in slot.rounds if one.accuracy is not None]
    return {
        "now": headline(slot),
        "mood": mood(slot),
        "steps": steps(slot),
        "curve": _accuracy(slot, scored) if scored else _movement(slot),
        "scored": scored[: -_TABULATED - 1 : -1],
        "in_words": score_in_words,
        "value_of": value_of,
        "phases": PHASES,
        "verdicts": VERDICTS,
    }


def _accuracy(slot: WatchedSlot, scored: Sequence[RoundInSlot]) -> str:
    """The curve of the accuracy, or of what else the server measured in these rounds."""
    measure = scored[-1].measure
    first, last = (value_of(one.accuracy or 0.0, measure) for one in (scored[0], scored[-1]))
    label = f"The model's {measure} after each round: {first} at first, {last} in the latest round"
    times, unit = (100, " %") if measure == "accuracy" else (1, "")
    values = [None if one.accuracy is None else times * one.accuracy for one in slot.rounds]
    return round_curve(values, slot.rounds_in_all, label, top=times, unit=unit)


def _movement(slot: WatchedSlot) -> str:
    """The curve of how far updates moved the model."""
    movement = [one.movement for one in slot.rounds]
    known = [one for one in movement if one is not None]
    if not known:
        return ""
    label = "How far the updates moved the model in each round"
    label += f": {known[0]:.3g} at first, {known[-1]:.3g} in the latest round"
    return round_curve(movement, slot.rounds_in_all, label)


def headline(slot: WatchedSlot) -> str:
    """What happens at the moment, in one sentence."""
    if slot.problem is not None:
        return f"The ledger was changed: {slot.problem}. What follows it is not shown."
    if slot.void is not None:
        return f"Slot {slot.slot} is void, nothing was trained: {slot.void}."
    if slot.settled:
        work = f"{count(len(slot.rounds), 'round')}, {count(slot.total or 0, 'sample')}"
        return f"Slot {slot.slot} is settled: {work}."
    if not slot.waiting:
        return f"Slot {slot.slot} has begun."
    where = f" in round {len(slot.rounds) + 1} of {slot.rounds_in_all}"
    round_now = where if slot.stage == "training" and slot.asks == "to train" else ""
    verb = "is" if len(slot.waiting) == 1 else "are"
    return f"{listed(slot.waiting, 8)} {verb} asked {slot.asks}{round_now}."


def mood(slot: WatchedSlot) -> str:
    """The class of that sentence's box."""
    if slot.problem is not None or slot.void is not None:
        return "fails"
    return "holds" if slot.settled else "plain"


@dataclass(frozen=True)
class Step:
    """One of the steps of a slot."""

    name: str
    said: str
    state: str
    """done, now or later."""


def steps(slot: WatchedSlot) -> list[Step]:
    """The way of a slot, and how far it has come."""
    order = ("reports", "offers", "training", "settlement", "over")
    here = order.index(slot.stage)
    first = "Reports" if slot.reports else "Who is there"
    refused = f", {slot.refused} refused" if slot.refused else ""
    done = [
        f"{slot.here} of {slot.expected}",
        f"{slot.answered} of {slot.offered} answered{refused}" if slot.offered else "none",
        f"{len(slot.rounds)} of {count(slot.rounds_in_all, 'round')}",
        ("void" if slot.void is not None else "done") if slot.settled else "open",
    ]
    names = (first, "Offers", "Training", "Settlement")
    states = ["done" if n < here else "now" if n == here else "later" for n in range(4)]
    return [Step(*one) for one in zip(names, done, states, strict=True)]


def shown_at(at: str) -> str:
    """A time of the ledger on a page.

    >>> shown_at("2025-01-01T12:00:00+00:00")
    '1 Jan 2025, 12:00:00 UTC'
    """
    try:
        return f"{datetime.fromisoformat(at):%-d %b %Y, %H:%M:%S} UTC"
    except ValueError:
        return escaped(at)


def shown_day(day: str) -> str:
    """A day on a page.

    >>> shown_day("2025-04-02")
    '2 April 2025'
    """
    return f"{date.fromisoformat(day):%-d %B %Y}"

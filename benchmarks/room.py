"""The room under load: 50 members watch it while they change it 20 times a second.

A watcher does what the first page of the room does in a browser: it has an event stream open, and
whenever that tells of something new it asks for the part of the page that changes. A change is a
comment of a member's, which is on disk when it is answered. It counts as seen when a watcher has a
part that it asked for after it was told of the change, or of a later one.
"""

import asyncio
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from statistics import quantiles

import httpx

from benchmarks.row import Row
from tests.console.room_process import room_process
from tests.console.room_story import FORM, close_rooms, joined

WATCHERS = 50
"""Members, each with a session of its own."""
RATE = 20
"""Changes in a second."""
SECONDS = 60
TARGET = 100.0
"""Milliseconds for 95 of 100 answers."""
SEEN = 1_500.0
"""Milliseconds for 95 of 100 changes to be seen: a page is told about once a second."""
_LATER = 5.0
"""Seconds that the last change has to arrive."""


@dataclass
class Load:
    """What happened under load."""

    sent: list[tuple[int, float]] = field(default_factory=list)
    """For each change: how many events there were at least after it, and when it was sent."""
    answers: list[float] = field(default_factory=list)
    """Seconds until a change was answered."""
    parts: list[float] = field(default_factory=list)
    """Seconds until a part of a page was answered."""
    seen: list[list[tuple[int, float]]] = field(default_factory=list)
    """For each watcher: the latest event that its page shows, and since when."""
    errors: list[str] = field(default_factory=list)

    @property
    def delays(self) -> list[float]:
        """Seconds from sending a change until a watcher saw it, for all of both."""
        found = []
        for seen in self.seen:
            place = 0
            for number, at in sorted(self.sent):
                while place < len(seen) and seen[place][0] < number:
                    place += 1
                if place < len(seen):
                    found.append(seen[place][1] - at)
        return found


class Page:
    """The first page of the room in one browser."""

    def __init__(self, address: str, token: str, seen: list[tuple[int, float]], load: Load) -> None:
        self._http = httpx.AsyncClient(
            base_url=address, timeout=30, headers={"Authorization": f"Bearer {token}"}
        )
        self._seen, self._load = seen, load
        self._told, self._shown = -1, -1
        self._asking: asyncio.Task[None] | None = None

    async def watch(self) -> None:
        """Follow the room until it is cancelled."""
        try:
            async with self._http, self._http.stream("GET", "/live") as answer:
                if answer.status_code != httpx.codes.OK:
                    self._load.errors.append(f"a watcher was answered with {answer.status_code}")
                async for line in answer.aiter_lines():
                    if line.startswith("data: ") and line[6:].isdigit():
                        self._told = int(line[6:])
                        if self._asking is None or self._asking.done():
                            self._asking = asyncio.create_task(self._ask())
        except httpx.HTTPError as error:
            self._load.errors.append(f"a watcher lost its stream: {error!r}")

    async def _ask(self) -> None:
        """Ask for the part, and again if there was something new meanwhile."""
        while self._shown < self._told:
            told, began = self._told, time.perf_counter()
            try:
                answer = await self._http.get("/now", headers={"HX-Request": "true"})
            except httpx.HTTPError as error:
                self._load.errors.append(f"a part was lost: {error!r}")
                return
            if answer.status_code != httpx.codes.OK:
                self._load.errors.append(f"a part was answered with {answer.status_code}")
                return
            self._shown = told
            self._seen.append((told, time.perf_counter()))
            self._load.parts.append(time.perf_counter() - began)


async def change(http: httpx.AsyncClient, number: int, token: str, first: int, load: Load) -> None:
    """One comment; the event that it makes is the one after those before it, or a later one."""
    began = time.perf_counter()
    try:
        answer = await http.post(
            "/api/comments",
            json={"version": 1, "text": f"comment {number}"},
            headers={"Authorization": f"Bearer {token}"},
        )
    except httpx.HTTPError as error:
        load.errors.append(f"a change was lost: {error!r}")
        return
    load.answers.append(time.perf_counter() - began)
    if answer.status_code == httpx.codes.OK:
        load.sent.append((first + answer.json()["number"], began))
    else:
        load.errors.append(f"a change was answered with {answer.status_code}")


async def under_load(address: str, tokens: list[str], first: int) -> Load:
    """Watch and change; `first` events were there before."""
    load = Load(seen=[[] for _ in range(WATCHERS)])
    watching = [
        asyncio.create_task(Page(address, token, seen, load).watch())
        for token, seen in zip(tokens, load.seen, strict=True)
    ]
    while not all(load.seen):
        await asyncio.sleep(0.05)
    load.parts.clear()  # of 50 pages that were opened in one instant
    async with httpx.AsyncClient(base_url=address, timeout=30) as http:
        begin, changing = time.perf_counter(), []
        for number in range(RATE * SECONDS):
            await asyncio.sleep(max(0.0, begin + number / RATE - time.perf_counter()))
            token = tokens[number % len(tokens)]
            changing.append(asyncio.create_task(change(http, number, token, first, load)))
        await asyncio.gather(*changing)
    last, end = first + RATE * SECONDS, time.perf_counter() + _LATER
    while any(seen[-1][0] < last for seen in load.seen) and time.perf_counter() < end:
        await asyncio.sleep(0.05)
    for task in watching:
        task.cancel()
    await asyncio.gather(*watching, return_exceptions=True)
    return load


def run() -> list[Row]:
    """The rows of this benchmark."""
    names = "\n".join(f"Member {n}" for n in range(1, WATCHERS + 1))
    with tempfile.TemporaryDirectory() as folder:
        story = joined(Path(folder), FORM | {"members": names})
        members, directory = list(story.members.values()), story.room.directory
        first = story.room.store.last_event()
        close_rooms()
        with room_process(directory, Path(folder) / "log") as process:
            process.start()
            tokens = [member.token for member in members]  # sessions outlive the server
            load = asyncio.run(under_load(process.address, tokens, first))
            with httpx.Client(base_url=process.address, headers=members[0].headers) as http:
                kept = len(http.get("/api/terms").json()["comments"])
    return rows_of(load, first, kept)


def rows_of(load: Load, first: int, kept: int) -> list[Row]:
    """What was measured."""
    changes = RATE * SECONDS
    where = f"{WATCHERS} watchers, {RATE} changes a second for {SECONDS} s"
    behind = sum(seen[-1][0] < first + changes for seen in load.seen)
    delays = load.delays
    lost = changes - kept + changes * WATCHERS - len(delays)
    note = "; ".join(load.errors[:3]) or f"{behind} watchers were behind at the end"
    return [
        Row("room", "errors", where, value=len(load.errors), target=0, unit="", note=note),
        Row("room", "changes lost or not seen", where, value=lost, target=0, unit=""),
        _ninety_five("until a change is answered", load.answers, where, TARGET),
        _ninety_five("until a page's part is answered", load.parts, where, TARGET),
        _ninety_five("until every page shows a change", delays, where, SEEN),
    ]


def _ninety_five(what: str, seconds: list[float], where: str, target: float) -> Row:
    value = quantiles(seconds, n=20)[-1] * 1000
    median = quantiles(seconds, n=2)[0] * 1000
    note = f"median {median:.0f} ms, longest {max(seconds) * 1000:.0f} ms"
    return Row("room", f"95 % {what}", where, value=value, target=target, unit="ms", note=note)

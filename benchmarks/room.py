"""The room under load: 50 pages watch it while members change it 20 times a second.

A watcher is an open event stream, as every page of the room has one. A change is a comment of a
member's, which is on disk when it is answered. A change counts as seen when a watcher is told its
event or a later one, since a page that is told once asks for everything that is new.
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
from tests.console.room_story import Someone, close_rooms, joined

WATCHERS = 50
RATE = 20
"""Changes in a second."""
SECONDS = 60
TARGET = 100.0
"""Milliseconds, for 95 of 100."""
_LATER = 5.0
"""Seconds that the last change has to arrive."""


@dataclass
class Load:
    """What happened under load."""

    sent: list[tuple[int, float]] = field(default_factory=list)
    """For each change: how many events there were at least after it, and when it was sent."""
    answers: list[float] = field(default_factory=list)
    """Seconds until a change was answered."""
    seen: list[list[tuple[int, float]]] = field(default_factory=list)
    """For each watcher: the events that it was told of, and when."""
    errors: list[str] = field(default_factory=list)

    @property
    def delays(self) -> list[float]:
        """Seconds from sending a change until a watcher was told, for all of both."""
        found = []
        for told in self.seen:
            place = 0
            for number, at in sorted(self.sent):
                while place < len(told) and told[place][0] < number:
                    place += 1
                if place < len(told):
                    found.append(told[place][1] - at)
        return found


async def watch(address: str, token: str, told: list[tuple[int, float]], load: Load) -> None:
    """Follow the room until it is cancelled."""
    headers = {"Authorization": f"Bearer {token}"}
    try:
        async with (
            httpx.AsyncClient(base_url=address, timeout=30, headers=headers) as http,
            http.stream("GET", "/live") as answer,
        ):
            if answer.status_code != httpx.codes.OK:
                load.errors.append(f"a watcher was answered with {answer.status_code}")
            async for line in answer.aiter_lines():
                if line.startswith("data: ") and line[6:].isdigit():
                    told.append((int(line[6:]), time.perf_counter()))
    except httpx.HTTPError as error:
        load.errors.append(f"a watcher lost its stream: {error!r}")


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
        asyncio.create_task(watch(address, tokens[n % len(tokens)], told, load))
        for n, told in enumerate(load.seen)
    ]
    while not all(load.seen):
        await asyncio.sleep(0.05)
    async with httpx.AsyncClient(base_url=address, timeout=30) as http:
        begin, changing = time.perf_counter(), []
        for number in range(RATE * SECONDS):
            await asyncio.sleep(max(0.0, begin + number / RATE - time.perf_counter()))
            token = tokens[number % len(tokens)]
            changing.append(asyncio.create_task(change(http, number, token, first, load)))
        await asyncio.gather(*changing)
    last, end = first + RATE * SECONDS, time.perf_counter() + _LATER
    while any(told[-1][0] < last for told in load.seen) and time.perf_counter() < end:
        await asyncio.sleep(0.05)
    for task in watching:
        task.cancel()
    await asyncio.gather(*watching, return_exceptions=True)
    return load


def logged_in(address: str, members: list[Someone]) -> list[str]:
    """A session for each member."""
    with httpx.Client(base_url=address) as http:
        for member in members:
            member.log_in(http)
    return [member.token for member in members]


def run() -> list[Row]:
    """The rows of this benchmark."""
    with tempfile.TemporaryDirectory() as folder:
        story = joined(Path(folder))
        members, directory = list(story.members.values()), story.room.directory
        first = story.room.store.last_event()
        close_rooms()
        with room_process(directory, Path(folder) / "log") as process:
            process.start()
            tokens = logged_in(process.address, members)
            load = asyncio.run(under_load(process.address, tokens, first))
            with httpx.Client(base_url=process.address, headers=members[0].headers) as http:
                kept = len(http.get("/api/terms").json()["comments"])
    return rows_of(load, first, kept)


def rows_of(load: Load, first: int, kept: int) -> list[Row]:
    """What was measured."""
    changes = RATE * SECONDS
    where = f"{WATCHERS} watchers, {RATE} changes a second for {SECONDS} s"
    behind = sum(told[-1][0] < first + changes for told in load.seen)
    delays = load.delays
    lost = changes - kept + changes * WATCHERS - len(delays)
    note = "; ".join(load.errors[:3]) or f"{behind} watchers were behind at the end"
    return [
        Row("room", "errors", where, value=len(load.errors), target=0, unit="", note=note),
        Row("room", "changes lost or not told", where, value=lost, target=0, unit=""),
        _ninety_five("until a change is answered", load.answers, where),
        _ninety_five("until every watcher is told of a change", delays, where),
    ]


def _ninety_five(what: str, seconds: list[float], where: str) -> Row:
    value = quantiles(seconds, n=20)[-1] * 1000
    median = quantiles(seconds, n=2)[0] * 1000
    note = f"median {median:.0f} ms, longest {max(seconds) * 1000:.0f} ms"
    return Row("room", f"95 % {what}", where, value=value, target=TARGET, unit="ms", note=note)

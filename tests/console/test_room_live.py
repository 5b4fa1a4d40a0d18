"""Streams of a room: pages are told of events now and then, and at once that a session ended."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from fedaccord.console.room import live
from fedaccord.console.room.live import Bell, stream_of_events
from fedaccord.console.web.streams import OUT

SOON = 0.2
"""Seconds in which nothing may be told that is to be told in a thousand."""


def told(number: int) -> str:
    return f"event: changed\ndata: {number}\n\n"


def stream(bell: Bell, is_open: Callable[[], bool] = lambda: True) -> AsyncIterator[Any]:
    return aiter(stream_of_events(bell, is_open).body_iterator)


def test_a_page_is_told_at_once_and_then_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story() -> None:
        bell = Bell(7)
        monkeypatch.setattr(live, "_PAUSE", (0.0, 0.0))
        found = stream(bell)
        assert await anext(found) == told(7)
        monkeypatch.setattr(live, "_PAUSE", (1_000.0, 1_000.0))
        bell.ring(8)
        assert await anext(found) == told(8)
        for number in range(9, 30):
            bell.ring(number)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(anext(found), SOON)

    asyncio.run(story())


def test_of_many_events_a_page_is_told_the_latest(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story() -> None:
        bell = Bell(7)
        monkeypatch.setattr(live, "_PAUSE", (0.01, 0.01))
        found = stream(bell)
        assert await anext(found) == told(7)
        for number in range(8, 30):
            bell.ring(number)
        assert await anext(found) == told(29)

    asyncio.run(story())


def test_a_stream_ends_at_once_with_its_session(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story() -> None:
        bell, sessions = Bell(7), {"open"}
        monkeypatch.setattr(live, "_PAUSE", (1_000.0, 1_000.0))
        monkeypatch.setattr(live, "_LOOK", 1_000.0)
        found = stream(bell, lambda: bool(sessions))
        assert await anext(found) == told(7)
        bell.ring_out()  # somebody else's
        following = asyncio.ensure_future(anext(found))
        await asyncio.sleep(SOON)
        assert not following.done()
        sessions.clear()
        bell.ring_out()
        assert await following == OUT
        assert [one async for one in found] == []

    asyncio.run(story())


def test_a_session_that_expires_ends_its_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story() -> None:
        monkeypatch.setattr(live, "_PAUSE", (0.0, 0.0))
        monkeypatch.setattr(live, "_LOOK", 0.0)
        found = stream(Bell(7), lambda: False)
        assert [one async for one in found] == [told(7), OUT]

    asyncio.run(story())

"""Tells open pages that something happened, and ends streams whose session has ended."""

import asyncio
import random
import time
from collections.abc import AsyncIterator, Callable
from contextlib import suppress

from fastapi.concurrency import run_in_threadpool
from fastapi.responses import StreamingResponse

from fedaccord.console.web.streams import OUT


class Bell:
    """Rings whenever there is a new event; pages wait for it in the server's event loop."""

    def __init__(self, number: int) -> None:
        """`number` is that of the latest event."""
        self.number = number
        self.endings = 0
        """How often sessions were ended before their time."""
        self._loop: asyncio.AbstractEventLoop | None = None
        self._waiting: set[asyncio.Future[None]] = set()

    def ring(self, number: int) -> None:
        """Tell everyone who waits that there is an event; from any thread."""
        self.number = max(number, self.number)
        self._wake_all()

    def ring_out(self) -> None:
        """Tell everyone who waits to see whether its session is still open; from any thread."""
        self.endings += 1
        self._wake_all()

    def _wake_all(self) -> None:
        if self._loop is not None and not self._loop.is_closed():
            with suppress(RuntimeError):  # it was closed just now
                self._loop.call_soon_threadsafe(self._wake)

    def _wake(self) -> None:
        for future in self._waiting:
            if not future.done():
                future.set_result(None)

    async def wait(self, seconds: float, endings: int, known: int | None) -> None:
        """Wait for a while, or until there are more endings, or another event than the known one.

        Without a known one, events are not waited for.
        """
        self._loop = asyncio.get_running_loop()
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while self.endings == endings and known in (None, self.number):
                    future = self._loop.create_future()
                    self._waiting.add(future)
                    try:
                        await future
                    finally:
                        self._waiting.discard(future)


_PAUSE = (0.9, 1.3)
"""Seconds between telling a page twice, at random: or all pages would ask in the same instant."""
_LOOK = 10.0
"""Seconds after which it is looked whether the session has expired."""
_ALIVE = 15.0
"""Seconds after which an empty comment keeps proxies from closing a quiet connection."""


def stream_of_events(bell: Bell, is_open: Callable[[], bool]) -> StreamingResponse:
    """Tells the number of the latest event when there is one, while the session is open.

    After a while without events a page is told at once, and then about once a second, however much
    happens: it asks for everything that is new anyway.
    """

    async def events() -> AsyncIterator[str]:
        known, endings, due = -1, bell.endings, 0.0
        looked = said = time.monotonic()
        while True:  # until the browser hangs up, which ends this with an exception
            now = time.monotonic()
            if bell.number != known and now >= due:
                known, said, due = bell.number, now, now + random.uniform(*_PAUSE)
                yield f"event: changed\ndata: {known}\n\n"
            elif now - said >= _ALIVE:
                said = now
                yield ": still here\n\n"
            if now < due:
                await bell.wait(due - now, endings, None)
            else:
                await bell.wait(_LOOK, endings, known)
            if bell.endings != endings or time.monotonic() - looked >= _LOOK:
                endings, looked = bell.endings, time.monotonic()
                if not await run_in_threadpool(is_open):
                    yield OUT
                    return

    return StreamingResponse(
        events(), media_type="text/event-stream", headers={"X-Accel-Buffering": "no"}
    )

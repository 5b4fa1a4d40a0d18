"""Tells open pages that something happened, at once."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import suppress

from fastapi.concurrency import run_in_threadpool
from fastapi.responses import StreamingResponse


class Bell:
    """Rings whenever there is a new event; pages wait for it in the server's event loop."""

    def __init__(self, number: int) -> None:
        """`number` is that of the latest event."""
        self.number = number
        self._loop: asyncio.AbstractEventLoop | None = None
        self._waiting: set[asyncio.Future[None]] = set()

    def ring(self, number: int) -> None:
        """Tell everyone who waits; from any thread."""
        self.number = max(number, self.number)
        if self._loop is not None and not self._loop.is_closed():
            with suppress(RuntimeError):  # it was closed just now
                self._loop.call_soon_threadsafe(self._wake)

    def _wake(self) -> None:
        for future in self._waiting:
            if not future.done():
                future.set_result(None)

    async def wait(self, known: int, seconds: float) -> int:
        """The number of the latest event, as soon as it is not the known one, or after a while."""
        self._loop = asyncio.get_running_loop()
        if self.number == known:
            future = self._loop.create_future()
            self._waiting.add(future)
            try:
                async with asyncio.timeout(seconds):
                    await future
            except TimeoutError:
                pass
            finally:
                self._waiting.discard(future)
        return self.number


_LOOK = 2.0
"""Seconds after which it is looked whether the session is still open."""
_ALIVE = 15.0
"""Seconds after which an empty comment keeps proxies from closing a quiet connection."""


def stream_of_events(bell: Bell, is_open: Callable[[], bool]) -> StreamingResponse:
    """Tells the number of the latest event whenever there is one, while the session is open."""

    async def events() -> AsyncIterator[str]:
        known, looked, said = -1, time.monotonic(), time.monotonic()
        while True:  # until the browser hangs up, which ends this with an exception
            number = bell.number
            now = time.monotonic()
            if number != known:
                known, said = number, now
                yield f"event: changed\ndata: {number}\n\n"
            elif now - said >= _ALIVE:
                said = now
                yield ": still here\n\n"
            await bell.wait(known, _LOOK)
            if time.monotonic() - looked >= _LOOK:
                looked = time.monotonic()
                if not await run_in_threadpool(is_open):
                    yield "event: ended\ndata: \n\n"
                    return

    return StreamingResponse(
        events(), media_type="text/event-stream", headers={"X-Accel-Buffering": "no"}
    )

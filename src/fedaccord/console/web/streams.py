"""Server-sent events: a page is told that something changed, and asks for the part again."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

from fastapi import Request
from fastapi.responses import StreamingResponse

_PAUSE = 0.3
"""Seconds between two looks."""
_ALIVE = 15.0
"""Seconds after which an empty comment keeps proxies from closing a quiet connection."""


OUT = "event: out\ndata: \n\n"
"""Tells a page that its session has ended; it loads itself again, and says so."""


def stream_of(
    request: Request,
    version: Callable[[], Awaitable[str | None]],
    ends: Callable[[str], bool] = lambda _: False,
) -> StreamingResponse:
    """Tells the version of something whenever it changes, until one of them `ends` it.

    Without a version the page may not look any more.
    """

    async def events() -> AsyncIterator[str]:
        known, quiet = "", 0.0
        while not await request.is_disconnected():
            found = await version()
            if found is None:
                yield OUT
                return
            if found != known:
                known, quiet = found, 0.0
                yield f"event: changed\ndata: {found}\n\n"
                if ends(found):
                    yield "event: ended\ndata: \n\n"
                    return
            elif quiet >= _ALIVE:
                quiet = 0.0
                yield ": still here\n\n"
            await asyncio.sleep(_PAUSE)
            quiet += _PAUSE

    return StreamingResponse(
        events(), media_type="text/event-stream", headers={"X-Accel-Buffering": "no"}
    )

"""How often somebody who is not logged in may try something."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from starlette.exceptions import HTTPException
from starlette.requests import Request

_KNOWN = 10_000
"""Addresses that are remembered; the limit protects our memory."""


@dataclass
class Rate:
    """A bucket for each address, which fills with time.

    >>> now = 0.0
    >>> rate = Rate(attempts=2, seconds=10.0, clock=lambda: now)
    >>> [rate.allows("a") for _ in range(3)]
    [True, True, False]
    >>> now = 5.0
    >>> rate.allows("a"), rate.allows("a")
    (True, False)
    """

    attempts: int
    """At once."""
    seconds: float
    """Until an empty bucket is full again."""
    clock: Callable[[], float] = time.monotonic
    _buckets: dict[str, tuple[float, float]] = field(default_factory=dict)

    def allows(self, who: str) -> bool:
        """Whether this attempt is allowed; it counts if it is."""
        now = self.clock()
        left, before = self._buckets.pop(who, (float(self.attempts), now))
        left = min(self.attempts, left + (now - before) * self.attempts / self.seconds)
        allowed = left >= 1
        self._buckets[who] = (left - 1 if allowed else left, now)
        while len(self._buckets) > _KNOWN:
            del self._buckets[next(iter(self._buckets))]
        return allowed

    def check(self, request: Request) -> None:
        """Refuse a request from an address that tries too often."""
        who = request.client.host if request.client else "nobody"
        if not self.allows(who):
            wait = f"{self.seconds / self.attempts:.0f}"
            raise HTTPException(429, f"try again in {wait} s", {"Retry-After": wait})

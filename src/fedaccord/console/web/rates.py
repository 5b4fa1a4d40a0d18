"""How often somebody who is not logged in may try something."""

import ipaddress
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from starlette.exceptions import HTTPException
from starlette.requests import Request

_KNOWN = 10_000
"""Addresses that are remembered; the limit protects our memory."""
_HOUSEHOLD = 64
"""Bits of an IPv6 address that a provider gives out; whoever has them has all the addresses."""


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
        who = counted_as(request.client.host) if request.client else "nobody"
        if not self.allows(who):
            wait = f"{self.seconds / self.attempts:.0f}"
            raise HTTPException(429, f"try again in {wait} s", {"Retry-After": wait})


def counted_as(address: str) -> str:
    """Whom an address stands for: IPv6 addresses count by their network.

    >>> counted_as("192.0.2.7"), counted_as("2001:db8::1") == counted_as("2001:db8::ffff:2")
    ('192.0.2.7', True)
    >>> counted_as("::ffff:192.0.2.7"), counted_as("testclient")
    ('192.0.2.7', 'testclient')
    """
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return address
    if isinstance(found, ipaddress.IPv4Address):
        return str(found)
    if found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    return str(ipaddress.IPv6Network((found.packed, _HOUSEHOLD), strict=False))

"""Times in a room: UTC, to the second; and secrets with their digests."""

import hashlib
import secrets
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

Clock = Callable[[], datetime]

INVITATION = timedelta(days=7)
OBSERVER = timedelta(days=30)
SESSION = timedelta(hours=12)
TICKET = timedelta(minutes=1)
LINK = timedelta(minutes=10)
"""Of the coordinator's link, which a person copies from a terminal."""
CHALLENGE = timedelta(minutes=2)


def wall_clock() -> datetime:
    """The time in UTC, as databases without time zones keep it."""
    return datetime.now(UTC).replace(tzinfo=None, microsecond=0)


def spelt(at: datetime) -> str:
    """A time in a message: ISO 8601.

    >>> spelt(datetime(2026, 11, 18, 6, 10))
    '2026-11-18T06:10:00Z'
    """
    return f"{at.isoformat(timespec='seconds')}Z"


def shown(at: datetime) -> str:
    """A time on a page.

    >>> shown(datetime(2026, 11, 18, 6, 10))
    '18 Nov 2026, 06:10 UTC'
    """
    return f"{at:%-d %b %Y, %H:%M} UTC"


def new_secret() -> str:
    """43 characters that nobody can guess (256 bits)."""
    return secrets.token_urlsafe(32)


def digest_of(secret: str) -> str:
    """What the database has of a secret."""
    return hashlib.sha256(secret.encode()).hexdigest()

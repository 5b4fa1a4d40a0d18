"""Requests that take long, one at a time."""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock


class Turns:
    """Gives turns to requests, and tells each whether a newer one came while it waited."""

    def __init__(self) -> None:
        """Nobody has come yet."""
        self._turn, self._counting = Lock(), Lock()
        self.came = 0
        """How many have come."""

    @contextmanager
    def next(self) -> Iterator[bool]:
        """Wait for the turn, and have it: true if nobody came since.

        >>> with Turns().next() as newest:
        ...     newest
        True
        """
        with self._counting:
            self.came += 1
            own = self.came
        with self._turn:
            yield own == self.came

"""Looks at the ledger for everyone who watches: once for all of them, however many there are."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from fastapi import Request
from starlette.concurrency import run_in_threadpool

from fedaccord.console.room.past_slots import PastSlot, days_of, latest_slot, pace, past_slots
from fedaccord.console.room.slot_reader import SlotReader, follow, open_slot, read_slot
from fedaccord.console.room.watched_slot import WatchedSlot
from fedaccord.errors import FedaccordError
from fedaccord.ledger.access import resolved
from fedaccord.ledger.store import Ledger, read_ledger

_FRESH = 0.4
"""Seconds for which a look is good enough for everyone."""


@dataclass(frozen=True)
class Look:
    """What there was at a moment."""

    version: str
    """Changes whenever the ledger does."""
    slot: WatchedSlot | None
    """The latest slot; None: none was begun, or the ledger cannot be read."""
    entries: int = 0
    past: tuple[PastSlot, ...] = ()
    """The latest slots that are settled."""
    problem: str = ""
    """Why the ledger cannot be read, in one sentence."""


NO_LEDGER = Look("none", None)
_KEPT = 16
"""Earlier slots that are kept after they were read."""


class Follower:
    """Follows one ledger."""

    def __init__(self, place: Callable[[], str], slot_length: Callable[[], str]) -> None:
        """`place` says where the ledger is, or nothing; `slot_length` how long a slot is."""
        self._place, self._slot_length = place, slot_length
        self._lock, self._rendering = threading.Lock(), threading.Lock()
        self._open: tuple[str, Ledger] | None = None
        self._identity: tuple[int, int] = (0, 0)
        self._reader: SlotReader | None = None
        self._look, self._looked = NO_LEDGER, -_FRESH
        self._part: tuple[str, str] = ("", "")
        self._earlier: dict[tuple[int, str], WatchedSlot] = {}

    def now(self) -> Look:
        """What there is, at most a moment old; for any thread."""
        if time.monotonic() - self._looked < _FRESH:
            return self._look
        with self._lock:
            if time.monotonic() - self._looked >= _FRESH:
                self._look = self._see()
                self._looked = time.monotonic()
            return self._look

    async def version(self) -> str:
        """The same for streams: only one of them at a time asks the database."""
        if time.monotonic() - self._looked < _FRESH or self._lock.locked():
            return self._look.version
        return (await run_in_threadpool(self.now)).version

    def part(self, render: Callable[[Look], str]) -> str:
        """The live part of the page, made once for everyone who watches."""
        look = self.now()
        with self._rendering:
            if self._part[0] != look.version:
                self._part = (look.version, render(look))
            return self._part[1]

    def earlier(self, number: int) -> WatchedSlot | None:
        """A slot by its number; None: it was not begun."""
        look = self.now()
        if look.slot is not None and number == look.slot.slot:
            return look.slot
        if look.slot is None or not 1 <= number < look.slot.slot:
            return None
        with self._lock:
            ledger = self._ledger()
            last = ledger.some(1, slot=number) if ledger is not None else []
            if ledger is None or not last:
                return None
            key = (number, last[0].digest)
            if key not in self._earlier:
                reader = read_slot(ledger, number, self._days(ledger))
                if not reader.begun:
                    return None
                self._earlier[key] = reader.record()
                while len(self._earlier) > _KEPT:
                    del self._earlier[next(iter(self._earlier))]
            return self._earlier[key]

    def past(self, before: int | None) -> list[PastSlot]:
        """Settled slots before another one."""
        with self._lock:
            ledger = self._ledger()
            return [] if ledger is None else past_slots(ledger, before)

    def close(self) -> None:
        """Close the ledger."""
        with self._lock:
            self._close()

    # --- One look --------------------------------------------------------------------------

    def _see(self) -> Look:
        try:
            ledger = self._ledger()
            return NO_LEDGER if ledger is None else self._read(ledger)
        except FedaccordError as error:
            name = self._open[1].name if self._open else self._place()
            self._close()
            said = str(error).removeprefix(f"{name}: ")
            return Look(f"error {said}", None, problem=f"The ledger cannot be read: {said}")

    def _ledger(self) -> Ledger | None:
        """The open ledger; it is opened again if there is another file in its place."""
        place = self._place()
        identity = _identity(place)
        if self._open is not None and (self._open[0], self._identity) != (place, identity):
            self._close()
        if self._open is None and place:
            self._open, self._identity = (place, read_ledger(place)), identity
        return self._open[1] if self._open is not None else None

    def _close(self) -> None:
        if self._open is not None:
            self._open[1].close()
        self._open, self._reader = None, None

    def _read(self, ledger: Ledger) -> Look:
        last = ledger.last()
        if last is None:
            return NO_LEDGER
        version = f"{last.number} {last.digest[:16]}"
        if version == self._look.version:
            return self._look
        number = latest_slot(ledger)
        reader = self._reader
        if reader is None or reader.number != number or last.number < reader.last:
            reader = self._reader = open_slot(ledger, number, self._days(ledger))
            follow(reader, ledger.entries(slot=number, last=last.number))
        else:
            follow(reader, ledger.entries(first=reader.last + 1, last=last.number))
        past = tuple(past_slots(ledger))
        if not reader.begun:
            problem = f"The ledger was changed: {reader.problem}." if reader.problem else ""
            return Look(version, None, last.number, past, problem)
        return Look(version, reader.record(), last.number, past)

    def _days(self, ledger: Ledger) -> float | None:
        return days_of(self._slot_length()) or pace(ledger)


def _identity(place: str) -> tuple[int, int]:
    """Which file is there; a database elsewhere is always the same."""
    if not place or "://" in resolved(place):
        return (0, 0)
    try:
        found = Path(place).stat()
    except OSError:
        return (0, 0)
    return found.st_dev, found.st_ino


def follower_of(request: Request) -> Follower:
    """The follower of the room's ledger, one for the whole application."""
    found: Follower = request.app.state.follower
    return found

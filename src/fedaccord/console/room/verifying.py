"""Verifies the ledger while a page waits: by itself, and against copies that somebody uploads.

A long ledger takes minutes. So the work is done in a thread, one at a time, and pages ask how far
it has come. What somebody uploads is read in a process of its own; everybody compares one thing at
a time, and observers leave room for members. A comparison ends when the session does in which it
was begun, as those of an observer's link do when it is withdrawn.

Every comparison answers a question about the ledger, and some entries are not for everyone. So a
member compares its own copy only, and an observer none: with an invented copy of somebody else's,
either could try numbers until they fit.
"""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Literal

from starlette.exceptions import HTTPException

from fedaccord.checks import escaped
from fedaccord.console.room.access import Viewer
from fedaccord.console.room.database import DatabaseTrouble
from fedaccord.console.room.entries import may_read
from fedaccord.console.room.uploads import Stopped, Upload, uploaded
from fedaccord.errors import LISTED_PROBLEMS, FedaccordError, InvalidInput
from fedaccord.ledger.chain import Entry, first_difference
from fedaccord.ledger.lines import Reading, read
from fedaccord.protocol.comparison import UNSEEN
from fedaccord.protocol.verification import Verification, compare, verify
from fedaccord.summaries.ledgers import (
    about,
    record_of,
    what_holds,
    what_is_undecided,
    what_is_wrong,
)

_KEPT = 200
"""Results that are kept, each for whoever asked for it."""
_AT_ONCE = 4
"""Comparisons with uploaded copies."""
_OBSERVERS_AT_ONCE = 2
"""Those of them that observers may have begun."""
_LOOK = 1.0
"""Seconds between two looks at whether a session is still open."""
_BUSY = 429


@dataclass(frozen=True)
class Outcome:
    """What came of it, in words."""

    at: str
    """When it was finished, in UTC."""
    holds: bool
    about: str
    lines: tuple[str, ...]
    record: dict[str, Any]
    """The same as `ledger verify` prints as JSON."""
    entries: int = 0


@dataclass
class Job:
    """A verification that was begun."""

    state: Literal["running", "done", "failed"] = "running"
    length: int = 0
    """About how many entries are to be read."""
    read: int = 0
    outcome: Outcome | None = None
    problem: str = ""
    """Why there is no outcome, if it failed."""
    viewer: Viewer | None = None
    """Who compares copies; None: the ledger is verified by itself, for everybody."""
    stopped: bool = False
    """Whether nobody waits for it any more."""

    @property
    def percent(self) -> int:
        """How far it has come."""
        return min(99, 100 * self.read // self.length) if self.length else 0


class Verifying:
    """All verifications of one room's ledger."""

    def __init__(self, place: Callable[[], str], is_open: Callable[[Viewer], bool]) -> None:
        """`place` says where the ledger is, or nothing; `is_open` whether a session still is."""
        self._place, self._is_open = place, is_open
        self._lock = threading.Lock()
        self._whole: Job | None = None
        self._against: dict[str, Job] = {}

    @property
    def whole(self) -> Job | None:
        """The latest verification of the ledger by itself."""
        return self._whole

    def against(self, session: str) -> Job | None:
        """The latest comparison that somebody asked for."""
        return self._against.get(session)

    def verify(self, wait: float) -> Job:
        """Verify the ledger, or join whoever does so already; after `wait` seconds it goes on."""
        with self._lock:
            job = self._whole
            if job is None or job.state != "running":
                job = self._whole = Job()
                self._begin(job, lambda: self._check(job))
        return _waited(job, wait)

    def compare(self, viewer: Viewer, files: Sequence[Upload], wait: float) -> Job:
        """Compare the ledger with copies, for one person."""
        session = viewer.session
        with self._lock:
            self._check_busy(viewer)
            job = Job(viewer=viewer)
            self._against.pop(session, None)
            self._against[session] = job
            while len(self._against) > _KEPT:
                del self._against[next(iter(self._against))]
            self._begin(job, lambda: self._check_against(job, viewer, files))
            threading.Thread(target=self._watch, args=(job,), daemon=True, name="watching").start()
        return _waited(job, wait)

    def _check_busy(self, viewer: Viewer) -> None:
        """Refuse a comparison if this person's own, or those of others, take all there is."""
        running = [
            one.viewer
            for one in self._against.values()
            if one.state == "running" and one.viewer is not None
        ]
        if viewer.link in [one.link for one in running]:
            raise HTTPException(_BUSY, "your comparison before this is not finished; wait for it")
        of_observers = sum(one.role == "observer" for one in running)
        full = viewer.role == "observer" and of_observers >= _OBSERVERS_AT_ONCE
        if full or len(running) >= _AT_ONCE:
            raise HTTPException(_BUSY, "others compare their copies; try again in a minute")

    def _watch(self, job: Job) -> None:
        """Stop a comparison when the session ends in which it was begun."""
        while job.state == "running" and job.viewer is not None:
            with suppress(DatabaseTrouble):  # it is seen when the database is back
                job.stopped = not self._is_open(job.viewer)
            time.sleep(_LOOK)

    def _begin(self, job: Job, work: Callable[[], Outcome]) -> None:
        def run() -> None:
            try:
                job.outcome = work()
                job.state = "done"
            except FedaccordError as error:
                job.problem, job.state = escaped(self._without_place(error)), "failed"
            except Exception:
                job.problem = "something broke here; what it was is in this program's log"
                job.state = "failed"
                raise

        threading.Thread(target=run, daemon=True, name="verifying").start()

    def _without_place(self, error: FedaccordError) -> str:
        place = self._place()
        return str(error).removeprefix(f"{place}: ") if place else str(error)

    def _check(self, job: Job) -> Outcome:
        with read(self._ledger) as reading:
            result = verify(_counted(reading, job, passes=1))
            return _outcome(result, [], models=reading.models is not None)

    def _check_against(self, job: Job, viewer: Viewer, files: Sequence[Upload]) -> Outcome:
        place = self._ledger
        with uploaded(files, lambda: not job.stopped) as given, read(place) as reading:
            copies = {name: _stoppable(one, job) for name, one in given.items()}
            _refuse_others(copies, viewer)
            watched = _stoppable(_counted(reading, job, passes=3), job)
            return _compared(watched, copies, models=reading.models is not None)

    @property
    def _ledger(self) -> str:
        place = self._place()
        if not place:
            raise FedaccordError("there is no ledger yet")
        return place


def _waited(job: Job, seconds: float) -> Job:
    end = time.monotonic() + seconds
    while job.state == "running" and time.monotonic() < end:
        time.sleep(0.02)
    return job


def _counted(ledger: Reading, job: Job, passes: int) -> Reading:
    """The same ledger; the job knows how many of its entries were read."""
    job.length = passes * ledger.length()

    def counted(found: Iterator[Entry]) -> Iterator[Entry]:
        for entry in found:
            job.read += 1
            yield entry

    return replace(
        ledger,
        entries=lambda: counted(ledger.entries()),
        entries_from=lambda number: counted(ledger.entries_from(number)),
    )


def _stoppable(ledger: Reading, job: Job) -> Reading:
    """The same ledger, until nobody waits any more for what is read in it."""

    def while_wanted(found: Iterator[Entry]) -> Iterator[Entry]:
        for entry in found:
            if job.stopped:
                raise Stopped
            yield entry

    return replace(
        ledger,
        entries=lambda: while_wanted(ledger.entries()),
        entries_from=lambda number: while_wanted(ledger.entries_from(number)),
    )


def _compared(ledger: Reading, given: dict[str, Reading], *, models: bool) -> Outcome:
    """The ledger against members' copies, and against what somebody exported earlier."""
    own = {name: one for name, one in given.items() if _is_copy(one)}
    exports = {name: one for name, one in given.items() if name not in own}
    result = verify(ledger, own)
    problems, said = list(result.problems), list[str]()
    for name, one in exports.items():
        difference = first_difference(ledger.entries(), one.entries())
        if difference is None:
            length = sum(1 for _ in one.entries())
            said.append(f"All {length:,} entries of {name} are in the ledger, unchanged.")
        else:
            problems.append(f"{name}: {difference}")
    intact = {name: one for name, one in own.items() if not _blamed(name, result.problems)}
    said += [f"{name} agrees with it." for name in intact]
    if len(own) > 1:
        together = compare(own)
        problems += [one for one in together.problems if one not in problems]
        if not together.problems:
            said += ["The copies tell the same story.", f"This does not find {UNSEEN}."]
    return _outcome(replace(result, problems=problems), said, models=models)


def _refuse_others(given: dict[str, Reading], viewer: Viewer) -> None:
    """Refuse files with which somebody could try what only others may read."""
    if viewer.role == "coordinator":
        return
    for name, one in given.items():
        if _is_copy(one):
            if any(entry.client != viewer.client for entry in one.entries()):
                raise InvalidInput(
                    f"{name}: is another member's copy, which only that member and the "
                    "coordinator can compare here"
                )
        elif not all(may_read(entry, viewer) for entry in one.entries()):
            raise InvalidInput(
                f"{name}: has members' reports, which you do not see here; compare the ledger as "
                "you downloaded it yourself"
            )


def _is_copy(reading: Reading) -> bool:
    first = next(reading.entries(), None)
    return first is not None and first.client is not None


def _blamed(name: str, problems: Sequence[str]) -> bool:
    return any(one.startswith(f"{name}: ") for one in problems)


def _outcome(result: Verification, more: Sequence[str], *, models: bool) -> Outcome:
    wrong = what_is_wrong(result)
    good = [] if wrong else what_holds(result, models=models, noun="member")
    lines = [*wrong[:LISTED_PROBLEMS], *good, *more, *what_is_undecided(result)]
    if len(wrong) > LISTED_PROBLEMS:
        lines.append(f"And {len(wrong) - LISTED_PROBLEMS:,} more.")
    if proved := sum(proof.holds for proof in result.proofs):
        lines.append(f"Two statements with one author's signature prove it in {proved} cases.")
    at = datetime.now(UTC).isoformat(timespec="seconds")
    said = about(result)
    return Outcome(
        at,
        not wrong,
        escaped(said[0].upper() + said[1:]),
        tuple(map(escaped, lines)),
        record_of(result),
        result.chain.length,
    )

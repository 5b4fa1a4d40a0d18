"""Processes that are started together and ended together, whatever happens in between.

A program may start others in sessions of their own, which go on when it is killed. So everything
that descends from what was started is known by process number and start time (numbers are used
again), and can be kept in a file for whoever comes after a crash. This needs Linux's /proc;
elsewhere only the programs themselves are ended, and their process groups.
"""

import json
import os
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from types import FrameType, TracebackType
from typing import NamedTuple

from fedaccord.atomic import write_whole
from fedaccord.errors import FedaccordError

_PAUSE = 0.1
_END = 10.0
"""Seconds that a process has to end by itself."""
_REST = 5.0
"""Seconds that what it started has then, which has nothing left to do."""
_LINES = 5
"""Of a log, in a message."""
_PROC = Path("/proc")
_LOOK = 1.0
"""Seconds between two looks at what a running program has started."""
STOPS = tuple(
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
)
"""The signals with which people and the system ask a program to end."""


class Processes:
    """A context: what was started in it is ended when it is left, the last one first."""

    def __init__(
        self,
        logs: Path,
        asked: Callable[[], bool] = lambda: False,
        record: Path | None = None,
    ) -> None:
        """Each process writes to a file of its own in `logs`.

        `asked` says whether somebody asked to end: then nothing is waited for any more. `record` is
        a file that says what runs as long as this context does, for `end_left_behind`.
        """
        self.logs, self._asked = logs, asked
        self._record = record
        self._stack = ExitStack()
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self._known: frozenset[Known] = frozenset()
        self._looked = -_LOOK

    def __enter__(self) -> "Processes":
        self.logs.mkdir(parents=True, exist_ok=True)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._note(now=True)
        for process in self._running.values():  # all at once, and then one after the other
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)
        self._stack.close()
        end_all(self._known, _REST)
        if self._record is not None:
            self._record.unlink(missing_ok=True)

    def start(
        self, name: str, words: Sequence[str], *, folder: Path, environment: Mapping[str, str]
    ) -> None:
        """Start a program in a group of its own, so that Ctrl-C is for us and not for it."""
        with self._log(name).open("ab") as log, _undivided():
            process = subprocess.Popen(
                list(words),
                cwd=folder,
                env=dict(environment),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            self._stack.callback(end, process)
            self._running[name] = process
            self._note(now=True)

    def wait(self, name: str, ready: Callable[[], bool], seconds: float) -> None:
        """Wait until a process is ready; an error says what it wrote if it ends, or takes long."""
        end = time.monotonic() + seconds
        while not ready():
            self.check()
            if time.monotonic() > end:
                raise FedaccordError(
                    f"{name} was not ready after {seconds:.0f} s{self._said(name)}"
                )
            time.sleep(_PAUSE)

    def check(self) -> None:
        """Refuse to go on if a process has ended, or if somebody asked to end."""
        if self._asked():
            raise FedaccordError("was asked to end")
        self._note()
        for name in self._running:
            if (ended := self.ended(name)) is not None:
                raise FedaccordError(ended)

    def ended(self, name: str) -> str | None:
        """How a process ended that was not asked to; None if it runs."""
        code = self._running[name].poll()
        if code is None:
            return None
        if code < 0:  # what it wrote last does not say why
            return f"{name} was killed by signal {-code}"
        return f"{name} ended by itself{self._said(name)}"

    def left_by(self, name: str) -> frozenset["Known"]:
        """What a process that has ended had started, and what still runs."""
        others = {process.pid for one, process in self._running.items() if one != name}
        rest = family(others)
        return frozenset(one for one in self._known - rest if one.runs)

    def _note(self, *, now: bool = False) -> None:
        """Take down what has been started by now."""
        if not now and time.monotonic() < self._looked + _LOOK:
            return
        self._looked = time.monotonic()
        roots = {process.pid for process in self._running.values() if process.poll() is None}
        numbers = roots | {one.number for one in self._known if one.runs}
        known = family(numbers)
        if known == self._known:
            return
        self._known = known
        if self._record is not None:
            own = _known_by(os.getpid())
            lines = [[one.number, one.started, one.name] for one in sorted(known)]
            text = json.dumps({"by": None if own is None else list(own), "processes": lines})
            with suppress(OSError):  # of a full disk others will hear
                write_whole(self._record, text.encode(), private=True)

    def _log(self, name: str) -> Path:
        return self.logs / f"{name}.log"

    def _said(self, name: str) -> str:
        lines = self._log(name).read_text("utf-8", "replace").strip().splitlines()[-_LINES:]
        return ": " + " / ".join(lines) if lines else ""


@contextmanager
def _undivided() -> Iterator[None]:
    """Nobody's signal comes between a program's start and our knowing of it."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:  # noqa: ARG001
        came.append(number)

    before = {kind: signal.signal(kind, note) for kind in STOPS}
    try:
        yield
    finally:
        for kind, handler in before.items():
            signal.signal(kind, signal.SIG_DFL if handler is None else handler)
        for number in came:
            signal.raise_signal(number)


# --- Processes that descend from others ----------------------------------------------------


class Known(NamedTuple):
    """A process, which has its number for itself only as long as it runs."""

    number: int
    started: str
    """When it started: since which start of the machine, and how long after it."""
    name: str

    @property
    def runs(self) -> bool:
        """Whether it has not ended yet."""
        return self.started == _started(self.number)


def family(numbers: Iterable[int]) -> frozenset[Known]:
    """The processes with these numbers, and all that descend from them."""
    children: dict[int, list[int]] = {}
    for path in _PROC.glob("[0-9]*"):
        if (fields := _fields(int(path.name))) is not None:
            children.setdefault(int(fields[_PARENT]), []).append(int(path.name))
    found: dict[int, Known] = {}
    left = list(numbers)
    while left:
        number = left.pop()
        if number not in found and (one := _known_by(number)) is not None:
            found[number] = one
            left += children.get(number, [])
    return frozenset(found.values())


def end_all(processes: Iterable[Known], seconds: float = _END) -> list[Known]:
    """End processes that are not our own children, by force if it takes longer than this.

    Returns those that did not end.
    """
    left = [one for one in processes if one.runs]
    for kind in (signal.SIGTERM, signal.SIGKILL):
        for one in left:
            if one.runs:
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(one.number, kind)
        limit = time.monotonic() + seconds
        while (left := [one for one in left if one.runs]) and time.monotonic() < limit:
            time.sleep(_PAUSE)
    return left


def end_left_behind(record: Path, say: Callable[[str], None]) -> None:
    """End what an earlier context with this record left behind, which was killed.

    If that context still exists, that is an error.
    """
    try:
        kept = json.loads(record.read_text("utf-8"))
        by, known = kept["by"], [Known(*one) for one in kept["processes"]]
        owner = None if by is None else Known(*by)
    except (OSError, ValueError, LookupError, TypeError):
        return
    if owner is not None and owner.runs:
        raise FedaccordError(f"the server runs already, as process {owner.number}")
    end_orphans(family(one.number for one in known if one.runs), say)
    record.unlink(missing_ok=True)


def end_orphans(orphans: Iterable[Known], say: Callable[[str], None]) -> None:
    """End processes whose parent was killed, and say what is waited for."""
    if not (left := sorted(orphans)):
        return
    say(f"waiting for {_in_words(left)} to end: left behind by a server that was killed")
    if still := end_all(left):
        raise FedaccordError(f"{_in_words(still)} cannot be ended: end it, and start again")


def _in_words(processes: Iterable[Known]) -> str:
    return ", ".join(f"{one.name} (process {one.number})" for one in processes)


_STATE, _PARENT, _STARTED = 0, 1, 19
"""Places in /proc/NUMBER/stat, after the name."""


def _fields(number: int) -> list[str] | None:
    try:
        text = (_PROC / str(number) / "stat").read_text("utf-8", "replace")
    except OSError:
        return None
    return text.rpartition(")")[2].split()  # a name may have anything in it


def _started(number: int) -> str | None:
    """When the process that has this number now started, unless it has ended."""
    fields = _fields(number)
    if fields is None or fields[_STATE] in ("Z", "X"):
        return None
    boot = (_PROC / "sys/kernel/random/boot_id").read_text("ascii").strip()
    return f"{boot} {fields[_STARTED]}"


def _known_by(number: int) -> Known | None:
    started = _started(number)
    try:
        words = (_PROC / str(number) / "cmdline").read_bytes().split(b"\0")
    except OSError:
        return None
    # of a Python program the second word is its name; of `nginx: worker process` the first is all
    names = [Path(word.decode("utf-8", "replace").split(":")[0]).name for word in words[:2]]
    name = names[-1] if names[0].startswith("python") else names[0]
    return None if started is None else Known(number, started, name)


def end(process: subprocess.Popen[bytes], seconds: float = _END) -> None:
    """End a process and everything that it started; by force, if it takes longer than this."""
    for kind in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, kind)
            process.wait(timeout=seconds)
        except ProcessLookupError:
            break
        except subprocess.TimeoutExpired:
            continue
    process.wait()


def listens(host: str, port: int) -> bool:
    """Whether anything accepts connections there."""
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        probe.settimeout(1.0)
        return probe.connect_ex((host, port)) == 0


def free_ports(count: int) -> list[int]:
    """Different ports of this machine that nobody listens at."""
    with ExitStack() as stack:
        found = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in found:
            one.bind(("127.0.0.1", 0))
        return [int(one.getsockname()[1]) for one in found]

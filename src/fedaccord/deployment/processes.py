"""Processes that are started together and ended together, whatever happens in between."""

import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from types import TracebackType

from fedaccord.errors import FedaccordError

_PAUSE = 0.1
_END = 10.0
"""Seconds that a process has to end by itself."""
_LINES = 5
"""Of a log, in a message."""


class Processes:
    """A context: what was started in it is ended when it is left, the last one first."""

    def __init__(self, logs: Path, asked: Callable[[], bool] = lambda: False) -> None:
        """Each process writes to a file of its own in `logs`.

        `asked` says whether somebody asked to end: then nothing is waited for any more.
        """
        self.logs, self._asked = logs, asked
        self._stack = ExitStack()
        self._running: dict[str, subprocess.Popen[bytes]] = {}

    def __enter__(self) -> "Processes":
        self.logs.mkdir(parents=True, exist_ok=True)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for process in self._running.values():  # all at once, and then one after the other
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)
        self._stack.close()

    def start(
        self, name: str, words: Sequence[str], *, folder: Path, environment: Mapping[str, str]
    ) -> None:
        """Start a program in a group of its own, so that Ctrl-C is for us and not for it."""
        with self._log(name).open("ab") as log:
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
        for name, process in self._running.items():
            if process.poll() is not None:
                raise FedaccordError(f"{name} ended by itself{self._said(name)}")

    def _log(self, name: str) -> Path:
        return self.logs / f"{name}.log"

    def _said(self, name: str) -> str:
        lines = self._log(name).read_text("utf-8", "replace").strip().splitlines()[-_LINES:]
        return ": " + " / ".join(lines) if lines else ""


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

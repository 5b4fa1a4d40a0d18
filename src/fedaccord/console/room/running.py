"""The server's processes, as the coordinator starts and stops them; they end with the room."""

import os
import re
import subprocess
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from fedaccord.deployment.kept import LONGEST, let_go, start_kept
from fedaccord.deployment.processes import end
from fedaccord.deployment.server import RUNS
from fedaccord.errors import FedaccordError

Job = Literal["server", "slots"]
JOBS: tuple[Job, ...] = get_args(Job)
PROGRAM = "fedaccord"
"""The module that is run, with the words of its command."""
_LEAD = re.compile(r"Error: |\d{4}-\d\d-\d\dT\S+\s+")
"""What a program's last words begin with, and what a sentence on a page does not."""
_SHOWN = 64 * 1024
"""Bytes of a log's end that a page shows."""


@dataclass(frozen=True)
class Standing:
    """How it stands with a process."""

    state: Literal["off", "starting", "ready", "ended"]
    """Slots do not start: they are `ready` as long as they run."""
    failed: bool = False
    """Whether it ended by itself, with an error."""
    why: str = ""
    """Why it ended: its last words, unless somebody stopped it."""

    @property
    def runs(self) -> bool:
        """Whether there is a process."""
        return self.state in ("starting", "ready")


class Running:
    """The processes of one room: the server, and slots that run on it."""

    def __init__(self, app: Path, logs: Path) -> None:
        """What the processes print is kept in `logs`."""
        self._app, self._logs = app, logs
        self._lock = threading.Lock()
        self._running: dict[Job, subprocess.Popen[bytes]] = {}
        self._stopped: set[Job] = set()

    def start_server(self) -> None:
        """Start Flower, and the proxy before it."""
        self._start("server", ["start", str(self._app)])

    def run_slots(self, last: int) -> None:
        """Run slots until this one is settled."""
        standing = self.standing("server")
        if standing.state == "starting":
            raise FedaccordError("the server is still starting; try again when it is ready")
        if not standing.runs:
            raise FedaccordError("the server does not run; start it first")
        self._start("slots", ["run", str(self._app), "--last-slot", str(last)])

    def runs(self, job: Job) -> bool:
        """Whether a process is running."""
        process = self._running.get(job)
        return process is not None and process.poll() is None

    def standing(self, job: Job) -> Standing:
        """How it stands with a process at this moment."""
        process = self._running.get(job)
        if process is None:
            return Standing("off")
        code = process.poll()
        if code is None:
            ready = job == "slots" or self._says_that_it_runs()
            return Standing("ready" if ready else "starting")
        if job in self._stopped:
            return Standing("ended", why="it was stopped")
        words = [line.strip() for line in self.said(job).splitlines() if line.strip()]
        why = _LEAD.sub("", words[-1], count=1) if words else ""
        return Standing("ended", failed=code != 0, why=why)

    @property
    def version(self) -> str:
        """Another text whenever there is something new to show."""
        parts = (f"{self.standing(job).state} {self._size(job)}" for job in JOBS)
        return ", ".join(parts)

    def stop(self, job: Job) -> None:
        """End a process, and what it started; slots end with the server."""
        if job == "server":
            self.stop("slots")
        with self._lock:
            process = self._running.get(job)
            if process is None or process.poll() is not None:
                return
            self._stopped.add(job)
        end(process, LONGEST)

    def said(self, job: Job) -> str:
        """The end of what a process printed."""
        try:
            with self._log(job).open("rb") as file:
                file.seek(0, os.SEEK_END)
                file.seek(max(0, file.tell() - _SHOWN))
                return file.read().decode("utf-8", "replace")
        except FileNotFoundError:
            return ""

    def close(self) -> None:
        """End everything."""
        self.stop("server")
        for process in self._running.values():
            let_go(process)

    def _says_that_it_runs(self) -> bool:
        return any(line.startswith(RUNS) for line in self.said("server").splitlines())

    def _log(self, job: Job) -> Path:
        return self._logs / f"{job}.log"

    def _size(self, job: Job) -> int:
        try:
            return self._log(job).stat().st_size
        except FileNotFoundError:
            return 0

    def _start(self, job: Job, words: list[str]) -> None:
        with self._lock:
            if self.runs(job):
                raise FedaccordError(f"the {job} run{'s' if job == 'server' else ''} already")
            self._logs.mkdir(mode=0o700, exist_ok=True)
            self._stopped.discard(job)
            if job in self._running:
                let_go(self._running[job])
            with self._log(job).open("wb") as log:
                self._running[job] = start_kept(PROGRAM, ["server", *words], log)

"""The room's server as a process of its own, which a test may kill."""

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from fedaccord.console.room.app import create_room
from fedaccord.console.room.serving import lock_room
from fedaccord.console.web.serving import listen, serve
from fedaccord.deployment.processes import free_ports

_START = 180.0


class RoomProcess:
    """`fedaccord room serve` on a port that stays the same."""

    def __init__(self, directory: Path, log: Path, *options: str) -> None:
        """`log` is where it prints to."""
        self.directory, self._log, self._options = directory, log, options
        (self.port,) = free_ports(1)
        self.address = f"http://127.0.0.1:{self.port}"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it, and wait until it answers."""
        words = [sys.executable, "-m", "fedaccord", "room", "serve", str(self.directory)]
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [*words, "--port", str(self.port), "--no-browser", *self._options],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        self._wait(lambda: self._process is not None and self._process.poll() is None)

    def _wait(self, runs: Callable[[], bool]) -> None:
        end = time.monotonic() + _START
        while True:
            try:
                self._ask()
            except httpx.TransportError:
                said = self._log.read_text("utf-8") if self._log.exists() else ""
                assert runs(), said
                assert time.monotonic() < end, said
                time.sleep(0.02)
            else:
                return

    def _ask(self) -> None:
        scheme = "https" if "--certificate" in self._options else "http"
        httpx.get(f"{scheme}://127.0.0.1:{self.port}/api/room", verify=False, trust_env=False)

    def kill(self) -> None:
        """As a power cut would."""
        if self._process is not None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait()
            self._process = None

    def stop(self) -> int:
        """As an administrator would; returns the exit code."""
        assert self._process is not None
        os.kill(self._process.pid, signal.SIGTERM)
        code = self._process.wait(30)
        self._process = None
        return code


class ForkedRoom(RoomProcess):
    """The same without the command, forked where everything is imported: it starts quickly."""

    _forks = multiprocessing.get_context("forkserver")
    _forks.set_forkserver_preload(
        ["fedaccord.console.room.app", "flwr.cli.build", "fedaccord.flower.local"]
    )
    _child: Any = None

    def start(self) -> None:
        """Start it, and wait until it answers."""
        words = (str(self.directory), self.port)
        self._child = self._forks.Process(target=serve_room, args=words, daemon=True)
        self._child.start()
        self._wait(self._child.is_alive)

    def kill(self) -> None:
        """As a power cut would."""
        if self._child is not None:
            self._child.kill()
            self._child.join()
            self._child = None


def serve_room(directory: str, port: int) -> None:
    """What the command does."""
    path = Path(directory)
    with lock_room(path) as keep, listen("127.0.0.1", port) as at:
        app = create_room(path, address=f"http://127.0.0.1:{port}")
        keep()
        serve(app, at)


@contextmanager
def room_process(
    directory: Path, log: Path, kind: type[RoomProcess] = RoomProcess
) -> Iterator[RoomProcess]:
    """Such a process, not started yet; it ends with the block."""
    process = kind(directory, log)
    try:
        yield process
    finally:
        process.kill()

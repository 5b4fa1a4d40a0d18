"""The process in which the signed app runs, seen from the node: messages in, replies out.

Flower (1.41) starts a process for every message, which imports PyTorch and reads the member's
files each time. Here one process answers all messages of a run, so the files are read once a slot;
every run gets a new one, with a new directory for the app. The two talk over a pipe: no port is
opened, and the process ends when the node does, however that ends.
"""

import os
import struct
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import mkdtemp
from typing import IO

from fedaccord.errors import FedaccordError

_COUNT, _LENGTH = struct.Struct("<I"), struct.Struct("<Q")
_PATIENCE = 2.0
"""Seconds that a process has to end after it was asked to."""


class AppEnded(FedaccordError):
    """The process ended before it answered."""


def write_parts(file: IO[bytes], parts: Sequence[bytes]) -> None:
    """Write some byte strings so that they can be read again one by one."""
    file.write(_COUNT.pack(len(parts)))
    for part in parts:
        file.write(_LENGTH.pack(len(part)))
        file.write(part)
    file.flush()


def read_parts(file: IO[bytes]) -> list[bytes] | None:
    """What `write_parts` wrote; None if the other side has ended."""
    head = _exactly(file, _COUNT.size)
    if head is None:
        return None
    parts = []
    for _ in range(_COUNT.unpack(head)[0]):
        length = _exactly(file, _LENGTH.size)
        part = None if length is None else _exactly(file, _LENGTH.unpack(length)[0])
        if part is None:
            return None
        parts.append(part)
    return parts


def _exactly(file: IO[bytes], size: int) -> bytes | None:
    found = file.read(size)
    return found if len(found) == size else None


class AppProcess:
    """A process for the app; another one for each run."""

    def __init__(self, home: Path) -> None:
        """`home` is a private directory, in which each process has one of its own."""
        self._home = home
        self._run: str | None = None
        self._process = self._start()

    def answer(self, run: str, parts: Sequence[bytes]) -> list[bytes]:
        """The reply of the process of this run; `run` names the run and its app."""
        if self._run not in (None, run) or self._process.poll() is not None:
            self.end()
            self._process = self._start()
        self._run = run
        into, out = self._process.stdin, self._process.stdout
        assert into is not None
        assert out is not None
        found = None
        with suppress(BrokenPipeError):
            write_parts(into, parts)
            found = read_parts(out)
        if found is None:
            self.end()
            raise AppEnded(f"the app's process ended (exit code {self._process.returncode})")
        return found

    def end(self) -> None:
        """End the process, and whatever it was doing."""
        process = self._process
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                with suppress(OSError):
                    stream.close()
        process.terminate()
        try:
            process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def _start(self) -> subprocess.Popen[bytes]:
        """A process that imports what apps need while it waits for its first message."""
        home = mkdtemp(prefix="run-", dir=self._home)
        return subprocess.Popen(
            # -P: nothing is imported from the directory in which the node happens to be started
            [sys.executable, "-P", "-m", "fedaccord.flower.app_worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=os.environ | {"FLWR_HOME": home},
        )

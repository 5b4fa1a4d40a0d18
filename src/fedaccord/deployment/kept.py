"""A process that ends with the one that started it, however that one ends.

Whoever starts it holds one end of a pipe, which the system closes when that process ends, even if
it was killed with -9. The started one reads the other end, and then ends as it does on SIGTERM:
with everything that it started.
"""

import os
import runpy
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import IO

LONGEST = 30.0
"""Seconds that it has to end by itself; what it started has fewer, so that nothing is left."""


def start_kept(
    module: str, words: Sequence[str], log: IO[bytes], *, folder: Path | None = None
) -> "subprocess.Popen[bytes]":
    """Run a module as a program in a group of its own; what it prints goes to a log."""
    return subprocess.Popen(
        [sys.executable, "-m", __name__, module, *words],
        cwd=folder,
        stdin=subprocess.PIPE,  # ours is the end that is closed with us
        stdout=log,
        stderr=subprocess.STDOUT,
        start_new_session=True,  # Ctrl-C is for us
    )


def let_go(process: "subprocess.Popen[bytes]") -> None:
    """Close our end of the pipe; it ends then, if it has not ended yet."""
    if process.stdin is not None:
        process.stdin.close()


def _watch(pipe: int) -> None:
    while os.read(pipe, 1):
        pass
    os.killpg(0, signal.SIGTERM)
    time.sleep(LONGEST)
    os.killpg(0, signal.SIGKILL)


def _main(module: str, *words: str) -> None:
    pipe = os.dup(0)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)  # nothing that is started from here reads the pipe
    os.close(nothing)
    threading.Thread(target=_watch, args=(pipe,), daemon=True).start()
    sys.argv = [module, *words]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    _main(*sys.argv[1:])

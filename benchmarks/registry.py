"""The benchmarks by name. Each is a module of this package with a function `run`.

`python -m benchmarks.registry NAME` runs one and writes its rows to the standard output, one JSON
object a line, each as soon as it is known. Whatever else is printed goes to the standard error.
"""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from tempfile import TemporaryFile

from benchmarks.row import Row, failed

NAMES = (
    "equilibrium",
    "individual",
    "uniform",
    "batch",
    "law",
    "ranges",
    "monitoring",
    "suspension",
    "misreport",
    "play",
    "nashopt",
    "figures",
    "detection",
    "flower",
    "deployment",
    "room",
    "workshop",
    "verify",
    "audits",
    "training",
    "training_pfl",
    "training_flower",
    "value",
    "study",
    "simulated_calibrations",
    "predictions",
    "start_up",
)


def find(name: str) -> Callable[[], Iterable[Row]]:
    """The `run` function of a benchmark."""
    run: Callable[[], Iterable[Row]] = import_module(f"benchmarks.{name}").run
    return run


def run_apart(name: str) -> Iterator[Row]:
    """The rows of a benchmark that runs in a process of its own, as they come.

    If it fails, the last row says why.
    """
    command = [sys.executable, "-m", "benchmarks.registry", name]
    with (
        TemporaryFile("w+", encoding="utf-8", errors="replace") as printed,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=printed, text=True) as process,
    ):
        assert process.stdout is not None
        try:
            for line in process.stdout:
                yield Row.from_json(json.loads(line))
            if code := process.wait():
                printed.seek(0)
                yield failed(name, _why(code, printed.read()))
        finally:
            process.kill()  # if nobody waits for its rows any more


def _why(code: int, printed: str) -> str:
    """Why a process ended with this exit code: the error's first line, or the signal."""
    if code < 0:
        return f"failed: its process was ended by {signal.Signals(-code).name}"
    _, _, traceback = printed.rpartition("Traceback (most recent call last):")
    error = next((line for line in traceback.splitlines() if line[:1].strip()), "")
    return f"failed: {error.rstrip('.')}" if error else f"failed: its process ended with {code}"


def _run_here(name: str) -> None:
    """Write the rows to the standard output, and whatever else is printed to the standard error."""
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as output:
        os.dup2(2, 1)
        for row in find(name)():
            print(json.dumps(row.as_json()), file=output, flush=True)


if __name__ == "__main__":
    _run_here(sys.argv[1])

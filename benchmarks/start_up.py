"""How fast the command line starts, against importing the library that it is built on."""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.measure import Contestant, children_time, race
from benchmarks.row import Row, slower

REPEATS = 15
WHAT, AGAINST = "`fedaccord --help`", 'python -c "import typer"'


def run() -> list[Row]:
    command = Path(sys.executable).parent / "fedaccord"
    if not command.exists() or not _runs([str(command), "--help"]):
        return [Row("start_up", WHAT, AGAINST, note=f"skipped: {WHAT} does not run here")]
    ours, theirs = race(
        Contestant(lambda _: _run([str(command), "--help"]), cpu_clock=children_time),
        Contestant(lambda _: _run([sys.executable, "-c", "import typer"]), cpu_clock=children_time),
        repeats=REPEATS,
        take="median",
    )
    return [slower("start_up", WHAT, AGAINST, ours, theirs, target=2.0)]


def _run(command: Sequence[str]) -> None:
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def _runs(command: Sequence[str]) -> bool:
    return subprocess.run(command, check=False, capture_output=True).returncode == 0

"""Runs the benchmarks, each in a process of its own, and prints and keeps the rows as they come."""

import argparse
import json
import os
import platform
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import scipy
from rich.console import Console
from rich.table import Table

import fedaccord as fa
from benchmarks.measure import Timing
from benchmarks.registry import NAMES, run_apart
from benchmarks.row import Row
from fedaccord.atomic import write_whole

_PIPED_WIDTH = 140
"""Width of the table in characters if the output is not a terminal."""
_COLUMNS = {"Ours": 13, "Theirs": 13, "Wall": 11, "CPU": 11, "Target": 11, "Met": 3}
"""The width of each column with a number, the same in every row."""


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit code: 1 if a benchmark failed."""
    parser = argparse.ArgumentParser(prog="benchmarks", description=__doc__)
    parser.add_argument(
        "--only", metavar="NAME", action="append", choices=NAMES, help="run only this one"
    )
    parser.add_argument("--output", metavar="FILE", type=Path, help="the JSON file to write")
    options = parser.parse_args(arguments)
    console = Console() if sys.stdout.isatty() else Console(width=_PIPED_WIDTH)
    console.print("Side by side, in one run: " + described(machine()), highlight=False)
    rows: list[Row] = []
    names = options.only or NAMES
    for n, name in enumerate(names):
        with console.status(f"{name} ..."):
            for row in run_apart(name):
                rows.append(row)
                _print(console, row, first=len(rows) == 1)
                _keep(options.output, rows, names[n:])
        _keep(options.output, rows, names[n + 1 :])
    missed = sum(row.met is False for row in rows)
    judged = sum(row.met is not None for row in rows)
    console.print(f"{judged - missed} of {judged} targets are met.", highlight=False)
    broken = [row.benchmark for row in rows if row.failed]
    if broken:
        console.print(f"{len(broken)} of {len(names)} benchmarks failed: {', '.join(broken)}.")
    return 1 if broken else 0


def _keep(output: Path | None, rows: Sequence[Row], unfinished: Sequence[str]) -> None:
    """Write the rows so far to the JSON file, if there is to be one."""
    if output is None:
        return
    output.parent.mkdir(parents=True, exist_ok=True)
    report = {
        "machine": machine(),
        "unfinished": list(unfinished),
        "rows": [row.as_json() for row in rows],
    }
    write_whole(output, (json.dumps(report, indent=2) + "\n").encode())


def machine() -> dict[str, Any]:
    """What the numbers depend on; nothing that identifies the machine."""
    return {
        "cores": os.cpu_count(),
        "architecture": platform.machine(),
        "system": platform.system(),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "fedaccord": fa.__version__,
    }


def described(facts: dict[str, Any]) -> str:
    """The machine as text."""
    return ", ".join(f"{key} {value}" for key, value in facts.items())


def _print(console: Console, row: Row, *, first: bool) -> None:
    """Print a row of the table, below the headings if it is the first one, and its note."""
    table = Table(show_header=first, expand=True)
    for heading in ("What", "Against"):
        table.add_column(heading, ratio=2)
    for heading, width in _COLUMNS.items():
        table.add_column(heading, justify="right", width=width)
    table.add_row(
        row.what,
        row.against,
        _time(row.ours),
        _time(row.theirs),
        _number(row.value, row.unit),
        _number(row.cpu_ratio, row.unit),
        f"{row.sense}\n{_number(row.target, row.unit)}" if row.target else "–",
        {True: "yes", False: "NO", None: "–"}[row.met],
    )
    console.print(table)
    if row.note:
        console.print(f"{row.benchmark}: {row.what}: {row.note}.", highlight=False, markup=False)


def _number(value: float | None, unit: str) -> str:
    if value is None:
        return "–"
    digits = 0 if value >= 100 else 1 if value >= 10 else 2
    return f"{value:,.{digits}f} {unit}"


def _time(timing: Timing | None) -> str:
    """The time in a suitable unit, and whether it is the minimum or the median of the repeats."""
    if timing is None:
        return "–"
    units = (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6))
    unit, size = next((one for one in units if timing.wall >= one[1]), units[-1])
    about = "~" if timing.measured < 1.0 else ""
    return f"{about}{timing.wall / size:,.3g} {unit}\n{timing.take} of {timing.repeats}"


if __name__ == "__main__":
    sys.exit(main())

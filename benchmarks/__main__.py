"""Runs the benchmarks, prints them as a table and writes them to a file."""

import argparse
import json
import os
import platform
import sys
from pathlib import Path
from typing import Any

import numpy as np
import scipy
from rich.console import Console
from rich.table import Table

import fedaccord as fa
from benchmarks.measure import Timing
from benchmarks.registry import NAMES, find
from benchmarks.row import Row

_PIPED_WIDTH = 140
"""Width of the table in characters if the output is not a terminal."""


def main() -> None:
    parser = argparse.ArgumentParser(prog="benchmarks", description=__doc__)
    parser.add_argument(
        "--only", metavar="NAME", action="append", choices=NAMES, help="run only this one"
    )
    parser.add_argument("--output", metavar="FILE", type=Path, help="the JSON file to write")
    options = parser.parse_args()
    console = Console() if sys.stdout.isatty() else Console(width=_PIPED_WIDTH)
    rows: list[Row] = []
    for name in options.only or NAMES:
        with console.status(f"{name} ..."):
            rows += find(name)()
    console.print(_table(rows))
    for row in rows:
        if row.note:
            console.print(f"{row.benchmark}: {row.what}: {row.note}.", highlight=False)
    missed = sum(row.met is False for row in rows)
    judged = sum(row.met is not None for row in rows)
    console.print(f"{judged - missed} of {judged} targets are met.", highlight=False)
    if options.output:
        options.output.parent.mkdir(parents=True, exist_ok=True)
        report = {"machine": machine(), "rows": [row.as_json() for row in rows]}
        options.output.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")


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


def _table(rows: list[Row]) -> Table:
    facts = machine()
    caption = ", ".join(f"{key} {value}" for key, value in facts.items())
    table = Table(title="Side by side, in one run", caption=caption, show_lines=True)
    for heading in ("What", "Against"):
        table.add_column(heading, ratio=2)
    for heading in ("Ours", "Theirs", "Wall", "CPU", "Target", "Met"):
        table.add_column(heading, justify="right")
    for row in rows:
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
    return table


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
    main()

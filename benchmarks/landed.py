"""Whether a change has made fedaccord slower: CPU times as ratios, compared with those that landed.

`make bench-check` runs the cheap benchmarks and compares the ratios of CPU times with those in
`landed.json`. A row whose speed has fallen by more than 30 % is measured again, and fails if it has
in three runs. `make bench-check ARGS=--renew` measures three times and writes the medians into the
file: for new rows, for a change that is faster, or for one that is slower for a good reason.
"""

import argparse
import json
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.__main__ import described, machine
from benchmarks.equilibrium import QUICK_SORT
from benchmarks.registry import run_apart
from benchmarks.row import Row
from fedaccord.atomic import write_whole

FILE = Path(__file__).with_name("landed.json")
CHEAP = (
    "equilibrium",
    "individual",
    "uniform",
    "figures",
    "law",
    "monitoring",
    "suspension",
    "misreport",
    "play",
)
"""They take less than a minute together."""
RUNS = 3
FALL = 0.3
"""The part of its speed that a row may lose: more than what another run of the same code does."""
_OTHER_MACHINES = {QUICK_SORT}
"""What is several times as fast on some processors, so that ratios to it are not compared."""

Key = tuple[str, str, str]
"""The benchmark, what was timed, and against what."""
Measure = Callable[[str], Iterable[Row]]
"""The rows of a benchmark."""


@dataclass(frozen=True)
class Landed:
    """The ratios that landed last, and the machine that they were measured on."""

    machine: dict[str, Any]
    ratios: dict[Key, float]

    @classmethod
    def read(cls, path: Path) -> "Landed":
        """From the file."""
        found = json.loads(path.read_text("utf-8"))
        rows = found["rows"]
        ratios = {(r["benchmark"], r["what"], r["against"]): r["cpu_ratio"] for r in rows}
        return cls(found["machine"], ratios)

    def write(self, path: Path) -> None:
        """To the file, atomically."""
        rows = [
            {"benchmark": benchmark, "what": what, "against": against, "cpu_ratio": round(ratio, 4)}
            for (benchmark, what, against), ratio in self.ratios.items()
        ]
        text = json.dumps({"machine": self.machine, "rows": rows}, indent=2, ensure_ascii=False)
        write_whole(path, f"{text}\n".encode())


def compared(rows: Iterable[Row]) -> dict[Key, Row]:
    """The rows whose ratios of CPU times are compared."""
    return {
        (row.benchmark, row.what, row.against): row
        for row in rows
        if row.cpu_ratio is not None and row.against not in _OTHER_MACHINES
    }


def fallen(row: Row, landed: float) -> float:
    """The part of its speed that a row has lost; less than 0 if it has become faster."""
    assert row.cpu_ratio is not None
    slower = row.sense == "at most"  # the ratio is our time to theirs, otherwise theirs to ours
    return 1.0 - (landed / row.cpu_ratio if slower else row.cpu_ratio / landed)


def check(landed: Landed, measure: Measure = run_apart, names: Sequence[str] = CHEAP) -> list[str]:
    """What is wrong, a sentence each: rows that have fallen in every run, and rows not compared."""
    wrong: list[str] = []
    lost: dict[Key, list[float]] = {}
    for run in range(RUNS):
        again = [name for name in names if run == 0 or any(key[0] == name for key in lost)]
        rows = [row for name in again for row in measure(name)]
        wrong += [f"{row.benchmark} {row.note}." for row in rows if row.failed]
        found = compared(rows)
        if run == 0:
            wrong += _not_in_both(set(landed.ratios), set(found))
            lost = {key: [] for key in found if key in landed.ratios}
        falls = {key: fallen(found[key], landed.ratios[key]) for key in lost if key in found}
        lost = {key: [*lost[key], fall] for key, fall in falls.items() if fall > FALL}
        for key, fall in falls.items():
            print(f"{_text(key)}: {_change(fall)}", flush=True)
        if not lost:
            break
    return wrong + [
        f"{_text(key)}: slower by {min(falls):.0%} or more in each of {RUNS} runs."
        for key, falls in lost.items()
    ]


def _not_in_both(landed: set[Key], found: set[Key]) -> list[str]:
    return [f"{_text(key)}: landed, but not measured now." for key in sorted(landed - found)] + [
        f"{_text(key)}: measured, but never landed." for key in sorted(found - landed)
    ]


def renewed(measure: Measure = run_apart, names: Sequence[str] = CHEAP) -> Landed:
    """The medians of three runs; an error if a benchmark fails."""
    runs = []
    for _ in range(RUNS):
        rows = [row for name in names for row in measure(name)]
        if broken := next((row for row in rows if row.failed), None):
            raise RuntimeError(f"{broken.benchmark} {broken.note}")
        runs.append(compared(rows))
    ratios = {key: median(float(run[key].cpu_ratio or 0.0) for run in runs) for key in runs[0]}
    return Landed(machine(), ratios)


def _text(key: Key) -> str:
    return f"{key[0]}: {key[1]}, against {key[2]}"


def _change(fall: float) -> str:
    return f"{abs(fall):.0%} {'slower' if fall > 0 else 'faster'} than landed"


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit code: 1 if something is slower, or was not compared."""
    parser = argparse.ArgumentParser(prog="benchmarks.landed", description=__doc__)
    parser.add_argument("--renew", action="store_true", help="write what is measured now")
    if parser.parse_args(arguments).renew:
        renewed().write(FILE)
        print(f"Written: {FILE.name}. Commit it with the reason.")
        return 0
    landed = Landed.read(FILE)
    wrong = check(landed)
    if wrong:
        print("\n".join(["", *wrong]))
        print(f"Landed: {described(landed.machine)}\nNow: {described(machine())}")
        print("If there is a good reason: make bench-check ARGS=--renew")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

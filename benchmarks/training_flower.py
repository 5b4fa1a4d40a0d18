"""Mini-batches against Flower's simulation, in which each client is a message to a Ray actor.

It runs in a process of its own, with as many actors at once as there are processors. Its rounds
are timed from the end of one to the end of the next, the first left out: in that the actors start
and load the images. What starting and ending takes is said in the note.
"""

import json
import os
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from time import perf_counter
from typing import Any

from benchmarks.measure import Timing, race
from benchmarks.row import Row, quicker

AGAINST = "Flower's simulation"
TIMED_ROUNDS = 3
_AGREE = 1e-4
"""Parameters after a round differ by no more, unless clients failed, which Flower goes on with."""
_PARTS = ("torch", "flwr", "ray")


def run() -> list[Row]:
    if any(find_spec(part) is None for part in _PARTS):
        note = "left out: it takes `make bench PEERS=1`"
        return [Row("training_flower", "mini-batches", AGAINST, note=note)]
    from benchmarks import training_setting as setting

    return [_compare(task) for task in setting.TASKS]


def _compare(task: str) -> Row:
    from benchmarks import training_setting as setting

    (ours,) = race(setting.our_engine(setting.mini_batch_plan(task)), repeats=5)
    start = perf_counter()
    report = _simulate(task)
    whole = perf_counter() - start
    if report["apart"] > _AGREE:
        raise RuntimeError(f"Flower trained something else: {report['apart']:.0e} apart")
    theirs = Timing(min(report["wall"]), min(report["cpu"]), TIMED_ROUNDS, "minimum")
    return quicker(
        "training_flower",
        f"{task}, mini-batches, {setting.CLIENTS} clients x {setting.MINI_BATCH_SAMPLES:,}",
        AGAINST,
        ours,
        theirs,
        bar=6.0,
        note=f"a round; all {TIMED_ROUNDS + 1} rounds with starting and ending take {whole:.0f} s; "
        f"after the first round the parameters differ by {report['apart']:.0e} at most",
    )


def _simulate(task: str) -> dict[str, Any]:
    """Seconds of each timed round, as the process of its own reports them on its last line."""
    command = [sys.executable, "-m", "benchmarks.training_flower_rounds", task, str(TIMED_ROUNDS)]
    with tempfile.TemporaryDirectory() as home:
        quiet = {
            "FLWR_HOME": home,
            "FLWR_TELEMETRY_ENABLED": "0",
            "RAY_USAGE_STATS_ENABLED": "0",
            "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
        }
        result = subprocess.run(
            command, check=True, capture_output=True, text=True, env=os.environ | quiet
        )
    report: dict[str, Any] = json.loads(result.stdout.splitlines()[-1])
    return report

"""Mini-batches against Flower's simulation, in which each client is a message to a Ray actor.

It runs in a separate process, with one actor per core. Rounds are timed from the end of one to the
end of the next, without the first, in which the actors start and load the images. The note gives
the time with starting and stopping.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from importlib.util import find_spec
from time import perf_counter
from typing import Any

from benchmarks.measure import Timing, race
from benchmarks.row import Row, faster

AGAINST = "Flower's simulation"
TIMED_ROUNDS = 3
_AGREE = 1e-4
"""How far parameters may differ after a round; more means that clients failed unnoticed."""
_PARTS = ("torch", "flwr", "ray")


def run() -> Iterator[Row]:
    if any(find_spec(part) is None for part in _PARTS):
        note = "skipped: needs `make bench PEERS=1`"
        yield Row("training_flower", "mini-batches", AGAINST, note=note)
        return
    from benchmarks import training_setting as setting

    for task in setting.TASKS:
        yield _compare(task)


def _compare(task: str) -> Row:
    from benchmarks import training_setting as setting

    (ours,) = race(setting.our_engine(setting.mini_batch_plan(task)), repeats=5)
    start = perf_counter()
    report = _simulate(task)
    whole = perf_counter() - start
    if report["apart"] > _AGREE:
        raise RuntimeError(f"Flower trained something else: {report['apart']:.0e} apart")
    theirs = Timing(min(report["wall"]), min(report["cpu"]), TIMED_ROUNDS, "minimum")
    return faster(
        "training_flower",
        f"{task}, mini-batches, {setting.CLIENTS} clients x {setting.MINI_BATCH_SAMPLES:,}",
        AGAINST,
        ours,
        theirs,
        target=6.0,
        note=f"one round; all {TIMED_ROUNDS + 1} with starting and stopping take {whole:.0f} s; "
        f"after the first round the parameters differ by at most {report['apart']:.0e}",
    )


def _simulate(task: str) -> dict[str, Any]:
    """Seconds of each timed round, as the separate process reports them on its last line."""
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

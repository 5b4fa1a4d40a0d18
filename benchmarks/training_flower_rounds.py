"""The process in which Flower's simulation runs: it prints how long each round took, as JSON.

CPU time is that of this process and of all its descendants, such as Ray's actors.
"""

import json
import os
import sys
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from time import perf_counter
from typing import Any

from benchmarks import training_setting as setting
from benchmarks.training_flower_client import client_app, plan_of
from fedaccord.training.vectorised.engine import VectorisedEngine

_app, _serverapp, _strategy, _simulation = map(
    import_module, ("flwr.app", "flwr.serverapp", "flwr.serverapp.strategy", "flwr.simulation")
)


def server_app(task: str, rounds: int, report: dict[str, Any]) -> Any:
    """FedAvg of all clients that records the time after each round."""
    app = _serverapp.ServerApp()
    marks: list[tuple[float, float]] = []

    def note(turn: int, arrays: Any) -> None:
        marks.append((perf_counter(), processor_time()))
        if turn == 1:
            expected = setting.final(VectorisedEngine(), plan_of(task))
            report["apart"] = setting.apart(arrays.to_torch_state_dict(), expected)
            marks[-1] = (perf_counter(), processor_time())

    @app.main()  # type: ignore[untyped-decorator]
    def main(grid: Any, context: Any) -> None:  # noqa: ARG001  Flower passes it
        _strategy.FedAvg(fraction_evaluate=0.0).start(
            grid,
            initial_arrays=_app.ArrayRecord(plan_of(task).model.start(seed=0)),
            num_rounds=rounds,
            evaluate_fn=note,
        )
        for name, place in (("wall", 0), ("cpu", 1)):
            at = [mark[place] for mark in marks[1:]]  # from the end of the first round on
            report[name] = [after - before for before, after in pairwise(at)]

    return app


def processor_time() -> float:
    """Seconds of this process and its descendants, from Linux's /proc."""
    parents, seconds = {}, {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:  # it has just ended
            continue
        parents[int(path.parent.name)] = int(fields[1])
        seconds[int(path.parent.name)] = sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
    mine = {os.getpid()}
    while more := {one for one, parent in parents.items() if parent in mine} - mine:
        mine |= more
    return sum(seconds.get(one, 0.0) for one in mine)


if __name__ == "__main__":
    found: dict[str, Any] = {}
    _simulation.run_simulation(
        server_app(sys.argv[1], int(sys.argv[2]) + 1, found),
        client_app(sys.argv[1]),
        num_supernodes=setting.CLIENTS,
        backend_config={"client_resources": {"num_cpus": 1, "num_gpus": 0.0}},
    )
    print(json.dumps(found))

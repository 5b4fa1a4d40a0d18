"""A simulation on Ray that waits after its first round: `python -m tests.flower.ray_held`.

It prints where its cluster is and how to enter it, waits for a line, ends the slot and prints so.
"""

import json
import os
import sys
from typing import Any

from fedaccord.flower.simulation import simulate, terms_for
from tests.flower.test_simulation import setting


def listening() -> list[str]:
    """The addresses at which this process and its children listen."""
    import psutil  # type: ignore[import-untyped,unused-ignore]  # Ray brings it

    family = [psutil.Process(), *psutil.Process().children(recursive=True)]
    ports = [port for member in family for port in member.net_connections("tcp")]
    return sorted({port.laddr.ip for port in ports if port.status == psutil.CONN_LISTEN})


def hold(slot: int, turn: int, _: Any) -> None:
    """Wait within the run for whoever reads what is printed."""
    if (slot, turn) != (1, 1):
        return
    import ray

    node: Any = ray._private.worker.global_worker.node
    cluster = {
        "address": ray.get_runtime_context().gcs_address,
        "token": os.environ.get("RAY_AUTH_TOKEN"),
        "session": node.get_session_dir_path(),
        "listens": listening(),
    }
    print(json.dumps(cluster), flush=True)
    sys.stdin.readline()


if __name__ == "__main__":
    consortium, course = setting()
    terms = terms_for(consortium, course, margin=0.05)
    run = simulate(consortium, course, terms, slots=1, progress=hold)
    print(json.dumps({"rounds": len(run.slots[0].rounds)}), flush=True)

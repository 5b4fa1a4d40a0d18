"""A slot on a real SuperLink with three nodes, against Flower's own FedAvg of the same rounds.

Everything runs on this machine, with TLS and node keys: a SuperLink, and three SuperNodes of
Flower's or three nodes of ours. What is timed is the server's app, from its first question to the
end of the slot; `python -m benchmarks.deployment 5` does it with 5 rounds.
"""

import json
import subprocess
import sys
import time
from datetime import datetime
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from benchmarks.measure import Timing
from benchmarks.row import Row, slower
from fedaccord.flower.fab import app_digest
from fedaccord.ledger.lines import load_entries

if TYPE_CHECKING:
    from tests.flower.deployment import Deployment

ROUNDS = 50
NAMES = ("a", "b", "c")
LONGEST = 3600.0
_IMPORTS = "import flwr.supernode.runtime.run_clientapp, torch, fedaccord.flower.client_file"
_PLAIN = Path(__file__).parent / "plain_app"
"""Flower's FedAvg, written as in Flower's own examples."""


def run(rounds: int = ROUNDS) -> list[Row]:
    against = "Flower's FedAvg on flower-supernode"
    if find_spec("pytest") is None:  # processes are started and ended as in the tests
        return [Row("deployment", "a slot", against, note="skipped: needs the test tools")]
    with TemporaryDirectory(prefix="fedaccord-bench-") as folder:
        own, amounts, gaps = _ours(Path(folder, "own"), rounds, own_nodes=True)
        flower, _, flower_gaps = _ours(Path(folder, "flower"), rounds, own_nodes=False)
        plain = _plain(Path(folder, "plain"), rounds, amounts)
    per = f"{plain / rounds:.2f} s a round of Flower's"
    return [
        slower(
            "deployment",
            f"a slot of {rounds} rounds and {len(NAMES)} members, {which}",
            against,
            Timing(seconds, None, 1, "minimum"),
            Timing(plain, None, 1, "minimum"),
            target=1.10,
            note=f"{median(found):.2f} s a round (median), {per}; starting a Python process with "
            f"its imports takes {_start_up():.2f} s",
        )
        for which, seconds, found in (
            ("our nodes", own, gaps),
            ("flower-supernode", flower, flower_gaps),
        )
    ]


def _ours(home: Path, rounds: int, *, own_nodes: bool) -> tuple[float, dict[str, int], list[float]]:
    """Seconds of a slot, what each member trained on, and the seconds between rounds."""
    from tests.flower.deployment import Deployment
    from tests.flower.test_deployment import prepared

    prepared(
        home,
        {name: 30.0 + n for n, name in enumerate(NAMES)},
        [400] * len(NAMES),
        rounds=rounds,
        training={"shape": [8, 8], "classes": 10, "task": "mlp"},
    )
    with Deployment(home) as deployment:
        _start(deployment, own_nodes=own_nodes)
        deployment.run_slots(last_slot=1, seconds=LONGEST)
    entries = load_entries(str(home / "ledger.db"))
    if missing := [one for one in entries if one.kind in ("fault", "absence")]:
        raise RuntimeError(f"{missing[0].client} did not take part: {missing[0].text}")
    at = [datetime.fromisoformat(one.at) for one in entries]
    ends = [datetime.fromisoformat(one.at) for one in entries if one.kind == "round"]
    amounts = {str(e.client): e.body["contribution"] for e in entries if e.kind == "offer"}
    gaps = [(after - before).total_seconds() for before, after in pairwise(ends)]
    return (at[-1] - at[0]).total_seconds(), amounts, gaps


def _start(deployment: "Deployment", *, own_nodes: bool) -> None:
    deployment.start_server()
    digest = app_digest(deployment.app)
    for name in NAMES:
        deployment.register(f"clients/{name}/node.pub", name)
        deployment.sign(name, digest)
        start = deployment.start_own_node if own_nodes else deployment.start_node
        start(name, name)
    time.sleep(10)  # until all are connected, and idle


def _plain(home: Path, rounds: int, amounts: dict[str, int]) -> float:
    """Seconds of Flower's FedAvg with as many rounds and samples."""
    from tests.flower.deployment import Deployment, until
    from tests.flower.test_deployment import prepared

    prepared(home, dict.fromkeys(NAMES, 30.0), [400] * len(NAMES))
    for path in (home / "fedaccord_app").iterdir():
        path.unlink()
    for name in ("server_app", "client_app"):
        text = (_PLAIN / f"{name}.py").read_text("utf-8")
        (home / "fedaccord_app" / f"{name}.py").write_text(text, "utf-8")
    (home / "fedaccord_app" / "__init__.py").touch()
    (home / "setting.json").write_text(json.dumps({"rounds": rounds, "amounts": amounts}))
    done = home / "seconds.json"
    with Deployment(home) as deployment:
        _start(deployment, own_nodes=False)
        deployment.run("flwr", "run", ".", "consortium")
        until(done.exists, LONGEST, "Flower's FedAvg")
    return float(json.loads(done.read_text()))


def _start_up() -> float:
    """Seconds until a new process has imported what it needs to answer a message."""
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", _IMPORTS], check=True)
    return time.perf_counter() - start


if __name__ == "__main__":
    for row in run(int(sys.argv[1])):
        print(f"{row.what}: {row.value:.2f} times {row.against}; {row.note}")

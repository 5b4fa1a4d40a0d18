"""What anyone who reaches the machine can do to a simulation on Ray: nothing."""

import json
import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.lies import lie

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
STRANGER = """
import sys
from pathlib import Path
import ray
ray.init(address=sys.argv[1], log_to_driver=False)
@ray.remote(num_cpus=0)
def break_in(place):
    Path(place).write_text("in")
ray.get(break_in.remote(sys.argv[2]))
"""


@pytest.fixture(scope="module")
def held() -> Iterator[tuple["subprocess.Popen[str]", dict[str, Any]]]:
    """A simulation that waits during a round, and how to reach its cluster."""
    words = [sys.executable, "-m", "tests.flower.ray_held"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(words, cwd=ROOT, text=True, **pipes) as process:  # type: ignore[call-overload]
        try:
            yield process, json.loads(process.stdout.readline())
        finally:
            if process.poll() is None:
                process.communicate("\n", timeout=120)


def break_in(address: str, place: Path, **token: str) -> subprocess.CompletedProcess[str]:
    """Run code on the cluster, as another process on this machine would."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("RAY_")}
    environment |= {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"} | token  # to go to loopback
    return subprocess.run(
        [sys.executable, "-c", STRANGER, address, str(place)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )


@lie(
    "whoever reaches the machine",
    "run code in a simulation's Ray cluster",
    "it is refused without the token, which only the simulation's own processes have",
)
def test_a_process_without_the_token_is_refused(
    held: tuple["subprocess.Popen[str]", dict[str, Any]], tmp_path: Path
) -> None:
    _, cluster = held
    wrong = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": "0" * 64}
    for k, token in enumerate([{}, wrong]):
        found = break_in(cluster["address"], tmp_path / str(k), **token)
        assert found.returncode != 0
        assert "AuthenticationError" in found.stderr
        assert not (tmp_path / str(k)).exists()


def test_a_process_with_the_token_is_admitted(
    held: tuple["subprocess.Popen[str]", dict[str, Any]], tmp_path: Path
) -> None:
    """So the attack above fails only because of the token."""
    _, cluster = held
    token = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": str(cluster["token"])}
    found = break_in(cluster["address"], tmp_path / "there", **token)
    assert found.returncode == 0, found.stderr
    assert (tmp_path / "there").read_text() == "in"


@lie(
    "whoever reaches the machine",
    "connect to a simulation's ports from another machine, or to its sockets as another user",
    "the ports are on the loopback interface, the sockets in a directory of mode 0700",
)
def test_nothing_listens_beyond_this_machine(
    held: tuple["subprocess.Popen[str]", dict[str, Any]],
) -> None:
    _, cluster = held
    assert cluster["listens"]
    assert set(cluster["listens"]) <= {"127.0.0.1", "::1", "::ffff:127.0.0.1"}
    private = Path(cluster["session"]).parents[1]
    assert stat.S_IMODE(private.stat().st_mode) == 0o700


def test_the_simulation_ends_well_after_the_attacks(
    held: tuple["subprocess.Popen[str]", dict[str, Any]],
) -> None:
    """And it leaves neither its cluster nor its files behind."""
    process, cluster = held
    answer, _ = process.communicate("\n", timeout=200)
    assert json.loads(answer.splitlines()[-1]) == {"rounds": 2}
    assert process.returncode == 0
    assert not Path(cluster["session"]).exists()


def test_a_cluster_of_the_user_is_left_alone() -> None:
    """A cluster of this process is neither used nor stopped, and the environment is restored."""
    script = """
import os, ray
from fedaccord.errors import FedaccordError
from fedaccord.flower.grids import closed_cluster
os.environ["RAY_ADDRESS"] = "192.0.2.1:6379"
os.environ["RAY_AUTH_MODE"] = "disabled"
before = dict(os.environ)
with closed_cluster() as arguments:
    with_token = os.environ["RAY_AUTH_MODE"]
    ray.init(num_cpus=1, include_dashboard=False, **arguments)
    own = ray.get_runtime_context().gcs_address
    ray.shutdown()
assert with_token == "token" and own.startswith("127.0.0.1:"), own
assert {k: v for k, v in os.environ.items() if k != "PYTHONBREAKPOINT"} == before
del os.environ["RAY_ADDRESS"]
ray.init(address="local", num_cpus=1, include_dashboard=False)
try:
    with closed_cluster():
        raise SystemExit("entered")
except FedaccordError as refused:
    print(refused)
assert ray.get(ray.remote(lambda: 5).remote()) == 5
ray.shutdown()
"""
    found = subprocess.run(
        [sys.executable, "-c", script],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert found.returncode == 0, found.stderr
    assert "call ray.shutdown() first" in found.stdout

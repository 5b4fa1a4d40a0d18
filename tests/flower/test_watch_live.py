"""`fedaccord server run` on a real SuperLink: what it shows, and its exit code."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.flower.deployment import Deployment
from tests.flower.test_deployment import NAMES, prepared


def server_run(deployment: Deployment, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "fedaccord", "server", "run", str(deployment.app), *words],
        env=deployment.environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        timeout=300,
        check=False,
    )


@pytest.mark.slow
def test_a_slot_with_two_of_three_misconfigured_is_void_and_the_next_is_trained(
    tmp_path: Path,
) -> None:
    home = prepared(tmp_path / "app", answer_seconds=60.0)
    files = {name: home / "clients" / name / "client.toml" for name in NAMES}
    right = {name: file.read_text() for name, file in files.items()}
    files["a"].write_text(right["a"].replace("valuation", "value"))  # it does not know its client
    files["b"].write_text(right["b"].replace("samples = 150", "samples = 999"))  # more than its data
    with Deployment(home) as deployment:
        refused = server_run(deployment, "--last-slot", "1")
        print(refused)
        deployment.start_server()
        for name in NAMES:
            deployment.register(f"clients/{name}/node.pub", name)
        logs = {name: deployment.start_node(name, name)[1] for name in NAMES}
        void = server_run(deployment, "--last-slot", "1")
        print(void.returncode, void.stdout, void.stderr)
        for name in NAMES:
            files[name].write_text(right[name])
        words = ("--log-format", "json", "--metrics", str(tmp_path / "metrics.prom"))
        fine = server_run(deployment, "--last-slot", "2", *words)
        print(fine.returncode, fine.stdout, fine.stderr)
        for log in logs.values():
            print(log.read_text())
    assert 0

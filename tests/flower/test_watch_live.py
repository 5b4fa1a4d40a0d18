"""`fedaccord server run` on a real SuperLink: what it shows, and its exit code."""

import json
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest

from tests.flower.deployment import Deployment
from tests.flower.test_deployment import NAMES, prepared, unreported
from tests.schemas import schemas

SERVER, MEMBER = (
    jsonschema.Draft202012Validator(schemas()[name]) for name in ("server-events", "member-events")
)


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
    home = prepared(tmp_path / "app", **unreported("individual"), answer_seconds=60.0)
    files = {name: home / "clients" / name / "client.toml" for name in NAMES}
    right = {name: file.read_text() for name, file in files.items()}
    files["a"].write_text(right["a"].replace("valuation", "value"))  # it does not know its client
    files["b"].write_text(right["b"].replace('data = "data"', 'data = "elsewhere"'))
    with Deployment(home) as deployment:
        refused = server_run(deployment, "--last-slot", "1")
        assert (refused.returncode, refused.stdout) == (2, "")
        assert refused.stderr.startswith("Error: the run could not be started: Connection to the ")
        deployment.start_server()
        for name in NAMES:
            deployment.register(f"clients/{name}/node.pub", name)
        deployment.environment["FEDACCORD_LOG_FORMAT"] = "json"
        logs = {name: deployment.start_node(name, name)[1] for name in NAMES}
        void = server_run(deployment, "--last-slot", "1")
        check_void(void)
        for name in NAMES:
            files[name].write_text(right[name])
        metrics = tmp_path / "metrics.prom"
        words = ("--last-slot", "2", "--log-format", "json", "--metrics", str(metrics))
        check_trained(server_run(deployment, *words))
        check_logs({name: log.read_text() for name, log in logs.items()})
    assert "fedaccord_slots_void_total 0.0" in metrics.read_text()
    assert 'fedaccord_client_present{client="a"} 1' in metrics.read_text()


def check_void(done: subprocess.CompletedProcess[str]) -> None:
    assert (done.returncode, done.stderr) == (1, "")
    (line,) = [line for line in done.stdout.splitlines() if "VOID: 1 of 3 clients" in line]
    assert "a (its node is connected, but cannot say whose it is)" in line
    assert "b (it failed at its own side; its own log says why)" in line
    assert "What to do: run `fedaccord member check` at a and b; then run the next slot." in line
    assert done.stdout.splitlines()[-1].endswith("the run is over: 1 slot settled; VOID: 1")


def check_trained(done: subprocess.CompletedProcess[str]) -> None:
    assert (done.returncode, done.stderr) == (0, "")
    events = [json.loads(line) for line in done.stdout.splitlines()]
    for event in events:
        SERVER.validate(event)
    kinds = [event["event"] for event in events if event["event"] not in ("waiting", "note")]
    assert kinds == [
        *("run_begins", "slot_begins", "reported", "offers", "answers", "plan", "round"),
        *("verdict", "verdict", "verdict", "settled", "run_ends"),
    ]


def check_logs(logs: dict[str, str]) -> None:
    """Each member's log has its own lines as JSON; none of them is in the server's."""
    for name, log in logs.items():
        lines = [json.loads(line) for line in log.splitlines() if line.startswith('{"event"')]
        for line in lines:
            MEMBER.validate(line)
        kinds = [line["event"] for line in lines if line.get("slot") == 2]
        assert kinds == ["member_reports", "member_offer", "member_round", "member_settled"]
        assert 0 <= lines[-1]["accuracy"] <= 1
        assert lines[-1]["stored"] == "model.npz"
        wrong = [line["message"] for line in lines if line["event"] == "member_problem"]
        assert bool(wrong) == (name in "ab")

"""A node of ours on a real SuperLink, with TLS and node keys: only the signed app is started."""

import signal
from pathlib import Path

import pytest

from fedaccord.flower.fab import app_digest
from fedaccord.ledger.lines import load_entries
from fedaccord.protocol.copies import contradictions
from fedaccord.protocol.verification import wrong_in
from tests.flower.deployment import Deployment, end, until
from tests.flower.test_deployment import NAMES, prepared
from tests.lies import lie

pytestmark = pytest.mark.slow

THEFT = """
from pathlib import Path
from flwr.app import ConfigRecord, Message, RecordDict

@app.query("stolen")
def stolen(message, context):
    text = Path(context.node_config["client-file"]).read_text()
    return Message(RecordDict({"text": ConfigRecord({"text": text})}), reply_to=message)
"""
"""What a dishonest coordinator adds to the app that members signed."""


def processes_of(group: int) -> list[int]:
    """The processes of a group, from Linux's /proc."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:  # it has just ended
            continue
        if int(fields[2]) == group and fields[0] != "Z":
            found.append(int(path.parent.name))
    return found


@lie(
    "the server",
    "change the app, on a real SuperLink, after the members have signed it",
    "no node of ours starts it, so no member takes part, and each member's log says why",
)
def test_a_slot_and_a_changed_app(tmp_path: Path) -> None:
    home = prepared(tmp_path / "app")
    signed = app_digest(home)
    with Deployment(home) as deployment:
        server = deployment.start_server()
        for name in NAMES:
            deployment.register(f"clients/{name}/node.pub", name)
            deployment.sign(name, signed)
        end(server)
        nodes = {name: deployment.start_own_node(name, name) for name in NAMES}
        logs = [log for _, log in nodes.values()]
        until(lambda: all("cannot be reached" in log.read_text() for log in logs), 60, "patience")
        deployment.start_server()
        deployment.run_slots(last_slot=1, seconds=600)
        for log in logs:
            text = log.read_text()
            assert text.count("cannot be reached") == text.count("is there again") == 1
            assert "was not started" not in text
            assert "Traceback" not in text

        app = home / "fedaccord_app" / "client_app.py"
        app.write_text(app.read_text() + THEFT)
        deployment.run("flwr", "run", ".", "consortium", "--run-config", "last-slot=2")
        until(lambda: all("was not started" in log.read_text() for log in logs), 60, "refusals")
        assert all(app_digest(home) in log.read_text() for log in logs)

        (first, _), (second, _), _ = nodes.values()
        first.terminate()
        assert first.wait(timeout=20) == 0
        second.send_signal(signal.SIGKILL)  # the app's process notices that its node is gone
        second.wait(timeout=20)
        until(lambda: not processes_of(first.pid) + processes_of(second.pid), 20, "their ends")
    entries = load_entries(str(home / "ledger.db"))
    trained = [(entry.slot, entry.client) for entry in entries if entry.kind == "contribution"]
    assert sorted(trained) == [(1, name) for name in NAMES]
    assert not wrong_in(entries)
    for name in NAMES:
        copy = load_entries(str(home / "clients" / name / "ledger.db"))
        assert not contradictions(entries, copy)

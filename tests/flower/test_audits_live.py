"""Audits on a real deployment: an honest member passes, and one that changed its data does not."""

from pathlib import Path

import numpy as np
import pytest

from fedaccord.flower.fab import app_digest
from fedaccord.signing.keys import load_key, new_key, write_key
from tests.audits.conftest import run as run  # noqa: PLC0414  a fixture
from tests.cli.conftest import Run
from tests.flower.deployment import Deployment
from tests.flower.test_deployment import NAMES, prepared


@pytest.mark.slow
def test_a_slot_is_audited_across_processes(tmp_path: Path, run: Run) -> None:
    home, key = prepared(tmp_path / "app"), tmp_path / "notary.key"
    write_key(key, new_key())
    table = f'\n[audits]\nper_slot = 3\n[audits.auditors]\nNotary = "{load_key(key).public}"\n'
    for terms in (home / "fedaccord_app", *(home / "clients" / name for name in NAMES)):
        file = terms / "terms.toml"
        file.write_text(file.read_text() + table)
    place = str(home / "ledger.db")
    with Deployment(home) as deployment:
        deployment.start_server()
        for name in NAMES:
            deployment.register(f"clients/{name}/node.pub", name)
            deployment.sign(name, app_digest(home))
            deployment.start_own_node(name, name)
        deployment.run_slots(last_slot=1, seconds=600)
    data = home / "clients" / "c" / "data" / "c.npz"
    with np.load(data) as held:
        np.savez(data, inputs=held["inputs"] + np.float32(0.01), labels=held["labels"])
    codes = {}
    for name in ("b", "c"):
        verdict = str(tmp_path / f"{name}.json")
        client = str(home / "clients" / name / "client.toml")
        words = ("--auditor", "Notary", "--key", str(key), "--verdict", verdict)
        codes[name] = run("audit", "run", client, place, *words).exit_code
        assert run("audit", "submit", place, verdict).exit_code == 0
    assert codes == {"b": 0, "c": 1}
    assert run("ledger", "verify", place).exit_code == 0

"""Clients by their files."""

from pathlib import Path

import pytest

from fedaccord.data.dataset import load_dataset
from fedaccord.flower.app_directory import write_app
from fedaccord.flower.client_app import app_of_files
from fedaccord.flower.client_file import load_client_file
from fedaccord.flower.grid import InProcessGrid
from fedaccord.flower.ledger.lines import load_entries
from fedaccord.flower.protocol.audit import audit, contradictions
from fedaccord.flower.protocol.coordinator import Coordinator
from fedaccord.flower.protocol.parameters import digest, from_bytes
from fedaccord.flower.protocol.terms import read_terms
from fedaccord.flower.server_app import first_model, run_slots
from tests.flower.consortia import (
    ledger_at,
    privates_of,
    verdicts,
)
from tests.flower.grids import NAMES, TERMS


def test_clients_by_their_files(tmp_path: Path) -> None:
    """As in a deployment, where each message may find a new process: all is in the files."""
    terms = read_terms(
        TERMS.model_dump(mode="json")
        | {"training": {"shape": [30], "classes": 2, "local": "epochs"}},
        "test",
    )
    home = tmp_path / "app"
    write_app(home, terms, privates_of(NAMES), load_dataset("breast-cancer"))
    file = home / "clients" / "b" / "client.toml"
    file.write_text(file.read_text() + "\n[slips]\n1 = 0\n")
    app = app_of_files(home / "fedaccord_app" / "terms.toml")
    files = [str(home / "clients" / name / "client.toml") for name in NAMES]
    grid = InProcessGrid(app, [{"client-file": file} for file in files])
    with ledger_at(tmp_path / "ledger.db") as ledger:
        coordinator = Coordinator(terms, ledger, first_model(terms))
        run_slots(grid, coordinator, 2)
        assert verdicts(ledger, 1) == {"a": "kept", "b": "deviation", "c": "kept"}
        assert set(verdicts(ledger, 2).values()) == {"kept"}
    server = load_entries(str(tmp_path / "ledger.db"))
    assert audit(server) == []
    for name in NAMES:
        copy = load_entries(str(home / "clients" / name / "ledger.db"))
        assert contradictions(server, copy) == []
        kept = from_bytes((home / "clients" / name / "model.npz").read_bytes())
        assert digest(kept) == digest(coordinator.model)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("samples = 40", "samples = 0"),
        ("valuation = 17.0", "valuation = -1.0"),
        ("valuation = 17.0", "valuation = nan"),
        ("discount_factor = 0.8", "discount_factor = 1.0"),
        ('name = "a"', 'nmae = "a"'),
        ("samples = 40", "samples = 40.5"),
        ("samples = 40", "samples = "),
    ],
)
def test_a_wrong_client_file_says_where(change: str, message: str, tmp_path: Path) -> None:
    write_app(tmp_path / "app", TERMS, privates_of(NAMES))
    file = tmp_path / "app" / "clients" / "a" / "client.toml"
    assert load_client_file(file).private == privates_of(NAMES)[0]
    file.write_text(file.read_text().replace(change, message))
    field = message.split(maxsplit=1)[0]
    with pytest.raises(Exception, match=f"(?s)client.toml: .*(is not TOML|{field}: )"):
        load_client_file(file)

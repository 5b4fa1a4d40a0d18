"""Times in `fedaccord ledger show`, and how long rounds took."""

import json
from pathlib import Path

from typer.testing import CliRunner

from fedaccord.cli import app
from fedaccord.ledger.store import open_ledger
from fedaccord.protocol.coordinator import Coordinator
from tests.flower.consortia import START_MODEL, Clients, privates_of, run, terms_of

NAMES = ("a", "b", "c")


def test_times_and_durations_of_rounds(tmp_path: Path) -> None:
    seconds = iter(range(0, 600, 7))
    terms = terms_of(NAMES)

    def clock() -> str:
        now = next(seconds)
        return f"2026-01-31T09:{now // 60:02}:{now % 60:02}+00:00"

    with open_ledger(tmp_path / "ledger.db", clock=clock) as ledger:
        run(Coordinator(terms, ledger, START_MODEL), Clients(terms, privates_of(NAMES)), 1)
    words = ["ledger", "show", str(tmp_path / "ledger.db"), "--kind", "round"]
    shown = CliRunner().invoke(app, words).stdout
    assert shown.split()[:2] == ["number", "time"]
    assert shown.count("2026-01-31 09:0") == 2
    entries = json.loads(CliRunner().invoke(app, [*words, "--format", "json"]).stdout)
    assert [entry["seconds"] for entry in entries] == [7, 7]
    others = json.loads(CliRunner().invoke(app, [*words[:3], "--format", "json"]).stdout)
    assert {entry["kind"] for entry in others if "seconds" in entry} == {"round"}

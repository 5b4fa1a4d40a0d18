"""A member's own log: what it says in words and as JSON, and that none of it leaves the member."""

import json
import logging
from collections.abc import Iterator
from pathlib import Path

import jsonschema
import pytest

from fedaccord.flower import member_log
from fedaccord.flower.client_app import app_of_files
from fedaccord.flower.events import Event
from fedaccord.flower.grids import InProcessGrid
from fedaccord.flower.narration import Narrator
from fedaccord.flower.server_app import first_model, run_slots
from fedaccord.ledger.store import open_ledger
from fedaccord.protocol.coordinator import Coordinator
from fedaccord.protocol.terms import load_terms
from fedaccord.signing.keys import load_key
from tests.flower.test_deployment import NAMES, prepared, unreported
from tests.schemas import schemas

CHECK = jsonschema.Draft202012Validator(schemas()["member-events"])


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    yield
    member_log.LOG.handlers = []
    member_log.LOG.setLevel(logging.NOTSET)


def lines_in(capsys: pytest.CaptureFixture[str]) -> list[str]:
    return capsys.readouterr().err.splitlines()


def played(home: Path) -> list[Event]:
    """A slot of clients with files, in one process; what the server says."""
    said: list[Event] = []
    terms_file = home / "fedaccord_app" / "terms.toml"
    terms, key = load_terms(terms_file), load_key(home / "keys" / "signing.key")
    nodes = [{"client-file": str(home / "clients" / name / "client.toml")} for name in NAMES]
    with open_ledger(home / "ledger.db") as ledger:
        coordinator = Coordinator(terms, ledger, first_model(terms), key)
        narrator = Narrator(coordinator, said.append)
        grid = InProcessGrid(app_of_files(terms_file), nodes)
        run_slots(grid, coordinator, 1, narrator=narrator)
    return said


@pytest.mark.slow
def test_what_members_say_in_a_slot(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    home = prepared(tmp_path / "app", answer_seconds=0.01)
    file = home / "clients" / "b" / "client.toml"
    file.write_text(file.read_text() + "\n[slips]\n1 = 0\n")
    server = " ".join(event.as_json for event in played(home))
    lines = [line[22:] for line in lines_in(capsys)]
    assert "slot 1 (cooperating): reported the ratio 400 and 120 samples" in lines
    assert "slot 1: place 1 of 3, so its equilibrium contribution is 0" in lines
    offers = [line for line in lines if "offered" in line]
    assert offers[0].startswith("slot 1: offered 4 of 93 samples in all; accepts; a slot costs it ")
    assert offers[0].endswith(" at the equilibrium")
    (trained,) = [line for line in lines if "round 1: trained on 82 samples in " in line]
    assert "; the model that came in has loss " in trained
    assert "slot 1, round 1: trains on nothing by the agreement" in " ".join(lines)
    ends = [line for line in lines if "is settled" in line]
    assert ends[0].startswith(
        "slot 1 is settled: verdict kept (4 of 4 samples); received the model"
    )
    assert "stored as model.npz; loss " in ends[0]
    assert "; deviated: b. Next is slot 2, punishing." in ends[0]
    assert "slot 1 is settled: verdict deviation (0 of 7 samples); received no model" in ends[1]
    assert "400" not in server
    assert "stored as" not in server


@pytest.mark.slow
def test_the_same_as_json(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(member_log.FORMAT_VARIABLE, "json")
    rules = unreported("clock") | {"punishment_slots": 1, "margin": 0.0, "answer_seconds": 0.01}
    home = prepared(tmp_path / "app", **rules)
    (home / "clients" / "a" / "client.toml").write_text("name = 7\nname = 8")
    played(home)
    lines = [json.loads(line) for line in lines_in(capsys)]
    for line in lines:
        CHECK.validate(line)
    kinds = {line["event"] for line in lines}
    settled = {"member_reports", "member_clock", "member_offer", "member_round", "member_settled"}
    assert kinds == settled | {"member_problem"}
    assert "client.toml" in next(x["message"] for x in lines if x["event"] == "member_problem")


def test_other_lines_and_a_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    member_log.write_log("text")
    member_log.LOG.info("connected\x1b[2J")
    try:
        raise ValueError("unforeseen")
    except ValueError:
        member_log.LOG.exception("the answer failed")
    first, second, *trace = lines_in(capsys)
    assert first.endswith("Z  connected\\x1b[2J")
    assert second.endswith("Z  the answer failed")
    assert trace[-1] == "ValueError: unforeseen"
    member_log.write_log("json")
    member_log.LOG.error("several:\n  one\n  two")
    assert json.loads(lines_in(capsys)[-1])["message"] == "several:\n  one\n  two"


def test_a_format_that_there_is_not(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(member_log.FORMAT_VARIABLE, "yaml")
    member_log.write_log()
    assert "FEDACCORD_LOG_FORMAT must be text or json, got 'yaml'" in lines_in(capsys)[0]

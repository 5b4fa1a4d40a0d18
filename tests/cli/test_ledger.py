"""`fedaccord ledger`: show, verify, export."""

import json
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import Result

from fedaccord.ledger.store import open_ledger
from fedaccord.protocol.coordinator import Coordinator
from tests.cli.conftest import Run
from tests.flower.consortia import START_MODEL, Clients, ledger_at, privates_of, terms_of
from tests.flower.consortia import run as run_slots

NAMES = ("a", "b", "c")


@pytest.fixture
def story(run: Run, tmp_path: Path) -> Run:
    """A ledger of two slots with a slip in the first, and b's copy of it."""
    privates = privates_of(NAMES)
    privates[1] = replace(privates[1], slips={1: 0})
    clients = Clients(terms_of(NAMES), privates)
    with ledger_at(tmp_path / "ledger.db") as ledger:
        run_slots(Coordinator(terms_of(NAMES), ledger, START_MODEL), clients, 2)
    with open_ledger(tmp_path / "copy.db") as copy:
        copy.append([entry.fact for entry in clients.copies["b"].written])
    return run


def edit(path: Path, statement: str) -> None:
    """Change a row as someone with access to the file could."""
    with closing(sqlite3.connect(path)) as raw:
        raw.execute("DROP TRIGGER entries_no_update")
        raw.execute("DROP TRIGGER entries_no_delete")
        raw.execute(statement)
        raw.commit()


def refused(result: Result, message: str) -> None:
    assert result.exit_code == 2
    assert result.stderr.startswith("Error: ")
    assert message in result.stderr
    assert result.stderr.count("\n") == 1


def test_show(story: Run) -> None:
    shown = story("ledger", "show", "ledger.db", "--slot", "1", "--kind", "verdict")
    assert shown.exit_code == 0
    assert " ".join(shown.stdout.split()[:6]) == "number time (UTC) slot kind client"
    found = [line.split() for line in shown.stdout.splitlines()[1:]]
    time = ["2025-01-01", "12:00:00"]  # of the clock of all tests
    first = [line for line in found if line[0] in ("25", "26", "27")]
    assert [line[:6] for line in first] == [
        ["25", *time, "1", "verdict", "a"],
        ["26", *time, "1", "verdict", "b"],
        ["27", *time, "1", "verdict", "c"],
    ]
    assert "verdict deviation" in " ".join(shown.stdout.split())


def test_show_warns_of_agreements_that_were_computed_from_reports(story: Run) -> None:
    shown = story("ledger", "show", "ledger.db", "--kind", "agreement")
    assert shown.stderr.startswith("Note: offers are computed from the ratios that clients report")
    assert not story("ledger", "show", "ledger.db", "--kind", "verdict").stderr
    assert story("ledger", "show", "copy.db", "--kind", "offer").stderr.startswith("Note: ")


def test_show_json(story: Run) -> None:
    entries = json.loads(story("ledger", "show", "ledger.db", "--format", "json").stdout)
    assert [entry["number"] for entry in entries] == list(range(1, len(entries) + 1))
    assert entries[0]["body"]["terms"]["clients"] == ["a", "b", "c"]
    about_b = json.loads(
        story("ledger", "show", "ledger.db", "--client", "b", "--format", "json").stdout
    )
    assert {entry["client"] for entry in about_b} == {None, "b"}
    (last,) = json.loads(
        story("ledger", "show", "ledger.db", "--last", "1", "--format", "json").stdout
    )
    assert last["kind"] == "told"


def test_show_nothing(story: Run) -> None:
    assert story("ledger", "show", "ledger.db", "--slot", "99").stdout == "No entries.\n"


def test_verify(story: Run) -> None:
    result = story("ledger", "verify", "ledger.db", "--against", "copy.db")
    assert result.exit_code == 0
    assert "the chain of digests is intact" in result.stdout
    assert (
        "Every offer, rank, verdict and phase follows; agreements from reports are proved."
        in result.stdout
    )
    assert "The model stored with it is the one that it names." in result.stdout
    assert "copy.db agrees with it." in result.stdout
    assert story("ledger", "verify", "copy.db").exit_code == 0


def test_verify_finds_an_edited_row(story: Run) -> None:
    edit(Path("ledger.db"), "UPDATE entries SET client = 'a' WHERE number = 27")
    result = story("ledger", "verify", "ledger.db")
    assert result.exit_code == 1
    assert "Wrong: entry 27 is not what was written: its digest differs." in result.stdout
    record = json.loads(story("ledger", "verify", "ledger.db", "--format", "json").stdout)
    assert not record["holds"]
    assert len(record["problems"]) == 1


@pytest.mark.parametrize(
    ("statement", "problem"),
    [
        ("UPDATE entries SET text = x'00ff' WHERE number = 18", "its text has the wrong type"),
        ("UPDATE entries SET text = '{' WHERE number = 18", "its text is not JSON"),
        ("UPDATE entries SET text = '[1]' WHERE number = 18", "its text is not an object"),
        ("UPDATE entries SET slot = 'x' WHERE number = 18", "its slot has the wrong type"),
        ("UPDATE entries SET slot = 9e999 WHERE number = 18", "its slot has the wrong type"),
        ("UPDATE entries SET digest = x'00' WHERE number > 1", "its digest has the wrong type"),
        (
            "INSERT INTO entries SELECT -5, at, kind, slot, client, text, previous, digest "
            "FROM entries WHERE number = 18",
            "entry -5 is where entry 1 should",
        ),
        ("DELETE FROM entries", "it has no entries"),
        (
            "DELETE FROM entries WHERE number > 26",
            "it ends where verdict of slot 1 should follow",
        ),
        ("DELETE FROM checkpoints", "the model that it names is not stored with it"),
        ("UPDATE checkpoints SET parameters = x'00'", "the model stored with it cannot be read"),
        ("UPDATE checkpoints SET number = -slot", "the model stored with it is not the one"),
        ("UPDATE checkpoints SET number = 99999 WHERE slot = 2", "the model stored with it is not"),
        (
            "INSERT INTO checkpoints VALUES (1000, 9, x'00', NULL)",
            "the model stored with it cannot be read",
        ),
    ],
)
def test_verify_reports_any_edit_in_one_sentence(statement: str, problem: str, story: Run) -> None:
    edit(Path("ledger.db"), statement)
    for options in ([], ["--against", "copy.db"], ["--format", "json"]):
        result = story("ledger", "verify", "ledger.db", *options)
        assert result.exit_code == 1
        assert isinstance(result.exception, SystemExit)
        assert problem in result.stdout


def test_unreadable_entries_are_not_shown(story: Run) -> None:
    edit(Path("ledger.db"), "UPDATE entries SET text = '{' WHERE number = 18")
    message = "ledger.db: entry 18 cannot be read: its text is not JSON"
    refused(story("ledger", "show", "ledger.db"), message)
    refused(story("ledger", "export", "ledger.db", "all.jsonl"), message)


def test_verify_part_of_a_ledger(story: Run) -> None:
    """`export --client` does not write a chain: verify says so, not that it was edited."""
    story("ledger", "export", "ledger.db", "b.jsonl", "--client", "b")
    result = story("ledger", "verify", "b.jsonl")
    assert result.exit_code == 1
    first, second = result.stdout.splitlines()
    assert first.startswith("b.jsonl is part of a ledger: ")
    assert second.endswith("only a complete ledger can be verified.")
    lines = Path("b.jsonl").read_text()
    Path("b.jsonl").write_text(lines.replace("deviation", "kept"))
    result = story("ledger", "verify", "b.jsonl")
    assert "b.jsonl is the server's ledger" in result.stdout
    assert "is not what was written: its digest differs." in result.stdout


def test_verify_against_an_empty_or_truncated_copy(story: Run) -> None:
    open_ledger("empty.db").close()
    result = story("ledger", "verify", "ledger.db", "--against", "empty.db")
    assert result.exit_code == 1
    assert "Wrong: empty.db: it has no entries." in result.stdout
    assert "Wrong: it has no entries." in story("ledger", "verify", "empty.db").stdout
    edit(Path("copy.db"), "DELETE FROM entries WHERE slot = 2 AND kind = 'settlement'")
    result = story("ledger", "verify", "ledger.db", "--against", "copy.db")
    assert result.exit_code == 1
    assert "Wrong: copy.db: b knows nothing of the server's entry 48 (told" in result.stdout


def test_verify_detects_truncation_by_the_model_or_a_copy(story: Run) -> None:
    edit(Path("ledger.db"), "DELETE FROM entries WHERE slot = 2")
    result = story("ledger", "verify", "ledger.db")
    assert result.exit_code == 1
    assert "Wrong: the model stored with it is not the one that it names." in result.stdout
    story("ledger", "export", "ledger.db", "cut.jsonl")
    assert story("ledger", "verify", "cut.jsonl").exit_code == 0
    result = story("ledger", "verify", "cut.jsonl", "--against", "copy.db")
    assert result.exit_code == 1
    assert "Wrong: copy.db: b's entry" in result.stdout


def test_verify_against_something_other_than_a_copy(story: Run) -> None:
    result = story("ledger", "verify", "ledger.db", "--against", "ledger.db")
    assert result.exit_code == 1
    assert result.stdout.endswith("Wrong: ledger.db: is not a client's copy.\n")


@pytest.mark.slow
def test_export_and_verify_the_export(story: Run) -> None:
    assert story("ledger", "export", "ledger.db", "all.jsonl").exit_code == 0
    assert story("ledger", "verify", "all.jsonl", "--against", "copy.db").exit_code == 0
    lines = Path("all.jsonl").read_text().splitlines()
    assert story("ledger", "export", "ledger.db", "b.jsonl", "--client", "b").stdout.startswith(
        "Wrote "
    )
    some = [json.loads(line)["client"] for line in Path("b.jsonl").read_text().splitlines()]
    assert set(some) == {None, "b"}
    assert len(some) < len(lines)
    refused(story("ledger", "export", "b.jsonl", "b.jsonl", "--client", "a"), "is an input of")
    Path("all.jsonl").write_text("\n".join(lines).replace('"deviation', '"kept') + "\n")
    Path("all.jsonl").write_text(Path("all.jsonl").read_text().replace("deviation", "kept", 1))
    assert story("ledger", "verify", "all.jsonl").exit_code == 1


def test_invalid_input(story: Run) -> None:
    refused(story("ledger", "show", "none.db"), "none.db: there is no such ledger")
    Path("junk.db").write_text("hello" * 99)
    refused(story("ledger", "verify", "junk.db"), "junk.db: file is not a database")
    refused(story("ledger", "export", "ledger.db", "out.txt"), "must be called *.jsonl")
    refused(story("ledger", "export", "ledger.db", "no/out.jsonl"), "cannot be written")
    refused(story("ledger", "show", "none.jsonl"), "none.jsonl: cannot be read")
    refused(story("ledger", "show", "mysql://x/y"), "a ledger is a SQLite file, or a PostgreSQL")
    refused(story("ledger", "show", "ledger.db", "--kind", "foo"), "--kind: must be one of terms,")
    assert story("ledger", "show", "ledger.db", "--last", "0").exit_code == 2
    assert story("ledger", "show").exit_code == 2


@pytest.mark.parametrize("words", [("show", "ledger.db"), ("export", "ledger.db", "b.jsonl")])
def test_an_unknown_client(story: Run, words: tuple[str, ...]) -> None:
    result = story("ledger", *words, "--client", "d")
    assert result.exit_code == 2
    assert result.stderr == "Error: --client: there is nothing about 'd', only a, b, c\n"
    assert not Path("b.jsonl").exists()


def test_rollback(story: Run) -> None:
    result = story("ledger", "rollback", "ledger.db", "--to-slot", "1", "--reason", "b ruined it")
    assert result.exit_code == 0
    assert result.stdout == (
        "ledger.db: proposed to go back to the model of slot 1. The next run asks 3 clients, and "
        "2 of them must agree: to agree, a client first sets consents_to_slot = 1 in its "
        "client.toml.\n"
    )
    shown = story("ledger", "show", "ledger.db", "--last", "1").stdout
    assert "proposal" in shown
    assert "reason b ruined it" in shown
    assert story("ledger", "verify", "ledger.db").exit_code == 0
    again = story("ledger", "rollback", "ledger.db", "--to-slot", "0", "--reason", "more")
    refused(again, "a proposal is under way; finish it first")


@pytest.mark.slow
def test_rollback_without_consent(run: Run, tmp_path: Path) -> None:
    terms = terms_of(NAMES, rollback_consent="nobody")
    with ledger_at(tmp_path / "ledger.db") as ledger:
        run_slots(Coordinator(terms, ledger, START_MODEL), Clients(terms, privates_of(NAMES)), 2)
    result = run("ledger", "rollback", "ledger.db", "--to-slot", "0", "--reason", "begin again")
    assert result.stdout == ("ledger.db: done at once, since the terms require nobody's consent.\n")
    assert run("ledger", "verify", "ledger.db").exit_code == 0


def test_rollback_with_invalid_input(story: Run) -> None:
    slot_2 = ("--to-slot", "2", "--reason", "x")
    refused(story("ledger", "rollback", "ledger.db", *slot_2), "those of these slots are: 0, 1")
    refused(story("ledger", "rollback", "none.db", *slot_2), "none.db: there is no such ledger")
    assert not Path("none.db").exists()
    refused(story("ledger", "rollback", "ledger.db", "--to-slot", "1"), "needs both --to-slot and")
    two_lines = ("--to-slot", "1", "--reason", "two\nlines")
    refused(story("ledger", "rollback", "ledger.db", *two_lines), "must be one line")
    refused(story("ledger", "rollback", "copy.db", *slot_2), "a server adds nothing to a ledger")


@pytest.fixture
def suspended(run: Run, tmp_path: Path) -> Run:
    """C slipped in slot 1, and is suspended for two slots."""
    terms = terms_of(NAMES, punishment="suspension", margin=0.0)
    privates = privates_of(NAMES)
    privates[2] = replace(privates[2], slips={1: 0})
    with ledger_at(tmp_path / "ledger.db") as ledger:
        run_slots(Coordinator(terms, ledger, START_MODEL), Clients(terms, privates), 1)
    return run


def test_show_says_who_is_suspended_from_when_until_when_and_why(suspended: Run) -> None:
    shown = suspended("ledger", "show", "ledger.db", "--kind", "settlement").stdout
    words = " ".join(shown.split())
    assert "suspended c from slot 2 until slot 3 (it slipped in slot 1)" in words


def test_waive(suspended: Run) -> None:
    result = suspended("ledger", "waive", "ledger.db", "c", "--reason", "its disk was full")
    assert result.exit_code == 0
    assert result.stdout == (
        "ledger.db: proposed to let c return, which slipped in slot 1. The next run asks 2 "
        "clients, and 2 of them must agree: to agree, a client first sets consents_to_return = "
        '{client = "c", slipped_in = 1} in its client.toml.\n'
    )
    assert suspended("ledger", "verify", "ledger.db").exit_code == 0
    again = suspended("ledger", "waive", "ledger.db", "c", "--reason", "more")
    refused(again, "a proposal is under way; finish it first")


def test_waive_with_invalid_input(suspended: Run) -> None:
    refused(suspended("ledger", "waive", "ledger.db", "c"), "a waiver needs a --reason")
    words = ("ledger", "waive", "ledger.db", "a", "--reason", "x")
    refused(suspended(*words), "'a' is not suspended; suspended: c")


def test_a_client_name_in_another_unicode_form(run: Run, tmp_path: Path) -> None:
    names = ("Am\u00e9lie", "b", "c")
    terms = terms_of(names)
    with ledger_at(tmp_path / "ledger.db") as ledger:
        run_slots(Coordinator(terms, ledger, START_MODEL), Clients(terms, privates_of(names)), 1)
    decomposed = ("--client", "Ame\u0301lie", "--kind", "verdict")
    assert "verdict kept" in run("ledger", "show", "ledger.db", *decomposed).stdout

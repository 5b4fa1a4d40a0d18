"""Clients by their files."""

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

import numpy as np
import pytest
from flwr.app import Message

from fedaccord.data.dataset import load_dataset
from fedaccord.data.inputs import read_examples
from fedaccord.errors import InvalidInput
from fedaccord.flower.client_app import app_of_files
from fedaccord.flower.client_file import FileClient, load_client_file
from fedaccord.flower.grids import InProcessGrid
from fedaccord.flower.server_app import first_model, run_slots
from fedaccord.game.law import Law
from fedaccord.ledger.lines import load_entries
from fedaccord.protocol.coordinator import Coordinator
from fedaccord.protocol.copies import contradictions
from fedaccord.protocol.law import law_in_terms
from fedaccord.protocol.parameters import digest, from_bytes
from fedaccord.protocol.terms import load_terms, read_terms
from fedaccord.protocol.terms_text import terms_text
from fedaccord.protocol.verification import wrong_in
from fedaccord.signing.canonical import canonical
from fedaccord.signing.keys import load_key
from tests.flower.consortia import (
    ledger_at,
    privates_of,
    terms_of,
    verdicts,
)
from tests.flower.grids import NAMES, TERMS
from tests.flower.homes import write_app
from tests.protocol.postings import public_of, unreported

TRAINING = {"shape": [30], "classes": 2}


@pytest.mark.slow
def test_clients_by_their_files(tmp_path: Path) -> None:
    """As in a deployment, where each message may start a new process: all state is in the files."""
    terms = read_terms(
        TERMS.model_dump(mode="json") | {"training": TRAINING | {"local": "epochs"}},
        "test",
    )
    home = tmp_path / "app"
    terms = write_app(home, terms, privates_of(NAMES), load_dataset("breast-cancer"))
    file = home / "clients" / "b" / "client.toml"
    file.write_text(file.read_text() + "\n[slips]\n1 = 0\n")
    app = app_of_files(home / "fedaccord_app" / "terms.toml")
    files = [str(home / "clients" / name / "client.toml") for name in NAMES]
    grid = InProcessGrid(app, [{"client-file": file} for file in files])
    with ledger_at(tmp_path / "ledger.db") as ledger:
        key = load_key(home / "keys" / "signing.key")
        coordinator = Coordinator(terms, ledger, first_model(terms), key)
        run_slots(grid, coordinator, 2)
        assert verdicts(ledger, 1) == {"a": "kept", "b": "deviation", "c": "kept"}
        assert set(verdicts(ledger, 2).values()) == {"kept"}
    server = load_entries(str(tmp_path / "ledger.db"))
    assert wrong_in(server) == []
    for name in NAMES:
        copy = load_entries(str(home / "clients" / name / "ledger.db"))
        assert contradictions(server, copy) == []
        kept = from_bytes((home / "clients" / name / "model.npz").read_bytes())
        assert digest(kept) == digest(coordinator.model)


def clients_of(home: Path, change: dict[str, Any] | None = None) -> InProcessGrid:
    """An app whose clients have files; then the server changes its terms."""
    terms = read_terms(TERMS.model_dump(mode="json") | {"training": TRAINING}, "test")
    terms = write_app(home, terms, privates_of(NAMES), load_dataset("breast-cancer"))
    (home / "fedaccord_app" / "terms.toml").write_text(
        terms_text(read_terms(terms.model_dump(mode="json") | (change or {}), "test"))
    )
    files = [str(home / "clients" / name / "client.toml") for name in NAMES]
    app = app_of_files(home / "fedaccord_app" / "terms.toml")
    return InProcessGrid(app, [{"client-file": file} for file in files])


def slot_of(home: Path, grid: InProcessGrid) -> dict[str, str]:
    terms = load_terms(home / "fedaccord_app" / "terms.toml")
    with ledger_at(home / "ledger.db") as ledger:
        key = load_key(home / "keys" / "signing.key")
        run_slots(grid, Coordinator(terms, ledger, first_model(terms), key), 1)
        return verdicts(ledger, 1)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"rounds": 1}, "rounds: 2 was signed, but the server's app has 1"),
        ({"tolerance": 0.9}, "tolerance: 0.0 was signed, but the server's app has 0.9"),
        ({"punishment_slots": None}, "punishment_slots: 2 was signed, but the server's app has No"),
        (
            {"training": TRAINING | {"rate": 9.0}},
            "training.rate: 0.5 was signed, but the server's app has 9.0",
        ),
        (
            {"training": TRAINING | {"optimiser": "fedadam"}},
            "training.optimiser: fedavg was signed, but the server's app has fedadam",
        ),
        (
            {"law": law_in_terms(Law.power(7.5, 1.0))},
            "law.kind: paper was signed, but the server's app has power",
        ),
    ],
)
def test_no_client_takes_part_under_terms_that_it_did_not_sign(
    change: dict[str, Any], told: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    home = tmp_path / "app"
    grid = clients_of(home, change)
    assert set(slot_of(home, grid).values()) == {"absence"}
    assert told in caplog.text
    for name in NAMES:
        assert not (home / "clients" / name / "ledger.db").exists()


def test_a_client_names_the_number_in_which_another_law_differs(tmp_path: Path) -> None:
    home, signed = tmp_path / "app", Law.mixture([6.0, 0.9], [12.0, 21.0])
    clients_of(home, {"law": law_in_terms(Law.mixture([6.0, 0.8], [12.0, 21.0]))})
    own = home / "clients" / "a"
    terms = load_terms(own / "terms.toml")
    with_law = terms.model_dump(mode="json") | {"law": law_in_terms(signed)}
    (own / "terms.toml").write_text(terms_text(read_terms(with_law, "test")))
    client = FileClient(own / "client.toml", home / "fedaccord_app" / "terms.toml")
    told = r"law\.terms\.1\.value: 0\.9 was signed, but the server's app has 0\.8$"
    with pytest.raises(InvalidInput, match=told):
        client.answer({"stage": "report", "slot": 1}, None)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"contribution": 30}, "was signed, but the server's app has 30"),
        ({"lowest_discount_factor": 0.75}, "public.a.lowest_discount_factor: 0.7 was signed"),
        (None, "agreement: posted was signed, but the server's app has individual"),
    ],
)
def test_a_client_names_the_public_number_that_differs(
    change: dict[str, Any] | None, told: str, tmp_path: Path
) -> None:
    public = public_of("posted", NAMES)
    signed, given = unreported("posted", NAMES), terms_of(NAMES, punishment="suspension")
    if change is not None:
        given = unreported("posted", NAMES, public=public | {"a": public["a"] | change})
    write_app(tmp_path / "app", signed, privates_of(NAMES))
    terms = tmp_path / "terms.toml"
    terms.write_text(terms_text(given))
    client = FileClient(tmp_path / "app" / "clients" / "a" / "client.toml", terms)
    with pytest.raises(InvalidInput) as error:
        client.answer({"stage": "report", "slot": 1}, None)
    assert told in str(error.value)
    assert ("public.a." in str(error.value)) == (change is not None)


@pytest.mark.slow
def test_only_the_client_with_the_old_terms_is_absent(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The others have put the new terms into their directories."""
    home = tmp_path / "app"
    grid = clients_of(home, {"tolerance": 0.1})
    for name in ("a", "c"):
        (home / "clients" / name / "terms.toml").write_text(
            (home / "fedaccord_app" / "terms.toml").read_text()
        )
    assert slot_of(home, grid) == {"a": "kept", "b": "absence", "c": "kept"}
    assert "clients/b/terms.toml: tolerance: 0.0 was signed" in caplog.text


@pytest.mark.slow
def test_a_client_that_signed_nothing_takes_no_part(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    home = tmp_path / "app"
    grid = clients_of(home)
    (home / "clients" / "b" / "terms.toml").unlink()
    assert slot_of(home, grid)["b"] == "absence"
    assert "clients/b/terms.toml: there is no such file" in caplog.text


@pytest.mark.slow
def test_a_copy_records_which_terms_were_in_force(tmp_path: Path) -> None:
    """So that nobody can claim afterwards that the slot was under other terms."""
    home = tmp_path / "app"
    assert set(slot_of(home, clients_of(home)).values()) == {"kept"}
    (signed,) = [e for e in load_entries(str(home / "ledger.db")) if e.kind == "terms"]
    digest = hashlib.sha256(canonical(signed.body["terms"]).encode()).hexdigest()
    for name in NAMES:
        copy = load_entries(str(home / "clients" / name / "ledger.db"))
        assert [e.body["terms"] for e in copy if e.kind == "report"] == [digest]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("samples = 50", "samples = 51", "samples: 51, but its data has 50"),
        ('data = "data"', 'data = "none"', "none: there is no such directory"),
        ('data = "data"', 'data = "../../../digits"', "its examples have the shape (8, 8)"),
    ],
)
def test_a_client_that_could_not_train_does_not_report(
    old: str, new: str, told: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Otherwise it would get an offer and be missing in every round of the slot."""
    home, digits = tmp_path / "app", load_dataset("digits")
    grid = clients_of(home)
    (tmp_path / "digits").mkdir()
    for name in ("b", "test"):
        np.savez(tmp_path / f"digits/{name}.npz", inputs=digits.inputs, labels=digits.labels)
    file = home / "clients" / "b" / "client.toml"
    assert old in file.read_text()
    file.write_text(file.read_text().replace(old, new))
    assert slot_of(home, grid) == {"a": "kept", "b": "absence", "c": "kept"}
    assert told in caplog.text
    entries = [e for e in load_entries(str(home / "ledger.db")) if e.client == "b"]
    assert [e.kind for e in entries] == ["fault", "absence", "verdict"]


def reads(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Counts the files that clients read from now on, by name."""
    found: Counter[str] = Counter()

    def counted(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(path: str | Path, *rest: Any) -> Any:
            found[Path(path).name] += 1
            return function(path, *rest)

        return call

    for place in ("client_file.load_client_file", "client_file.load_terms"):
        name = f"fedaccord.flower.{place}"
        monkeypatch.setattr(name, counted(resolve_name(name)))
    monkeypatch.setattr("fedaccord.data.own.read_examples", counted(read_examples))
    return found


@pytest.mark.slow
def test_files_are_read_once_a_slot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "app"
    grid = clients_of(home)
    terms = load_terms(home / "fedaccord_app" / "terms.toml")
    with ledger_at(home / "ledger.db") as ledger:
        key = load_key(home / "keys" / "signing.key")
        coordinator = Coordinator(terms, ledger, first_model(terms), key)
        run_slots(grid, coordinator, 1)  # asks for names, too
        found = reads(monkeypatch)
        run_slots(grid, coordinator, 3)
    # by each of 3 clients in each of 2 slots; the run asks for names once more when it starts
    assert (found["client.toml"], found["terms.toml"]) == (9, 18)
    assert (found["a.npz"], found["test.npz"]) == (2, 6)


@pytest.mark.slow
def test_changes_during_a_slot_count_from_the_next_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "app"
    file = home / "clients" / "b" / "client.toml"
    push = InProcessGrid.push_messages

    def push_and_change(self: InProcessGrid, messages: Iterable[Message]) -> list[str]:
        messages = list(messages)
        if messages and messages[0].metadata.message_type == "query.offer":
            file.write_text(file.read_text().replace("samples = 50", "samples = 49"))
        return push(self, messages)

    monkeypatch.setattr(InProcessGrid, "push_messages", push_and_change)
    grid = clients_of(home)
    terms = load_terms(home / "fedaccord_app" / "terms.toml")
    with ledger_at(home / "ledger.db") as ledger:
        key = load_key(home / "keys" / "signing.key")
        run_slots(grid, Coordinator(terms, ledger, first_model(terms), key), 2)
        reported = {
            entry.slot: entry.body["samples"]
            for entry in ledger.entries(kind="report")
            if entry.client == "b"
        }
        assert set(verdicts(ledger, 1).values()) == {"kept"}
    assert reported == {1: 50, 2: 49}


@pytest.mark.slow
def test_text_labels_are_refused_where_no_client_sees_the_others(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Two clients could number the same text differently."""
    home = tmp_path / "app"
    grid = clients_of(home)
    for name in ("b", "test"):
        path = home / "clients" / "b" / "data" / f"{name}.npz"
        with np.load(path) as held:
            inputs, labels = held["inputs"], held["labels"]
        np.savez(path, inputs=inputs, labels=np.where(labels, "yes", "no"))
    assert slot_of(home, grid) == {"a": "kept", "b": "absence", "c": "kept"}
    assert "labels: must be 0, 1, 2, ... on Flower" in caplog.text


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
def test_an_invalid_client_file_says_where(change: str, message: str, tmp_path: Path) -> None:
    write_app(tmp_path / "app", TERMS, privates_of(NAMES))
    file = tmp_path / "app" / "clients" / "a" / "client.toml"
    assert load_client_file(file).private == privates_of(NAMES)[0]
    file.write_text(file.read_text().replace(change, message))
    field = message.split(maxsplit=1)[0]
    with pytest.raises(Exception, match=f"(?s)client.toml: .*(is not TOML|{field}: )"):
        load_client_file(file)

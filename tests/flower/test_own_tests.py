"""At a member's home: its own test, survival times, and fine-tuning; none of it is sent."""

import json
import logging
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest
import torch
from flwr.app import Context, Message, RecordDict
from flwr.common.serde import recorddict_to_proto

from fedaccord.data.dataset import Dataset, load_dataset
from fedaccord.data.own import load_folder
from fedaccord.deployment.data_format import save_examples
from fedaccord.errors import InvalidInput
from fedaccord.flower import member_events, member_log
from fedaccord.flower.client_app import app_of_files
from fedaccord.flower.client_file import FileTraining, load_client_file
from fedaccord.flower.events import Event
from fedaccord.flower.grids import InProcessGrid
from fedaccord.flower.local import evaluation
from fedaccord.flower.running import own_examples
from fedaccord.flower.server_app import first_model, run_slots, server_app
from fedaccord.ledger.lines import load_entries
from fedaccord.ledger.store import Ledger
from fedaccord.protocol.coordinator import Coordinator
from fedaccord.protocol.parameters import Arrays, digest, from_bytes
from fedaccord.protocol.private import Private
from fedaccord.protocol.verification import wrong_in
from fedaccord.signing.keys import load_key
from fedaccord.training.engine import PlainEngine, TrainingPlan
from fedaccord.training.fine_tuning import fine_tune
from fedaccord.training.rules import LocalSteps
from fedaccord.training.task import Model, find_task
from tests.flower.consortia import key_of, ledger_at, privates_of, terms_of, verdicts
from tests.flower.homes import write_app
from tests.schemas import schemas
from tests.training.patients import patients, survival_data

NAMES = ("a", "b", "c")
CHECK = jsonschema.Draft202012Validator(schemas()["member-events"])
STEPS = {"local": "steps", "steps": 4, "batch": 8, "rate": 0.05, "proximal": 0.1}
DIGITS = {"shape": [30], "classes": 2, **STEPS}
SURVIVAL = {"shape": [4], "classes": 0, "optimiser": "fedadam", **STEPS}
AUDITS = {"probability": 1.0, "auditors": {"Notary": key_of("Notary").public}}

CLIENT = """
name = "a"
valuation = 1.0
cost_per_sample = 1.0
samples = 40
discount_factor = 0.5
"""


class Home:
    """A server and its members by their files, in one process."""

    def __init__(
        self, home: Path, dataset: Dataset, privates: list[Private] | None = None, **rules: Any
    ) -> None:
        self.home = home
        terms = terms_of(NAMES, **({"answer_seconds": 0.01, "punishment_slots": 1} | rules))
        self.terms = write_app(home, terms, privates or privates_of(NAMES), dataset)
        self.heard: list[bytes] = []

    def member(self, name: str) -> Path:
        return self.home / "clients" / name

    def says(self, name: str, line: str) -> None:
        """Add a line to a member's file."""
        file = self.member(name) / "client.toml"
        file.write_text(f"{line}\n{file.read_text()}")

    def test_of(self, name: str, inputs: Any, labels: Any) -> None:
        """Give a member a test of its own."""
        (self.member(name) / "data" / "test").mkdir()
        path = self.member(name) / "data" / "test" / f"{name}.npz"
        save_examples(path, inputs, labels, self.terms)

    def play(self, slots: int = 1) -> tuple[Ledger, Arrays]:
        """Run slots; what members sent is in `heard`."""
        terms_file = self.home / "fedaccord_app" / "terms.toml"
        key = load_key(self.home / "keys" / "signing.key")
        nodes = [{"client-file": str(self.member(name) / "client.toml")} for name in NAMES]
        heard = self.heard

        class Listening(InProcessGrid):
            def pull_messages(self, message_ids: Iterable[str]) -> list[Message]:
                replies = super().pull_messages(message_ids)
                heard.extend(recorddict_to_proto(r.content).SerializeToString() for r in replies)
                return replies

        with ledger_at(self.home / "ledger.db") as ledger:
            coordinator = Coordinator(self.terms, ledger, first_model(self.terms), key)
            run_slots(Listening(app_of_files(terms_file), nodes), coordinator, slots)
            for slot in range(1, slots + 1):
                assert set(verdicts(ledger, slot).values()) == {"kept"}
        assert wrong_in(load_entries(str(self.home / "ledger.db"))) == []
        return ledger, coordinator.model


@pytest.fixture(autouse=True)
def _as_before(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv(member_log.FORMAT_VARIABLE, "json")
    yield
    member_log.LOG.handlers = []
    member_log.LOG.setLevel(logging.NOTSET)


def events_in(capsys: pytest.CaptureFixture[str], kind: str) -> dict[str, dict[str, Any]]:
    """The last event of a kind at each member; all of them have the form of the schema."""
    found = [json.loads(line) for line in capsys.readouterr().err.splitlines() if line[0] == "{"]
    for event in found:
        CHECK.validate(event)
    return {event["client"]: event for event in found if event["event"] == kind}


def in_words(kind: type[Event], event: dict[str, Any]) -> str:
    """The sentence of an event that was read from a line; its level follows from the rest."""
    return kind(**{field: value for field, value in event.items() if field != "level"}).in_words


def accuracy_of(model: Model, arrays: Arrays, inputs: Any, labels: Any) -> float:
    given = {name: torch.from_numpy(array) for name, array in arrays.items()}
    return model.evaluate(given, inputs, labels)[1]


@pytest.mark.slow
def test_a_members_own_test_stays_at_home(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = load_dataset("breast-cancer")
    home = Home(tmp_path / "app", data, training=DIGITS)
    inputs, labels = data.test_inputs[7:41], data.test_labels[7:41]
    home.test_of("a", inputs, labels)
    (home.member("c") / "data" / "test.npz").unlink()
    home.test_of("c", inputs, labels)  # instead of the other test
    _, shared = home.play()
    settled = events_in(capsys, "member_settled")
    model = Model(find_task("softmax"), data)
    common = accuracy_of(model, shared, data.test_inputs, data.test_labels)
    own = accuracy_of(model, shared, inputs, labels)
    assert own != common
    assert settled["a"]["accuracy"] == pytest.approx(common)
    assert settled["a"]["own_accuracy"] == settled["c"]["own_accuracy"] == pytest.approx(own)
    own_width = settled["a"]["own_accuracy_half_width"]
    assert 0.05 < own_width < 0.25
    assert settled["c"]["own_accuracy_half_width"] == own_width
    told = f"accuracy {100 * own:.1f} ± {100 * own_width:.1f} % on its own test"
    assert told in in_words(member_events.Settled, settled["a"])
    assert not any(field.startswith("own_accuracy") for field in settled["b"])
    assert "accuracy" not in settled["c"]
    assert {event["measure"] for event in settled.values()} == {"accuracy"}
    said = b"\0".join(home.heard)
    assert not any(example.tobytes() in said for example in inputs)
    assert not any(word in said for word in (b"accuracy", b"own_", repr(own).encode()))


@pytest.mark.slow
@pytest.mark.parametrize("audits", [{}, {"audits": AUDITS}], ids=["plain", "audited"])
def test_a_member_fine_tunes_at_home(
    audits: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The same as `fine_tune` makes of its contribution; the next slot goes on without it."""
    data = load_dataset("breast-cancer")
    home = Home(tmp_path / "app", data, training=DIGITS, **audits)
    plain = Home(tmp_path / "plain", data, training=DIGITS, **audits)
    home.says("b", "fine_tune = 3")
    home.test_of("b", data.test_inputs[:50], data.test_labels[:50])
    _, shared = home.play(2)
    tuned = events_in(capsys, "member_fine_tuned")
    assert list(tuned) == ["b"]
    personal = from_bytes((home.member("b") / "personal.npz").read_bytes())
    assert (home.member("b") / "personal.npz").stat().st_mode & 0o077 == 0
    assert not (home.member("a") / "personal.npz").exists()
    assert digest(personal) != digest(shared)
    if not audits:
        assert digest(personal) == digest(tuned_by_hand(home, shared, tuned["b"]["samples"]))
        _, others = plain.play(2)
        assert digest(others) == digest(shared)
    model = Model(find_task("softmax"), data)
    ends = data.test_inputs[:50], data.test_labels[:50]
    assert tuned["b"]["own_accuracy"] == pytest.approx(accuracy_of(model, personal, *ends))
    assert tuned["b"]["shared_own_accuracy"] == pytest.approx(accuracy_of(model, shared, *ends))
    widths = [tuned["b"][f"{whose}own_accuracy_half_width"] for whose in ("", "shared_")]
    assert min(widths) > 0
    before = f"{100 * tuned['b']['shared_own_accuracy']:.1f} ± {100 * widths[1]:.1f} % before"
    assert f"on its own test ({before})" in in_words(member_events.FineTuned, tuned["b"])
    said = b"\0".join(home.heard)
    assert all(array.tobytes() not in said for array in personal.values())


def tuned_by_hand(home: Home, shared: Arrays, samples: int) -> Arrays:
    """What the second member makes of slot 2's model, from its files alone."""
    own = load_folder(home.member("b") / "data", ["b"], seed=1)
    model = Model(find_task("softmax"), own.dataset)
    nothing = np.array([], dtype=np.int64)
    shares = [nothing, own.draw(2)[0][:samples]]
    local = LocalSteps(0.05, 8, 4, proximal=0.1)
    plan = TrainingPlan(model, shares, home.terms.rounds, local, home.terms.training.seed, 2)
    given = {name: torch.from_numpy(array) for name, array in shared.items()}
    after = fine_tune(PlainEngine(), plan, given, 3)[1]
    return {name: value.numpy() for name, value in after.items()}


@pytest.mark.slow
def test_who_contributes_nothing_has_nothing_to_fine_tune_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A client that is asked for no sample gets the model all the same."""
    privates = privates_of(NAMES)
    privates[0] = replace(privates[0], valuation=0.01)
    home = Home(
        tmp_path / "app",
        load_dataset("breast-cancer"),
        privates,
        training=DIGITS,
        punishment="suspension",
    )
    for name in NAMES:
        home.says(name, "fine_tune = 1")
    home.play()
    entries = load_entries(str(home.home / "ledger.db"))
    (basis,) = [entry.body["contributions"] for entry in entries if entry.kind == "basis"]
    assert [amount > 0 for amount in basis.values()] == [False, True, True]
    assert "slot 1: contributed no sample, so there is nothing to" in capsys.readouterr().err
    for name in NAMES:
        assert (home.member(name) / "model.npz").is_file()
        assert (home.member(name) / "personal.npz").is_file() == (name != "a")


@pytest.mark.slow
def test_survival_times_from_the_file_to_the_log(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Members' files have times and events; the log and the server name the measure."""
    home = Home(tmp_path / "app", survival_data(), training=SURVIVAL)
    home.says("a", "fine_tune = 2")
    home.test_of("a", *patients(60, seed=9))
    with np.load(home.member("a") / "data" / "a.npz") as held:
        assert set(held) == {"inputs", "time", "event"}
    _, shared = home.play(2)
    lines = capsys.readouterr().err
    settled = [line for line in lines.splitlines() if "member_settled" in line]
    assert all('"measure": "concordance"' in line for line in settled)
    model = Model(find_task("cox"), survival_data())
    event = json.loads([line for line in settled if '"client": "a"' in line][-1])
    assert event["own_accuracy"] == pytest.approx(accuracy_of(model, shared, *patients(60, seed=9)))
    save_examples(tmp_path / "test.npz", *patients(200, seed=1), home.terms)
    found = evaluation(tmp_path / "test.npz", home.terms)(shared)
    assert found is not None
    assert found.measure == "concordance"
    assert found.accuracy == pytest.approx(event["accuracy"])


@pytest.mark.slow
def test_a_server_with_test_examples_writes_what_it_measures(tmp_path: Path) -> None:
    data = load_dataset("breast-cancer")
    home = Home(tmp_path / "app", data, training=DIGITS)
    save_examples(home.home / "test.npz", data.test_inputs, data.test_labels, home.terms)
    terms_file = home.home / "fedaccord_app" / "terms.toml"
    config: dict[str, bool | float | int | str] = {
        "ledger": str(home.home / "ledger.db"),
        "last-slot": 1,
        "signing-key": str(home.home / "keys" / "signing.key"),
        "test-data": str(home.home / own_examples(home.home)),
    }
    nodes = [{"client-file": str(home.member(name) / "client.toml")} for name in NAMES]
    grid = InProcessGrid(app_of_files(terms_file), nodes)
    server_app(terms_file)(grid, Context(1, 1, {}, RecordDict(), config))
    entries = load_entries(str(home.home / "ledger.db"))
    assert wrong_in(entries) == []
    *_, last = [entry.body for entry in entries if entry.kind == "round"]
    with ledger_at(home.home / "ledger.db") as ledger:
        model = from_bytes(ledger.checkpoints()[-1].parameters)
    assert digest(model) == last["model"]
    found = evaluation(home.home / "test.npz", home.terms)(model)
    assert found is not None
    assert {key: last[key] for key in found._fields} == found._asdict()
    assert found.accuracy > 0.5


@pytest.mark.slow
def test_an_audited_member_with_survival_times(tmp_path: Path) -> None:
    home = Home(tmp_path / "app", survival_data(), training=SURVIVAL, audits=AUDITS)
    home.play()


def test_times_none_of_which_can_be_compared_tell_nothing(tmp_path: Path) -> None:
    terms = terms_of(NAMES, training=SURVIVAL)
    inputs, _ = patients(3)
    save_examples(tmp_path / "test.npz", inputs, np.array([-1, -2, -3]), terms)
    assert evaluation(tmp_path / "test.npz", terms)(first_model(terms)) is None


@pytest.mark.parametrize(
    ("training", "arrays", "message"),
    [
        (
            SURVIVAL,
            {"inputs": np.zeros((40, 4)), "labels": np.arange(40) % 2},
            "labels: it has labels, but by the terms it must have survival times: time and event",
        ),
        (
            SURVIVAL | {"classes": 2, "task": "softmax"},
            {"inputs": np.zeros((40, 4)), "time": np.arange(40), "event": np.zeros(40)},
            "labels: it has survival times, but by the terms it must have labels",
        ),
        (
            SURVIVAL | {"classes": 2, "task": "softmax"},
            {"inputs": np.zeros((40, 4)), "labels": np.arange(40) % 3},
            "labels: must be from 0 to 1 by the terms, and one is 2",
        ),
        (
            SURVIVAL,
            {"inputs": np.zeros((40, 4)), "time": np.full(40, 0.5), "event": np.ones(40)},
            "time must be a whole number: count in smaller units",
        ),
        (
            SURVIVAL,
            {"inputs": np.zeros((40, 4)), "time": np.arange(40), "event": np.ones(40)},
            "an event cannot be at time 0",
        ),
        (
            SURVIVAL,
            {"inputs": np.zeros((40, 4)), "time": np.arange(40), "event": np.full(40, 2)},
            "event must be 1 if it happened at that time, and 0 if it did not",
        ),
    ],
)
def test_data_that_is_not_as_the_terms_say(
    training: dict[str, Any], arrays: dict[str, Any], message: str, tmp_path: Path
) -> None:
    terms = terms_of(NAMES, training=training)
    folder = tmp_path / "data"
    folder.mkdir()
    for name in ("a", "test"):
        np.savez(folder / f"{name}.npz", **arrays)
    (tmp_path / "client.toml").write_text(CLIENT)
    with pytest.raises(InvalidInput, match=message):
        _ = FileTraining(load_client_file(tmp_path / "client.toml"), tmp_path, terms).examples
    with pytest.raises(InvalidInput):
        evaluation(folder / "test.npz", terms)


@pytest.mark.parametrize("epochs", ["0", "-1", "1.5", '"three"'])
def test_epochs_must_be_counted(epochs: str, tmp_path: Path) -> None:
    (tmp_path / "client.toml").write_text(f"{CLIENT}fine_tune = {epochs}\n")
    with pytest.raises(InvalidInput, match="fine_tune: must be"):
        load_client_file(tmp_path / "client.toml")

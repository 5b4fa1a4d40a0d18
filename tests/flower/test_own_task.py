"""A task of one's own, and a scale, at clients that have files: who has which code takes part."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fedaccord.data.dataset import load_dataset
from fedaccord.data.partition import RandomPartition
from fedaccord.data.scale import fitting_scale, scaled_sizes
from fedaccord.errors import InvalidInput
from fedaccord.flower.client_app import app_of_files
from fedaccord.flower.client_file import FileTraining, load_client_file
from fedaccord.flower.grids import InProcessGrid
from fedaccord.flower.server_app import first_model, run_slots
from fedaccord.ledger.lines import load_entries
from fedaccord.protocol.coordinator import Coordinator
from fedaccord.protocol.private import Private
from fedaccord.protocol.terms import Terms, load_terms, read_terms
from fedaccord.protocol.terms_text import terms_text
from fedaccord.protocol.verification import wrong_in
from fedaccord.training.code import read_code
from tests.flower.consortia import ledger_at, privates_of, verdicts
from tests.flower.grids import NAMES, TERMS

BUILD = """\
import torch

def build(dataset):
    first, last = torch.nn.Linear(64, 4), torch.nn.Linear(4, dataset.classes)
    return torch.nn.Sequential(torch.nn.Flatten(), first, torch.nn.Tanh(), last)
"""
DIGITS = load_dataset("digits")


@pytest.fixture(autouse=True)
def app(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The app, with the code of the task, where Flower would unpack it."""
    home = tmp_path / "app"
    (home / "fedaccord_app").mkdir(parents=True)
    (home / "own_model.py").write_text(BUILD)
    monkeypatch.syspath_prepend(home)
    yield home
    sys.modules.pop("own_model", None)


def own_terms(**training: Any) -> Terms:
    given = {"shape": [8, 8], "classes": 10, "task": "own_model:build"}
    pinned = {"code": read_code("own_model:build").digest}
    rules = {"training": given | pinned | training}
    return read_terms(TERMS.model_dump(mode="json") | rules, "test")


def write_files(home: Path, terms: Terms, privates: list[Private]) -> None:
    """The app's terms, and a directory for each client with what it needs."""
    (home / "fedaccord_app" / "terms.toml").write_text(terms_text(terms))
    sizes = scaled_sizes([one.samples for one in privates], terms.training.scale)
    shares = RandomPartition(DIGITS, sizes).draw(1)
    for private, share in zip(privates, shares, strict=True):
        folder = home.parent / private.name
        (folder / "data").mkdir(parents=True)
        (folder / "terms.toml").write_text(terms_text(terms))
        (folder / "client.toml").write_text(
            f'name = "{private.name}"\nvaluation = {private.valuation}\n'
            f"cost_per_sample = {private.cost_per_sample}\nsamples = {private.samples}\n"
            f"discount_factor = {private.discount_factor}\n"
        )
        for name, part in ((private.name, share), ("test", share[:9])):
            inputs, labels = DIGITS.inputs[part], DIGITS.labels[part]
            np.savez(folder / "data" / f"{name}.npz", inputs=inputs, labels=labels)


def slot_of(home: Path) -> dict[str, str]:
    file = home / "fedaccord_app" / "terms.toml"
    terms = load_terms(file)
    clients = [{"client-file": str(home.parent / name / "client.toml")} for name in NAMES]
    with ledger_at(home / "ledger.db") as ledger:
        coordinator = Coordinator(terms, ledger, first_model(terms))
        run_slots(InProcessGrid(app_of_files(file), clients), coordinator, 1)
        return verdicts(ledger, 1)


# --- A task of one's own -------------------------------------------------------------------


@pytest.mark.slow
def test_everyone_trains_what_was_agreed(app: Path) -> None:
    write_files(app, own_terms(), privates_of(NAMES))
    assert set(slot_of(app).values()) == {"kept"}
    assert wrong_in(load_entries(str(app / "ledger.db"))) == []
    assert {"1.weight", "3.weight"} < first_model(own_terms()).keys()


@pytest.mark.slow
@pytest.mark.parametrize("change", [BUILD + "\n", BUILD.replace("4", "5"), ""])
def test_a_client_with_another_version_takes_no_part(
    change: str, app: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write_files(app, own_terms(), privates_of(NAMES))
    theirs = app.parent / "b" / "own_model.py"
    theirs.write_text(change)
    assert slot_of(app) == {"a": "kept", "b": "absence", "c": "kept"}
    agreed, found = (read_code(f"{path}:build") for path in (app / "own_model.py", theirs))
    assert (
        f"own_model:build: by the terms its code has the digest {agreed.digest}, but what is in "
        f"{theirs.parent} has {found.digest}"
    ) in caplog.text
    entries = [e for e in load_entries(str(app / "ledger.db")) if e.client == "b"]
    assert [e.kind for e in entries] == ["fault", "absence", "verdict"]  # nothing was reported


@pytest.mark.slow
def test_what_a_wrong_module_does_at_import_does_not_happen(app: Path) -> None:
    write_files(app, own_terms(), privates_of(NAMES))
    mark = app.parent / "was run"
    bad = f"import pathlib\npathlib.Path({str(mark)!r}).touch()\n{BUILD}"
    (app.parent / "b" / "own_model.py").write_text(bad)
    assert slot_of(app)["b"] == "absence"
    assert not mark.exists()


def test_without_the_code_nobody_takes_part_and_the_server_does_not_start(
    app: Path, caplog: pytest.LogCaptureFixture
) -> None:
    terms = own_terms()
    write_files(app, terms, privates_of(NAMES))
    (app.parent / "a" / "own_model.py").write_text(BUILD)
    start = first_model(terms)
    (app / "own_model.py").unlink()
    with pytest.raises(InvalidInput, match="there is no Python source of 'own_model' on the Pyt"):
        first_model(terms)
    file = app / "fedaccord_app" / "terms.toml"
    clients = [{"client-file": str(app.parent / name / "client.toml")} for name in NAMES]
    with ledger_at(app / "ledger.db") as ledger:
        grid = InProcessGrid(app_of_files(file), clients)
        run_slots(grid, Coordinator(terms, ledger, start), 1)
        assert (verdicts(ledger, 1)["b"], verdicts(ledger, 1)["c"]) == ("absence", "absence")
    assert f"no Python source of 'own_model' in {app.parent / 'b'} or on the Pyth" in caplog.text
    assert load_entries(str(app.parent / "b" / "ledger.db")) == []


def test_the_server_does_not_start_with_another_version(app: Path) -> None:
    terms = own_terms()
    (app / "own_model.py").write_text(BUILD.replace("Tanh", "ReLU"))
    with pytest.raises(InvalidInput, match="by the terms its code has the digest"):
        first_model(terms)


def test_code_that_changes_after_the_report_is_not_trained_with(
    app: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each message may start a process; this one begins between the report and the training."""
    terms = own_terms()
    write_files(app, terms, privates_of(NAMES))
    folder = app.parent / "b"
    training = FileTraining(load_client_file(folder / "client.toml"), folder, terms)
    training.look()
    (folder / "own_model.py").write_text(BUILD.replace("Tanh", "ReLU"))
    with pytest.raises(InvalidInput, match="by the terms its code has the digest"):
        training(1, 1, 10, first_model(terms))


# --- A scale -------------------------------------------------------------------------------


def large(factor: int = 100) -> list[Private]:
    """Far more samples than the digits have examples."""
    return [
        Private(
            name=one.name,
            valuation=one.valuation * factor,
            cost_per_sample=one.cost_per_sample,
            samples=one.samples * factor,
            discount_factor=one.discount_factor,
        )
        for one in privates_of(NAMES)
    ]


@pytest.mark.slow
def test_a_consortium_rehearses_with_fewer_examples_than_samples(app: Path) -> None:
    scale = fitting_scale(DIGITS, [one.samples for one in large()])
    terms = own_terms(scale=scale)
    write_files(app, terms, large())
    assert set(slot_of(app).values()) == {"kept"}
    entries = load_entries(str(app / "ledger.db"))
    assert wrong_in(entries) == []
    assert sum(e.body["samples"] for e in entries if e.kind == "report") == 15_000


def test_a_scaled_client_trains_on_as_many_examples_as_in_one_process(app: Path) -> None:
    """The first ones of its own order, and at least one."""
    terms = own_terms(scale=0.01)
    write_files(app, terms, large())
    folder = app.parent / "b"
    file = load_client_file(folder / "client.toml")
    start = first_model(terms)
    scaled = FileTraining(file, folder, terms)(1, 1, 2_000, start)
    plain = FileTraining(file, folder, own_terms(scale=0.005))(1, 1, 4_000, start)
    assert all(np.array_equal(scaled[name], plain[name]) for name in start)


def test_too_few_examples_at_a_scale(app: Path) -> None:
    terms = own_terms(scale=0.01)
    write_files(app, terms, large())
    folder = app.parent / "b"
    training = FileTraining(
        load_client_file(folder / "client.toml"), folder, own_terms(scale=0.011)
    )
    with pytest.raises(
        InvalidInput, match=r"5000 at scale 0.011: 55 examples, but its data has 50"
    ):
        training.look()

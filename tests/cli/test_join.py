"""`fedaccord join`: who should train together, as text, as JSON, and with an agreement."""

import json
from pathlib import Path

import numpy as np
import pytest

from tests.cli.conftest import Run
from tests.membership.clinics import NAMES, clinics

QUICK = ("--rounds", "10", "--seeds", "2")


def folder(path: Path) -> str:
    """The clinics as files, each with its own test."""
    partition = clinics(tested=60)
    data, ends = partition.dataset, np.cumsum(partition.sizes)
    (path / "test").mkdir(parents=True)
    for name, size, end, own in zip(NAMES, partition.sizes, ends, partition.tests, strict=True):
        rows = slice(end - size, end)
        np.savez(path / f"{name}.npz", inputs=data.inputs[rows], labels=data.labels[rows])
        np.savez(
            path / "test" / f"{name}.npz",
            inputs=data.test_inputs[own],
            labels=data.test_labels[own],
        )
    return str(path)


def consortium_file() -> str:
    clients = "".join(
        f'[[clients]]\nname = "{name}"\nvaluation = 2000.0\ncost_per_sample = 0.2\nsamples = 30\n\n'
        for name in NAMES
    )
    text = f'rounds = 10\ndiscount_factor = 0.9\ncurrency = "EUR"\n\n{clients}'
    Path("ours.toml").write_text(text, encoding="utf-8")
    return "ours.toml"


def test_whoever_loses_is_told_in_the_first_line(run: Run) -> None:
    result = run("join", "--data", folder(Path("data")), *QUICK, "--optimiser", "fedavg")
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("Odd loses by joining everyone: ")
    assert "North and South" in result.stdout
    assert "For an agreement, give a FILE" in result.stdout.replace("\n", " ")


def test_json_with_an_agreement_and_a_picture(run: Run) -> None:
    words = (consortium_file(), "--data", folder(Path("data")), "--seeds", "2")
    result = run("join", *words, "--optimiser", "fedavg", "--picture", "w.png", "--format", "json")
    assert result.exit_code == 0, result.output
    record = json.loads(result.stdout)
    assert [client["name"] for client in record["clients"]] == list(NAMES)
    assert record["recommended"] == ["North", "South"]
    assert record["unit"] == "EUR"
    assert record["agreement"]["members"] == ["North", "South"]
    assert Path("w.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
def test_several_ways_are_tried_unless_one_is_named(run: Run) -> None:
    data = folder(Path("data"))
    tried = json.loads(run("join", "--data", data, *QUICK, "--format", "json").stdout)
    named = json.loads(
        run("join", "--data", data, *QUICK, "--fine-tune", "1", "--format", "json").stdout
    )
    assert len(tried["ways"]) == 10
    assert [way["way"] for way in named["ways"]] == ["FedAvg and 1 epoch of fine-tuning"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--seeds", "1"), "--seeds: must be a whole number, 2 or more"),
        (("--dataset", "digits", "--clients", "11"), "must be 2 to 10, got 11"),
        (("--dataset", "digits", "--fine-tune", "2"), "--fine-tune: needs a test of each client's"),
        (("--optimiser", "fedprox"), "fedprox goes with --local epochs"),
        (("--dataset", "heart"), "there is no dataset called 'heart'"),
        (("--picture", "w.txt"), "--picture"),
    ],
)
def test_mistakes_are_one_sentence(run: Run, words: tuple[str, ...], message: str) -> None:
    result = run("join", *words)
    assert result.exit_code == 2
    assert message in result.stderr
    assert "Traceback" not in result.output

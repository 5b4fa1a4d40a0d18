"""`fedaccord join`: who should train together, as text, as JSON, and with an agreement."""

import json
from io import StringIO
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from fedaccord.cli.join_tables import words_table
from fedaccord.cli.tables import print_wide
from fedaccord.files.consortium import load_consortium
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


@pytest.mark.slow
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


def test_the_file_says_how_many_records_each_trains_on(run: Run) -> None:
    file = Path(consortium_file())
    file.write_text(file.read_text().replace("samples = 30", "samples = 10"))
    words = (str(file), "--data", folder(Path("data")), "--seeds", "2", "--optimiser", "fedavg")
    record = json.loads(run("join", *words, "--format", "json").stdout)
    assert [client["records"] for client in record["clients"]] == [10] * 3
    assert "20 examples from 10 on make 3 sizes" in record["agreement"]["reason"]
    refused = run("join", *words, "--scale", "4")
    assert refused.exit_code == 2
    assert "North: has 30 examples, but at scale 4 it needs 40" in refused.stderr


@pytest.mark.slow
def test_several_ways_are_tried_unless_one_is_named(run: Run) -> None:
    data = folder(Path("data"))
    tried = json.loads(run("join", "--data", data, *QUICK, "--format", "json").stdout)
    named = json.loads(
        run("join", "--data", data, *QUICK, "--fine-tune", "1", "--format", "json").stdout
    )
    assert len(tried["ways"]) == 10
    ways = [way["way"] for way in tried["ways"]]
    assert len(set(ways)) == 10
    assert tried["way"]["together"] in ways
    assert all(len(way["each_together"]) == 3 for way in tried["ways"])
    assert [way["way"] for way in named["ways"]] == ["FedAvg, rate 1 and 1 epoch of fine-tuning"]
    assert named["plain"] is None


def with_a_common_test(path: Path) -> str:
    """The clinics' files, with one test for all; South has a single class."""
    partition = clinics(tested=60)
    data, ends = partition.dataset, np.cumsum(partition.sizes)
    path.mkdir()
    for name, size, end in zip(NAMES, partition.sizes, ends, strict=True):
        labels = data.labels[end - size : end] * (name != "South")
        np.savez(path / f"{name}.npz", inputs=data.inputs[end - size : end], labels=labels)
    np.savez(path / "test.npz", inputs=data.test_inputs, labels=data.test_labels)
    return str(path)


def test_without_own_tests_nothing_is_said_of_any(run: Run) -> None:
    words = ("--data", with_a_common_test(Path("data")), *QUICK, "--optimiser", "fedavg")
    result = run("join", *words)
    assert result.exit_code == 0, result.output
    said = " ".join(result.stdout.split())
    assert "own test" not in said
    assert "their tests" not in said
    assert "Nobody was judged by its own cases" in said
    assert not json.loads(run("join", *words, "--format", "json").stdout)["own_tests"]


def test_notes_about_the_records_are_printed_and_in_the_json(run: Run) -> None:
    words = ("--data", with_a_common_test(Path("data")), *QUICK, "--optimiser", "fedavg")
    note = "only one class to train on: South (30 records of label 0)"
    assert f"Note: {note}." in run("join", *words).stdout
    assert note in json.loads(run("join", *words, "--format", "json").stdout)["notes"]


def test_with_a_file_what_is_saved_is_shown_and_compared(run: Run) -> None:
    words = (consortium_file(), "--data", folder(Path("data")), "--seeds", "2")
    said = " ".join(run("join", *words, "--optimiser", "fedavg").stdout.split())
    assert "Saved a slot, EUR" in said
    assert "Each saves a slot, EUR" in said
    assert "are compared in EUR a slot" in said


def test_the_first_seed_can_be_chosen(run: Run) -> None:
    words = ("--data", folder(Path("data")), *QUICK, "--optimiser", "fedavg", "--format", "json")
    usual, first, other = (
        json.loads(run("join", *words, *seed).stdout)
        for seed in ((), ("--seed", "0"), ("--seed", "7"))
    )
    assert usual == first != other


@pytest.mark.slow
def test_the_group_has_a_file_to_go_on_with(run: Run) -> None:
    words = (consortium_file(), "--data", folder(Path("data")), "--seeds", "2")
    result = run("join", *words, "--optimiser", "fedavg", "--out", "group.toml")
    assert "Wrote group.toml" in result.stdout
    group = load_consortium("group.toml")
    assert group.names == ("North", "South")
    assert group.law.evidence is not None
    assert run("solve", "group.toml").exit_code == 0
    found = json.loads(run("join", *words, "--optimiser", "fedavg", "--format", "json").stdout)
    solution = found["agreement"]["solution"]
    assert [client["name"] for client in solution["agreement"]["clients"]] == ["North", "South"]
    assert {"saving", "threshold"} <= solution["agreement"]["clients"][0].keys()
    assert solution["certificate"]["holds"] == found["agreement"]["holds"]


def test_without_a_group_no_file_is_written(run: Run) -> None:
    file = Path(consortium_file())
    file.write_text(f"server_fee = 1e9\n{file.read_text()}")
    words = (str(file), "--data", folder(Path("data")), "--seeds", "2", "--optimiser", "fedavg")
    result = run("join", *words, "--out", "group.toml")
    assert result.exit_code == 0
    assert "group.toml was not written: no group should form." in result.stdout
    assert not list(Path().glob("group*"))


def test_no_word_in_a_table_is_cut() -> None:
    console = Console(width=60, file=StringIO())
    headings = ("Client", "Alone, %", "Gain, points", "Best for it")
    row = ("Cleveland", "76.6 ± 8.0", "+0.3 ± 2.5", "with Cleveland, Switzerland and Long Beach")
    print_wide(console, words_table(headings, [row] * 2, numbers=range(1, 3)))
    assert isinstance(console.file, StringIO)
    assert "Switzerland" in console.file.getvalue()
    assert "…" not in console.file.getvalue()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--seeds", "1"), "--seeds: must be a whole number, 2 or more"),
        (("--dataset", "digits", "--clients", "11"), "must be 2 to 10, got 11"),
        (("--dataset", "digits", "--fine-tune", "2"), "--fine-tune: needs a test of each client's"),
        (("--optimiser", "fedprox"), "fedprox goes with --local epochs"),
        (("--server-rate", "0.1"), "--server-rate: goes with --optimiser fedadam"),
        (("--beta1", "0.5"), "--beta1: goes with --optimiser fedadam"),
        (("--out", "group.toml"), "--out: needs a FILE to put the law into"),
        (("--dataset", "heart"), "there is no dataset called 'heart'"),
        (("--picture", "w.txt"), "--picture"),
    ],
)
def test_mistakes_are_one_sentence(run: Run, words: tuple[str, ...], message: str) -> None:
    result = run("join", *words)
    assert result.exit_code == 2
    assert message in result.stderr
    assert "Traceback" not in result.output

"""`fedaccord train` and `calibrate` on folders with own tests and with survival times."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.cli.conftest import Run
from tests.training.test_own_tests import clinics, survivors

NAMES = {"one": 60, "two": 40, "three": 30}
TOML = 'name = "Three"\nrounds = 4\ndiscount_factor = 0.9\n' + "".join(
    f'[[clients]]\nname = "{name}"\nvaluation = {size}\ncost_per_sample = 0.01\nsamples = {size}\n'
    for name, size in NAMES.items()
)
FILES = ("three.toml", "--data", "data", "--seeds", "2")


def write(examples_of: Any, *, own: bool = True) -> None:
    """A consortium file, and a folder with a file for each client and each test."""
    Path("three.toml").write_text(TOML, encoding="utf-8")
    Path("data/test").mkdir(parents=True)
    tests = examples_of("test")
    for name in NAMES:
        _save(Path(f"data/{name}.npz"), examples_of(name))
        _save(Path(f"data/test/{name}.npz"), tests[name])
    if not own:
        _save(Path("data/test.npz"), tests["one"])
        for path in Path("data/test").iterdir():
            path.unlink()
        Path("data/test").rmdir()


def _save(path: Path, examples: Any) -> None:
    arrays = examples if isinstance(examples, dict) else {"X": examples[0], "y": examples[1]}
    np.savez(path, **arrays)


def test_the_json_of_own_tests(run: Run) -> None:
    write(clinics)
    result = run("train", *FILES, "--fine-tune", "2", "--format", "json")
    assert result.exit_code == 0, result.output
    answer = json.loads(result.stdout, parse_constant=pytest.fail)
    assert answer["measure"] == "accuracy"
    assert [each["profile"] for each in answer["profiles"]] == [
        *("alone", "equilibrium", "individual", "pooled")
    ]
    client = answer["profiles"][2]["clients"][2]
    assert list(client) == [
        *("name", "test_examples", "accuracy", "accuracy_gain"),
        *("fine_tuned", "fine_tuned_gain"),
    ]
    assert (client["name"], client["test_examples"]) == ("three", 25)
    assert client["fine_tuned"]["half_width"] > 0
    slot = answer["runs"][-1]["slots"][0]
    assert len(slot["own_accuracy"]) == len(slot["fine_tuned_accuracy"]) == 3
    alone = answer["runs"][0]["slots"][0]
    assert (alone["phase"], alone["suspended"]) == ("alone", [])
    assert [each["own_accuracy"] for each in alone["alone"]] == alone["own_accuracy"]


@pytest.mark.slow
def test_the_text_has_two_tables(run: Run) -> None:
    write(clinics)
    output = run("train", *FILES, "--report", "page.html", "--csv", "rounds.csv").output
    assert output.count("(own test)") == 2
    assert "three (25)" in output
    assert "Gain against alone, on each one's own test, in points" in output
    assert "own test" in Path("page.html").read_text(encoding="utf-8")
    assert ",alone," in Path("rounds.csv").read_text(encoding="utf-8")


def test_survival_times_from_a_folder(run: Run) -> None:
    write(survivors)
    output = run("train", *FILES).output
    assert "Task cox on data" in output
    assert "Test concordance" in output
    assert "accuracy" not in output


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--task", "softmax"), "task softmax: learns classes, but data has survival times"),
        (("--fine-tune", "0"), "Invalid value for '--fine-tune'"),
        (("--profile", "apart"), "--profile apart: must be one of equilibrium, uniform"),
        (("--skew", "0.5"), "--skew: cannot be combined with data"),
    ],
)
def test_rejected(run: Run, words: tuple[str, ...], message: str) -> None:
    write(survivors)
    result = run("train", *FILES, *words)
    assert result.exit_code == 2
    assert message in " ".join(result.output.split())


def test_fine_tuning_needs_own_tests(run: Run) -> None:
    write(clinics, own=False)
    result = run("train", *FILES, "--fine-tune", "2")
    assert result.exit_code == 2
    assert "--fine-tune: needs a test of each client's own to judge by" in result.output


def test_cox_needs_survival_times(run: Run) -> None:
    result = run("train", "--paper", "--clients", "3", "--samples", "50", "--task", "cox")
    assert result.exit_code == 2
    assert "task cox: learns survival times, but digits has classes" in result.output


def test_checkpoints_of_every_profile(run: Run) -> None:
    write(clinics)
    words = ("train", *FILES, "--fine-tune", "1", "--checkpoint", "runs", "--format", "json")
    first = run(*words)
    assert {path.name for path in Path("runs").iterdir()} == {
        f"{name}-{seed}.pt"
        for name in ("alone", "equilibrium", "individual", "pooled")
        for seed in (0, 1)
    }
    assert run(*words, "--resume").stdout == first.stdout


@pytest.mark.slow
def test_calibrate_writes_the_measure(run: Run) -> None:
    write(survivors)
    words = ("--rounds", "4", "--smallest", "30", "--local", "epochs", "--batch", "16")
    result = run("calibrate", *FILES, *words, "--out", "three.toml")
    assert result.exit_code == 0, result.output
    assert 'measure = "1 - concordance"' in Path("three.toml").read_text(encoding="utf-8")
    assert "on its own test" in result.output
    tuned = run("calibrate", *FILES, *words, "--fine-tune", "2", "--format", "json")
    answer = json.loads(tuned.stdout, parse_constant=pytest.fail)
    assert answer["fine_tuning"] == 2
    assert answer["alone"][0]["together"]["half_width"] > 0
    assert answer["alone"][0]["by_law"] is None
    solved = run("solve", "three.toml")  # reads the curve, with its pseudo-values
    assert solved.exit_code in (0, 1), solved.output
    predicted = run("train", *FILES, "--local", "epochs", "--batch", "16", "--format", "json")
    predictions = json.loads(predicted.stdout)["predictions"]
    assert [each["profile"] for each in predictions] == ["equilibrium", "individual"]
    assert predictions[0]["measure"] == "1 - concordance"

"""`fedaccord train`: the JSON contract, comparisons, slots, checkpoints, and invalid input."""

import csv
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fedaccord.data.dataset import dataset_names
from fedaccord.ledger.lines import load_entries
from tests.cli.conftest import Run

FIVE = (
    *("--paper", "--clients", "5", "--samples", "100", "--rounds", "4"),
    *("--cost-per-sample", "0.004"),  # so that some would free-ride
)
SMALL = (*FIVE, "--seeds", "2")


def train_json(run: Run, *words: str) -> dict[str, Any]:
    result = run("train", *words, "--format", "json")
    assert result.exit_code == 0, result.output
    return dict(json.loads(result.stdout, parse_constant=pytest.fail))


def test_the_json_contract(run: Run) -> None:
    answer = train_json(run, *SMALL)
    assert list(answer) == [
        *("dataset", "task", "measure", "engine", "optimiser"),
        *("scale", "profiles", "alone"),  # added
        "runs",
        "predictions",  # added
        *("notes", "skew"),
    ]
    assert (answer["dataset"], answer["task"]) == ("digits", "softmax")
    assert answer["engine"] == "vectorised"
    assert (answer["measure"], answer["optimiser"]) == ("accuracy", "fedavg")
    runs = [(one["profile"], one["seed"]) for one in answer["runs"]]
    assert runs == [("equilibrium", 0), ("equilibrium", 1), ("individual", 0), ("individual", 1)]
    [slot] = answer["runs"][0]["slots"]
    assert list(slot) == [
        *("slot", "phase", "total", "suspended", "rounds", "test_loss", "test_accuracy"),
        "alone",  # added
        *("own_accuracy", "fine_tuned_accuracy"),  # added
    ]
    assert slot["suspended"] == slot["alone"] == answer["alone"] == []
    assert [turn["round"] for turn in slot["rounds"]] == [1, 2, 3, 4]
    assert slot["test_accuracy"] == slot["rounds"][-1]["accuracy"]
    assert slot["test_loss"] == slot["rounds"][-1]["loss"]


def test_totals_are_those_of_the_profiles(run: Run) -> None:
    answer = train_json(run, *SMALL, "--profile", "equilibrium", "--profile", "individual")
    solved = json.loads(run("solve", *FIVE, "--format", "json").stdout)
    totals = [one["slots"][0]["total"] for one in answer["runs"]]
    expected = [solved["equilibrium"]["total"], solved["agreement"]["total"]]
    assert expected[0] < 0.9 * expected[1]
    assert totals == [round(expected[0])] * 2 + [round(expected[1])] * 2


def test_a_slip_and_its_punishment(run: Run) -> None:
    """Contributions are played: less in the slot of the slip, the equilibrium afterwards."""
    words = ("--paper", "--rounds", "2", "--seeds", "1", "--slots", "5")
    slip = ("--deviate", "client-3@2:0", "--punishment-slots", "2", "--profile", "individual")
    answer = train_json(run, *words, "--profile", "equilibrium", *slip)
    alone, agreed = (
        [(slot["phase"], slot["total"]) for slot in one["slots"]] for one in answer["runs"]
    )
    phases = [phase for phase, _ in agreed]
    assert phases == ["cooperating", "cooperating", "punishing", "punishing", "cooperating"]
    totals = [total for _, total in agreed]
    assert totals[0] == totals[4] > totals[1] > totals[2]
    assert totals[2:4] == [total for _, total in alone[2:4]]
    assert "client-3" in answer["notes"][0]


def test_no_agreement_is_not_an_error(run: Run) -> None:
    words = ("--paper", "--rounds", "2", "--seeds", "1")
    answer = train_json(
        run, *words, "--discount-factor", "0.3", "--profile", "uniform", "--deviate", "client-1@1"
    )
    assert answer["runs"][0]["slots"][0]["phase"] == "equilibrium"
    assert "no such agreement exists" in answer["notes"][0]


def test_a_profile_from_a_file(run: Run) -> None:
    run("solve", *FIVE, "--profile-out", "mine.csv")
    answer = train_json(run, *SMALL, "--profile", "individual", "--profile", "mine.csv")
    scores = {score["profile"]: score for score in answer["profiles"]}
    assert scores["mine.csv"]["accuracy_gain"] == {"mean": 0.0, "half_width": 0.0}


def test_engines_agree(run: Run) -> None:
    """Up to the order of sums; one of 359 test digits may be classified differently."""
    fast, plain = (train_json(run, *SMALL, "--engine", name) for name in ("vectorised", "plain"))
    for one, other in zip(fast["runs"], plain["runs"], strict=True):
        here, there = one["slots"][0], other["slots"][0]
        assert here["test_loss"] == pytest.approx(there["test_loss"], rel=1e-5)
        assert here["test_accuracy"] == pytest.approx(there["test_accuracy"], abs=1.5 / 359)


@pytest.mark.parametrize(
    "words",
    [
        ("--local", "epochs", "--batch", "8", "--epochs", "2", "--rate", "0.05"),
        ("--optimiser", "fedyogi"),
        ("--skew", "0.3"),
        ("--task", "mlp"),
        ("--scale", "0.5"),
        ("--dataset", "breast-cancer"),
        ("--seed", "7"),
    ],
)
def test_every_option_changes_the_numbers(run: Run, words: tuple[str, ...]) -> None:
    assert train_json(run, *SMALL)["runs"] != train_json(run, *SMALL, *words)["runs"]


STEPS = ("--local", "steps", "--steps", "5", "--batch", "8")
ADAM = ("--optimiser", "fedadam", *STEPS)


@pytest.mark.parametrize(
    ("usual", "words", "optimiser"),
    [
        (STEPS, ("--steps", "6"), "fedavg"),
        (STEPS, ("--proximal", "0.5"), "fedprox"),
        (STEPS, ("--optimiser", "fedprox"), "fedprox"),
        (STEPS, ("--local-optimiser", "adam"), "fedavg"),
        (STEPS, ("--optimiser", "fedadagrad"), "fedadagrad"),
        (ADAM, ("--server-rate", "0.03"), "fedadam"),
        (ADAM, ("--beta1", "0.5"), "fedadam"),
        (ADAM, ("--beta2", "0.5"), "fedadam"),
        (ADAM, ("--tau", "0.1"), "fedadam"),
        (ADAM, ("--proximal", "0.5"), "fedadam"),
    ],
)
def test_every_rule_changes_the_numbers(
    run: Run, usual: tuple[str, ...], words: tuple[str, ...], optimiser: str
) -> None:
    before, after = (train_json(run, *FIVE, "--seeds", "1", *usual, *more) for more in ((), words))
    assert before["runs"] != after["runs"]
    assert after["optimiser"] == optimiser


def test_fedprox_has_a_weight_of_its_own(run: Run) -> None:
    small = (*FIVE, "--seeds", "1", *STEPS)
    usual = train_json(run, *small, "--optimiser", "fedprox")
    assert train_json(run, *small, "--proximal", "0.01")["runs"] == usual["runs"]
    other = train_json(run, *small, "--optimiser", "fedprox", "--proximal", "0.5")
    assert other["runs"] != usual["runs"]


@pytest.mark.parametrize(
    ("optimiser", "words"),
    [
        ("fedadam", "1 seed; FedAdam, rate 0.1, beta1 0.9, beta2 0.99, tau 0.001"),
        ("fedprox", "1 seed; FedProx, mu 0.01"),
        ("fedavg", "1 seed Examples"),
    ],
)
def test_the_text_names_the_optimiser(run: Run, optimiser: str, words: str) -> None:
    result = run("train", *FIVE, "--seeds", "1", *STEPS, "--optimiser", optimiser)
    assert result.exit_code == 0
    assert words in " ".join(result.stdout.split())


def test_text_report_and_csv(run: Run) -> None:
    result = run(
        *("train", *SMALL, "--slots", "2", "--report", "page.html", "--csv", "rounds.csv"),
    )
    assert result.exit_code == 0
    assert "individual against equilibrium:" in result.stdout
    assert "After slot" in result.stdout
    page = Path("page.html").read_text(encoding="utf-8")
    assert "<svg" in page
    assert "Test accuracy" in page
    with Path("rounds.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 2 * 2 * 2 * 4  # profiles, seeds, slots, rounds
    assert rows[0]["profile"] == "equilibrium"
    assert 0.0 <= float(rows[0]["accuracy"]) <= 1.0


@pytest.mark.slow
def test_skew_is_reported_everywhere(run: Run) -> None:
    assert train_json(run, *SMALL)["skew"] is None
    assert train_json(run, *SMALL, "--skew", "0.3")["skew"] == 0.3
    result = run("train", *SMALL, "--skew", "0.3", "--report", "page.html")
    assert "labels skewed, alpha 0.3" in " ".join(result.stdout.split())
    assert "Dirichlet, alpha 0.3" in Path("page.html").read_text(encoding="utf-8")


def test_a_scale_at_which_rounding_matters_is_noted(run: Run) -> None:
    """Every client that contributes anything trains on at least one example."""
    answer = train_json(run, *SMALL, "--scale", "1e-9")
    assert all(0 < one["slots"][0]["total"] <= 5 for one in answer["runs"])
    assert len(answer["notes"]) == 2
    for profile, note in zip(("equilibrium", "individual"), answer["notes"], strict=True):
        assert note.startswith(f"{profile}: at this scale the contributions make ")
        assert "e-07 examples, which are rounded to " in note
    assert train_json(run, *SMALL)["notes"] == []


def test_nobody_contributes(run: Run) -> None:
    rows = "".join(f"client-{n},0\n" for n in range(1, 6))
    Path("none.csv").write_text(f"name,contribution\n{rows}", encoding="utf-8")
    answer = train_json(run, *SMALL, "--slots", "2", "--profile", "none.csv")
    assert answer["notes"][-1] == (
        "none.csv: nothing was trained on in 2 of 2 slots (slot 1: nobody contributes)"
    )
    lines = run("train", *SMALL, "--slots", "2", "--profile", "none.csv").stdout.splitlines()
    assert "Note: none.csv: nothing was trained on in 2 of 2 slots (slot 1: nobody" in "".join(
        lines
    )
    assert max(map(len, lines)) <= 100


def test_own_data(run: Run) -> None:
    rng = np.random.default_rng(0)
    Path("data").mkdir()
    for name in [*(f"client-{n}" for n in range(1, 6)), "test"]:
        inputs = rng.normal(size=(100, 3))
        np.savez(Path("data") / f"{name}.npz", inputs=inputs, labels=inputs[:, 0] > 0)
    answer = train_json(run, *SMALL, "--data", "data")
    assert answer["dataset"] == "data"
    assert answer["profiles"][1]["accuracy"]["mean"] > 0.8
    result = run("train", *SMALL, "--data", "data", "--skew", "1")
    assert result.exit_code == 2
    assert "--skew: cannot be combined with data, where each client has its own" in result.stderr
    result = run("train", *SMALL[:3], "--samples", "200", "--data", "data")
    assert result.exit_code == 2
    assert "client-1: has 100 examples, but 200 samples in the consortium" in result.stderr


def test_own_data_with_own_tests(run: Run) -> None:
    rng = np.random.default_rng(0)
    (Path("data") / "test").mkdir(parents=True)
    for name in [f"client-{n}" for n in range(1, 6)]:
        for folder, size in (("data", 100), ("data/test", 20)):
            inputs = rng.normal(size=(size, 3))
            np.savez(Path(folder) / f"{name}.npz", inputs=inputs, labels=inputs[:, 0] > 0)
    assert train_json(run, *SMALL, "--data", "data")["profiles"][1]["accuracy"]["mean"] > 0.8
    (Path("data") / "test" / "client-4.npz").unlink()
    result = run("train", *SMALL, "--data", "data")
    assert result.exit_code == 2
    assert result.stderr.strip().endswith(
        "test/client-4: there must be one file, .npz or .csv; there is none"
    )


def test_help_lists_every_dataset(run: Run) -> None:
    listed = " ".join(run("train", "--help").output.split())
    assert f"{', '.join(dataset_names()[:-1])} or {dataset_names()[-1]}; default digits" in listed


HOSPITALS = """
rounds = 4
discount_factor = 0.9
clients = [
    {name = "Cleveland", valuation = 8, cost_per_sample = 0.002, samples = 199},
    {name = "Hungary", valuation = 4, cost_per_sample = 0.002, samples = 172},
    {name = "Long Beach", valuation = 2, cost_per_sample = 0.002, samples = 85},
]
"""


@pytest.mark.originals("heart-disease")
def test_hospitals_have_their_own_records(run: Run) -> None:
    Path("four.toml").write_text(HOSPITALS, encoding="utf-8")
    answer = train_json(run, "four.toml", "--dataset", "heart-disease", "--seeds", "1")
    assert (answer["dataset"], answer["scale"], answer["notes"]) == ("heart-disease", 1.0, [])
    other = HOSPITALS.replace("Long Beach", "Zurich")
    Path("four.toml").write_text(other, encoding="utf-8")
    result = run("train", "four.toml", "--dataset", "heart-disease", "--seeds", "1")
    assert result.exit_code == 2
    assert "--dataset: 'Zurich' is no centre of heart-disease, but others are" in result.stderr


# --- Checkpoints ---------------------------------------------------------------------------


def test_resume_continues_and_keeps_finished_runs(run: Run) -> None:
    whole = train_json(run, *SMALL)
    assert train_json(run, *SMALL, "--checkpoint", "kept") == whole
    assert len(list(Path("kept").glob("*.pt"))) == 4
    before = {path: path.stat().st_mtime_ns for path in Path("kept").iterdir()}
    assert train_json(run, *SMALL, "--checkpoint", "kept", "--resume") == whole
    assert before == {path: path.stat().st_mtime_ns for path in Path("kept").iterdir()}


@pytest.mark.slow
def test_resume_after_a_kill(run: Run, tmp_path: Path) -> None:
    """SIGKILL as soon as the first checkpoint exists; then the same numbers as without."""
    words = ["--paper", "--samples", "100", "--rounds", "40", "--seeds", "2", "--slots", "3"]
    command = [sys.executable, "-m", "fedaccord", "train", *words, "--checkpoint", "kept"]
    child = subprocess.Popen(
        command,
        cwd=tmp_path,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    until = time.monotonic() + 60
    while not list(tmp_path.glob("kept/*.pt")) and time.monotonic() < until:
        time.sleep(0.01)
    child.send_signal(signal.SIGKILL)
    assert child.wait() == -signal.SIGKILL  # it had not finished
    resumed = train_json(run, *words, "--checkpoint", "kept", "--resume")
    assert resumed == train_json(run, *words)


# --- Invalid input -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--dataset", "cifar"), "no dataset called 'cifar'"),
        (("--task", "svm"), "no task called 'svm'"),
        (("--task", "cnn", "--dataset", "breast-cancer"), "needs images"),
        (
            ("--profile", "best"),
            "must be one of equilibrium, uniform, individual, suspension, alone, pooled, or an "
            "existing file",
        ),
        (("--profile", "uniform", "--profile", "uniform"), "each profile can be given only once"),
        (("--profile", "equilibrium", "--deviate", "client-1@1"), "nothing to slip from"),
        (("--deviate", "client-9@1"), "there is no client called 'client-9'"),
        (("--deviate", "client-1@2"), "the slot must be from 1 to 1"),
        (("--batch", "8"), "--batch: goes with --local epochs or --local steps"),
        (("--proximal", "1"), "--proximal: goes with --local epochs or --local steps"),
        (("--local-optimiser", "adam"), "--local-optimiser: goes with --local epochs or --local"),
        (("--steps", "8"), "--steps: goes with --local steps"),
        (("--local", "steps", "--epochs", "2"), "--epochs: goes with --local epochs"),
        (("--local", "epochs", "--steps", "2"), "--steps: goes with --local steps"),
        (("--local", "epochs", "--proximal", "-1"), "--proximal: must be 0 or more, got -1.0"),
        (("--optimiser", "fedprox"), "--optimiser: fedprox goes with --local epochs or --local"),
        (("--server-rate", "1"), "--server-rate: goes with --optimiser fedadam, fedyogi or"),
        (
            ("--optimiser", "fedprox", "--local", "steps", "--tau", "1"),
            "--tau: goes with --optimiser fedadam, fedyogi or fedadagrad",
        ),
        (("--optimiser", "fedadagrad", "--beta2", "0.9"), "--beta2: fedadagrad has no such number"),
        (("--optimiser", "fedadam", "--server-rate", "0"), "--server-rate: must be more than 0"),
        (
            ("--optimiser", "fedyogi", "--beta1", "1"),
            "--beta1: must be from 0 to less than 1, got 1.0",
        ),
        (("--rate", "0"), "rate: must be more than 0"),
        (("--rate", "nan"), "rate: must be more than 0"),
        (("--rate", "inf"), "rate: must be more than 0 and fit 32 bits, got inf"),
        (("--rate", "1e300"), "rate: must be more than 0 and fit 32 bits, got 1e+300"),
        (("--local", "epochs", "--rate", "1e-300"), "fit 32 bits, got 1e-300"),
        (("--slots", "999999999999"), "are too many to record"),
        (("--local", "epochs", "--rate", "0"), "rate: must be more than 0"),
        (("--scale", "-1"), "scale: must be more than 0"),
        (
            ("--scale", "20"),
            "client-1: at scale 20 it has 2,000 examples, but digits has only 1,438",
        ),
        (("--scale", "1e308"), "leads to more examples than can be counted"),
        (("--skew", "0"), "Error: --skew: must be more than 0"),
        (("--skew", "1e308"), "Error: --skew: 1e+308 is too large to draw mixtures with"),
        (("--dataset", "digits", "--data", "."), "--dataset: cannot be combined with data"),
        (("--data", "nowhere"), "there is no such directory"),
        (("--resume",), "--resume: there must be a checkpoint folder to resume from"),
        (("--seeds", "0"), "must be 1 or more"),
        (("--seed", "-1"), "must be 0 or more"),
        (("--seed", str(2**64)), f"must be {2**63 - 1} or less, got {2**64}"),
    ],
)
def test_rejected(run: Run, words: tuple[str, ...], message: str) -> None:
    result = run("train", *SMALL, *words)
    assert result.exit_code == 2
    assert message in result.stderr
    assert "Traceback" not in result.stderr


def test_a_checkpoint_of_another_run(run: Run) -> None:
    train_json(run, *SMALL, "--checkpoint", "kept")
    result = run("train", *SMALL, "--checkpoint", "kept")
    assert result.exit_code == 2
    assert "--checkpoint: kept has checkpoints already: resume from them" in result.stderr
    result = run("train", *SMALL, "--checkpoint", "kept", "--resume", "--task", "mlp")
    assert result.exit_code == 2
    assert "is the checkpoint of another run: its task is softmax, not mlp" in result.stderr
    result = run("train", *SMALL, "--checkpoint", "kept", "--resume", "--skew", "0.5")
    assert result.exit_code == 2
    assert "is the checkpoint of another run: its skew is none, not 0.5" in result.stderr


@pytest.mark.parametrize("local", ["gradient", "epochs"])
def test_a_model_that_becomes_nan(run: Run, local: str) -> None:
    result = run(
        *("train", *SMALL, "--local", local, "--rate", "1e38", "--task", "mlp"),
        *("--checkpoint", "kept", "--report", "page.html"),
    )
    assert result.exit_code == 2
    assert "equilibrium, seed 0: the " in result.stderr
    assert "became NaN or infinite in round" in result.stderr
    assert " of client-" in result.stderr
    assert "the last good model is kept in kept/equilibrium-0.pt" in result.stderr
    assert not Path("page.html").exists()


# --- On Flower -----------------------------------------------------------------------------


@pytest.mark.slow
def test_the_whole_protocol_on_flower(run: Run, tmp_path: Path) -> None:
    """A slip in slot 1 is punished in slot 2, in Flower's simulation, and the ledger proves it.

    In a separate process, since Ray leaves threads behind.
    """
    words = (*FIVE, "--flower", "--slots", "3", "--ledger", "ledger.db", "--optimiser", "fedadam")
    slip = ("--deviate", "client-3@1:0", "--punishment-slots", "1")
    command = [sys.executable, "-m", "fedaccord", "train", *words, *slip, "--format", "json"]
    child = subprocess.run(command, cwd=tmp_path, capture_output=True, check=True, timeout=300)
    answer = json.loads(child.stdout)
    assert answer["engine"] == "flower"
    [one] = answer["runs"]
    phases = [slot["phase"] for slot in one["slots"]]
    assert phases == ["cooperating", "punishing", "cooperating"]
    totals = [slot["total"] for slot in one["slots"]]
    assert max(totals[:2]) < totals[2]
    assert all(len(slot["rounds"]) == 4 for slot in one["slots"])
    verified = run("ledger", "verify", "ledger.db")
    assert verified.exit_code == 0, verified.output
    terms = next(entry for entry in load_entries("ledger.db") if entry.kind == "terms")
    assert terms.body["terms"]["training"]["optimiser"] == "fedadam"
    again = subprocess.run(command, cwd=tmp_path, capture_output=True, check=False, timeout=300)
    assert again.returncode == 2
    assert b"has 3 slots already" in again.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--flower", "--profile", "equilibrium"), "--profile: on Flower there must be one"),
        (("--flower", "--profile", "uniform", "--profile", "individual"), "there must be one"),
        (("--flower", "--seeds", "2"), "--seeds: must be 1 on Flower"),
        (("--flower", "--checkpoint", "x"), "--checkpoint: cannot be used on Flower"),
        (("--flower", "--ledger", "."), "--ledger: . is a directory"),
        (("--flower", "--engine", "plain"), "--engine: cannot be combined with --flower"),
        (("--ledger", "ledger.db"), "--ledger: is kept on Flower only"),
    ],
)
def test_rejected_on_flower(run: Run, words: tuple[str, ...], message: str) -> None:
    result = run("train", *FIVE, *words)
    assert result.exit_code == 2
    assert message in result.stderr


def test_the_old_flower_option_still_works_with_a_notice(run: Run) -> None:
    result = run("train", *FIVE, "--engine", "flower", "--seeds", "2")
    assert result.exit_code == 2
    first, second = result.stderr.splitlines()
    assert first.startswith("Note: --engine flower is now --flower;")
    assert second.startswith("Error: --seeds: must be 1 on Flower")
    assert "[vectorised|plain]" in run("train", "--help").stdout


def test_a_suspended_client_is_shown_beside_the_others(run: Run) -> None:
    words = (*FIVE, "--seeds", "1", "--slots", "4", "--deviate", "client-5@2:0")
    result = run(
        "train", *words, "--punishment", "suspension", "--csv", "r.csv", "--report", "r.html"
    )
    assert result.exit_code == 0, result.output
    assert "individual: slot 3: client-5 trained alone on 100 examples: " in result.stdout
    assert "Members on their own" in Path("r.html").read_text()
    with Path("r.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert {row["slot"] for row in rows if row["alone"] == "client-5"} == {"3"}
    assert len([row for row in rows if row["alone"]]) == 4  # rounds

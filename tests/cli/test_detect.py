"""`fedaccord detect`: the JSON contract, the table, and invalid input."""

import json
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("sklearn")
pytest.importorskip("pyod")

from tests.cli.conftest import Run

MEASURED = Path(__file__).parents[2] / "docs" / "explanation" / "free-rider-detection.json"
SMALL = (
    *("detect", "--task", "softmax", "--clients", "12", "--samples", "20", "--round", "2"),
    *("--reference", "40", "--detector", "ecod"),
)


@pytest.mark.slow
@pytest.mark.parametrize(
    "several",
    [
        ["--free-riders", "1", "5", "--disguise", "delta", "random:0.1"],
        ["--free-riders=1", "--free-riders", "5", "--disguise", "delta", "--disguise=random:0.1"],
    ],
    ids=["after one option", "option repeated"],
)
def test_json(run: Run, several: list[str]) -> None:
    result = run(*SMALL, *several, "--format", "json")
    assert (result.exit_code, result.stderr) == (0, "")
    record = json.loads(result.stdout)
    assert list(record["settings"]) == [
        *("free_riders", "disguise", "detector", "dataset", "task", "clients", "samples", "round"),
        *("alpha", "reference", "false_alarms", "repeats", "seed"),
    ]
    assert record["settings"]["clients"] == 12
    cases = [(one["disguise"], one["free_riders"], one["fitted_on"]) for one in record["outcomes"]]
    assert cases == [
        (disguise, count, way)
        for disguise in ("delta", "random:0.1")
        for count in (1, 5)
        for way in ("round", "reference")
    ]
    for one in record["outcomes"]:
        assert 0.0 <= one["auc"] <= 1.0
        assert 0.0 <= one["recall"] <= 1.0
        caught = one["dropped"] - one["dropped_contributors"]
        assert one["recall"] == caught / one["free_riders"]


@pytest.mark.slow
def test_the_table_has_one_row_per_case_with_means(run: Run) -> None:
    chosen = ["--free-riders", "3", "--disguise", "nothing", "--repeats", "2"]
    lines = [line.split() for line in run(*SMALL, *chosen).stdout.splitlines()]
    assert [line[:4] for line in lines[1:]] == [
        ["nothing", "3", "ecod", "round"],
        ["nothing", "3", "ecod", "reference"],
    ]
    text = run(*SMALL, *chosen, "--format", "json").stdout
    areas = [one["auc"] for one in json.loads(text)["outcomes"] if one["fitted_on"] == "round"]
    assert lines[1][4] == f"{sum(areas) / 2:.2f}"


def test_markdown_has_two_tables(run: Run) -> None:
    chosen = ["--free-riders", "3", "--disguise", "nothing", "--format", "markdown"]
    area, dropped = run(*SMALL, *chosen).stdout.split("\n\n")
    assert area.startswith("| disguise | free riders | ECOD, round | ECOD, reference |")
    assert dropped.count(" / ") == 2 * 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--disguise deltas", "no disguise called 'deltas': did you mean 'delta'?"),
        ("--detector x", "no detector called 'x': choose one of dagmm, std-dagmm, ecod"),
        ("--free-riders 12", "--free-riders: must be from 1 to 11 of 12 clients, got 12"),
        ("--free-riders -1", "--free-riders: must be from 1 to 11 of 12 clients, got -1"),
        ("--free-riders 1 many", "'many' is not a valid integer"),
        ("--free-riders 1 --dataset cifar", "there is no dataset called 'cifar'"),
        ("--repeats 0", "must be 1 or more, got 0"),
        ("--round 0 --seed -1", "2 mistakes"),
    ],
)
def test_invalid_options_are_rejected_with_one_sentence(
    run: Run, arguments: str, message: str
) -> None:
    words = SMALL[:-2] if "--detector" in arguments else SMALL
    result = run(*words, *arguments.split())
    assert (result.exit_code, result.stdout) == (2, "")
    assert "Error: " in result.stderr
    assert message in result.stderr
    assert "Traceback" not in result.stderr


def test_without_pytorch(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fedaccord.checks.is_installed", lambda _: False)
    result = run(*SMALL)
    assert result.exit_code == 2
    assert "free-rider detection needs PyTorch and scikit-learn: pip install" in result.stderr


@pytest.mark.slow
def test_the_stored_outcomes_can_be_reproduced(run: Run) -> None:
    """ECOD only, which is fast. Another CPU may swap a few pairs of close scores."""
    chosen = ["--free-riders", "49", "--disguise", "noisy-delta", "--detector", "ecod"]
    result = run("detect", *chosen, "--repeats", "3", "--format", "json")
    today = json.loads(result.stdout)["outcomes"]
    measured = json.loads(MEASURED.read_text(encoding="utf-8"))["outcomes"]
    case = ("disguise", "free_riders", "detector", "fitted_on", "seed")
    kept = {tuple(one[field] for field in case): one["auc"] for one in measured}
    assert len(today) == 6
    for one in today:
        assert one["auc"] == pytest.approx(kept[tuple(one[field] for field in case)], abs=0.02)

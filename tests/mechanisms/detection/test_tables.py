"""The tables in the docs are of the outcomes that were kept beside them."""

import json
from pathlib import Path

import pytest

from fedaccord.mechanisms.detection.__main__ import main
from fedaccord.mechanisms.detection.evaluation import markdown_tables, means_by_case

PAGE = Path(__file__).parents[3] / "docs" / "explanation" / "free-rider-detection.md"


def test_the_page_has_what_was_measured() -> None:
    """If it has not: run the page's command with `--format json` and `--format markdown`."""
    measured = json.loads(PAGE.with_suffix(".json").read_text(encoding="utf-8"))
    assert measured["settings"]["repeats"] == 3
    for table in markdown_tables(measured["outcomes"]):
        assert table.count("\n") == 1 + 15
        assert table in PAGE.read_text(encoding="utf-8")


def test_means_leave_out_a_precision_that_there_is_not() -> None:
    case = {"disguise": "delta", "free_riders": 2, "detector": "ecod", "fitted_on": "round"}
    none = {"auc": 0.5, "precision": None, "recall": 0.0, "dropped_contributors": 0}
    some = {"auc": 1.0, "precision": 0.5, "recall": 1.0, "dropped_contributors": 2}
    [means] = means_by_case([case | none, case | some]).values()
    assert means == ["0.75", "0.50", "0.50", "1.0"]
    area, dropped = markdown_tables([case | none])
    assert area.splitlines() == [
        "| disguise | free riders | ECOD, round |",
        "|---|---|---|",
        "| `delta` | 2 | 0.50 |",
    ]
    assert dropped.splitlines()[-1] == "| `delta` | 2 | – / 0.00 / 0.0 |"


@pytest.mark.slow
def test_the_kept_outcomes_are_of_today(capsys: pytest.CaptureFixture[str]) -> None:
    """ECOD only, which is quick. Another processor may turn a few pairs of close scores around."""
    chosen = ["--free-riders", "49", "--disguise", "noisy-delta", "--detector", "ecod"]
    assert main([*chosen, "--repeats", "3", "--format", "json"]) == 0
    today = json.loads(capsys.readouterr().out)["outcomes"]
    measured = json.loads(PAGE.with_suffix(".json").read_text(encoding="utf-8"))["outcomes"]
    case = ("disguise", "free_riders", "detector", "fitted_on", "seed")
    kept = {tuple(one[field] for field in case): one["auc"] for one in measured}
    assert len(today) == 6
    for one in today:
        assert one["auc"] == pytest.approx(kept[tuple(one[field] for field in case)], abs=0.02)

"""The tables in the docs match the stored outcomes."""

import json
from pathlib import Path

from fedaccord.mechanisms.detection.evaluation import markdown_tables, means_by_case

PAGE = Path(__file__).parents[3] / "docs" / "explanation" / "free-rider-detection.md"


def test_the_page_has_the_stored_outcomes() -> None:
    """If this fails: run the page's command with `--format json` and `--format markdown`."""
    measured = json.loads(PAGE.with_suffix(".json").read_text(encoding="utf-8"))
    assert measured["settings"]["repeats"] == 3
    for table in markdown_tables(measured["outcomes"]):
        assert table.count("\n") == 1 + 15
        assert table in PAGE.read_text(encoding="utf-8")


def test_means_leave_out_an_undefined_precision() -> None:
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

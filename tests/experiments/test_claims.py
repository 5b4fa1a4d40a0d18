"""Verdicts: what holds, what holds within rounding, what does not."""

import numpy as np
import pytest

from fedaccord.experiments import example
from fedaccord.experiments.claims import Verdict, listed, number, statement, unchanged
from fedaccord.experiments.shapes import (
    falls_in_case_ii,
    generally_increases,
    less_in_case_ii,
    more_removed,
    steps_down,
    steps_up,
    within_a_stretch,
)
from fedaccord.experiments.table import Table


@pytest.mark.parametrize(
    ("ours", "unrounded", "verdict"),
    [
        (82.34, None, "holds"),
        (82.26, 80.0, "holds"),
        (82.36, 82.31, "holds within rounding"),
        (82.36, 82.24, "does not hold"),
        (82.36, None, "does not hold"),
    ],
)
def test_a_number_is_compared_with_the_papers_digits(
    ours: float, unrounded: float | None, verdict: Verdict
) -> None:
    claim = number("up to", 82.3, ours, unrounded=unrounded, decimals=1, unit=" %", why="so")
    assert claim.verdict == verdict
    assert claim.paper == "82.3 %"
    assert bool(claim.why) == (verdict != "holds")


def test_why_is_said_only_when_a_statement_fails() -> None:
    assert statement("it rises", True, "it does", "because").why == ""
    assert statement("it rises", False, "it falls", "because").why == "because"


@pytest.mark.parametrize(
    ("values", "verdict"),
    [
        ([5.0, 5.0], "holds"),
        ([99.5, 100.0], "holds within rounding"),
        ([90.0, 100.0], "does not hold"),
    ],
)
def test_less_than_one_percent_is_unchanged_to_the_eye(
    values: list[float], verdict: Verdict
) -> None:
    assert unchanged("the same", np.array(values)).verdict == verdict


def test_a_few_values_in_a_sentence() -> None:
    assert listed(np.array([26.0])) == "26"
    assert listed(np.arange(1.0, 7.0), most=2) == "1, 2, 4 more"


def test_steps_ignore_rounding_of_our_own() -> None:
    values = np.array([1.0, 1.0 + 1e-12, 2.0, 1.5])
    assert steps_up(values).tolist() == [False, True, False]
    assert steps_down(values).tolist() == [False, False, True]


def zigzag(
    ratio: list[float], case: list[str], riders: list[int], level: float | list[float] = 0.0
) -> Table:
    return Table(
        {
            "clients": np.arange(1.0, len(ratio) + 1),
            "case": np.array(case),
            "free_riders": np.array(riders),
            "uniform_ratio": np.array(ratio),
            "uniform_removed": np.array(riders) - 1,
            "uniform_level": np.broadcast_to(level, len(ratio)),
        }
    )


def test_a_stretch_has_one_case_and_one_number_of_free_riders() -> None:
    table = zigzag([1.2, 1.1, 1.3, 1.2, 1.2], ["II", "II", "II", "I", "I"], [3, 3, 4, 4, 4])
    assert within_a_stretch(table, "II").tolist() == [True, False, False, False]
    assert within_a_stretch(table, "I").tolist() == [False, False, False, True]
    assert falls_in_case_ii(table, "N").verdict == "holds"  # the step up is between stretches


def test_a_tooth_that_rises_refutes_the_zigzag() -> None:
    table = zigzag([1.1, 1.2, 1.1], ["II", "II", "II"], [3, 3, 3])
    assert falls_in_case_ii(table, "N").verdict == "does not hold"


@pytest.mark.parametrize(
    ("level", "verdict"),
    [
        ([9_000.0, 8_000.0, 7_000.0], "holds"),
        ([10_000.0, 10_000.0, 7_000.0], "does not hold"),  # all their data, never a part twice
        ([9_000.0, 8_000.0, 8_500.0], "does not hold"),
        ([0.0, 0.0, 0.0], "does not hold"),  # no agreement
    ],
)
def test_who_gives_a_part_gives_less_along_a_tooth(level: list[float], verdict: Verdict) -> None:
    table = zigzag([1.3, 1.2, 1.1], ["II"] * 3, [3] * 3, level)
    claim = less_in_case_ii(table, "N")
    assert claim.verdict == verdict
    assert bool(claim.why) == (verdict != "holds")


def test_where_a_curve_falls_is_said() -> None:
    claim = more_removed(zigzag([1.0] * 4, ["II"] * 4, [3, 5, 4, 6]), "N")
    assert claim.verdict == "does not hold"
    assert "N = 3 " in claim.why


def test_generally_increasing_allows_for_a_few_steps_down() -> None:
    rising = [float(n) for n in range(20)]
    rising[5], rising[6] = rising[6], rising[5]
    case, riders = ["I"] * 20, [3] * 20
    assert generally_increases("it rises", zigzag(rising, case, riders)).verdict == "holds"
    falling = zigzag(rising[::-1], case, riders)
    assert generally_increases("it rises", falling).verdict == "does not hold"


def test_the_footnotes_example_holds() -> None:
    [claim] = example.claims()
    assert claim.verdict == "holds"

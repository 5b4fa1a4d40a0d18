"""The standard: one rule per kind of statement, the same for all figures."""

import ast
from pathlib import Path
from typing import Literal, get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedaccord.experiments import standard
from fedaccord.experiments.standard import (
    Finding,
    Verdict,
    by_reading,
    constant,
    fact,
    half_width,
    measured,
    more_than,
    over_choices,
    points,
    rank_correlation,
    steps,
    steps_down,
    steps_up,
    trend,
)

FIGURES = Path(standard.__file__).parent / "figures"
HOLDS = Finding("holds", "a")
EXCEPT = Finding("holds with exceptions", "b", "c")
NOT = Finding("does not hold", "d", "e")


def test_a_reason_is_given_only_if_a_statement_fails() -> None:
    assert fact(True, "it does", "because").why == ""
    assert fact(False, "it falls", "because") == Finding("does not hold", "it falls", "because")


def test_a_tie_is_neither_for_nor_against() -> None:
    """So "A has more" and "B has more" are treated alike."""
    one, other = np.array([5.0, 3.0]), np.array([5.0, 3.0 * (1 + 1e-12)])
    assert more_than(one, other, "").verdict == more_than(other, one, "").verdict
    ahead = np.append(np.full(9, 9.0), 5.0)
    assert more_than(ahead, np.full(10, 5.0), "").verdict == "holds with exceptions"
    assert more_than(ahead[-3:], np.full(3, 5.0), "").verdict == "does not hold"


@given(st.lists(st.sampled_from([0.0, 0.5, 1.0]), min_size=1, max_size=40))
def test_the_verdict_depends_on_the_share_of_points(true: list[float]) -> None:
    verdict = points(np.array(true), "").verdict
    share = sum(true) / len(true)
    assert (verdict == "holds") == (share == 1.0)
    assert (verdict == "does not hold") == (share < 0.9)


def test_without_data_nothing_is_decided() -> None:
    assert points(np.array([]), "").verdict == "not decided"
    assert steps(np.array([1.0, 2.0]), np.array([False]), "up", "").verdict == "not decided"


def test_steps_ignore_rounding_errors() -> None:
    values = np.array([1.0, 1.0 + 1e-12, 2.0, 1.5])
    assert steps_up(values).tolist() == [False, True, False]
    assert steps_down(values).tolist() == [False, False, True]


@pytest.mark.parametrize(
    ("values", "way", "verdict"),
    [
        ([1, 1, 2, 2], "up", "holds"),  # an equal step is not a step back
        ([2, 2, 1, 1], "down", "holds"),
        ([1, 1, 1, 1], "up", "does not hold"),  # it must move
        ([1, 2, 3, 4, 3.5, 6, 7, 8], "up", "holds with exceptions"),
        ([1, 5, 2, 4, 3], "up", "does not hold"),
        ([1, 2, 3], "down", "does not hold"),
    ],
)
def test_a_trend(values: list[float], way: Literal["up", "down"], verdict: Verdict) -> None:
    swept = np.arange(float(len(values)))
    assert trend(swept, np.array(values), way, "").verdict == verdict


@given(st.lists(st.integers(-9, 9), min_size=2, max_size=30))
def test_rising_and_falling_trends_are_treated_alike(numbers: list[int]) -> None:
    swept, values = np.arange(float(len(numbers))), np.array(numbers, dtype=float)
    assert trend(swept, values, "up", "").verdict == trend(swept, -values, "down", "").verdict


def test_generally_allows_for_exceptions() -> None:
    swept, values = np.arange(8.0), np.array([1, 2, 3, 4, 3.5, 6, 7, 8])
    assert trend(swept, values, "up", "", generally=True).verdict == "holds"
    assert trend(swept, -values, "up", "", generally=True).verdict == "does not hold"


def test_rank_correlation_is_the_correlation_of_ranks() -> None:
    assert rank_correlation(np.arange(4.0), np.array([1.0, 10.0, 1e3, 1e9])) == pytest.approx(1.0)
    assert rank_correlation(np.arange(3.0), np.array([5.0, 5.0 + 1e-12, 5.0])) == 0.0


@pytest.mark.parametrize(
    ("values", "verdict"),
    [
        ([5.0, 5.0], "holds"),
        ([99.5, 100.0], "holds within rounding"),
        ([90.0, 100.0], "does not hold"),
        ([100.0] * 9 + [97.0], "holds with exceptions"),
        ([0.0, 0.0], "holds"),
    ],
)
def test_constant_values(values: list[float], verdict: Verdict) -> None:
    assert constant(np.array(values), "").verdict == verdict


@pytest.mark.parametrize(
    ("difference", "half", "verdict"),
    [
        (0.5, 0.1, "holds"),
        (-0.5, 0.1, "does not hold"),
        (-0.0006, 0.037, "not decided"),
        (0.01, 0.03, "not decided"),
        (0.5, np.nan, "not decided"),  # one seed says nothing about chance
    ],
)
def test_differences_within_the_noise_are_not_decided(
    difference: float, half: float, verdict: Verdict
) -> None:
    assert measured(difference, half, "").verdict == verdict


def test_several_differences_hold_if_all_do_and_fail_if_one_does() -> None:
    half = np.full(3, 0.1)
    assert measured(np.array([0.5, 0.2, 0.3]), half, "").verdict == "holds"
    assert measured(np.array([0.5, 0.05, 0.3]), half, "").verdict == "not decided"
    assert measured(np.array([0.5, 0.05, -0.3]), half, "").verdict == "does not hold"


def test_intervals_have_the_right_coverage() -> None:
    """95 %; with 2,000 intervals the share is off by more than 2 points once in 10^4."""
    rng = np.random.default_rng(0)
    drawn = rng.normal(size=(5, 2000))
    covered = np.abs(drawn.mean(axis=0)) <= half_width(drawn)
    assert covered.mean() == pytest.approx(0.95, abs=0.02)


def test_readings_that_agree_give_one_verdict() -> None:
    assert by_reading({"one": HOLDS, "other": HOLDS}) == HOLDS
    assert by_reading({"one": HOLDS, "other": EXCEPT}).verdict == "holds with exceptions"
    assert by_reading({"one": NOT, "other": NOT}).verdict == "does not hold"


@pytest.mark.parametrize("holding", [HOLDS, EXCEPT])
def test_readings_that_differ_are_reported(holding: Finding) -> None:
    for findings in ({"in one": holding, "in other": NOT}, {"in other": NOT, "in one": holding}):
        found = by_reading(findings)
        assert found.verdict == "depends on the reading"
        assert found.why == "it is true in one; otherwise not: e"
        assert f"{holding.ours} (in one)" in found.ours
        assert "d (in other)" in found.ours


def test_a_verdict_may_depend_on_parameters_that_are_not_printed() -> None:
    assert over_choices(HOLDS, []) == HOLDS
    assert over_choices(HOLDS, [HOLDS, EXCEPT]).verdict == "holds"
    assert over_choices(NOT, [NOT]).verdict == "does not hold"
    for ours, other in ((HOLDS, NOT), (NOT, HOLDS)):
        found = over_choices(ours, [other, NOT])
        assert found.verdict == "depends on what is not printed"
        assert found.why == "true with 1 of 3 choices of the contract's parameters"


@pytest.mark.parametrize("figure", sorted(FIGURES.glob("*.py")), ids=lambda path: path.stem)
def test_no_figure_makes_its_own_verdicts(figure: Path) -> None:
    """They declare statements; only the standard turns findings into verdicts."""
    tree = ast.parse(figure.read_text(encoding="utf-8"))
    called = {
        node.func.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    }
    assert not called & {"Finding", "Claim", "replace"}


def test_the_rules_name_every_verdict() -> None:
    text = "\n".join(standard.RULES)
    for verdict in get_args(Verdict):
        assert f"*{verdict}*: " in text

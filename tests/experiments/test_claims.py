"""Claims: numbers, shapes of curves, and counterexamples that refute them."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import ArrayLike

from fedaccord.experiments import figures
from fedaccord.experiments.claims import Claim, found, listed, number
from fedaccord.experiments.evaluation import example_claims
from fedaccord.experiments.figure_data import FigureData
from fedaccord.experiments.figures import ratios
from fedaccord.experiments.figures.mechanisms import (
    almost_all,
    contributors_compared,
    data_compared,
    detection_falls,
)
from fedaccord.experiments.figures.ratios import triangles_above_dots
from fedaccord.experiments.figures.shapes import (
    converts_most,
    falls_in_case_ii,
    generally_increases,
    increases_data,
    less_in_case_ii,
    level_in_case_i,
    more_free_riders,
    more_removed,
    quick_then_slow,
    within_a_stretch,
)
from fedaccord.experiments.presets import find_preset
from fedaccord.experiments.standard import Verdict
from tests.experiments.presets_for_tests import few


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


def test_a_number_may_match_on_a_coarser_grid() -> None:
    def most(*coarser: float) -> Claim:
        return number("up to", 81.6, 81.71, coarser=coarser, decimals=1, unit=" %", why="so")

    assert most(81.57, 81.64, 81.71) == Claim(
        "up to",
        "81.6 %",
        "81.7 %",
        "holds within rounding",
        "holds within rounding",
        "81.6 % on 2 of 3 grids with a part of the values each, which give 81.57 % to 81.71 %",
    )
    assert most(81.66, 81.71).verdict == "does not hold"


def test_long_lists_of_values_are_shortened() -> None:
    assert listed(np.array([26.0])) == "26"
    assert listed(np.arange(1.0, 7.0), most=2) == "1, 2, 4 more"


def zigzag(
    ratio: list[float], case: list[str], riders: list[int], level: float | list[float] = 0.0
) -> FigureData:
    return FigureData(
        {
            "clients": np.arange(1.0, len(ratio) + 1),
            "case": np.array(case),
            "free_riders": np.array(riders),
            "uniform_ratio": np.array(ratio),
            "uniform_removed": np.array(riders) - 1,
            "counted_removed": np.array(riders) - 1,
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
    ("level", "ours", "why"),
    [
        ([9e3, 8e3, 7e3], "less at 2, the same at 0, more at 0 of 2 steps", ""),
        # without an agreement there are no converted clients
        ([1e4, 249.0, 0.0], "less at 1, the same at 0, more at 0 of 1 steps", ""),
        (
            [1e4, 1e4, 7e3],
            "less at 1, the same at 0, more at 0 of 1 steps within a stretch; at 1 others they "
            "contribute all their data",
            "",
        ),
        ([9e3, 8e3, 8.5e3], "less at 1, the same at 0, more at 1 of 2", "it is not less at all"),
        ([9e3, 9e3, 9e3], "less at 0, the same at 2, more at 0 of 2", "it is not less at all"),
    ],
)
def test_converted_clients_contribute_less_along_a_tooth(
    level: list[float], ours: str, why: str
) -> None:
    table = zigzag([1.3, 1.2, 1.1], ["II"] * 3, [3] * 3, level)
    claim = less_in_case_ii(table, "N")
    assert ours in claim.ours
    assert claim.verdict == ("does not hold" if why else "holds")
    assert claim.why.startswith(why) if why else not claim.why


def test_a_statement_about_steps_that_do_not_exist_is_not_decided() -> None:
    for level in (0.0, 1e4):  # no agreement, or one on all data, where there is nothing to choose
        table = zigzag([1.3, 1.2, 1.1], ["II"] * 3, [3] * 3, level)
        assert less_in_case_ii(table, "N").verdict == "not decided"


def test_with_and_without_a_critical_client_the_level_is_judged_at_the_same_kind_of_steps() -> None:
    """As D grows, those who contribute all they have contribute more without choosing to.

    Figure 6 has a client that is critical, and none, on both sides of the D where that ends.
    """
    for case in ("I", "II"):
        table = FigureData(
            {
                "samples": np.array([8e3, 8.1e3, 8.2e3, 8.3e3]),
                "case": np.array([case] * 4),
                "free_riders": np.array([9] * 4),
                "uniform_level": np.array([8e3, 8.1e3, 8.15e3, 8.1e3]),
            },
        )
        rises, falls = level_in_case_i(table, "the level rises", ""), less_in_case_ii(table, "D")
        claim = rises if case == "I" else falls
        assert claim.ours.endswith("; at 2 others they contribute all their data")
        assert "1 steps within a stretch" in claim.ours
        assert claim.verdict == ("does not hold" if case == "I" else "holds")


def test_figure_6_as_it_is() -> None:
    claims = {claim.statement: claim for claim in ratios.claims(find_preset("fig6"))}
    rises = claims["With a critical client the converted clients' level increases with D."]
    assert rises.verdict == "does not hold"
    assert rises.ours.startswith("up at 0, down at 0 of 374 steps within a stretch; at 84 others")
    falls = claims[
        "Without a critical client, under the same number of free riders, converted clients "
        "choose less data as D grows."
    ]
    assert falls.verdict == "holds"
    assert falls.ours == (
        "less at 162, the same at 0, more at 0 of 162 steps within a stretch; at 208 others they "
        "contribute all their data"
    )


@pytest.mark.parametrize(("level", "without"), [(0.0, "at 1 of 1"), (5e3, "at 0 of 1")])
def test_the_reason_says_where_a_curve_falls(level: float, without: str) -> None:
    claim = more_removed(zigzag([1.0] * 4, ["II"] * 4, [3, 5, 4, 4], level), "N")
    assert claim.verdict == "does not hold"
    assert f"N = 3; {without} there is no uniform agreement" in claim.why


@pytest.mark.parametrize("name", ["fig3", "fig5", "fig7", "fig10", "fig16"])
def test_a_reversed_sweep_counts_the_steps_in_the_other_direction(name: str) -> None:
    """Findings are computed: they never say that a falling curve always rises."""
    preset = few(name)
    backwards = replace(preset, values=preset.values[::-1])
    told = [claim.ours for claim in figures.claims(preset)]
    turned = [claim.ours for claim in figures.claims(backwards)]
    assert any("never " in ours for ours in told)
    assert not any("never " in ours for ours in turned)


def test_equal_steps_along_a_tooth_are_counted() -> None:
    table = zigzag([1.0, 1.0, 1.1, 1.1, 1.05], ["II"] * 5, [2, 2, 3, 3, 3], [0, 0, 1e4, 1e4, 9e3])
    assert falls_in_case_ii(table, "N").ours.endswith(
        "the same at 2, 1 of them without an agreement"
    )
    flat = zigzag([1.0] * 3, ["II"] * 3, [3] * 3)
    assert falls_in_case_ii(flat, "N").verdict == "does not hold"


def test_generally_increasing_allows_for_a_few_steps_down() -> None:
    rising = [float(n) for n in range(20)]
    rising[5], rising[6] = rising[6], rising[5]
    case, riders = ["I"] * 20, [3] * 20
    assert generally_increases("it rises", zigzag(rising, case, riders)).verdict == "holds"
    falling = zigzag(rising[::-1], case, riders)
    assert generally_increases("it rises", falling).verdict == "does not hold"


def test_the_footnotes_example_holds() -> None:
    [claim] = example_claims()
    assert claim.verdict == "holds"


def columns(**values: ArrayLike) -> FigureData:
    """A made-up table over N = 1, 2, ..."""
    length = max(np.size(column) for column in values.values())
    full = {name: np.broadcast_to(column, length) for name, column in values.items()}
    return FigureData({"clients": np.arange(1.0, length + 1.0), **full})


COMPARED: dict[str, ArrayLike] = {
    "detection_contributors": 5,
    "contract_contributors": 2,
    "free_riders": 1,
    "uniform_level": 3.0,
}


@pytest.mark.parametrize(
    ("claim", "holds", "fails"),
    [
        (
            lambda table: detection_falls(table, "total"),
            {"detection_total": [9.0, 9.0, 8.0]},
            {"detection_total": [9.0, 9.5, 9.2]},  # rises in between
        ),
        (
            lambda table: detection_falls(table, "contributors"),
            {"detection_contributors": [9.0, 8.0]},
            {"detection_contributors": [9.0, 9.0]},  # never falls
        ),
        (
            lambda table: found("", contributors_compared(table, "uniform")),
            {"uniform_contributors": [9, 9], **COMPARED},
            {"uniform_contributors": [9, 4], **COMPARED},
        ),
        (
            lambda table: converts_most(table, "N", large=2),
            {"free_riders": [10, 10], "uniform_removed": [0, 6]},
            {"free_riders": [10, 10], "uniform_removed": [10, 5]},  # half is not most
        ),
        (
            lambda table: increases_data(table, "N", large=2),
            {"uniform_ratio": [1.0, 1.1]},
            {"uniform_ratio": [1.1, 1.0]},
        ),
        (
            lambda table: more_free_riders(table, "N"),
            {"free_riders": [1, 1, 2]},
            {"free_riders": [1, 2, 0]},
        ),
        (
            lambda table: level_in_case_i(table, "the level rises", "so"),
            {"case": "I", "free_riders": 3, "uniform_level": [1.0, 2.0]},
            {"case": "I", "free_riders": 3, "uniform_level": [2.0, 2.0]},
        ),
        (
            triangles_above_dots,
            # the critical client is the fourth of four, or not counted; there are four anyway
            {"case": ["I", "II", "II"], "contributors": [4, 3, 4], "uniform_ratio": [1.7, 1.8, 2]},
            {"case": ["I", "II", "II"], "contributors": [4, 3, 4], "uniform_ratio": [1.8, 1.7, 1]},
        ),
    ],
)
def test_a_counterexample_refutes_a_claim(
    claim: Callable[[FigureData], Claim], holds: dict[str, ArrayLike], fails: dict[str, ArrayLike]
) -> None:
    assert claim(columns(**holds)).verdict == "holds"
    assert claim(columns(**fails)).verdict == "does not hold"


def sawtooth(slope: float, height: float) -> FigureData:
    """All data is contributed up to N = 50, for a ratio of 2; then a sawtooth."""
    n = np.arange(1.0, 151.0)
    late = np.maximum(n - 50, 0)
    return columns(
        uniform_ratio=1.0 + np.minimum(n, 50) / 50 + slope * late + height * (late % 10),
        uniform_level=np.where(n <= 50, 10_000.0, 9_000.0),
        free_riders=1 + late // 10,
    )


@pytest.mark.parametrize(
    ("slope", "height", "verdict"),
    [
        (0.001, 0.002, "holds"),
        (0.015, 0.002, "does not hold"),  # nearly as fast as before
        (-0.015, 0.002, "does not hold"),
        (0.001, 0.0, "does not hold"),  # no zigzag
    ],
)
def test_fast_then_slow_requires_both_and_teeth(slope: float, height: float, verdict: str) -> None:
    assert quick_then_slow(sawtooth(slope, height), "N").verdict == verdict


def test_the_reason_counts_where_the_agreement_is_not_ahead() -> None:
    table = columns(
        uniform_total=[5.0, 6.0, 6.0, 9.0],
        detection_total=[5.0, 6.0, 6.0, 6.0],
        contract_total=2.0,
        free_riders=[0, 1, 1, 1],
        uniform_level=[0.0, 0.0, 0.0, 3.0],
        uniform_contributors=[100, 99, 98, 99],
        counted_contributors=[100, 99, 98, 99],
    )
    counted = "nobody free-rides at 1, there is no uniform agreement at 2"
    for claim in (found("", data_compared(table)), almost_all(table, "N")):
        assert claim.verdict == "does not hold"
        assert counted in claim.why
    last = table.where(table.swept == 4)
    assert data_compared(last).verdict == almost_all(last, "N").verdict == "holds"

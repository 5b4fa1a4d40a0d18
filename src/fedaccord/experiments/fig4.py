"""Figure 4: how much more data the agreements bring, by the number of clients N."""

import numpy as np

from fedaccord.experiments.claims import Claim, number
from fedaccord.experiments.presets import Preset
from fedaccord.experiments.ratios import draw, run
from fedaccord.experiments.shapes import (
    falls_in_case_ii,
    generally_increases,
    increases_data,
    less_in_case_ii,
    most_more_data,
)
from fedaccord.experiments.sweep import sweep

__all__ = ["claims", "draw", "run"]


def claims(preset: Preset) -> list[Claim]:
    """What section 5.1 says about the figure, footnote and summary included."""
    table = sweep(preset)
    at, exact = (t.where(t.swept == 181) for t in (table, sweep(preset.unrounded())))
    # the paper's levels are whole samples
    whole = np.floor(exact["uniform_level"]) * exact["uniform_removed"] + exact["total"]
    return [
        generally_increases(
            "With a critical client the data ratio generally increases with N.",
            table.where(table["case"] == "I"),
        ),
        falls_in_case_ii(table, "N"),
        less_in_case_ii(table, "N"),
        number("N = 181: m, the free riders at the equilibrium", 120, at["free_riders"][0]),
        number("N = 181: training data at the equilibrium", 610_000, at["total"][0]),
        number(
            "N = 181: training data under the agreement",
            1_112_299,
            at["uniform_total"][0],
            unrounded=whole[0],
        ),
        number(
            "N = 181: the data ratio",
            1.823,
            at["uniform_ratio"][0],
            unrounded=whole[0] / exact["total"][0],
            decimals=3,
        ),
        most_more_data(preset, 82.3),
        number("The largest increase is at N =", 181, table.swept[table["uniform_ratio"].argmax()]),
        increases_data(table, "N", large=100),
    ]

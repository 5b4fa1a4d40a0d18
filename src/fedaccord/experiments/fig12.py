"""Figure 12: how much more data the agreements bring, by the rounds in a slot G."""

import numpy as np

from fedaccord.experiments.claims import Claim, judge
from fedaccord.experiments.presets import Preset
from fedaccord.experiments.ratios import draw, run
from fedaccord.experiments.shapes import (
    falls_in_case_ii,
    generally_increases,
    increases_data,
    less_in_case_ii,
    level_in_case_i,
    most_more_data,
    total_in_case_i,
)
from fedaccord.experiments.standard import NOISE, Finding, by_reading, comparison
from fedaccord.experiments.sweep import sweep
from fedaccord.experiments.table import Column, Table

__all__ = ["claims", "draw", "run"]


def claims(preset: Preset) -> list[Claim]:
    """What appendix H says about the figure."""
    table = sweep(preset)
    return [
        generally_increases(
            "With a critical client the data ratio generally increases with G.",
            table.where(table["case"] == "I"),
        ),
        level_in_case_i(
            table,
            "With a critical client, converted clients choose more data as G grows.",
            "their level falls in proportion to the equilibrium's total; only the ratio stays",
        ),
        total_in_case_i(
            table,
            "With a critical client, the total data that clients choose increases with G.",
            "the equilibrium's total falls, and the level with it",
        ),
        falls_in_case_ii(table, "G"),
        less_in_case_ii(table, "G"),
        triangles_above_dots(table),
        converted_choose_less(table),
        most_more_data(preset, 80.9),
        increases_data(table, "G", large=1),
    ]


def triangles_above_dots(table: Table) -> Claim:
    """The ratio without a critical client is above that with one."""
    return judge(
        "With the same number of contributors, the data ratio without a critical client is above "
        "that with one.",
        table,
        lambda table: _by_contributors(table, table["uniform_ratio"], "the ranges overlap"),
    )


def converted_choose_less(table: Table) -> Claim:
    """The paper's reason."""
    return judge(
        "With the same number of contributors, converted clients choose less data in total when "
        "there is a critical client.",
        table,
        lambda table: _by_contributors(
            table,
            table["uniform_level"] * table["uniform_removed"],
            "one client fewer is converted then, but the equilibrium's total is larger, and the "
            "level with it",
        ),
    )


def _by_contributors(table: Table, values: Column, why: str) -> Finding:
    """The critical client is a contributor, or it is not."""
    contributors = table["contributors"]
    counts = {
        "if a contributor trains on anything": contributors,
        "if a contributor trains on all its data, as in Theorem 1": contributors
        - (table["case"] == "I"),
    }
    return by_reading({name: _above(table, values, n, why) for name, n in counts.items()})


def _above(table: Table, values: Column, count: Column, why: str) -> Finding:
    """Whether all values without a critical client are above all with, count by count."""
    pairs = [
        (
            values[(count == many) & (table["case"] == "II")].min(initial=np.inf),
            values[(count == many) & (table["case"] == "I")].max(initial=-np.inf),
        )
        for many in np.unique(count)
    ]
    both = np.array([pair for pair in pairs if np.isfinite(pair).all()]).reshape(-1, 2)
    above = int((both[:, 0] > (1 + NOISE) * both[:, 1]).sum())
    below = int((both[:, 0] < (1 - NOISE) * both[:, 1]).sum())
    ours = f"for {above} of {len(both)} numbers of contributors that have both, not for {below}"
    return comparison(both[:, 0], both[:, 1], ours, why)

"""Figure 12: how much more data the agreements bring, by the rounds in a slot G."""

import numpy as np

from fedaccord.experiments.claims import Claim, statement
from fedaccord.experiments.presets import Preset
from fedaccord.experiments.ratios import draw, run
from fedaccord.experiments.shapes import (
    falls_in_case_ii,
    generally_increases,
    increases_data,
    less_in_case_ii,
    level_in_case_i,
    most_more_data,
    steps_down,
    steps_up,
    within_a_stretch,
)
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
        _total_in_case_i(table),
        falls_in_case_ii(table, "G"),
        less_in_case_ii(table, "G"),
        triangles_above_dots(table),
        converted_choose_less(table),
        most_more_data(preset, 80.9),
        increases_data(table, "G", large=1),
    ]


def _total_in_case_i(table: Table) -> Claim:
    inside = within_a_stretch(table, "I")
    up, down = (int(s(table["uniform_total"])[inside].sum()) for s in (steps_up, steps_down))
    return statement(
        "With a critical client, the total data that clients choose increases with G.",
        up == inside.sum(),
        f"up at {up}, down at {down} of {int(inside.sum())} steps within a stretch",
        "the equilibrium's total falls, and the level with it",
    )


def triangles_above_dots(table: Table) -> Claim:
    """Who gives all is counted; it is said what would come of counting the critical client, too."""
    ratio, contributors = table["uniform_ratio"], table["contributors"]
    above, pairs = _above(table, ratio, contributors - (table["case"] == "I"))
    with_it, all_pairs = _above(table, ratio, contributors)
    return statement(
        "With the same number of contributors that give all, the data ratio without a critical "
        "client is above that with one.",
        above == pairs,
        f"for {above} of {pairs} numbers of contributors that have both; for {with_it} of "
        f"{all_pairs} if the critical client counts as one of them",
        "the ranges overlap at the others",
    )


def converted_choose_less(table: Table) -> Claim:
    """The paper's reason."""
    chosen = table["uniform_level"] * table["uniform_removed"]
    above, pairs = _above(table, chosen, table["contributors"] - (table["case"] == "I"))
    return statement(
        "With the same number of contributors that give all, converted clients choose less data "
        "in total when there is a critical client.",
        above == pairs,
        f"for {above} of {pairs} numbers of contributors that have both",
        "one client fewer is converted then, but the equilibrium's total is larger, and the level "
        "with it",
    )


def _above(table: Table, values: Column, count: Column) -> tuple[int, int]:
    """For how many counts all values without a critical client are above all with; of how many."""
    pairs = above = 0
    for many in np.unique(count):
        with_one, without = (
            values[(count == many) & (table["case"] == case)] for case in ("I", "II")
        )
        if with_one.size and without.size:
            pairs += 1
            above += int(without.min() >= with_one.max())
    return above, pairs

"""Figure 10: training data under each mechanism, by the discount factor."""

import numpy as np

from fedaccord.experiments.claims import Claim, judge, number, one_or_range
from fedaccord.experiments.comparison import (
    compare,
    compare_otherwise,
    contract_unchanged,
    most_data,
)
from fedaccord.experiments.presets import Preset, find_preset
from fedaccord.experiments.shapes import rising
from fedaccord.experiments.standard import Finding, by_reading, constant, fact, points
from fedaccord.experiments.table import Table
from fedaccord.experiments.totals import draw, run

__all__ = ["claims", "draw", "run"]


def claims(preset: Preset) -> list[Claim]:
    """What section 5.2 says about the figure."""
    table = compare(preset)
    full = table.swept[table["uniform_level"] >= preset.setting.samples]
    return [
        most_data(preset),
        rising(
            "The amount of training data first increases with the discount factor.",
            table,
            "uniform_total",
        ),
        number("It is constant from a discount factor of", 0.87, full[0], decimals=2),
        judge("Under detection the amount of data remains unchanged.", table, _detection),
        contract_unchanged(preset, "total"),
        judge(
            "Under detection, contributors participate with all their data.",
            table,
            detected_give_all,
        ),
        judge(
            "Under contract design, contributors participate with all their data.",
            table,
            _served_give_all,
            others=compare_otherwise(preset),
        ),
    ]


def _detection(table: Table) -> Finding:
    return constant(table["total"], one_or_range(table["total"]), "it changes")


def detected_give_all(table: Table) -> Finding:
    """The critical client is a contributor, or it is not."""
    samples = find_preset("fig10").setting.samples
    partial = table["total"] - (table["contributors"] - 1) * samples
    without = table["case"] != "I"
    return by_reading(
        {
            "if a contributor trains on anything": points(
                without | (partial == samples),
                f"all but one, which gives {partial.max():,.0f} of {samples:,.0f}",
                "the critical client of the equilibrium contributes in part, and is no free rider "
                "to detect",
            ),
            "if a contributor trains on all its data, as in Theorem 1": fact(
                True, "all, by definition"
            ),
        }
    )


def _served_give_all(table: Table) -> Finding:
    samples = find_preset("fig10").setting.samples
    served = table["contract_contributors"]
    bought = table["contract_total"] / np.maximum(served, 1)
    ours = f"{one_or_range(bought)} of {samples:,.0f} samples each"
    return points((bought == samples) | (served == 0), ours)

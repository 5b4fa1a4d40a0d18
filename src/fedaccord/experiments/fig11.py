"""Figure 11: how many free riders the agreements remove, by the rounds in a slot G."""

import numpy as np

from fedaccord.experiments.claims import Claim, number, statement
from fedaccord.experiments.presets import Preset
from fedaccord.experiments.removed import draw, run
from fedaccord.experiments.shapes import (
    converts_most,
    more_free_riders,
    more_removed,
    removed_share,
    steps_down,
    within_a_stretch,
)
from fedaccord.experiments.sweep import sweep
from fedaccord.experiments.table import Table

__all__ = ["claims", "draw", "run"]


def claims(preset: Preset) -> list[Claim]:
    """What appendix H says about the figure."""
    table = sweep(preset)
    most = removed_share(table).max()
    return [
        more_free_riders(table, "G"),
        more_removed(table, "G"),
        _stepwise(table),
        _critical_client_gives_less(table, preset.setting.samples),
        number("Free riders are reduced by", 98.4, most, decimals=1, unit=" %"),
        converts_most(table, "G", large=1),
    ]


def _stepwise(table: Table) -> Claim:
    steps = np.unique(table["free_riders"]).size
    return statement(
        "The curve is stepwise: an interval of G for each number of free riders.",
        steps < len(table),
        f"{steps} steps over {len(table)} values of G",
    )


def _critical_client_gives_less(table: Table, samples: float) -> Claim:
    given = table["total"] - (table["contributors"] - 1) * samples
    falls = steps_down(given)[within_a_stretch(table, "I")]
    return statement(
        "While there is a critical client, its contribution decreases with G.",
        falls.all(),
        f"at {int(falls.sum())} of {falls.size} steps within a stretch",
    )

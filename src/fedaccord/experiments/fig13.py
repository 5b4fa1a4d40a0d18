"""Figure 13: how many free riders the agreements remove, by the cost per sample E."""

import numpy as np

from fedaccord.experiments.claims import Claim, judge
from fedaccord.experiments.presets import Preset
from fedaccord.experiments.removed import draw, run
from fedaccord.experiments.shapes import (
    converts_most,
    few_then_many,
    more_free_riders,
    more_removed,
)
from fedaccord.experiments.standard import Finding, points
from fedaccord.experiments.sweep import sweep
from fedaccord.experiments.table import Table

__all__ = ["claims", "draw", "run"]


def claims(preset: Preset) -> list[Claim]:
    """What appendix H says about the figure."""
    table = sweep(preset)
    return [
        more_free_riders(table, "E"),
        more_removed(table, "E"),
        judge(
            "The number of reduced free riders has diminishing returns in E.", table, _diminishing
        ),
        few_then_many(table, "E"),
        converts_most(table, "E", large=1e-8),
    ]


def _diminishing(table: Table) -> Finding:
    ends = np.linspace(0, len(table) - 1, 6).astype(int)
    gains = np.diff(table["uniform_removed"][ends])
    ours = "each fifth of the range adds " + ", ".join(f"{gain:.0f}" for gain in gains)
    return points(np.diff(gains) < 0, ours)

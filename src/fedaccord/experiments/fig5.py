"""Figure 5: how many free riders the agreements remove, by the samples of each client D."""

from fedaccord.experiments.claims import Claim, number
from fedaccord.experiments.presets import Preset
from fedaccord.experiments.removed import draw, run
from fedaccord.experiments.shapes import (
    converts_most,
    few_then_many,
    more_free_riders,
    more_removed,
    removed_share,
)
from fedaccord.experiments.sweep import sweep

__all__ = ["claims", "draw", "run"]


def claims(preset: Preset) -> list[Claim]:
    """What section 5.1 says about the figure."""
    table = sweep(preset)
    most = removed_share(table).max()
    return [
        more_free_riders(table, "D"),
        few_then_many(table, "D"),
        more_removed(table, "D"),
        number("Free riders are reduced by up to", 98.5, most, decimals=1, unit=" %"),
        converts_most(table, "D", large=10_000),
    ]

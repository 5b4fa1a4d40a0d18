"""Figure 14: how much more data the agreements bring, by the cost per sample E."""

from fedaccord.experiments.claims import Claim, number, statement
from fedaccord.experiments.presets import Preset
from fedaccord.experiments.ratios import draw, run
from fedaccord.experiments.shapes import (
    falls_in_case_ii,
    generally_increases,
    more_data,
    near,
    quick_then_slow,
    steps_down,
)
from fedaccord.experiments.sweep import sweep

__all__ = ["claims", "draw", "run"]

_EVERY = 5
"""Of our 1,000 values every fifth: 200 are what a figure would have."""


def claims(preset: Preset) -> list[Claim]:
    """What appendix H says about the figure and its subfigure."""
    table = sweep(preset)
    assert preset.zoom is not None
    closer = near(table, preset.zoom)
    down = int(steps_down(closer["uniform_ratio"]).sum())
    more = more_data(table)
    return [
        generally_increases(
            "With a critical client the data ratio generally increases with E.",
            table.where(table["case"] == "I"),
        ),
        quick_then_slow(table, "E"),
        number(
            "Training data is increased by up to",
            81.6,
            more.max(),
            coarser=[more[first::_EVERY].max() for first in range(_EVERY)],
            decimals=1,
            unit=" %",
        ),
        falls_in_case_ii(table, "E"),
        statement(
            "Subfigure: the curve is a zigzag.",
            0 < down < len(closer) - 1,
            f"of {len(closer) - 1} steps {down} lead down",
        ),
    ]

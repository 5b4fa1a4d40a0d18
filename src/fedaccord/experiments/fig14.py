"""Figure 14: how much more data the agreements bring, by the cost per sample E."""

from fedaccord.experiments.claims import Claim, judge
from fedaccord.experiments.presets import Preset
from fedaccord.experiments.ratios import draw, run
from fedaccord.experiments.shapes import (
    falls_in_case_ii,
    generally_increases,
    most_more_data,
    near,
    quick_then_slow,
)
from fedaccord.experiments.standard import Finding, fact, steps_down, steps_up
from fedaccord.experiments.sweep import sweep
from fedaccord.experiments.table import Table

__all__ = ["claims", "draw", "run"]


def claims(preset: Preset) -> list[Claim]:
    """What appendix H says about the figure and its subfigure."""
    table = sweep(preset)
    assert preset.zoom is not None
    closer = near(table, preset.zoom)
    return [
        generally_increases(
            "With a critical client the data ratio generally increases with E.",
            table.where(table["case"] == "I"),
        ),
        quick_then_slow(table, "E"),
        most_more_data(preset, 81.6),
        falls_in_case_ii(table, "E"),
        judge("Subfigure: the curve is a zigzag.", closer, _zigzag),
    ]


def _zigzag(table: Table) -> Finding:
    up, down = (int(way(table["uniform_ratio"]).sum()) for way in (steps_up, steps_down))
    ours = f"of {len(table) - 1} steps {up} lead up, {down} down"
    return fact(up > 0 and down > 0, ours)

"""Figure 15: how many free riders the agreements remove, by the discount factor."""

from fedaccord.experiments.claims import Claim, judge, one_or_range
from fedaccord.experiments.presets import Preset
from fedaccord.experiments.removed import draw, run
from fedaccord.experiments.shapes import by_count
from fedaccord.experiments.standard import Finding, constant
from fedaccord.experiments.sweep import least_patience, sweep
from fedaccord.experiments.table import Table

__all__ = ["claims", "draw", "run"]


def claims(preset: Preset) -> list[Claim]:
    """What appendix H says about the figure."""
    text = "The discount factor does not affect the number of reduced free riders."
    return [judge(text, sweep(preset), by_count(_unchanged))]


def _unchanged(table: Table, count: str) -> Finding:
    removed = table[f"{count}_removed"]
    return constant(
        removed,
        one_or_range(removed),
        f"below {least_patience():.4f} the paper's client l keeps to no level above 0, and clients "
        "at level 0 give nothing",
    )

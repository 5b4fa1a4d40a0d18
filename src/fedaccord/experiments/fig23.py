"""Figure 23: training data under each mechanism, by the cost per sample E."""

from fedaccord.experiments.claims import Claim, judge
from fedaccord.experiments.comparison import (
    compare,
    compare_otherwise,
    detection_falls,
    flat_then_down,
    most_data,
)
from fedaccord.experiments.presets import Preset, find_preset
from fedaccord.experiments.standard import Finding, points
from fedaccord.experiments.table import Table
from fedaccord.experiments.totals import draw, run

__all__ = ["claims", "draw", "run"]


def claims(preset: Preset) -> list[Claim]:
    """What appendix H says about the figure."""
    table = compare(preset)
    return [
        most_data(preset),
        *flat_then_down(table, "E", "decreases"),
        detection_falls(table, "total"),
        judge(
            "Under contract design the training data follows the number of contributors.",
            table,
            _follows,
            others=compare_otherwise(preset),
        ),
    ]


def _follows(table: Table) -> Finding:
    samples = find_preset("fig23").setting.samples
    follows = table["contract_total"] == table["contract_contributors"] * samples
    ours = (
        f"{samples:,.0f} samples a contributor at {int(follows.sum()):,} of {len(table):,} values"
    )
    return points(follows, ours)

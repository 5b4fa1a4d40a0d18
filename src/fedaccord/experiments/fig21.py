"""Figure 21: training data under each mechanism, by the samples of each client D."""

from fedaccord.experiments.claims import Claim, judge, one_or_range
from fedaccord.experiments.comparison import (
    all_then_a_part,
    compare,
    compare_otherwise,
    more_patience_needed,
    most_data,
)
from fedaccord.experiments.presets import Preset
from fedaccord.experiments.shapes import before_and_after, slope
from fedaccord.experiments.standard import SLOWER, Finding, constant, fact, steps_down
from fedaccord.experiments.table import Table
from fedaccord.experiments.totals import draw, run

__all__ = ["claims", "draw", "run"]


def claims(preset: Preset) -> list[Claim]:
    """What appendix H says about the figure."""
    table = compare(preset)
    return [
        most_data(preset),
        all_then_a_part(table, "D"),
        more_patience_needed(table, "D"),
        judge(
            "Under the agreement the training data first increases linearly with D, then slowly.",
            table,
            _linearly_then_slowly,
        ),
        judge("Under detection the training data increases slowly with D.", table, _slowly),
        judge(
            "Under contract design the training data increases linearly with D.",
            table,
            _linearly,
            others=compare_otherwise(preset),
        ),
    ]


def _linearly_then_slowly(table: Table) -> Finding:
    early, late = before_and_after(table)
    before, after = slope(early, "uniform_total"), slope(late, "uniform_total")
    return fact(
        before > SLOWER * after > 0.0,
        f"by {before:.0f} samples a sample of D up to {early.swept[-1]:,.0f}, by {after:.0f} after",
    )


def _slowly(table: Table) -> Finding:
    """Against the agreement while that goes linearly."""
    linear, overall = slope(before_and_after(table)[0], "uniform_total"), slope(table, "total")
    return fact(
        not steps_down(table["total"]).any() and linear > SLOWER * overall,
        f"by {overall:.0f} samples a sample of D, under the agreement by {linear:.0f} at first",
    )


def _linearly(table: Table) -> Finding:
    per_sample = table["contract_total"] / table.swept
    return constant(per_sample, f"by {one_or_range(per_sample)} samples a sample of D")

"""Figure 21: training data under each mechanism, by the samples of each client D."""

from fedaccord.experiments.claims import Claim, statement
from fedaccord.experiments.comparison import (
    all_then_a_part,
    compare,
    more_patience_needed,
    most_data,
)
from fedaccord.experiments.presets import Preset
from fedaccord.experiments.shapes import slope, steps_down
from fedaccord.experiments.totals import draw, run

__all__ = ["claims", "draw", "run"]


def claims(preset: Preset) -> list[Claim]:
    """What appendix H says about the figure."""
    table = compare(preset)
    until = table.swept[table["uniform_level"] >= table.swept].max()
    parts = (table.where(table.swept <= until), table.where(table.swept >= until))
    early, late = (slope(part, "uniform_total") for part in parts)
    before, after = (slope(part, "total") for part in parts)
    per_sample = table["contract_total"] / table.swept
    return [
        most_data(table),
        all_then_a_part(table, table.swept, "D"),
        more_patience_needed(table, "D"),
        statement(
            "Under the agreement the training data first increases linearly with D, then slowly.",
            early > 2.0 * late > 0.0,
            f"by {early:.0f} samples a sample of D up to {until:,.0f}, by {late:.0f} after it",
        ),
        statement(
            "Under detection the training data increases slowly with D.",
            not steps_down(table["total"]).any() and after < early,
            f"by {before:.0f} samples a sample of D up to {until:,.0f}, by {after:.0f} after it",
        ),
        statement(
            "Under contract design the training data increases linearly with D.",
            per_sample.min() == per_sample.max(),
            f"by {per_sample.max():.0f} samples a sample of D",
        ),
    ]

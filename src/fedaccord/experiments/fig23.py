"""Figure 23: training data under each mechanism, by the cost per sample E."""

from fedaccord.experiments.claims import Claim, statement
from fedaccord.experiments.comparison import (
    compare,
    detection_falls,
    flat_then_down,
    most_data,
)
from fedaccord.experiments.presets import Preset
from fedaccord.experiments.totals import draw, run

__all__ = ["claims", "draw", "run"]


def claims(preset: Preset) -> list[Claim]:
    """What appendix H says about the figure."""
    table = compare(preset)
    served = table["contract_contributors"] * preset.setting.samples
    return [
        most_data(table),
        *flat_then_down(table, preset, "E"),
        detection_falls(table, "total"),
        statement(
            "Under contract design the training data follows the number of contributors.",
            (table["contract_total"] == served).all(),
            f"{preset.setting.samples:,.0f} samples a contributor at every E",
        ),
    ]

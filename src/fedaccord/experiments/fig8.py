"""Figure 8: training data under each mechanism, by the rounds in a slot G."""

from fedaccord.experiments.claims import Claim
from fedaccord.experiments.comparison import (
    compare,
    contract_unchanged,
    detection_falls,
    flat_then_down,
    most_data,
)
from fedaccord.experiments.presets import Preset
from fedaccord.experiments.totals import draw, run

__all__ = ["claims", "draw", "run"]


def claims(preset: Preset) -> list[Claim]:
    """What section 5.2 says about the figure."""
    table = compare(preset)
    return [
        most_data(preset),
        *flat_then_down(table, "G", "gradually decreases"),
        detection_falls(table, "total"),
        contract_unchanged(preset, "total"),
    ]

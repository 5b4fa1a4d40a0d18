"""Figure 19: training data under each mechanism, by the number of clients N."""

from fedaccord.experiments.claims import Claim
from fedaccord.experiments.comparison import most_data
from fedaccord.experiments.presets import Preset
from fedaccord.experiments.totals import draw, run

__all__ = ["claims", "draw", "run"]


def claims(preset: Preset) -> list[Claim]:
    """What appendix H says about the figure."""
    return [most_data(preset)]

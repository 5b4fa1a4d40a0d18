"""Figure 20: contributors under each mechanism, by the samples of each client D."""

from fedaccord.experiments.claims import Claim
from fedaccord.experiments.comparison import contributor_claims
from fedaccord.experiments.contributors import draw, run
from fedaccord.experiments.presets import Preset

__all__ = ["claims", "draw", "run"]


def claims(preset: Preset) -> list[Claim]:
    """What appendix H says about the figure."""
    return contributor_claims(preset, "D")

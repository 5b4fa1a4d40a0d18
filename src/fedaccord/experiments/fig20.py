"""Figure 20: contributors under each mechanism, by the samples of each client D."""

from fedaccord.experiments.claims import Claim
from fedaccord.experiments.comparison import (
    a_fifth_by_contract,
    almost_all,
    compare,
    contract_unchanged,
    detection_falls,
    most_contributors,
)
from fedaccord.experiments.contributors import draw, run
from fedaccord.experiments.presets import Preset

__all__ = ["claims", "draw", "run"]


def claims(preset: Preset) -> list[Claim]:
    """What appendix H says about the figure."""
    table = compare(preset)
    return [
        most_contributors(table),
        almost_all(table, "D"),
        detection_falls(table, "contributors"),
        a_fifth_by_contract(table),
        contract_unchanged(table, "contributors"),
    ]

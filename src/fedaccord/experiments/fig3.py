"""Figure 3: how many free riders the agreements remove, by the number of clients N."""

from fedaccord.experiments.claims import Claim, number
from fedaccord.experiments.presets import Preset
from fedaccord.experiments.removed import draw, run
from fedaccord.experiments.shapes import (
    converts_most,
    more_free_riders,
    more_removed,
    removed_share,
)
from fedaccord.experiments.sweep import sweep

__all__ = ["claims", "draw", "run"]


def claims(preset: Preset) -> list[Claim]:
    """What section 5.1 says about the figure, footnote and summary included."""
    table = sweep(preset)
    at = table.where(table.swept == 200)
    riders = float(at["free_riders"][0])
    left = riders - float(at["uniform_removed"][0])
    most = removed_share(table).max()
    return [
        more_free_riders(table, "N"),
        more_removed(table, "N"),
        number("N = 200: the critical client is k =", 138, riders + 1),
        number("N = 200: the first converted client is l =", 2, left + 1),
        number("N = 200: free riders at the equilibrium", 137, riders),
        number("N = 200: free riders under the agreement", 1, left),
        number("Free riders are reduced by up to", 99.3, most, decimals=1, unit=" %"),
        converts_most(table, "N", large=100),
    ]

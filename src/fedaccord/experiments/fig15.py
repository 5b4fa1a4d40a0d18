"""Figure 15: how many free riders the agreements remove, by the discount factor."""

from fedaccord.experiments.claims import Claim, statement
from fedaccord.experiments.presets import Preset
from fedaccord.experiments.removed import draw, run
from fedaccord.experiments.sweep import least_patience, sweep

__all__ = ["claims", "draw", "run"]


def claims(preset: Preset) -> list[Claim]:
    """What appendix H says about the figure."""
    table = sweep(preset)
    removed = table["uniform_removed"]
    first = table.swept[removed > 0].min()
    return [
        statement(
            "The discount factor does not affect the number of reduced free riders.",
            removed.min() == removed.max(),
            f"{removed.min():.0f} below {first:g}, {removed.max():.0f} from there on",
            f"below {least_patience():.4f} the paper's client l keeps to no level above 0, and "
            "clients at level 0 are still free riders",
        )
    ]

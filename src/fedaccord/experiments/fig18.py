"""Figure 18: contributors under each mechanism, by the number of clients N."""

from fedaccord.experiments.claims import Claim, statement
from fedaccord.experiments.comparison import compare, most_contributors
from fedaccord.experiments.contributors import draw, run
from fedaccord.experiments.presets import Preset

__all__ = ["claims", "draw", "run"]

LIKELY = 0.8
"""What is very likely, at least."""


def claims(preset: Preset) -> list[Claim]:
    """What appendix H says about the figure."""
    table = compare(preset)
    left = {n: float(table["contributors"][table.swept == n][0]) for n in (50, 100, 200)}
    riders = table["free_riders"]
    served = table["contract_contributors"]
    return [
        most_contributors(table),
        statement(
            "Under detection the number of contributors remains almost unchanged as N grows.",
            left[200] <= 1.1 * left[100],
            ", ".join(f"{count:.0f} at N = {n}" for n, count in left.items()),
            f"it grows by {100 * (left[200] / left[100] - 1):.0f} % from N = 100 to 200",
        ),
        statement(
            "When the model is good enough, a new client is very likely to free-ride.",
            left[200] - left[100] <= (1.0 - LIKELY) * 100,
            f"from N = 100 to 200 free riders grow by {100 - left[200] + left[100]:.0f}",
            f"fewer than {100 * LIKELY:.0f} of 100",
        ),
        statement(
            "Under detection the number of free riders increases with N.",
            (riders[1:] >= riders[:-1]).all(),
            f"{riders[0]:.0f} to {riders[-1]:.0f}",
        ),
        statement(
            "Under contract design the number increases only when a new client is given an item.",
            set((served[1:] - served[:-1]).tolist()) <= {0.0, 1.0},
            f"by one at {int((served[1:] > served[:-1]).sum())} of {len(table) - 1} steps",
        ),
    ]

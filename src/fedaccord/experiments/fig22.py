"""Figure 22: contributors under each mechanism, by the cost per sample E."""

from fedaccord.experiments.claims import Claim, plain, statement
from fedaccord.experiments.comparison import (
    almost_all,
    compare,
    detection_falls,
    most_contributors,
)
from fedaccord.experiments.contributors import draw, run
from fedaccord.experiments.presets import Preset

__all__ = ["claims", "draw", "run"]


def claims(preset: Preset) -> list[Claim]:
    """What appendix H says about the figure."""
    table = compare(preset)
    served = table["contract_contributors"]
    last = table.swept[served > 0].max()
    return [
        most_contributors(table),
        almost_all(table, "E"),
        detection_falls(table, "contributors"),
        statement(
            "Under contract design a small number contributes, and nobody when E is large.",
            (served[table.swept <= last] > 0).all() and served[-1] == 0,
            f"{served[0]:.0f} up to E = {plain(last)}, then 0",
        ),
    ]

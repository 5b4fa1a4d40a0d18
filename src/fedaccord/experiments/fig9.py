"""Figure 9: contributors under each mechanism, by the discount factor."""

from fedaccord.experiments.claims import Claim, statement, unchanged
from fedaccord.experiments.comparison import (
    compare,
    contract_unchanged,
    most_contributors,
)
from fedaccord.experiments.contributors import draw, run
from fedaccord.experiments.presets import Preset
from fedaccord.experiments.sweep import least_patience

__all__ = ["claims", "draw", "run"]


def claims(preset: Preset) -> list[Claim]:
    """What section 5.2 says about the figure."""
    table = compare(preset)
    ours = table["uniform_contributors"]
    return [
        statement(
            "Under the agreement the number of contributors does not change with the discount "
            "factor.",
            ours.min() == ours.max(),
            f"{ours.min():.0f} below {table.swept[ours == ours.max()].min():g}, "
            f"{ours.max():.0f} from there on",
            f"below {least_patience():.4f} there is no uniform agreement (figure 15)",
        ),
        unchanged(
            "Under detection the number of contributors does not change.",
            table["detection_contributors"],
        ),
        contract_unchanged(table, "contributors"),
        most_contributors(table),
    ]

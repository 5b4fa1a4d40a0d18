"""Figure 10: training data under each mechanism, by the discount factor."""

from fedaccord.experiments.claims import Claim, number, statement, unchanged
from fedaccord.experiments.comparison import compare, contract_unchanged, most_data
from fedaccord.experiments.presets import Preset
from fedaccord.experiments.shapes import how_often, steps_down
from fedaccord.experiments.totals import draw, run

__all__ = ["claims", "draw", "run"]


def claims(preset: Preset) -> list[Claim]:
    """What section 5.2 says about the figure."""
    table = compare(preset)
    ours = table["uniform_total"]
    full = table.swept[table["uniform_level"] >= preset.setting.samples]
    bought = table["contract_total"] / table["contract_contributors"]
    partial = table["total"][0] - (table["contributors"][0] - 1) * preset.setting.samples
    down = steps_down(ours)
    return [
        most_data(table),
        statement(
            "The amount of training data first increases with the discount factor.",
            not down.any(),
            f"{ours[0]:,.0f} to {ours[-1]:,.0f}, {how_often(down, 'down')}",
        ),
        number("It is constant from a discount factor of", 0.87, full[0], decimals=2),
        unchanged("Under detection the amount of data remains unchanged.", table["total"]),
        contract_unchanged(table, "total"),
        statement(
            "Under detection, contributors participate with all their data.",
            partial == preset.setting.samples,
            f"all but one, which gives {partial:,.0f} of {preset.setting.samples:,.0f}",
            "the critical client of the equilibrium contributes in part, and is no free rider to "
            "detect",
        ),
        statement(
            "Under contract design, contributors participate with all their data.",
            (bought == preset.setting.samples).all(),
            f"{bought.min():,.0f} of {preset.setting.samples:,.0f} samples each",
        ),
    ]

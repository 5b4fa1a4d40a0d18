"""Figure 23: training data under each mechanism, by the cost per sample E."""

from matplotlib.figure import Figure

from fedaccord.experiments import pictures
from fedaccord.experiments.claims import Claim, statement
from fedaccord.experiments.comparison import (
    compare,
    detection_falls,
    flat_then_down,
    most_data,
    totals_only,
)
from fedaccord.experiments.presets import Preset
from fedaccord.experiments.table import Table


def run(preset: Preset) -> Table:
    """All samples trained on in a slot, under each mechanism."""
    return totals_only(compare(preset))


def draw(table: Table, _: Preset, width: pictures.Width) -> Figure:
    """One line a mechanism."""
    return pictures.plot_mechanisms(table, "total", pictures.DATA, width)


def claims(preset: Preset) -> list[Claim]:
    """What appendix H says about the figure."""
    table = compare(preset)
    served = table["contract_contributors"] * preset.setting.samples
    return [
        most_data(table),
        *flat_then_down(table, preset, "E"),
        detection_falls(table, "total"),
        statement(
            "Under contract design the training data follows the number of contributors.",
            (table["contract_total"] == served).all(),
            f"{preset.setting.samples:,.0f} samples a contributor at every E",
        ),
    ]

"""Figure 8: training data under each mechanism, by the rounds in a slot G."""

from matplotlib.figure import Figure

from fedaccord.experiments import pictures
from fedaccord.experiments.claims import Claim
from fedaccord.experiments.comparison import (
    compare,
    contract_unchanged,
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
    """What section 5.2 says about the figure."""
    table = compare(preset)
    return [
        most_data(table),
        *flat_then_down(table, preset, "G"),
        detection_falls(table, "total"),
        contract_unchanged(table, "total"),
    ]

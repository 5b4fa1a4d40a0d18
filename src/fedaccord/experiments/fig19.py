"""Figure 19: training data under each mechanism, by the number of clients N."""

from matplotlib.figure import Figure

from fedaccord.experiments import pictures
from fedaccord.experiments.claims import Claim
from fedaccord.experiments.comparison import compare, most_data, totals_only
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
    return [most_data(compare(preset))]

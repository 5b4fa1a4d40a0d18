"""Figures 8, 10, 19, 21, 23: training data under each mechanism, by one parameter."""

from matplotlib.figure import Figure

from fedaccord.experiments import pictures
from fedaccord.experiments.comparison import compare, of_each_mechanism
from fedaccord.experiments.presets import Preset
from fedaccord.experiments.table import Table


def run(preset: Preset) -> Table:
    """All samples trained on in a slot, under each mechanism."""
    return of_each_mechanism(compare(preset), "total")


def draw(table: Table, _: Preset, width: pictures.Width) -> Figure:
    """One line a mechanism."""
    return pictures.plot_mechanisms(table, "total", pictures.DATA, width)

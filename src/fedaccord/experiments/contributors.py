"""Figures 7, 9, 18, 20, 22: who contributes under each mechanism, by one parameter."""

from matplotlib.figure import Figure

from fedaccord.experiments import pictures
from fedaccord.experiments.comparison import compare, of_each_mechanism
from fedaccord.experiments.presets import Preset
from fedaccord.experiments.table import Table


def run(preset: Preset) -> Table:
    """Clients that train on anything, under each mechanism."""
    return of_each_mechanism(compare(preset), "contributors")


def draw(table: Table, _: Preset, width: pictures.Width) -> Figure:
    """One line a mechanism."""
    return pictures.plot_mechanisms(table, "contributors", pictures.CONTRIBUTORS, width)

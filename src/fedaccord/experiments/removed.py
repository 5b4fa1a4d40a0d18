"""Figures 3, 5, 11, 13, 15: how many free riders the agreements remove, by one parameter."""

from matplotlib.figure import Figure

from fedaccord.experiments import pictures
from fedaccord.experiments.presets import Preset
from fedaccord.experiments.sweep import sweep
from fedaccord.experiments.table import Table


def run(preset: Preset) -> Table:
    """N_f: free riders at the equilibrium less those under either agreement."""
    return sweep(preset).choose("case", "free_riders", "uniform_removed", "individual_removed")


def draw(table: Table, _: Preset, width: pictures.Width) -> Figure:
    """Points by case, as in the paper, and the individual agreement."""
    return pictures.plot_cases(table, "removed", pictures.REMOVED, width)

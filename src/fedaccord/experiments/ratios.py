"""Figures 4, 6, 12, 14, 16: how much more data the agreements bring, by one parameter."""

from matplotlib.figure import Figure

from fedaccord.experiments import pictures
from fedaccord.experiments.presets import Preset
from fedaccord.experiments.sweep import sweep
from fedaccord.experiments.table import Table

_TOTALS = ("total", "uniform_total", "individual_total", "uniform_level")


def run(preset: Preset) -> Table:
    """R_d: all training data under either agreement over that at the equilibrium."""
    ratios = ("free_riders", "uniform_ratio", "individual_ratio")
    return sweep(preset).choose("case", *ratios, *_TOTALS)


def draw(table: Table, preset: Preset, width: pictures.Width) -> Figure:
    """Points by case, as in the paper, and the individual agreement."""
    return pictures.plot_cases(
        table, "ratio", pictures.RATIO, width, zoom=preset.zoom, zoom_label=pictures.RATIO_NEARER
    )

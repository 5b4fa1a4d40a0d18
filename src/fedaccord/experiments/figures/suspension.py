"""Suspension beside reversion: free riders removed and data ratio, by one parameter.

These figures are ours, beside figures 3 to 6, 9 and 10 of the paper, and with the same ranges. Each
agreement is the one with the most data that clients keep to.
"""

from matplotlib.figure import Figure

from fedaccord.agreement.batch import solve_batch
from fedaccord.experiments import pictures
from fedaccord.experiments.claims import Claim
from fedaccord.experiments.figure_data import FigureData
from fedaccord.experiments.presets import Preset
from fedaccord.experiments.sweep import rows_of, sweep


def run(preset: Preset) -> FigureData:
    """The free riders that each agreement removes, and its data ratio."""
    table = sweep(preset)
    fields, there = rows_of(preset.setting, preset.parameter, preset.values)
    batch = solve_batch(**fields, punishment="suspension")
    left = ((batch.profile == 0) & there).sum(axis=-1)
    suspension = {
        "suspension_removed": table["free_riders"] - left,
        "suspension_ratio": batch.ratio,
    }
    every = FigureData({**table.columns, **suspension})
    names = [f"{name}_{what}" for what in ("removed", "ratio") for name in pictures.PUNISHMENTS]
    return every.choose("free_riders", *names)


def draw(table: FigureData, _: Preset, width: pictures.Width) -> Figure:
    """One line for each agreement, in two panels."""
    columns = {"removed": pictures.REMOVED, "ratio": pictures.RATIO}
    return pictures.plot_lines(table, columns, pictures.PUNISHMENTS, width)


def claims(_: Preset) -> list[Claim]:
    """The paper says nothing about suspension."""
    return []

"""Suspension beside reversion, by one parameter.

These figures are ours, with the ranges of the paper's, and show what those show: free riders
removed and the data ratio (figures 3 to 6), by the discount factor contributors and training data
(figures 9 and 10). Each agreement is the one with the most data that clients keep to.
"""

from matplotlib.figure import Figure

from fedaccord.agreement.batch import solve_batch
from fedaccord.experiments import pictures
from fedaccord.experiments.claims import Claim
from fedaccord.experiments.figure_data import FigureData
from fedaccord.experiments.presets import Preset
from fedaccord.experiments.sweep import rows_of, sweep


def run(preset: Preset) -> FigureData:
    """What each agreement brings, in the measures of the paper's figures."""
    table = sweep(preset)
    fields, there = rows_of(preset.setting, preset.parameter, preset.values)
    batch = solve_batch(**fields, punishment="suspension")
    free = ((batch.profile == 0) & there).sum(axis=-1)
    suspension = {
        "suspension_removed": table["free_riders"] - free,
        "suspension_ratio": batch.ratio,
        "suspension_contributors": there.sum(axis=-1) - free,
        "suspension_total": batch.total,
    }
    every = FigureData({**table.columns, **suspension})
    names = [f"{name}_{what}" for what in _measures(preset) for name in pictures.PUNISHMENTS]
    return every.choose("free_riders", *names)


def _measures(preset: Preset) -> dict[str, str]:
    """The columns that are shown, each with its label."""
    if preset.parameter == "discount_factor":
        return {"contributors": pictures.CONTRIBUTORS, "total": pictures.DATA}
    return {"removed": pictures.REMOVED, "ratio": pictures.RATIO}


def draw(table: FigureData, preset: Preset, width: pictures.Width) -> Figure:
    """One line for each agreement, in two panels."""
    return pictures.plot_lines(table, _measures(preset), pictures.PUNISHMENTS, width)


def claims(_: Preset) -> list[Claim]:
    """The paper says nothing about suspension."""
    return []

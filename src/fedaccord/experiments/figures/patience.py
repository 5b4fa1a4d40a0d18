"""How patient clients must be for each of the baselines, by the number of clients.

This figure is ours, for the two kinds of data sizes of `truthful`. It shows the discount factor at
which all clients keep to a mechanism if they have the same: to everything (all data, or no model
for a slot), to the clock, to the social optimum with payments, and to the paper's uniform
agreement. The serial clock and fair exchange need no patience.
"""

import numpy as np
from matplotlib.figure import Figure

from fedaccord.agreement.patience import smallest_discount_factor
from fedaccord.experiments import pictures
from fedaccord.experiments.claims import Claim
from fedaccord.experiments.figure_data import Column, FigureData
from fedaccord.experiments.figures.truthful import consortia_of
from fedaccord.experiments.presets import Preset
from fedaccord.game.consortium import Consortium
from fedaccord.mechanisms.clock import Clock
from fedaccord.mechanisms.mechanism import Mechanism
from fedaccord.mechanisms.simple import Everything
from fedaccord.mechanisms.transfers import common_patience
from fedaccord.mechanisms.verdict import judge

_PANELS = {
    "equal": "Discount factor needed,\nequal sizes",
    "unequal": "Discount factor needed,\nlow valuations have more",
}


def run(preset: Preset) -> FigureData:
    """The discount factor that each mechanism needs; 1 if none is enough."""
    columns: dict[str, Column] = {preset.parameter: np.array(preset.values)}
    for panel, consortia in zip(_PANELS, consortia_of(preset), strict=True):
        needed = [_needed(consortium) for consortium in consortia]
        for name in pictures.NEEDED:
            columns[f"{name}_{panel}"] = np.array([row[name] for row in needed])
    return FigureData(columns)


def _needed(consortium: Consortium) -> dict[str, float]:
    """What each mechanism needs in one consortium."""
    uniform = smallest_discount_factor(consortium, "uniform")
    return {
        "everything": _held_from(Everything(), consortium),
        "clock": _held_from(Clock(), consortium),
        "transfers": min(common_patience(consortium), 1.0),
        "uniform": 1.0 if uniform is None else uniform,
    }


def _held_from(mechanism: Mechanism, consortium: Consortium) -> float:
    """The largest threshold of the clients that could gain by training on less."""
    certificate = judge(mechanism.outcome(consortium)).certificate
    assert certificate is not None
    thresholds = np.where(certificate.gives_more, 0.0, certificate.threshold)
    return min(float(thresholds.max()), 1.0)


def draw(table: FigureData, _: Preset, width: pictures.Width) -> Figure:
    """One line for each mechanism, in two panels."""
    return pictures.plot_lines(table, _PANELS, pictures.NEEDED, width)


def claims(_: Preset) -> list[Claim]:
    """The paper says nothing about these."""
    return []

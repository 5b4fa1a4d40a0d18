"""Who gains by lying: a picture of one mechanism or several."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fedaccord.mechanisms.misreport.misreport import Misreport, Misreports
from fedaccord.numbers import FloatArray
from fedaccord.plots.axes import figure_and_axes, put_legend, with_commas

_LOOKS = (
    *(("#0072B2", "o"), ("#D55E00", "s"), ("#009E73", "^"), ("#CC79A7", "D"), ("#E69F00", "v")),
    *(("#56B4E9", "P"), ("#000000", "X"), ("#999999", "*"), ("#882255", "h")),
)


def plot_misreport(found: Misreport | Misreports, *, ax: Axes | None = None) -> Figure:
    """What each client gains by its best lie, in per cent of what training costs it.

    Each mark is a client, at its ratio. Mechanisms under which nobody gains are one line at 0.
    """
    entries = found.entries if isinstance(found, Misreports) else (found,)
    figure, axes = figure_and_axes((8.0, 4.8), ax)
    legend = []
    lying = [entry for entry in entries if entry.gaining]
    honest = [entry for entry in entries if not entry.gaining]
    for entry, (colour, marker) in zip(lying, _LOOKS, strict=False):
        share = entry.gain_of_computation
        gain = 100.0 * np.where(np.isfinite(share), share, np.nan)
        look: dict[str, Any] = {"color": colour, "marker": marker, "markersize": 5}
        legend += axes.plot(_ratios(entry), gain, linestyle="", label=entry.name, **look)
    if honest:
        label = ", ".join(entry.name for entry in honest)
        legend += [axes.axhline(0.0, color="#222222", linewidth=2.0, label=f"none under {label}")]
    axes.set(xscale="log", xlabel="Ratio (valuation / cost per sample)")
    axes.set_ylabel("Gain by the best lie (% of the cost of training)")
    axes.set_ylim(bottom=-2.0)
    axes.yaxis.set_major_formatter(with_commas)
    put_legend(axes, ax, legend, 2)
    return figure


def _ratios(entry: Misreport) -> FloatArray:
    places = [entry.consortium.index(name) for name in entry.names]
    return np.asarray(entry.consortium.ratio[places])

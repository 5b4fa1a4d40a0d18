"""Who gains by lying: a picture of one mechanism or several."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fedaccord.mechanisms.misreport.misreport import Misreport, Misreports
from fedaccord.plots.axes import figure_and_axes, put_legend, style, with_commas

_LOOKS = (
    *(("#0072B2", "o"), ("#D55E00", "s"), ("#009E73", "^"), ("#CC79A7", "D"), ("#E69F00", "v")),
    *(("#56B4E9", "P"), ("#000000", "X"), ("#999999", "*"), ("#882255", "h")),
)


def plot_misreport(found: Misreport | Misreports, *, ax: Axes | None = None) -> Figure:
    """What each client gains by its best lie, in per cent of what training costs it.

    Clients are in ascending order of their ratio. A gain of 0 means that the truth is best.
    """
    entries = found.entries if isinstance(found, Misreports) else (found,)
    figure, axes = figure_and_axes((8.0, 4.8), ax)
    style(axes)
    legend = []
    consortium = entries[0].consortium
    for entry, (colour, marker) in zip(entries, _LOOKS, strict=False):
        ratio = consortium.ratio[[consortium.index(name) for name in entry.names]]
        order = np.argsort(ratio, kind="stable")
        share = entry.gain_of_computation
        gain = 100.0 * np.where(np.isfinite(share), share, np.nan)
        legend += axes.plot(
            ratio[order],
            gain[order],
            color=colour,
            marker=marker,
            markersize=5,
            linewidth=1.0,
            label=entry.name,
        )
    axes.set(xscale="log", xlabel="Ratio (valuation / cost per sample)")
    axes.set_ylabel("Gain by the best lie (% of the cost of training)")
    axes.set_ylim(bottom=-2.0)
    axes.yaxis.set_major_formatter(with_commas)
    put_legend(axes, ax, legend, 3)
    return figure

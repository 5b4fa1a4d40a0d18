"""Who gains by lying: a picture of one mechanism or several."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fedaccord.mechanisms.misreport.misreport import Misreport, Misreports
from fedaccord.numbers import FloatArray
from fedaccord.plots.axes import NAMED, figure_and_axes, put_legend, with_commas

_LOOKS = (
    *(("#0072B2", "o"), ("#D55E00", "s"), ("#009E73", "^"), ("#CC79A7", "D"), ("#E69F00", "v")),
    *(("#56B4E9", "P"), ("#000000", "X"), ("#999999", "*"), ("#882255", "h")),
)


def plot_misreport(found: Misreport | Misreports, *, ax: Axes | None = None) -> Figure:
    """What each client gains by its best lie, in per cent of what training costs it.

    Few clients are named, many are marks at their ratios. Mechanisms under which nobody gains are
    one line at 0.
    """
    entries = found.entries if isinstance(found, Misreports) else (found,)
    named = len(entries[0].names) <= NAMED
    figure, axes = figure_and_axes((8.0, 4.8), ax, "x" if named else "y")
    legend = []
    lying = [entry for entry in entries if entry.gaining]
    for entry, (colour, marker) in zip(lying, _LOOKS, strict=False):
        share = entry.gain_of_computation
        gain = 100.0 * np.where(np.isfinite(share), share, np.nan)
        look: dict[str, Any] = {"color": colour, "marker": marker, "markersize": 6}
        at = _places(entry) if named else _ratios(entry)
        points = (gain, at) if named else (at, gain)
        legend += axes.plot(*points, linestyle="", label=entry.name, **look)
    honest = ", ".join(entry.name for entry in entries if not entry.gaining)
    if honest:
        line = axes.axvline if named else axes.axhline
        legend += [line(0.0, color="#222222", linewidth=2.0, label=f"none under {honest}")]
    _label(axes, entries[0], named=named)
    put_legend(axes, ax, legend, 2)
    return figure


def _label(axes: Axes, entry: Misreport, *, named: bool) -> None:
    """Name the axes: clients by name or by ratio, and what they gain."""
    gain = "Gain by the best lie (% of the cost of training)"
    if not named:
        axes.set(xscale="log", xlabel="Ratio (valuation / cost per sample)", ylabel=gain)
        axes.set_ylim(bottom=-2.0)
        axes.yaxis.set_major_formatter(with_commas)
        return
    order = np.argsort(_places(entry))
    axes.set_yticks(np.arange(order.size), [entry.names[n] for n in order])
    axes.set_ylim(-0.6, order.size - 0.4)
    axes.set_xlabel(gain)
    axes.xaxis.set_major_formatter(with_commas)
    for text in axes.get_yticklabels():
        text.set_parse_math(False)  # a name may hold dollar signs


def _ratios(entry: Misreport) -> FloatArray:
    places = [entry.consortium.index(name) for name in entry.names]
    return np.asarray(entry.consortium.ratio[places])


def _places(entry: Misreport) -> FloatArray:
    """Rows of clients in ascending order of their ratios, counted from below."""
    places = np.empty(len(entry.names))
    places[np.argsort(_ratios(entry), kind="stable")] = np.arange(places.size)
    return places

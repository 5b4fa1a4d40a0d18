"""What ranges cost: agreements by how well numbers are known, and whose numbers matter."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fedaccord.agreement.range_costs import RangeCosts
from fedaccord.plots.axes import INK, NAMED, Picture, figure_of, panels, style, with_commas

_BLUE, _ORANGE = "#0072B2", "#E69F00"


def plot_range_costs(costs: RangeCosts, *, ax: Sequence[Axes] | None = None) -> Figure:
    """The data agreed on against how well ratios are known, and if one client's were known.

    A cross stands for a width at which there is no agreement. Of many clients, those are shown
    whose numbers would bring the most.
    """
    if ax is None:
        figure = Picture(figsize=(8.0, 4.2), layout="constrained")
        left, right = figure.subplots(1, 2, width_ratios=[1.1, 1.0])
    else:
        left, right = panels(ax, 2)
    _by_width(left, costs)
    _by_client(right, costs)
    return figure_of(left)


def _by_width(axes: Axes, costs: RangeCosts) -> None:
    style(axes, "y")
    places, total = np.arange(len(costs.labels)), costs.total
    line: dict[str, Any] = {"color": _BLUE, "marker": "o", "linewidth": 1.6}
    axes.plot(places, total, **line)
    none = np.isnan(total)
    before = costs.by_width[0].equilibrium.total
    if none.any():
        cross: dict[str, Any] = {"color": "#D55E00", "linestyle": "none", "markersize": 7}
        axes.plot(
            places[none], np.full(none.sum(), before), marker="x", label="no agreement", **cross
        )
    axes.axhline(before, color=INK, linewidth=0.8, linestyle=":", label="without an agreement")
    axes.set_xticks(places, [_label(label) for label in costs.labels], rotation=45, ha="right")
    axes.set(xlabel="Ratios are known to", ylabel="Samples agreed on in a slot")
    axes.set_ylim(bottom=0.0)
    axes.yaxis.set_major_formatter(with_commas)
    axes.legend(frameon=False, fontsize=8, loc="best")


def _label(label: str) -> str:
    return label if label == "exact" else f"± {label}" if "%" in label else f"× {label[1:]}"


def _by_client(axes: Axes, costs: RangeCosts) -> None:
    style(axes, "x")
    here = costs.here.total if costs.here.exists else costs.here.equilibrium.total
    gained = np.nan_to_num(costs.total_if_known - here)
    shown = np.argsort(-gained, kind="stable")[:NAMED][::-1]
    places = np.arange(shown.size)
    axes.barh(places, gained[shown], height=0.62, color=_ORANGE)
    axes.set_yticks(places, [costs.consortium.names[n] for n in shown])
    axes.set_xlabel("More samples in a slot\nif its numbers were known")
    axes.set_xlim(left=0.0, right=max(float(gained.max()) * 1.05, 1.0))
    axes.xaxis.set_major_formatter(with_commas)
    for text in axes.get_yticklabels():
        text.set_parse_math(False)  # a name may hold dollar signs

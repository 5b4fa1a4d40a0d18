"""Who gains by joining: each client's measure alone and with everyone, and the difference."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fedaccord.plots.axes import INK, Picture, figure_of, panels, put_legend, short_names, style

if TYPE_CHECKING:
    from fedaccord.membership.joining import Joining
    from fedaccord.training.estimates import Estimate

_ALONE: dict[str, Any] = {"marker": "o", "color": "#D55E00", "markerfacecolor": "white"}
_TOGETHER: dict[str, Any] = {"marker": "D", "color": "#0072B2"}
_APART = 0.12
"""Between the marks of one client and its line."""


def plot_joining(joining: "Joining", *, ax: Sequence[Axes] | None = None) -> Figure:
    """A row for each client: its measure on its test, and what it gains with everyone.

    Whiskers are 95 % intervals. Those of the gain are narrower: alone and together are judged by
    the same records. With `ax` it takes two axes.
    """
    count = len(joining.names)
    if ax is None:
        figure = Picture(figsize=(9.0, 1.5 + 0.55 * count), layout="constrained")
        left, right = figure.subplots(1, 2, sharey=True, width_ratios=(3, 2))
    else:
        left, right = panels(ax, 2)
    accuracy = joining.setting.task.measure.name == "accuracy"
    prospects, times = joining.prospects, 100.0 if accuracy else 1.0
    rows = np.arange(count)
    alone, together = [one.alone for one in prospects], [one.together for one in prospects]
    legend = [
        _marks(left, alone, rows - _APART, times, _ALONE | {"label": "alone"}),
        _marks(left, together, rows + _APART, times, _TOGETHER | {"label": "with everyone"}),
    ]
    _marks(right, [one.gain for one in prospects], rows, times, {"marker": "s", "color": INK})
    right.axvline(0.0, color=INK, linewidth=0.8)
    for axes in (left, right):
        style(axes, "x")
        axes.set_yticks(rows, short_names(joining.names))
        axes.set_ylim(count - 0.5, -0.5)
        axes.tick_params(axis="y", length=0)
    low, high = left.get_xlim()
    left.set_xlim(max(low, 0.0), min(high, times * 1.01))
    test = "its own test" if joining.own_tests else "the common test"
    left.set_xlabel(f"Accuracy on {test} (%)" if accuracy else f"Concordance on {test}")
    right.set_xlabel("Gain (points)" if accuracy else "Gain")
    put_legend(left, ax, legend, len(legend))
    return figure_of(left)


def _marks(
    axes: Axes, found: "Sequence[Estimate]", rows: Any, times: float, look: dict[str, Any]
) -> Any:
    return axes.errorbar(
        [times * one.mean for one in found],
        rows,
        xerr=np.nan_to_num([times * one.half_width for one in found]),
        linestyle="",
        capsize=3,
        markersize=7,
        **look,
    )

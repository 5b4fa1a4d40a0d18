"""Axes over slots, with punishments shaded."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from fedaccord.game.arrays import BoolArray
from fedaccord.plots.style import STEPS, plain, with_commas


def slot_axes(heights: list[float]) -> tuple[Figure, list[Axes]]:
    """Axes one above the other, all over the same slots."""
    figure = Figure(figsize=(8.0, sum(heights) + 0.9), layout="constrained")
    grid = figure.subplots(len(heights), 1, sharex=True, squeeze=False, height_ratios=heights)
    for axes in grid[:, 0]:
        plain(axes)
    return figure, list(grid[:, 0])


def finish_slots(figure: Figure, all_axes: list[Axes], legend: list[Any]) -> Figure:
    """Label the slots, and put the legend above, where it hides nothing."""
    for axes in all_axes:
        if axes.get_ylabel():
            axes.yaxis.set_major_formatter(with_commas)
    last = all_axes[-1]
    last.set_xlabel("Slot")
    last.xaxis.set_major_locator(MaxNLocator(10, integer=True, steps=STEPS))
    last.xaxis.set_major_formatter(with_commas)
    figure.legend(handles=legend, loc="outside upper left", ncols=4, frameon=False)
    return figure


def shade(axes: Axes, punishing: BoolArray, span: tuple[float, float] | None = None) -> list[Any]:
    """Shade the slots of punishment, over the whole height or within `span`."""
    look: dict[str, Any] = {"facecolor": "#E6E6E6", "edgecolor": "#AAAAAA", "hatch": "////"}
    runs = stretches(punishing)
    if not runs:
        return []
    height = (0.0, 1.0) if span is None else (span[0], span[1] - span[0])
    where: dict[str, Any] = {"transform": axes.get_xaxis_transform()} if span is None else {}
    return [axes.broken_barh(runs, height, linewidth=0.0, label="punishing", **look, **where)]


def stretches(chosen: BoolArray) -> list[tuple[float, float]]:
    """Where slots begin that are chosen, and how many there are in a row."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], chosen, [False]])))
    return [(first + 0.5, last - first) for first, last in edges.reshape(-1, 2).tolist()]

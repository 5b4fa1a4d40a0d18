"""Whose data helps whom: heat maps, with a row for whose data it is and a column for each test."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import CenteredNorm, LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle

from fedaccord.numbers import BoolArray, FloatArray
from fedaccord.plots.axes import INK, Picture, figure_of, panels, put_legend, short_names, style

if TYPE_CHECKING:
    from fedaccord.membership.values import DataValues

_HURTS, _NOTHING, _HELPS, _GREY = "#D55E00", "#F7F7F7", "#0072B2", "#999999"
"""Vermilion and blue of Okabe and Ito's palette, which colour-blind readers tell apart."""
_COLOURS = LinearSegmentedColormap.from_list("helps", [_HURTS, _NOTHING, _HELPS])
_DARK = 0.7
"""Of the largest value: numbers beyond it are white."""
_WRITTEN = 16
"""Up to this many clients the numbers are in the cells."""


def plot_value(values: "DataValues", *, ax: Sequence[Axes] | None = None) -> Figure:
    """What each client's data adds on each test: Shapley and leave-one-out, in the measure's unit.

    Blue helps and vermilion hurts; cells within noise are hatched, and their numbers are in
    brackets.
    """
    clients, tests = len(values.names), values.tests
    if ax is None:
        size = (3.0 + 0.95 * tests, 2 * (1.3 + 0.5 * clients) + 0.8)
        given = list(Picture(figsize=size, layout="constrained").subplots(2, 1, sharex=True))
    else:
        given = panels(ax, 2)
    kinds = {"Shapley value": values.shapley, "Leave-one-out": values.leave_one_out}
    for axes, (title, found) in zip(given, kinds.items(), strict=True):
        _draw(axes, found.mean.T, ~found.sure().T, title, values.measure)
        _name(axes, values)
    given[-1].set_xlabel("On the test of")
    look = Patch(facecolor=_NOTHING, edgecolor=_GREY, hatch="////", label="within noise")
    put_legend(given[0], ax, [look], 1)
    return figure_of(given[-1])


def _draw(axes: Axes, mean: FloatArray, noise: BoolArray, title: str, measure: str) -> None:
    """One map, with its scale beside it."""
    percent = measure == "accuracy"
    mean = 100.0 * mean if percent else mean
    style(axes)
    axes.grid(visible=False)
    most = max(float(np.nanmax(np.abs(mean), initial=0.0)), 1e-9)
    scale = CenteredNorm(0.0, most)
    image = axes.imshow(mean, cmap=_COLOURS, norm=scale, aspect="auto")
    for row, column in np.argwhere(noise).tolist():
        corner = (column - 0.5, row - 0.5)
        axes.add_patch(Rectangle(corner, 1, 1, fill=False, hatch="////", edgecolor=_GREY, lw=0))
    if len(mean) <= _WRITTEN:
        for row, column in np.ndindex(*mean.shape):
            value = float(mean[row, column])
            text = f"{value:+.{1 if percent else 3}f}".replace("-", "−")
            told = text if np.isfinite(value) else "unknown"
            dark = abs(value) > _DARK * most
            _write(axes, (column, row), told, noise=bool(noise[row, column]), dark=dark)
    figure_of(axes).colorbar(image, ax=axes, shrink=0.8)
    unit = f"points of {measure}" if percent else measure
    axes.set_title(f"{title}, {unit}", loc="left", fontsize="medium")


def _write(axes: Axes, at: tuple[int, int], text: str, *, noise: bool, dark: bool) -> None:
    """The number of a cell, in brackets and on a plain ground where it is within noise."""
    if noise:
        ground = {"facecolor": _NOTHING, "edgecolor": "none", "pad": 1.0}
        axes.text(*at, f"({text})", ha="center", va="center", color=INK, bbox=ground)
    else:
        axes.text(*at, text, ha="center", va="center", color="white" if dark else INK)


def _name(axes: Axes, values: "DataValues") -> None:
    names = short_names(values.names)
    columns = ["everyone", *names] if values.tests > 1 else ["everyone"]
    axes.set_xticks(range(len(columns)), columns, rotation=30, ha="right")
    axes.set_yticks(range(len(names)), names)
    for label in [*axes.get_xticklabels(), *axes.get_yticklabels()]:
        label.set_parse_math(False)  # a name may hold dollar signs
    axes.set_ylabel("The data of")
    axes.spines[["left", "bottom"]].set_visible(False)
    axes.tick_params(length=0)

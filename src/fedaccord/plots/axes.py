"""Axes of clients or slots, and what all plots have in common."""

from collections.abc import Sequence
from io import BytesIO
from typing import Any, Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from fedaccord.errors import InvalidInput
from fedaccord.game.consortium import Consortium
from fedaccord.game.roles import Role
from fedaccord.numbers import BoolArray, FloatArray

INK = "#222222"
ROLE_LOOK: dict[
    Role, dict[str, Any]
] = {  # the palette of Okabe and Ito, safe for colour-blind readers
    Role.CONTRIBUTOR: {"facecolor": "#0072B2"},
    Role.PARTIAL_CONTRIBUTOR: {"facecolor": "#56B4E9", "hatch": "\\\\\\\\"},
    Role.CONVERTED_CONTRIBUTOR: {"facecolor": "#E69F00", "hatch": "////"},
}
STEPS = [1, 2, 5, 10]
"""Allowed distances between ticks, times a power of ten."""


class Picture(Figure):
    """A figure that a notebook shows as an image, even if pyplot is not imported."""

    def _repr_png_(self) -> bytes:
        image = BytesIO()
        self.savefig(image, format="png", bbox_inches="tight")
        return image.getvalue()


def figure_and_axes(
    size: tuple[float, float], ax: Axes | None, grid: Literal["x", "y"] = "y"
) -> tuple[Figure, Axes]:
    """New axes on a figure of this size, or the axes that were given and their figure."""
    if ax is None:
        ax = Picture(figsize=size, layout="constrained").add_subplot()
    style(ax, grid)
    return figure_of(ax), ax


def figure_of(axes: Axes) -> Figure:
    """The figure that the axes are on, also if they are on a part of it."""
    figure = axes.get_figure()
    while not isinstance(figure, Figure):
        assert figure is not None
        figure = figure.get_figure()
    return figure


def panels(ax: Sequence[Axes], number: int) -> list[Axes]:
    """The axes given for a plot of several panels; their number must match."""
    given = list(np.ravel(np.asarray(ax, dtype=object)))
    if len(given) != number:
        raise InvalidInput(f"ax: must be {number} axes, got {len(given)}")
    return given


def put_legend(axes: Axes, ax: object, handles: list[Any], columns: int) -> None:
    """Put the legend above the plot, where it hides nothing; above `axes` if `ax` was given."""
    look: dict[str, Any] = {"handles": handles, "frameon": False}
    if ax is None:
        figure_of(axes).legend(loc="outside upper left", ncols=columns, **look)
    else:  # probably narrower
        narrow: dict[str, Any] = {"ncols": (columns + 1) // 2, "fontsize": "small"}
        axes.legend(loc="lower left", bbox_to_anchor=(0.0, 1.0), **narrow, **look)


def style(axes: Axes, grid: Literal["x", "y"] = "y") -> None:
    """No more lines than help the reader."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis=grid, color="#DDDDDD", linewidth=0.6)
    axes.set_axisbelow(True)


def with_commas(value: float, _: float | None) -> str:
    """A tick label with thousands separators."""
    return f"{value:,.10g}"


LETTERS = 36
"""A longer name would leave no room for what it names."""
_END = 12
"""How many of them are the end of the name, where names that begin alike often differ."""


def short_names(names: Sequence[str]) -> list[str]:
    """The names, long ones without their middle, all different.

    >>> short_names(["St Mary", "University Hospital of the Free State, Department of Radiology"])
    ['St Mary', 'University Hospital of…of Radiology']
    """
    taken = {name for name in names if len(name) <= LETTERS}
    labels = []
    for name in names:
        label, number = name, 1
        if len(name) > LETTERS:
            label = _shortened(name, "")
            while label in taken:
                number += 1
                label = _shortened(name, f" ({number})")
            taken.add(label)
        labels.append(label)
    return labels


def _shortened(name: str, mark: str) -> str:
    start = LETTERS - 1 - _END - len(mark)
    return f"{name[:start].rstrip()}…{name[-_END:].lstrip()}{mark}"


NAMED = 40
"""Up to this many clients have a row of their own, labelled with their name."""
BARS = 300
"""Up to this many have a bar; beyond, bars would be thinner than the gaps between them."""
DRAWN = 1000
"""With more clients than this only every k-th is drawn: a page has no more columns."""


class Canvas:
    """Axes with the clients in ascending order of their ratio: named rows, or columns."""

    def __init__(self, consortium: Consortium, ax: Axes | None = None) -> None:
        order = np.argsort(consortium.ratio, kind="stable")
        self.step = -(-order.size // DRAWN)
        self.order = order[:: self.step]
        self.ranks = 1.0 + np.arange(0, order.size, self.step)
        self.names = consortium.names
        self.named = consortium.size <= NAMED
        self.legend: list[Any] = []
        height = 1.2 + 0.38 * max(consortium.size, 2) if self.named else 4.2
        self._given = ax
        self.figure, self.axes = figure_and_axes((8.0, height), ax, "x" if self.named else "y")

    def take(self, values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """The values that are drawn of one per client, in order."""
        return values[self.order]

    def fill(
        self, values: FloatArray, members: BoolArray, label: str, look: dict[str, Any]
    ) -> None:
        """Bars or areas from 0 for some of the clients."""
        if not members.any():
            return
        bars = look | {"label": label, "edgecolor": "white", "linewidth": 0.0}
        ranks, amounts = self.ranks[members], values[members]
        if self.named:
            self.legend.append(self.axes.barh(ranks, amounts, height=0.66, **bars))
        elif self.ranks.size <= BARS:
            self.legend.append(self.axes.bar(ranks, amounts, width=1.0, **bars))
        else:
            heights = np.where(members, values, 0.0)
            self.legend.append(self.axes.fill_between(self.ranks, heights, step="mid", **bars))

    def outline(self, values: FloatArray, label: str) -> None:
        """The outline of bars from 0, over whatever is filled."""
        if self.named:
            lines: dict[str, Any] = {"fill": False, "edgecolor": INK, "linewidth": 1.6}
            drawn: Any = self.axes.barh(self.ranks, values, height=0.66, label=label, **lines)
        else:
            edges = np.append(self.ranks, self.ranks[-1] + self.step) - 0.5 * self.step
            width = 1.6 if self.ranks.size <= BARS else 0.8
            drawn = self.axes.stairs(values, edges, color=INK, linewidth=width, label=label)
        self.legend.append(drawn)

    def pair(self, first: FloatArray, second: FloatArray, labels: tuple[str, str]) -> None:
        """Two values per client, the first hollow, the second filled, and a line between them."""
        size = 1.0 if self.named else 0.5 if self.ranks.size <= BARS else 0.3
        way = self.axes.hlines if self.named else self.axes.vlines
        shade = "#CCCCCC" if self.ranks.size <= BARS else "#EAEAEA"
        way(self.ranks, first, second, color=shade, linewidth=3.0 * size, zorder=1)
        hollow: dict[str, Any] = {"marker": "o", "markerfacecolor": "none", "color": "#D55E00"}
        full: dict[str, Any] = {"marker": "D", "markeredgewidth": 0.0, "color": "#0072B2"}
        self._points(first, labels[0], markersize=11 * size, **hollow)
        self._points(second, labels[1], markersize=7 * size, **full)

    def cross(self, values: FloatArray, members: BoolArray, label: str) -> None:
        """A cross at the value of some of the clients."""
        if members.any():
            marks: dict[str, Any] = {"marker": "x", "markersize": 7 if self.named else 4}
            self._points(np.where(members, values, np.nan), label, color=INK, zorder=4, **marks)

    def _points(self, values: FloatArray, label: str, **look: Any) -> None:
        along = (values, self.ranks) if self.named else (self.ranks, values)
        self.legend += self.axes.plot(*along, linestyle="", label=label, clip_on=False, **look)

    def mark(self, value: float, label: str) -> None:
        """A dotted line at a value."""
        line = self.axes.axvline if self.named else self.axes.axhline
        self.legend.append(line(value, color=INK, linewidth=1.0, linestyle=":", label=label))

    def finish(self, value_label: str, limits: tuple[float, float]) -> Figure:
        """Label the axes, and put the legend above them, where it hides nothing."""
        around = (0.4, self.ranks[-1] + 0.6)
        if self.named:
            self.axes.set(xlim=limits, ylim=around, xlabel=value_label)
            labels = short_names(self.names)
            self.axes.set_yticks(self.ranks, [labels[n] for n in self.order])
            for label in self.axes.get_yticklabels():
                label.set_parse_math(False)  # a name may hold dollar signs
            values: Axis = self.axes.xaxis
        else:
            self.axes.set(ylim=limits, xlim=around, ylabel=value_label)
            who = "Clients" if self.step == 1 else f"One client in {self.step}"
            self.axes.set_xlabel(f"{who}, by ascending ratio (valuation / cost per sample)")
            self.axes.xaxis.set_major_locator(MaxNLocator(8, integer=True, steps=STEPS))
            self.axes.xaxis.set_major_formatter(with_commas)
            values = self.axes.yaxis
        values.set_major_locator(MaxNLocator(6, steps=STEPS))
        values.set_major_formatter(with_commas)
        put_legend(self.axes, self._given, self.legend, columns=2)
        return self.figure


def slot_axes(heights: list[float], ax: Sequence[Axes] | None = None) -> list[Axes]:
    """Axes one above the other that share the slots, or those that were given."""
    if ax is None:
        figure = Picture(figsize=(8.0, sum(heights) + 0.9), layout="constrained")
        grid = figure.subplots(len(heights), 1, sharex=True, squeeze=False, height_ratios=heights)
        all_axes = list(grid[:, 0])
    else:
        all_axes = panels(ax, len(heights))
    for axes in all_axes:
        style(axes)
    return all_axes


def finish_slots(all_axes: list[Axes], ax: object, legend: list[Any]) -> Figure:
    """Label the slots, and put the legend above the plot."""
    for axes in all_axes:
        if axes.get_ylabel():
            axes.yaxis.set_major_formatter(with_commas)
        axes.xaxis.set_major_locator(MaxNLocator(10, integer=True, steps=STEPS))
        axes.xaxis.set_major_formatter(with_commas)
    last = all_axes[-1]
    last.set_xlabel("Slot")
    put_legend(all_axes[0], ax, legend, columns=4)
    return figure_of(last)


def label_of(drawn: Any) -> str:
    """What something is called in a legend."""
    return str(drawn.get_label())


def shade(
    axes: Axes,
    chosen: BoolArray,
    span: tuple[float, float] | None = None,
    label: str = "punishing",
) -> list[Any]:
    """Shade the slots of punishment (or others), over the whole height or within `span`."""
    look: dict[str, Any] = {"facecolor": "#E6E6E6", "edgecolor": "#AAAAAA", "hatch": "////"}
    runs = stretches(chosen)
    if not runs:
        return []
    height = (0.0, 1.0) if span is None else (span[0], span[1] - span[0])
    where: dict[str, Any] = {"transform": axes.get_xaxis_transform()} if span is None else {}
    return [axes.broken_barh(runs, height, linewidth=0.0, label=label, **look, **where)]


def stretches(chosen: BoolArray) -> list[tuple[float, float]]:
    """Start and length of each run of chosen slots."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], chosen, [False]])))
    return [(first + 0.5, last - first) for first, last in edges.reshape(-1, 2).tolist()]

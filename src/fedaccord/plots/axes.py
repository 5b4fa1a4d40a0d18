"""Axes with clients or slots on them, and what all plots have in common."""

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from fedaccord.game.consortium import Consortium
from fedaccord.game.roles import Role
from fedaccord.numbers import BoolArray, FloatArray

INK = "#222222"
ROLE_LOOK: dict[Role, dict[str, Any]] = {  # colours of Okabe and Ito, for all kinds of eyes
    Role.CONTRIBUTOR: {"facecolor": "#0072B2"},
    Role.PARTIAL_CONTRIBUTOR: {"facecolor": "#56B4E9", "hatch": "\\\\\\\\"},
    Role.CONVERTED_CONTRIBUTOR: {"facecolor": "#E69F00", "hatch": "////"},
}
STEPS = [1, 2, 5, 10]
"""Between ticks, in powers of ten."""


def plain(axes: Axes, grid: Literal["x", "y"] = "y") -> None:
    """No more lines than help to read."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis=grid, color="#DDDDDD", linewidth=0.6)
    axes.set_axisbelow(True)


def with_commas(value: float, _: float | None) -> str:
    """A tick's label."""
    return f"{value:,.10g}"


LETTERS = 36
"""A longer name would leave no room for what it names."""
_END = 12
"""How many of the letters are a name's last, where names that begin alike often differ."""


def short_names(names: Sequence[str]) -> list[str]:
    """The names with the middle left out of long ones, no two of them alike.

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
"""Up to this many clients have a row of their own, with their name."""
BARS = 300
"""Up to this many have a bar; beyond, bars would be thinner than the gaps between them."""
DRAWN = 1000
"""Of more clients than this only every so manieth is drawn: a page has no more columns."""


class Canvas:
    """Axes on which clients stand in ascending order of their ratio: named rows, or columns."""

    def __init__(self, consortium: Consortium) -> None:
        order = np.argsort(consortium.ratio, kind="stable")
        self.step = -(-order.size // DRAWN)
        self.order = order[:: self.step]
        self.ranks = 1.0 + np.arange(0, order.size, self.step)
        self.names = consortium.names
        self.named = consortium.size <= NAMED
        self.legend: list[Any] = []
        height = 1.2 + 0.38 * max(consortium.size, 2) if self.named else 4.2
        self.figure = Figure(figsize=(8.0, height), layout="constrained")
        self.axes: Axes = self.figure.add_subplot()
        plain(self.axes, "x" if self.named else "y")

    def take(self, values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """What is drawn of one value a client, in order."""
        return values[self.order]

    def fill(
        self, values: FloatArray, members: BoolArray, label: str, look: dict[str, Any]
    ) -> None:
        """Bars or areas from 0 for some of the clients."""
        if not members.any():
            return
        style = look | {"label": label, "edgecolor": "white", "linewidth": 0.0}
        ranks, amounts = self.ranks[members], values[members]
        if self.named:
            self.legend.append(self.axes.barh(ranks, amounts, height=0.66, **style))
        elif self.ranks.size <= BARS:
            self.legend.append(self.axes.bar(ranks, amounts, width=1.0, **style))
        else:
            heights = np.where(members, values, 0.0)
            self.legend.append(self.axes.fill_between(self.ranks, heights, step="mid", **style))

    def outline(self, values: FloatArray, label: str) -> None:
        """The outline of bars from 0, over whatever is filled."""
        if self.named:
            style: dict[str, Any] = {"fill": False, "edgecolor": INK, "linewidth": 1.6}
            drawn: Any = self.axes.barh(self.ranks, values, height=0.66, label=label, **style)
        else:
            edges = np.append(self.ranks, self.ranks[-1] + self.step) - 0.5 * self.step
            width = 1.6 if self.ranks.size <= BARS else 0.8
            drawn = self.axes.stairs(values, edges, color=INK, linewidth=width, label=label)
        self.legend.append(drawn)

    def pair(self, first: FloatArray, second: FloatArray, labels: tuple[str, str]) -> None:
        """Two values a client, the first open, the second full, and the way between them."""
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
            style: dict[str, Any] = {"marker": "x", "markersize": 7 if self.named else 4}
            self._points(np.where(members, values, np.nan), label, color=INK, zorder=4, **style)

    def _points(self, values: FloatArray, label: str, **style: Any) -> None:
        along = (values, self.ranks) if self.named else (self.ranks, values)
        self.legend += self.axes.plot(*along, linestyle="", label=label, clip_on=False, **style)

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
        self.figure.legend(handles=self.legend, loc="outside upper left", ncols=2, frameon=False)
        return self.figure


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

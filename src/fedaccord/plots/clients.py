"""Axes on which clients stand in ascending order of their ratio: named rows, or columns."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from fedaccord.game.arrays import BoolArray, FloatArray
from fedaccord.game.consortium import Consortium
from fedaccord.plots.labels import short_names
from fedaccord.plots.style import INK, STEPS, plain, with_commas

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

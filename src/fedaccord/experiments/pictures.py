"""Pictures of the figures' data, for one or two columns of a paper. Nothing is computed here.

Everything can also be told apart without colour, by markers, dashes and widths. Legends stand above
the axes, where they hide nothing.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from io import BytesIO
from typing import Any, Literal

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from fedaccord.experiments.figure_data import FigureData

Width = Literal["one-column", "two-columns"]
INCHES: dict[Width, float] = {"one-column": 3.5, "two-columns": 7.16}
"""Widths of a journal with two columns (IEEE)."""

_DOTS_PER_INCH = 300
_STYLE: Any = {
    "font.size": 8.0,
    "axes.labelsize": 8.0,
    "legend.fontsize": 7.5,
    "axes.linewidth": 0.6,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "legend.handlelength": 1.8,
    "legend.columnspacing": 1.2,
    "legend.handletextpad": 0.5,
    "svg.fonttype": "path",  # looks the same everywhere
}
_STEPS = [1, 2, 2.5, 5, 10]
_BEGINNING = 10
"""Rounds in which a new model improves so fast that nothing else could be seen."""
_METADATA: dict[str, dict[str, None]] = {
    "svg": {"Date": None, "Creator": None},
    "png": {"Software": None},
}
"""No date and no version, so that the bytes are the same every time."""


@dataclass(frozen=True)
class Scale:
    """How a parameter is written along an axis."""

    label: str
    factor: float = 1.0


SCALES = {
    "clients": Scale("Number of clients N"),
    "samples": Scale("Samples of each client D"),
    "rounds": Scale("Rounds in a slot G"),
    "cost_per_sample": Scale("Cost per sample E (10⁻⁸ CNY)", 1e8),
    "discount_factor": Scale("Discount factor δ"),
    "round": Scale("Round (a dotted line ends a slot)"),
}
REMOVED = "Free riders removed (clients)"
RATIO = "Data ratio to equilibrium"
RATIO_NEARER = "Data ratio (uniform)"
CONTRIBUTORS = "Contributors (clients)"
DATA = "Training data in a slot\n(thousand samples)"

# Colours by Okabe and Ito, which colour-blind readers can distinguish.
_CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "I": ("uniform, critical client", {"marker": "o", "color": "#D55E00"}),
    "II": (
        "uniform, no critical client",
        {"marker": "^", "color": "#0072B2", "markerfacecolor": "white"},
    ),
    "all": (
        "uniform, no free rider",
        {"marker": "s", "color": "#666666", "markerfacecolor": "white"},
    ),
}
_INDIVIDUAL: dict[str, Any] = {"color": "black", "linewidth": 0.7}
_LEGEND_MARKER = 4.0
"""In points: large enough for their shapes to be recognised."""
MECHANISMS: dict[str, tuple[str, dict[str, Any]]] = {
    "individual": ("individual", {"color": "black", "linestyle": "-", "marker": "s"}),
    "uniform": ("uniform (the paper's)", {"color": "#D55E00", "linestyle": "-", "marker": "o"}),
    "detection": ("detection", {"color": "#0072B2", "linestyle": "--", "marker": "^"}),
    "contract": ("contract design", {"color": "#009E73", "linestyle": ":", "marker": "D"}),
}
"""The label of each mechanism, and the style of its line."""
_SUSPENSION: tuple[str, dict[str, Any]] = (
    "suspension for 1 slot",
    # wide, and drawn first: it shows on both sides of lines with the same values
    {"color": "#E5B3CF", "linestyle": "-", "linewidth": 4.0},
)
PUNISHMENTS: dict[str, tuple[str, dict[str, Any]]] = {
    "suspension": _SUSPENSION,
    "individual": ("reversion, individual", MECHANISMS["individual"][1]),
    "uniform": ("reversion, uniform (the paper's)", MECHANISMS["uniform"][1]),
}
"""The same for agreements under both punishments."""
TRUTHFUL: dict[str, tuple[str, dict[str, Any]]] = {
    "suspension": _SUSPENSION,
    "individual": ("reversion, individual", MECHANISMS["individual"][1]),
    "serial_clock": ("serial clock", {"color": "#0072B2", "linestyle": "--", "marker": "^"}),
    "fair_exchange": ("fair exchange", {"color": "#009E73", "linestyle": ":", "marker": "D"}),
    "clock": ("clock", {"color": "#E69F00", "linestyle": "-.", "marker": "o"}),
}
"""The same for agreements beside truthful mechanisms."""
NEEDED: dict[str, tuple[str, dict[str, Any]]] = {
    "everything": ("everything, suspension", _SUSPENSION[1]),
    "uniform": ("uniform, reversion", MECHANISMS["uniform"][1]),
    "clock": ("clock, suspension", {"color": "#0072B2", "linestyle": "--", "marker": "^"}),
    "transfers": ("transfers, reversion", {"color": "#009E73", "linestyle": ":", "marker": "D"}),
}
"""The same for what needs patience."""
TRAINED: dict[str, tuple[str, dict[str, Any]]] = {
    "individual": ("individual", {"color": "black", "linestyle": "-"}),
    "uniform": ("uniform (the paper's)", {"color": "#D55E00", "linestyle": "-."}),
    "equilibrium": ("equilibrium, detection", {"color": "#0072B2", "linestyle": "--"}),
    "contract": ("contract design", {"color": "#009E73", "linestyle": ":"}),
}
"""The same for trained models; detection has the equilibrium's model."""
_REMOVE: dict[str, tuple[str, dict[str, Any]]] = {
    "uniform": ("uniform (the paper's)", {"color": "#D55E00", "linewidth": 1.3}),
    "feasible": (
        "uniform, first willing client",
        {"color": "#0072B2", "linestyle": "--", "linewidth": 1.0},
    ),
    "individual": ("individual", {"color": "black", "linestyle": ":", "linewidth": 1.0}),
}
"""The same for agreements in random consortia."""
_BAND: dict[str, Any] = {"color": "#D55E00", "alpha": 0.2, "linewidth": 0.0, "label": "all draws"}
_SIZES: tuple[dict[str, Any], ...] = (
    {"marker": "o", "markersize": 3.0, "color": "#D55E00", "linestyle": "-"},
    {"marker": "^", "markersize": 3.0, "color": "#0072B2", "linestyle": "--"},
    {"marker": "s", "markersize": 3.0, "color": "#009E73", "linestyle": "-."},
    {"marker": "D", "markersize": 3.0, "color": "black", "linestyle": ":"},
)
"""Styles for the numbers of samples, in ascending order."""
_ASIDE = 1.12
"""Shift from one number of samples to the next, as a factor on a logarithmic axis."""


def plot_cases(
    table: FigureData,
    column: str,
    label: str,
    width: Width,
    *,
    zoom: tuple[float, float] | None = None,
    zoom_label: str = "",
) -> Figure:
    """The uniform agreement as points, by the equilibrium's case, and the individual as a line.

    A second panel enlarges a part of the points.
    """
    size = 2.6 if len(table) <= 250 else 1.6
    with rc_context(_STYLE):
        figure, panels = _panels(width, 1 if zoom is None else 2)
        legend = _draw_cases(panels[0], table, column, size)
        # above the points, which would hide it where the values are nearly the same
        x, individual = table.swept * SCALES[table.parameter].factor, table[f"individual_{column}"]
        legend += panels[0].plot(x, individual, label="individual", zorder=3, **_INDIVIDUAL)
        panels[0].set_ylabel(label)
        if zoom is not None:
            low, high = zoom
            near = table.where((table.swept >= low) & (table.swept <= high))
            _draw_cases(panels[1], near, column, 2.6)
            panels[1].set_ylabel(zoom_label)
        return _finish(figure, panels, table.parameter, legend, markerscale=_LEGEND_MARKER / size)


def plot_mechanisms(table: FigureData, what: str, label: str, width: Width) -> Figure:
    """One line per mechanism, with a few markers each."""
    return plot_lines(table, {what: label}, MECHANISMS, width)


def plot_lines(
    table: FigureData,
    columns: Mapping[str, str],
    looks: Mapping[str, tuple[str, dict[str, Any]]],
    width: Width,
) -> Figure:
    """A panel for each column (with its label), and in it a line for each of `looks`."""
    scale = SCALES[table.parameter]
    with rc_context(_STYLE):
        figure, panels = _panels(width, len(columns))
        for axes, (what, label) in zip(panels, columns.items(), strict=True):
            legend: list[Any] = []
            for n, (name, (words, look)) in enumerate(looks.items()):
                values = table[f"{name}_{what}"] / (1000.0 if what.endswith("total") else 1.0)
                marks = (n / (8.0 * len(looks)) + 0.01, 0.125)
                style: dict[str, Any] = {"linewidth": 1.2, "markersize": 3.5, "markevery": marks}
                style["clip_on"] = False  # otherwise markers at 0 would be cut in half
                x = table.swept * scale.factor
                legend += axes.plot(x, values, label=words, **(style | look))
            axes.set_ylabel(label)
            axes.set_ylim(bottom=0.0)
        return _finish(figure, panels, table.parameter, legend)


def plot_bands(table: FigureData, groups: Mapping[str, str], width: Width) -> Figure:
    """A panel for each group: both uniform agreements, the paper's with a band, the individual."""
    with rc_context(_STYLE):
        figure, panels = _panels(width, len(groups))
        for axes, (name, title) in zip(panels, groups.items(), strict=True):
            lines = [
                axes.plot(table.swept, table[f"{name}_{kind}"], label=words, **look)[0]
                for kind, (words, look) in _REMOVE.items()
            ]
            band = (table[f"{name}_uniform_low"], table[f"{name}_uniform_high"])
            shade = axes.fill_between(table.swept, *band, **_BAND)
            legend = [lines[0], shade, *lines[1:]]
            axes.set_title(title, fontsize=8.0)
            axes.set_ylabel(REMOVED)
        highest = max(axes.get_ylim()[1] for axes in panels)
        for axes in panels:
            axes.set_ylim(0.0, highest)
        return _finish(figure, panels, table.parameter, legend)


def plot_rounds(table: FigureData, sizes: Mapping[int, str], rounds: int, width: Width) -> Figure:
    """Accuracy and loss after each round, with intervals; a row of axes for each size of data."""
    with rc_context(_STYLE):
        figure, panels = _panels(width, 2 * len(sizes), across=2 if width == "two-columns" else 1)
        legend: list[Any] = []
        for k, (size, words) in enumerate(sizes.items()):
            for axes, key in zip(panels[2 * k : 2 * k + 2], ("accuracy", "loss"), strict=True):
                drawn = [_draw_rounds(axes, table, name, f"{size}_{key}") for name in TRAINED]
                for slot_end in range(rounds, int(table.swept[-1]), rounds):
                    axes.axvline(slot_end + 0.5, color="#999999", linewidth=0.6, linestyle=":")
                axes.set_ylabel(f"Test {key}\n({words})")
                axes.set_ylim(_limits(table, f"{size}_{key}"))
                legend = legend or drawn
        return _finish(figure, panels, table.parameter, legend)


def _limits(table: FigureData, column: str) -> tuple[float, float]:
    """The mechanisms differ at the end, so the steep beginning may be cut off."""
    later = np.array([table[f"{name}_{column}"][_BEGINNING:] for name in TRAINED])
    if later.size == 0:
        later = np.array([table[f"{name}_{column}"] for name in TRAINED])
    room = 0.06 * float(np.ptp(later)) + 1e-3
    return float(later.min()) - room, float(later.max()) + room


def _draw_rounds(axes: Axes, table: FigureData, name: str, column: str) -> Any:
    words, look = TRAINED[name]
    middle, half = table[f"{name}_{column}"], table[f"{name}_{column}_half"]
    axes.fill_between(
        table.swept, middle - half, middle + half, color=look["color"], alpha=0.15, linewidth=0.0
    )
    [line] = axes.plot(table.swept, middle, label=words, linewidth=1.1, **look)
    return line


def plot_law(table: FigureData, width: Width) -> Figure:
    """Loss by rounds for a few numbers of samples: measured as points, two laws as lines."""
    sizes = np.unique(table["samples"])
    chosen = sizes[np.linspace(0, sizes.size - 1, len(_SIZES)).round().astype(int)]
    formulas = {"law": "a/√(XG) + b/G + c", "separate": "a/√X + b/√G + c"}
    with rc_context(_STYLE):
        figure, panels = _panels(width, 2)
        for axes, (law, formula) in zip(panels, formulas.items(), strict=True):
            legend = [
                _draw_law(axes, table.where(table["samples"] == size), law, look, place)
                for place, (size, look) in enumerate(zip(chosen, _SIZES, strict=True))
            ]
            axes.set_title(f"Lines: {formula}", fontsize=8.0)
            axes.set_ylabel("Test loss")
        _finish(figure, panels, "rounds", legend, handlelength=3.0)
        for axes in panels:
            axes.set_xscale("log")
            axes.xaxis.set_major_formatter(_with_commas)
            axes.xaxis.set_minor_formatter("")
        return figure


def _draw_law(axes: Axes, part: FigureData, law: str, look: dict[str, Any], place: int) -> Line2D:
    """One number of samples; its points are shifted a little so that none hides another."""
    points, line = look | {"linestyle": ""}, look | {"marker": ""}
    aside = part["rounds"] * _ASIDE ** (place - (len(_SIZES) - 1) / 2)
    axes.errorbar(aside, part["loss"], part["loss_half"], elinewidth=0.8, **points)
    axes.plot(part["rounds"], part[law], linewidth=0.9, **line)
    return Line2D([], [], label=f"X = {part['samples'][0]:,.0f}", linewidth=0.9, **look)


def save(figure: Figure, name: str) -> dict[str, bytes]:
    """The figure as SVG and PNG, the same bytes every time; `name` makes the SVG's ids unique."""
    saved: dict[str, bytes] = {}
    with rc_context(_STYLE | {"svg.hashsalt": name}):
        for form, metadata in _METADATA.items():
            data = BytesIO()
            figure.savefig(data, format=form, dpi=_DOTS_PER_INCH, metadata=metadata)
            saved[form] = data.getvalue()
    return saved


def _draw_cases(axes: Axes, table: FigureData, column: str, size: float) -> list[Any]:
    x = table.swept * SCALES[table.parameter].factor
    legend: list[Any] = []
    style: dict[str, Any] = {"linestyle": "", "markersize": size, "markeredgewidth": 0.5}
    for case, (words, look) in _CASES.items():
        there = table["case"] == case
        if there.any():
            values = table[f"uniform_{column}"][there]
            legend += axes.plot(x[there], values, label=words, **style, **look)
    return legend


def _panels(width: Width, count: int, across: int | None = None) -> tuple[Figure, list[Axes]]:
    """Axes below each other for one column, side by side (or `across` in a row) for two."""
    across = across or (count if width == "two-columns" else 1)
    down = count // across
    height = 0.75 + 1.9 * down
    figure = Figure(figsize=(INCHES[width], height), layout="constrained")
    grid = figure.subplots(down, across, squeeze=False)
    for axes in grid.flat:
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(axis="y", color="#DDDDDD", linewidth=0.5)
        axes.set_axisbelow(True)
    return figure, list(grid.flat)


def _finish(
    figure: Figure, panels: list[Axes], parameter: str, legend: list[Any], **options: Any
) -> Figure:
    """Format the axes and add one legend; `options` are the legend's."""
    for axes in panels:
        axes.set_xlabel(SCALES[parameter].label)
        axes.margins(x=0.02)
        axes.xaxis.set_major_locator(MaxNLocator(6, steps=_STEPS))
        axes.yaxis.set_major_locator(MaxNLocator(5, steps=_STEPS))
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_formatter(_with_commas)
    columns = 2 if figure.get_figwidth() < 5 else len(legend)
    place: dict[str, Any] = {"loc": "outside upper left", "ncols": columns, "frameon": False}
    figure.legend(handles=legend, **place, **options)
    return figure


def _with_commas(value: float, _: float | None) -> str:
    return f"{value:,.10g}"

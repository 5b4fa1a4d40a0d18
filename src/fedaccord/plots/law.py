"""A measured law: the curve that it was fitted to, its band, and the laws beside it."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fedaccord.errors import InvalidInput
from fedaccord.game.candidates import compare_laws
from fedaccord.game.curve import LEVEL
from fedaccord.game.law import Law
from fedaccord.game.measured import Evidence
from fedaccord.numbers import count
from fedaccord.plots.axes import figure_and_axes, put_legend, with_commas

_BEYOND = 2.0
"""Times the largest size: how far the picture looks ahead."""
_OTHERS: dict[str, dict[str, Any]] = {
    "paper": {"color": "#D55E00", "linestyle": "--", "label": "the paper's law, fitted"},
    "power": {"color": "#009E73", "linestyle": "-.", "label": "a single power, fitted"},
}


def plot_law(law: Law, *, ax: Axes | None = None) -> Figure:
    """A measured law, its band over resampled laws, and every run that it was fitted to.

    The curve beyond what was measured is lighter. The paper's law and a single power are fitted to
    the same curve.
    """
    if law.evidence is None:
        raise InvalidInput("must be a measured law", field="law")
    evidence = law.evidence
    figure, axes = figure_and_axes((8.0, 4.8), ax)
    legend = _band(axes, law, evidence)
    low, high = evidence.range
    totals = np.geomspace(low, high, 200)
    for candidate in compare_laws(evidence.curve):
        if candidate.family in _OTHERS and candidate.law is not None:
            look = _OTHERS[candidate.family] | {"linewidth": 1.2}
            legend += axes.plot(totals, candidate.law.loss(totals), **look)
    legend += _runs(axes, evidence)
    axes.set(xscale="log", xlabel="Samples trained on", ylabel=f"Test {law.measure}")
    axes.set_ylim(bottom=0.0)
    axes.xaxis.set_major_formatter(with_commas)
    put_legend(axes, ax, legend, 3)
    return figure


def _band(axes: Axes, law: Law, evidence: Evidence) -> list[Any]:
    """The law and its band: what was measured, and lighter what lies beyond."""
    low, high = evidence.range
    drawn: list[Any] = []
    for totals, shade in (
        (np.geomspace(low, high, 200), 0.30),
        (np.geomspace(high, _BEYOND * high, 50), 0.12),
    ):
        lower, upper = evidence.band(totals)
        inside = shade > 0.2
        band = axes.fill_between(totals, lower, upper, color="#0072B2", alpha=shade, linewidth=0)
        band.set_label(
            f"{100 * LEVEL:.0f} % of {evidence.resamples:,} resampled laws"
            if inside
            else "beyond what was measured"
        )
        style: dict[str, Any] = {"color": "#0072B2", "linewidth": 2.0 if inside else 1.0}
        line = axes.plot(totals, law.loss(totals), label="measured law", **style)
        drawn += [*line, band] if inside else [band]
    return drawn


def _runs(axes: Axes, evidence: Evidence) -> list[Any]:
    """Each run as a small mark, and their means."""
    curve = evidence.curve
    sizes = np.repeat(curve.sizes, len(curve.seeds))
    runs: dict[str, Any] = {"color": "#555555", "markersize": 2.5, "alpha": 0.5}
    each = axes.plot(sizes, curve.values.ravel(), ".", **runs)
    each[0].set_label(f"a run ({count(len(curve.seeds), 'seed')})")
    means: dict[str, Any] = {"color": "#222222", "markersize": 5, "markerfacecolor": "white"}
    return [*each, *axes.plot(curve.sizes, curve.mean, "o", label="mean", **means)]

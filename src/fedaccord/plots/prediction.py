"""A prediction and its test: the law with its band, and what training then showed."""

from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fedaccord.errors import InvalidInput
from fedaccord.game.curve import LEVEL
from fedaccord.game.law import Law
from fedaccord.game.measured import Evidence
from fedaccord.numbers import FloatArray, count
from fedaccord.plots.axes import INK, figure_and_axes, put_legend, with_commas

if TYPE_CHECKING:
    from fedaccord.trials.trial import Trial

_LOOKS: list[dict[str, Any]] = [
    {"marker": "o", "color": "#D55E00", "markerfacecolor": "white"},
    {"marker": "D", "color": "#0072B2"},
    {"marker": "s", "color": "#009E73"},
    {"marker": "^", "color": "#CC79A7"},
]
_AROUND = 2.0
"""Times the totals: how much of the curve the picture shows on either side of them."""


def plot_prediction(law: Law, trial: "Trial", *, ax: Axes | None = None) -> Figure:
    """A measured law around the totals of a training, its band, and what the training showed.

    Accuracy in per cent, or concordance, if the law is about 1 minus that; else the measure itself.
    """
    if law.evidence is None or not trial.predictions:
        raise InvalidInput("must be a measured law of one slot's training", field="law")
    figure, axes = figure_and_axes((8.0, 4.4), ax)
    totals = _totals(law.evidence, [one.total for one in trial.predictions])
    legend = _law(axes, law, law.evidence, totals)
    legend += [_mean_runs(axes, law, law.evidence, totals)]
    for look, prediction in zip(_LOOKS, trial.predictions, strict=False):
        score = next(each for each in trial.scores if each.profile == prediction.profile)
        value = score.loss if law.measure == "loss" else score.accuracy
        times = 100.0 if law.measure == "error" else 1.0
        axes.axvline(prediction.total, color=look["color"], linewidth=0.8, linestyle=":")
        legend.append(
            axes.errorbar(
                prediction.total,
                times * value.mean,
                yerr=np.nan_to_num(times * value.half_width),
                label=f"{prediction.profile}, trained ({count(trial.seeds, 'fresh seed')})",
                linestyle="",
                capsize=4,
                markersize=8,
                zorder=4,
                **look,
            )
        )
    axes.set(xscale="log", xlim=(totals[0], totals[-1]), xlabel="Samples trained on in a slot")
    unit = " (%)" if law.measure == "error" else ""
    axes.set_ylabel(f"Test {trial.predictions[0].shown}{unit}")
    axes.xaxis.set_major_locator(_ticks(totals))
    axes.xaxis.set_major_formatter(with_commas)
    axes.minorticks_off()
    put_legend(axes, ax, legend, 2)
    return figure


def _totals(evidence: Evidence, trained: list[float]) -> FloatArray:
    """The part of the curve to show: around what was trained on, and no further than measured."""
    some = [total for total in trained if total > 0] or [evidence.range[0]]
    least, most = min(some), max(some)
    low = min(max(least / _AROUND, evidence.range[0]), least)
    high = max(min(most * _AROUND, evidence.range[1]), most)
    return np.geomspace(low, high, 200)


def _shown(law: Law, values: FloatArray) -> FloatArray:
    """Accuracy in per cent rather than error, and concordance rather than 1 - concordance."""
    if law.measure == "error":
        return 100.0 * (1.0 - values)
    return values if law.measure == "loss" else 1.0 - values


def _law(axes: Axes, law: Law, evidence: Evidence, totals: FloatArray) -> list[Any]:
    low, high = (_shown(law, end) for end in evidence.band(totals))
    look: dict[str, Any] = {"color": "#0072B2", "alpha": 0.2, "linewidth": 0}
    label = f"{100 * LEVEL:.0f} % of {evidence.resamples:,} laws that fit"
    band = axes.fill_between(totals, low, high, label=label, **look)
    style: dict[str, Any] = {"color": INK, "linewidth": 1.4, "label": "the measured law"}
    return [*axes.plot(totals, _shown(law, law.loss(totals)), **style), band]


def _mean_runs(axes: Axes, law: Law, evidence: Evidence, totals: FloatArray) -> Any:
    """The means that the law was fitted to, in this part of the curve."""
    curve = evidence.curve
    near = (curve.sizes >= totals[0]) & (curve.sizes <= totals[-1])
    look: dict[str, Any] = {"color": INK, "markersize": 6, "linestyle": ""}
    label = f"what it was fitted to ({count(len(curve.seeds), 'seed')})"
    means = _shown(law, curve.mean[near])
    return axes.plot(curve.sizes[near], means, marker="x", label=label, **look)[0]


def _ticks(totals: FloatArray) -> Any:
    """A handful of round totals on a logarithmic axis."""
    from matplotlib.ticker import FixedLocator

    decades = 10.0 ** np.arange(np.floor(np.log10(totals[0])), np.log10(totals[-1]) + 1)
    return FixedLocator(np.outer(decades, [1, 2, 3, 5]).ravel().tolist())

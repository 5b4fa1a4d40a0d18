"""Pictures of a training: accuracy and loss, round by round."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from fedaccord.numbers import BoolArray, FloatArray
from fedaccord.plots.axes import (
    STEPS,
    finish_slots,
    label_of,
    shade,
    short_names,
    slot_axes,
)

if TYPE_CHECKING:
    from fedaccord.training.comparison import Comparison
    from fedaccord.training.course import TrainingRun


_PROFILE_LOOK: list[dict[str, Any]] = [
    {"color": "#D55E00", "linestyle": "--"},
    {"color": "#0072B2", "linestyle": "-"},
    {"color": "#009E73", "linestyle": "-."},
    {"color": "#CC79A7", "linestyle": ":"},
    {"color": "#222222", "linestyle": (0, (5, 1, 1, 1, 1, 1))},
]


def plot_learning(comparison: "Comparison", *, ax: Sequence[Axes] | None = None) -> Figure:
    """Test accuracy and test loss by round, on two axes: the mean and the range over seeds.

    A client on its own has a curve, too, in the slots in which it is.
    """
    [above, below] = slot_axes([2.6, 2.2], ax)
    slots = len(comparison.runs[0].slots)
    shaded = [_shade_punishments(axes, comparison) for axes in (above, below)]  # behind the rest
    legend: list[Any] = []
    bands: dict[Axes, list[FloatArray]] = {above: [], below: []}
    for k, score in enumerate(comparison.scores):
        look = _PROFILE_LOOK[k % len(_PROFILE_LOOK)] | {"linewidth": 1.8}
        curves = [_curves(run) for run in comparison.of(score.profile)]
        where = curves[0][0]
        for axes, field in ((above, 1), (below, 2)):
            values = np.array([curve[field] for curve in curves])
            line = _draw_curve(axes, where, values, label=score.profile, **look)
            bands[axes] += [values.min(axis=0), values.max(axis=0)]
            legend += line if axes is above else []
    for look, client in zip(_ALONE_LOOK, _alone(comparison), strict=False):
        label = f"{short_names([client])[0]}, alone"
        for curve in _curves_alone(comparison, client):
            for axes, values in zip((above, below), curve[1:], strict=True):
                line = axes.plot(curve[0], values, label=label, **look)
                bands[axes].append(values)
                legend += line if axes is above and label not in map(label_of, legend) else []
    legend += shaded[0]
    above.set_ylabel("Test accuracy (%)")
    below.set_ylabel("Test loss")
    above.set_ylim(bottom=_after_the_start(bands[above]))
    below.set_ylim(top=-_after_the_start([-band for band in bands[below]]))
    for axes in (above, below):
        axes.yaxis.set_major_locator(MaxNLocator(5, steps=STEPS))
    figure = finish_slots([above, below], ax, legend)
    if slots == 1:
        below.set_xlabel("Round")
        below.set_xlim(0.0, float(comparison.course.rounds))
        if comparison.course.rounds == 1:  # centre the mark
            below.set_xlim(0.5, 1.5)
            below.set_xticks([1.0])
    else:
        below.set_xlim(0.5, slots + 0.5)
    return figure


def _punishing(comparison: "Comparison") -> BoolArray:
    """The slots in which any profile's slip is punished."""
    phases = [[slot.phase for slot in run.slots] for run in comparison.runs]
    punished: BoolArray = (np.array(phases) == "punishing").any(axis=0)
    return punished


def _shade_punishments(axes: Axes, comparison: "Comparison") -> list[Any]:
    """Shade the slots of punishment, and those in which anyone is out."""
    out = np.array([[bool(slot.alone) for slot in run.slots] for run in comparison.runs])
    shaded = shade(axes, np.asarray(out.any(axis=0)), label="someone is out")
    return shaded + shade(axes, _punishing(comparison) & ~out.any(axis=0))


_ALONE_LOOK: list[dict[str, Any]] = [
    {"marker": marker, "color": "#555555", "linewidth": 1.2, "markevery": [-1]}
    for marker in "sD^vo"
]
"""Of the first clients on their own; with more of them, curves could not be told apart."""


def _alone(comparison: "Comparison") -> list[str]:
    """The first clients that were on their own."""
    return list(dict.fromkeys(score.client for score in comparison.alone))[: len(_ALONE_LOOK)]


def _curves_alone(
    comparison: "Comparison", client: str
) -> Iterator[tuple[FloatArray, FloatArray, FloatArray]]:
    """Positions, accuracies and losses of a client on its own, slot by slot: means over seeds."""
    for score in comparison.alone:
        if score.client != client:
            continue
        runs = [run.slots[score.slot - 1].alone for run in comparison.of(score.profile)]
        curves = [each.rounds for records in runs for each in records if each.name == client]
        rounds = len(curves[0])
        accuracy = [[100 * each.accuracy for each in curve] for curve in curves]
        loss = [[each.loss for each in curve] for curve in curves]
        where = score.slot - 0.5 + np.arange(1, rounds + 1) / rounds
        yield where, np.mean(accuracy, axis=0), np.mean(loss, axis=0)


def _draw_curve(axes: Axes, where: FloatArray, values: FloatArray, **look: Any) -> list[Any]:
    """The mean of some runs as a line, and a band from the smallest to the largest."""
    least, most = values.min(axis=0), values.max(axis=0)
    if where.size == 1:  # neither a line nor a band would be visible
        axes.vlines(where, least, most, color=look["color"], alpha=0.5)
        look = look | {"marker": "o"}
    axes.fill_between(where, least, most, color=look["color"], alpha=0.15)
    return list(axes.plot(where, values.mean(axis=0), **look))


def _after_the_start(curves: list[FloatArray]) -> float:
    """Where to cut the axis: the first tenth of the rounds would compress the rest."""
    lowest = min(float(curve[curve.size // 10 :].min()) for curve in curves)
    highest = max(float(curve.max()) for curve in curves)
    return lowest - 0.05 * (highest - lowest)


def _curves(run: "TrainingRun") -> tuple[FloatArray, FloatArray, FloatArray]:
    """The position of each round on the axis of slots (for one slot: of rounds), and its scores."""
    places, accuracies, losses = [], [], []
    for record in run.slots:
        scores = record.rounds or (record.final,)
        steps = np.arange(1, len(scores) + 1)
        one = len(run.slots) == 1
        places.append(steps if one else record.slot - 0.5 + steps / len(scores))
        accuracies += [100 * score.accuracy for score in scores]
        losses += [score.loss for score in scores]
    return np.concatenate(places), np.array(accuracies), np.array(losses)

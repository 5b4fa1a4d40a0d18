"""Pictures of a training: accuracy and loss round by round, and accuracy on own tests."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from fedaccord.errors import InvalidInput
from fedaccord.numbers import BoolArray, FloatArray
from fedaccord.plots.axes import (
    NAMED,
    STEPS,
    figure_and_axes,
    finish_slots,
    label_of,
    put_legend,
    shade,
    short_names,
    slot_axes,
)
from fedaccord.training.estimates import Estimate
from fedaccord.training.records import ALONE

if TYPE_CHECKING:
    from fedaccord.training.comparison import Comparison
    from fedaccord.training.records import TrainingRun


PROFILE_LOOK: list[dict[str, Any]] = [
    {"color": "#D55E00", "linestyle": "--"},
    {"color": "#0072B2", "linestyle": "-"},
    {"color": "#009E73", "linestyle": "-."},
    {"color": "#CC79A7", "linestyle": ":"},
    {"color": "#222222", "linestyle": (0, (5, 1, 1, 1, 1, 1))},
]


def plot_learning(comparison: "Comparison", *, ax: Sequence[Axes] | None = None) -> Figure:
    """Test accuracy and test loss by round, on two axes: the mean and the range over seeds.

    Concordance, if that is the task's measure, is not in per cent. A client on its own has a curve,
    too, in the slots in which it is.
    """
    [above, below] = slot_axes([2.6, 2.2], ax)
    slots, times = len(comparison.runs[0].slots), _times(comparison)
    shaded = [_shade_punishments(axes, comparison) for axes in (above, below)]  # behind the rest
    legend: list[Any] = []
    bands: dict[Axes, list[FloatArray]] = {above: [], below: []}
    for k, score in enumerate(comparison.scores):
        look = PROFILE_LOOK[k % len(PROFILE_LOOK)] | {"linewidth": 1.8}
        curves = [_curves(run, times) for run in comparison.of(score.profile)]
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
    above.set_ylabel(_label(comparison))
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
    out = np.array(
        [
            [bool(slot.alone) and slot.phase != ALONE for slot in run.slots]
            for run in comparison.runs
        ]
    )
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
        times = _times(comparison)
        accuracy = [[times * each.accuracy for each in curve] for curve in curves]
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


def _curves(run: "TrainingRun", times: float) -> tuple[FloatArray, FloatArray, FloatArray]:
    """The position of each round on the axis of slots (for one slot: of rounds), and its scores."""
    places, accuracies, losses = [], [], []
    for record in run.slots:
        scores = record.rounds or (record.final,)
        steps = np.arange(1, len(scores) + 1)
        one = len(run.slots) == 1
        places.append(steps if one else record.slot - 0.5 + steps / len(scores))
        accuracies += [times * score.accuracy for score in scores]
        losses += [score.loss for score in scores]
    return np.concatenate(places), np.array(accuracies), np.array(losses)


def _times(comparison: "Comparison") -> float:
    """Accuracy is drawn in per cent."""
    return 100.0 if comparison.measure == "accuracy" else 1.0


def _label(comparison: "Comparison") -> str:
    return "Test accuracy (%)" if comparison.measure == "accuracy" else f"Test {comparison.measure}"


# --- Own tests -----------------------------------------------------------------------------

_MARKERS = "oDs^vP*X"
_APART = 0.7
"""Of the space between two clients: how much the marks of one of them take up."""


def plot_own_tests(comparison: "Comparison", *, ax: Axes | None = None) -> Figure:
    """Each client's accuracy on its own test under every profile, with 95 % intervals.

    A fine-tuned model has the mark of its profile, filled with white. Of many clients only the
    first are shown.
    """
    if not comparison.scores[0].clients:
        raise InvalidInput("no client has a test of its own", field="comparison")
    clients = comparison.scores[0].clients[:NAMED]
    models = [
        (f"{score.profile}{tuned}", k, field)
        for k, score in enumerate(comparison.scores)
        for tuned, field in (("", "accuracy"), (", fine-tuned", "fine_tuned"))
        if getattr(score.clients[0], field) is not None
    ]
    height = 1.2 + 0.22 * max(len(clients) * len(models), 8)
    figure, axes = figure_and_axes((8.0, height), ax)
    places, legend = np.arange(len(clients), dtype=np.float64), []
    for n, (label, k, field) in enumerate(models):
        found = [getattr(score, field) for score in comparison.scores[k].clients[:NAMED]]
        color = PROFILE_LOOK[k % len(PROFILE_LOOK)]["color"]
        legend.append(
            axes.errorbar(
                [_times(comparison) * each.mean for each in found],
                places + _APART * (n / max(len(models) - 1, 1) - 0.5),
                xerr=_times(comparison) * np.transpose([_reach(each) for each in found]),
                label=label,
                marker=_MARKERS[k % len(_MARKERS)],
                markerfacecolor=color if field == "accuracy" else "white",
                color=color,
                linestyle="",
                capsize=3,
            )
        )
    axes.set_yticks(places, [*short_names([each.name for each in clients])])
    axes.invert_yaxis()
    axes.set_xlabel(_label(comparison).replace("Test", "Own-test"))
    put_legend(axes, ax, legend, 3)
    return figure


def _reach(found: Estimate) -> tuple[float, float]:
    """How far the interval goes to the left and to the right: a share is from 0 to 1."""
    half = np.nan_to_num(found.half_width)
    return min(half, max(found.mean, 0.0)), min(half, max(1.0 - found.mean, 0.0))

"""Pictures of a match: totals, events, what a slip cost, which tolerance is best."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from fedaccord.numbers import BoolArray
from fedaccord.plots.axes import (
    DRAWN,
    INK,
    STEPS,
    figure_and_axes,
    finish_slots,
    label_of,
    put_legend,
    shade,
    short_names,
    slot_axes,
    stretches,
    with_commas,
)
from fedaccord.repeated.deviators import Deviator
from fedaccord.repeated.match import Match
from fedaccord.repeated.recorder import Event
from fedaccord.repeated.tolerance import Tolerance

_EVENT_LOOK: dict[str, dict[str, Any]] = {
    "deviation": {"marker": "x", "markersize": 7, "markeredgewidth": 2},
    "false alarm": {"marker": "^", "markersize": 6, "markerfacecolor": "none"},
    "absence": {"marker": "|", "markersize": 8},
}
_STRIPS = 10
"""Clients with a strip of their own; the others that were out share one."""


def plot_totals(match: Match, *, ax: Axes | None = None) -> Figure:
    """The samples trained on in each slot, with punishments shaded, and the two levels.

    Under suspension the slots in which anyone is out are shaded.
    """
    agreement = match.agreement
    [axes] = slot_axes([4.0], None if ax is None else [ax])
    legend: list[Any] = []
    if agreement.exists and match.suspended is not None and match.suspended.any():
        legend = shade(axes, np.asarray(match.suspended.any(axis=1)), label="someone is out")
    elif agreement.exists:
        legend = shade(axes, match.punishing)
    levels: list[tuple[str, float, Any]] = [("equilibrium", agreement.equilibrium.total, ":")]
    if agreement.exists:
        levels.insert(0, ("agreement", agreement.total, "--"))
    for label, total, dashes in levels:
        legend.append(axes.axhline(total, color=INK, linewidth=1.2, linestyle=dashes, label=label))
    step = -(-match.slots // DRAWN)
    label = "trained on" if step == 1 else f"trained on, one slot in {step}"
    edges = np.append(np.arange(0, match.slots, step), match.slots) + 0.5
    style: dict[str, Any] = {"baseline": None, "color": "#0072B2", "linewidth": 2.0}
    legend.append(axes.stairs(match.totals[::step], edges, label=label, **style))
    largest = max(agreement.total, agreement.equilibrium.total, float(match.totals.max()))
    axes.set(ylim=(0.0, 1.08 * largest or 1.0), ylabel="Samples trained on in the slot")
    axes.set_xlim(0.5, match.slots + 0.5)
    return finish_slots([axes], ax, legend)


def plot_events(match: Match, *, ax: Axes | None = None) -> Figure:
    """A strip of the phases, and the slots with slips, false alarms and absences.

    Under suspension there is a strip for each client that was out.
    """
    strips, labels = _strips(match)
    kinds = [kind for kind in _EVENT_LOOK if any(e.kind == kind for e in match.events)]
    names = [*short_names(list(strips)), *kinds]
    height = 0.25 + 0.35 * len(names)
    [axes] = slot_axes([height], None if ax is None else [ax])
    axes.grid(visible=False)
    legend: list[Any] = []
    for row, running in enumerate(reversed(strips.values()), start=len(kinds)):
        place = (row - 0.35, row + 0.35)
        blue: dict[str, Any] = {"facecolor": "#0072B2", "label": labels[0]}
        drawn = shade(axes, running, place, labels[1])
        drawn.append(axes.broken_barh(stretches(~running), (place[0], 0.7), **blue))
        known = set(map(label_of, legend))
        legend += [each for each in drawn if label_of(each) not in known]
    for row, kind in enumerate(reversed(kinds)):
        slots = sorted({s for e in match.events if e.kind == kind for s in _slots_of(e)})
        axes.plot(slots, [row] * len(slots), linestyle="", color=INK, **_EVENT_LOOK[kind])
    axes.set_yticks(range(len(names))[::-1], names)
    for label in axes.get_yticklabels():
        label.set_parse_math(False)  # a name may hold dollar signs
    axes.set(ylim=(-0.5, len(names) - 0.5), xlim=(0.5, match.slots + 0.5))
    axes.spines["left"].set_visible(False)
    axes.tick_params(axis="y", length=0)
    return finish_slots([axes], ax, legend)


def _strips(match: Match) -> tuple[dict[str, BoolArray], tuple[str, str]]:
    """Rows to shade, by name, and what it means if a slot is not shaded and if it is."""
    if match.agreement.punishment.kind == "reversion" or match.suspended is None:
        return {"phase": match.punishing}, ("cooperating", "punishing")
    labels, names = ("takes part", "out"), match.agreement.consortium.names
    suspended = match.suspended
    first_time = np.where(suspended.any(axis=0), suspended.argmax(axis=0), match.slots)
    order = np.argsort(first_time, kind="stable")[: int(suspended.any(axis=0).sum())]
    if not order.size:
        return {"everyone": match.punishing}, labels
    strips = {names[n]: suspended[:, n] for n in order[:_STRIPS].tolist()}
    if order.size > _STRIPS:
        more = order[_STRIPS:]
        strips[f"{more.size:,} more"] = np.asarray(suspended[:, more].any(axis=1))
    return strips, labels


def plot_slip(deviator: Deviator, *, ax: Sequence[Axes] | None = None) -> Figure:
    """What a client's slips cost it: costs with and without them, and below the difference."""
    [above, below] = slot_axes([2.2, 2.4], ax)
    x = deviator.slots
    marker: dict[str, Any] = {"markersize": 5.0, "markevery": max(1, x.size // 20)}
    solid: dict[str, Any] = {"marker": "o", "color": "#D55E00", "linewidth": 2.0}
    dashed: dict[str, Any] = {"marker": "D", "color": "#0072B2", "linewidth": 2.0}
    legend = [
        *above.plot(x, deviator.paid, label="with its slips", **solid, **marker),
        *above.plot(x, deviator.paid_if_kept, "--", label="without", **dashed, **marker),
    ]
    legend += below.plot(x, deviator.extra, label="difference", color=INK, linewidth=2)
    for_ever: dict[str, Any] = {"color": "#D55E00", "linewidth": 1.4, "linestyle": ":"}
    if np.isfinite(deviator.extra_for_ever):
        line = below.axhline(deviator.extra_for_ever, label="difference, for ever", **for_ever)
        legend.append(line)
    below.axhline(0.0, color=INK, linewidth=0.8)
    above.set_ylabel("Cost so far,\nabove the unavoidable")
    below.set_ylabel("Lost so far\n(below 0: saved)")
    below.set_xlim(x[0] - 0.5, x[-1] + 0.5)
    for axes in (above, below):
        axes.yaxis.set_major_locator(MaxNLocator(5, steps=STEPS))
    return finish_slots([above, below], ax, legend)


def plot_tolerance(best: Tolerance, used: float, *, ax: Axes | None = None) -> Figure:
    """What each tolerance costs all clients together, the best one and the one in use."""
    figure, axes = figure_and_axes((8.0, 3.6), ax)
    legend = axes.plot(
        100 * best.tolerances, best.total_costs, label="cost", color="#0072B2", linewidth=2.0
    )
    lowest = float(best.cost.sum())
    style: dict[str, Any] = {"linestyle": "", "marker": "v", "markersize": 9, "color": "#D55E00"}
    legend += axes.plot(100 * best.tolerance, lowest, label="least", **style)
    if used != best.tolerance:
        legend.append(
            axes.axvline(100 * used, color=INK, linewidth=1.2, linestyle="--", label="in use")
        )
    axes.set_xlabel("Tolerance (% of the agreed contribution)")
    axes.set_ylabel("Expected discounted cost\nof all clients")
    axes.yaxis.set_major_locator(MaxNLocator(5, steps=STEPS))
    axes.yaxis.set_major_formatter(with_commas)
    put_legend(axes, ax, legend, columns=3)
    return figure


def _slots_of(event: Event) -> range:
    return range(event.slot, event.slot + int(event.lasted))

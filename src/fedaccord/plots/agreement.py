"""Plots of an agreement, and of mechanisms side by side."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.ticker import MaxNLocator

from fedaccord.agreement.agreement import Agreement
from fedaccord.agreement.certificate import Certificate
from fedaccord.game.cost import cost
from fedaccord.game.roles import Role
from fedaccord.numbers import BoolArray, FloatArray
from fedaccord.plots.axes import (
    INK,
    ROLE_LOOK,
    STEPS,
    Canvas,
    Picture,
    figure_of,
    panels,
    put_legend,
    style,
    with_commas,
)
from fedaccord.summaries.words import in_unit

if TYPE_CHECKING:
    from fedaccord.mechanisms.comparison import MechanismComparison


_NO_PATIENCE = 1.08
"""Where a threshold is drawn that no discount factor reaches."""


def plot_contributions(agreement: Agreement, *, ax: Axes | None = None) -> Figure:
    """What each client contributes at the equilibrium (outlined) and as agreed (filled, by role).

    When there is no agreement, the equilibrium is filled.
    """
    canvas = Canvas(agreement.consortium, ax)
    after, roles = canvas.take(agreement.profile), canvas.take(np.array(agreement.roles))
    filled = "agreement" if agreement.exists else "equilibrium"
    for role, look in ROLE_LOOK.items():
        canvas.fill(after, roles == role, f"{filled}: {role}", look)
    canvas.cross(after, roles == Role.FREE_RIDER, f"{filled}: {Role.FREE_RIDER}")
    before = canvas.take(agreement.equilibrium.profile)
    if agreement.exists:
        canvas.outline(before, "without an agreement (equilibrium)")
    largest = float(max(before.max(), after.max())) or 1.0  # nobody may train
    return canvas.finish("Contribution (samples in a slot)", (0.0, 1.05 * largest))


def plot_costs(agreement: Agreement, *, ax: Axes | None = None) -> Figure:
    """What a slot costs each client without and under the agreement, above the unavoidable cost.

    The unavoidable cost is the accuracy loss that only more rounds could lower, communication
    and the server's fee: it is the same in both cases, and so large that it would hide the rest.
    """
    canvas = Canvas(agreement.consortium, ax)
    unavoidable = cost(agreement.consortium, 0.0, np.inf)
    before = canvas.take(agreement.equilibrium.cost - unavoidable)
    after = canvas.take(agreement.cost - unavoidable)
    after[np.isinf(after)] = np.nan  # when nobody contributes there is nothing to draw
    canvas.pair(before, after, ("equilibrium", "agreement"))
    largest = float(np.nanmax([before, after]))
    unit = in_unit(agreement.consortium)
    return canvas.finish(f"Cost of a slot, above the unavoidable{unit}", (0.0, 1.05 * largest))


def plot_thresholds(certificate: Certificate, *, ax: Axes | None = None) -> Figure:
    """How patient each client must be for the agreement to hold, and how patient it is."""
    canvas = Canvas(certificate.agreement.consortium, ax)
    needed = np.minimum(canvas.take(certificate.threshold), _NO_PATIENCE)
    has = canvas.take(certificate.agreement.consortium.discount_factor)
    canvas.pair(needed, has, ("threshold (required)", "discount factor (its own)"))
    canvas.cross(needed, ~canvas.take(certificate.keeps), "does not keep to it")
    hopeless = bool((needed == _NO_PATIENCE).any())
    if hopeless:
        canvas.mark(1.0, "from here on no patience is enough")
    return canvas.finish("Discount factor", (-0.03, 1.15 if hopeless else 1.03))


def plot_mechanisms(
    comparison: "MechanismComparison",
    *,
    ax: Sequence[Axes] | None = None,
    noun: str = "client",
) -> Figure:
    """Mechanisms on three axes: who contributes, how much, and what all clients save.

    `noun` is what the axes call a client.
    """
    entries = comparison.entries[::-1]  # rows are counted from below
    places = np.arange(len(entries))
    people, data, money = _panels(len(entries)) if ax is None else panels(ax, 3)
    looks = ROLE_LOOK | {Role.FREE_RIDER: {"facecolor": "white", "edgecolor": INK}}
    start = np.zeros(len(entries))
    for role, look in looks.items():
        count = np.array([entry.outcome.roles.count(role) for entry in entries], dtype=np.float64)
        bar: dict[str, Any] = {"edgecolor": "white", "linewidth": 0.6} | look
        some = count > 0
        if some.any():
            where: dict[str, Any] = {"left": start[some], "height": 0.66, "label": str(role)}
            people.barh(places[some], count[some], **where, **bar)
        start += count
    holds = np.array([entry.self_enforcing for entry in entries])
    totals = np.array([entry.outcome.total for entry in entries])
    _bars_by_verdict(data, places, totals, holds, labelled=True)
    costs = np.array([entry.total_cost for entry in entries])
    saved = np.where(np.isfinite(costs), comparison.equilibrium.cost.sum() - costs, np.nan)
    _bars_by_verdict(money, places, saved, holds, labelled=False)
    for place in places[np.isnan(saved)].tolist():
        at: dict[str, Any] = {"xytext": (4, 0), "textcoords": "offset points", "va": "center"}
        money.annotate("nobody trains", (0.0, place), fontsize=8, **at)
    money.axvline(0.0, color=INK, linewidth=0.8)
    people.set_yticks(places, [entry.name for entry in entries])
    for axes in (data, money):
        axes.tick_params(axis="y", labelleft=False)
    unit = comparison.consortium.currency or "unit of the valuations"
    people_label = f"{noun.capitalize()}s"
    labels = (people_label, "Samples in a slot", f"Saved by all {noun}s\n({unit})")
    for axes, label in zip((people, data, money), labels, strict=True):
        style(axes, "x")
        axes.set_xlabel(label)
        axes.xaxis.set_major_locator(MaxNLocator(3, steps=STEPS))
        axes.xaxis.set_major_formatter(with_commas)
    for text in people.get_yticklabels():
        text.set_parse_math(False)  # a name may hold dollar signs
    handles = [*people.get_legend_handles_labels()[0], *data.get_legend_handles_labels()[0]]
    put_legend(people, ax, handles, columns=3)
    return figure_of(people)


def _panels(rows: int) -> list[Axes]:
    """Three axes side by side on a new figure, far enough apart for their tick labels."""
    layout = ConstrainedLayoutEngine(wspace=0.08)
    figure = Picture(figsize=(8.0, 1.7 + 0.42 * rows), layout=layout)
    return list(figure.subplots(1, 3, sharey=True, width_ratios=[1.2, 1.0, 1.0]))


def _bars_by_verdict(
    axes: Axes, places: np.ndarray[Any, Any], values: FloatArray, holds: BoolArray, labelled: bool
) -> None:
    """A bar per mechanism, hatched for those that do not hold by themselves."""
    bar: dict[str, Any] = {"height": 0.66, "color": "#777777", "edgecolor": "white"}
    for members, label, hatch in (
        (holds, "holds by itself", None),
        (~holds, "needs someone to enforce it", "////"),
    ):
        if members.any():
            name = label if labelled else "_" + label  # matplotlib leaves those out of the legend
            axes.barh(places[members], values[members], label=name, hatch=hatch, **bar)

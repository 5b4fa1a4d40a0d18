"""What audits buy: the data agreed on by budget, and how often each client must be audited."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fedaccord.agreement.audits import AuditBudgets, LeastAudits
from fedaccord.plots.axes import INK, NAMED, Picture, figure_of, panels, style, with_commas

_BLUE, _ORANGE = "#0072B2", "#E69F00"


def plot_audits(
    least: LeastAudits, budgets: AuditBudgets, *, ax: Sequence[Axes] | None = None
) -> Figure:
    """The data agreed on against audits in a slot, and the least audit probabilities.

    Of many clients, those are shown that need the most audits.
    """
    if ax is None:
        figure = Picture(figsize=(8.0, 4.2), layout="constrained")
        left, right = figure.subplots(1, 2, width_ratios=[1.1, 1.0])
    else:
        left, right = panels(ax, 2)
    _by_budget(left, budgets)
    _by_client(right, least)
    return figure_of(left)


def _by_budget(axes: Axes, budgets: AuditBudgets) -> None:
    style(axes, "y")
    before = budgets.agreements[0].equilibrium.total
    line: dict[str, Any] = {"color": _BLUE, "marker": "o", "linewidth": 1.6}
    axes.plot(budgets.budgets, budgets.totals, **line)
    axes.axhline(before, color=INK, linewidth=0.8, linestyle=":", label="without an agreement")
    axes.set(xlabel="Audits in a slot", ylabel="Samples agreed on in a slot")
    axes.set_xlim(left=0.0)
    axes.set_ylim(bottom=0.0)
    axes.yaxis.set_major_formatter(with_commas)
    axes.legend(frameon=False, fontsize=8, loc="lower right")


def _by_client(axes: Axes, least: LeastAudits) -> None:
    style(axes, "x")
    needed = np.where(np.isfinite(least.probability), least.probability, 1.0)
    shown = np.argsort(-needed, kind="stable")[:NAMED][::-1]
    places = np.arange(shown.size)
    axes.barh(places, needed[shown], height=0.62, color=_ORANGE)
    axes.set_yticks(places, [least.agreement.consortium.names[n] for n in shown])
    axes.set_xlabel("Least probability of an audit in a slot")
    axes.set_xlim(left=0.0, right=max(float(needed.max()) * 1.05, 1e-3))
    for text in axes.get_yticklabels():
        text.set_parse_math(False)  # a name may hold dollar signs

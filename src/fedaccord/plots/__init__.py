"""Pictures of an agreement, a match, a training and mechanisms: results in, figures out.

Each function returns a matplotlib figure that a notebook shows. With `ax=` it draws into your own
axes and returns their figure; a plot of several panels takes as many axes.

Clients are in ascending order of their ratio (valuation / cost per sample), the order in which
they stop free-riding. Few are named, many become bars, very many areas. Hatches, markers and
dashes distinguish everything even without colour.
"""

from fedaccord.plots.agreement import (
    plot_contributions,
    plot_costs,
    plot_mechanisms,
    plot_thresholds,
)
from fedaccord.plots.audits import plot_audits
from fedaccord.plots.axes import BARS, DRAWN, NAMED
from fedaccord.plots.joining import plot_joining
from fedaccord.plots.law import plot_law
from fedaccord.plots.match import plot_events, plot_slip, plot_tolerance, plot_totals
from fedaccord.plots.misreport import plot_misreport
from fedaccord.plots.prediction import plot_prediction
from fedaccord.plots.ranges import plot_range_costs
from fedaccord.plots.training import plot_learning, plot_own_tests
from fedaccord.plots.value import plot_value

__all__ = [
    "BARS",
    "DRAWN",
    "NAMED",
    "plot_audits",
    "plot_contributions",
    "plot_costs",
    "plot_events",
    "plot_joining",
    "plot_law",
    "plot_learning",
    "plot_mechanisms",
    "plot_misreport",
    "plot_own_tests",
    "plot_prediction",
    "plot_range_costs",
    "plot_slip",
    "plot_thresholds",
    "plot_tolerance",
    "plot_totals",
    "plot_value",
]

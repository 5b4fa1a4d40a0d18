"""Pictures of an agreement, a match, a training and mechanisms. Results in, figures out.

Clients stand in ascending order of their ratio (valuation / cost per sample), the order in
which they stop free-riding. Few are named, many become bars, very many areas. Everything can
be told apart without colour, too: by hatches, markers and dashes.
"""

from fedaccord.plots.agreement import plot_contributions, plot_costs, plot_thresholds
from fedaccord.plots.axes import BARS, DRAWN, NAMED
from fedaccord.plots.match import plot_events, plot_slip, plot_tolerance, plot_totals
from fedaccord.plots.mechanisms import plot_mechanisms
from fedaccord.plots.training import plot_law, plot_learning

__all__ = [
    "BARS",
    "DRAWN",
    "NAMED",
    "plot_contributions",
    "plot_costs",
    "plot_events",
    "plot_law",
    "plot_learning",
    "plot_mechanisms",
    "plot_slip",
    "plot_thresholds",
    "plot_tolerance",
    "plot_totals",
]

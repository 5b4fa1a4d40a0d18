"""Figure 18: contributors under each mechanism, by the number of clients N."""

import numpy as np

from fedaccord.experiments.claims import Claim, judge
from fedaccord.experiments.comparison import compare, compare_otherwise, most_contributors
from fedaccord.experiments.contributors import draw, run
from fedaccord.experiments.presets import Preset
from fedaccord.experiments.shapes import rising
from fedaccord.experiments.standard import ALMOST, LIKELY, Finding, fact
from fedaccord.experiments.table import Table

__all__ = ["claims", "draw", "run"]


def claims(preset: Preset) -> list[Claim]:
    """What appendix H says about the figure."""
    table = compare(preset)
    return [
        most_contributors(preset),
        judge(
            "Under detection the number of contributors remains almost unchanged as N grows.",
            table,
            _almost_unchanged,
        ),
        judge(
            "When the model is good enough, a new client is very likely to free-ride.",
            table,
            _new_ones_free_ride,
        ),
        rising("Under detection the number of free riders increases with N.", table, "free_riders"),
        judge(
            "Under contract design the number increases only when a new client is given an item.",
            table,
            _one_by_one,
            others=compare_otherwise(preset),
        ),
    ]


def _left(table: Table, clients: int) -> float:
    return float(table["contributors"][table.swept == clients][0])


def _almost_unchanged(table: Table) -> Finding:
    """From the paper's number of clients on, where the model is better than before."""
    left = {n: _left(table, n) for n in (50, 100, 200)}
    growth = left[200] / left[100] - 1
    return fact(
        growth <= ALMOST,
        ", ".join(f"{count:.0f} at N = {n}" for n, count in left.items()),
        f"it grows by {100 * growth:.0f} % from N = 100 to 200",
    )


def _new_ones_free_ride(table: Table) -> Finding:
    more = 100 - _left(table, 200) + _left(table, 100)
    ours = f"from N = 100 to 200 free riders grow by {more:.0f}"
    return fact(more >= 100 * LIKELY, ours, f"fewer than {100 * LIKELY:.0f} of 100")


def _one_by_one(table: Table) -> Finding:
    more = np.diff(table["contract_contributors"])
    ours = f"by one at {int((more == 1).sum())} of {more.size} steps"
    return fact(np.isin(more, (0.0, 1.0)).all(), ours, "it falls, or grows by more")

"""Figures 7, 9, 18, 20, 22: who contributes under each mechanism, by one parameter."""

import numpy as np
from matplotlib.figure import Figure

from fedaccord.experiments import pictures
from fedaccord.experiments.claims import Claim, judge, one_or_range, written
from fedaccord.experiments.figure_data import FigureData
from fedaccord.experiments.figures.mechanisms import (
    almost_all,
    beside_others,
    beside_others_otherwise,
    contract_unchanged,
    contributors_compared,
    detection_falls,
    of_each_mechanism,
)
from fedaccord.experiments.figures.shapes import by_count, rising
from fedaccord.experiments.presets import SYMBOLS, Preset
from fedaccord.experiments.standard import ALMOST, LIKELY, Finding, constant, fact, points
from fedaccord.experiments.sweep import least_patience


def run(preset: Preset) -> FigureData:
    """Clients that train on anything, under each mechanism."""
    return of_each_mechanism(beside_others(preset), "contributors")


def draw(table: FigureData, _: Preset, width: pictures.Width) -> Figure:
    """One line for each mechanism."""
    return pictures.plot_mechanisms(table, "contributors", pictures.CONTRIBUTORS, width)


def claims(preset: Preset) -> list[Claim]:
    """What the paper says about the figure that sweeps this parameter."""
    return _CLAIMS[preset.parameter](preset)


def _most_contributors(preset: Preset) -> Claim:
    """The claim of every one of these figures."""
    text = "The agreement has the largest number of contributors, under every value."
    table, others = beside_others(preset), beside_others_otherwise(preset)
    return judge(text, table, by_count(contributors_compared), others=others)


def _by_rounds_or_samples(preset: Preset) -> list[Claim]:
    """Figure 7 (section 5.2) and figure 20 (appendix H): here contract design does not change."""
    table = beside_others(preset)
    return [
        _most_contributors(preset),
        almost_all(table, SYMBOLS[preset.parameter]),
        detection_falls(table, "contributors"),
        _a_fifth_by_contract(preset),
        contract_unchanged(preset, "contributors"),
    ]


def _a_fifth_by_contract(preset: Preset) -> Claim:
    """The claim that contract design serves 20 of 100 clients."""

    def check(table: FigureData) -> Finding:
        served = table["contract_contributors"]
        return points(served == 20.0, f"{one_or_range(served)} of 100", "it is not 20 everywhere")

    text = "Under contract design only 20 % of the clients participate."
    table, others = beside_others(preset), beside_others_otherwise(preset)
    return judge(text, table, check, paper="20 %", others=others)


def _by_patience(preset: Preset) -> list[Claim]:
    """Figure 9 (section 5.2)."""
    table = beside_others(preset)
    return [
        judge(
            "Under the agreement the number of contributors does not change with the discount "
            "factor.",
            table,
            by_count(_unchanged),
        ),
        judge("Under detection the number of contributors does not change.", table, _detection),
        contract_unchanged(preset, "contributors"),
        _most_contributors(preset),
    ]


def _unchanged(table: FigureData, count: str) -> Finding:
    values = table[f"{count}_contributors"]
    why = f"below {least_patience():.4f} there is no uniform agreement (figure 15)"
    return constant(values, one_or_range(values), why)


def _detection(table: FigureData) -> Finding:
    values = table["detection_contributors"]
    return constant(values, one_or_range(values), "it changes")


def _by_clients(preset: Preset) -> list[Claim]:
    """Figure 18 (appendix H)."""
    table = beside_others(preset)
    return [
        _most_contributors(preset),
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
            others=beside_others_otherwise(preset),
        ),
    ]


def _left(table: FigureData, clients: int) -> float:
    return float(table["contributors"][table.swept == clients][0])


def _almost_unchanged(table: FigureData) -> Finding:
    """From the paper's number of clients on, where the model is better than before."""
    left = {n: _left(table, n) for n in (50, 100, 200)}
    growth = left[200] / left[100] - 1
    return fact(
        growth <= ALMOST,
        ", ".join(f"{count:.0f} at N = {n}" for n, count in left.items()),
        f"it grows by {100 * growth:.0f} % from N = 100 to 200",
    )


def _new_ones_free_ride(table: FigureData) -> Finding:
    more = 100 - _left(table, 200) + _left(table, 100)
    ours = f"from N = 100 to 200 free riders grow by {more:.0f}"
    return fact(more >= 100 * LIKELY, ours, f"fewer than {100 * LIKELY:.0f} of 100")


def _one_by_one(table: FigureData) -> Finding:
    more = np.diff(table["contract_contributors"])
    ours = f"by one at {int((more == 1).sum())} of {more.size} steps"
    return fact(np.isin(more, (0.0, 1.0)).all(), ours, "it falls, or grows by more")


def _by_cost(preset: Preset) -> list[Claim]:
    """Figure 22 (appendix H)."""
    table = beside_others(preset)
    return [
        _most_contributors(preset),
        almost_all(table, "E"),
        detection_falls(table, "contributors"),
        judge(
            "Under contract design a small number contributes, and nobody when E is large.",
            table,
            _then_nobody,
            others=beside_others_otherwise(preset),
        ),
    ]


def _then_nobody(table: FigureData) -> Finding:
    served = table["contract_contributors"]
    last = table.swept[served > 0].max(initial=0.0)
    return fact(
        last > 0 and (served[table.swept <= last] > 0).all() and served[-1] == 0,
        f"{served[0]:.0f} up to E = {written(last)}" + (", then 0" if served[-1] == 0 else ""),
    )


_CLAIMS = {
    "clients": _by_clients,
    "samples": _by_rounds_or_samples,
    "rounds": _by_rounds_or_samples,
    "cost_per_sample": _by_cost,
    "discount_factor": _by_patience,
}

"""Figures 3, 5, 11, 13, 15: how many free riders the agreements remove, by one parameter."""

import numpy as np
from matplotlib.figure import Figure

from fedaccord.experiments import pictures
from fedaccord.experiments.claims import Claim, judge, number, one_or_range
from fedaccord.experiments.figure_data import FigureData
from fedaccord.experiments.figures.shapes import (
    by_count,
    converts_most,
    critical_client_contributes_less,
    few_then_many,
    more_free_riders,
    more_removed,
    removed_share,
)
from fedaccord.experiments.presets import Preset
from fedaccord.experiments.standard import Finding, constant, fact, points, steps_up
from fedaccord.experiments.sweep import least_patience, solve_sweep, sweep

_FINER = 16
"""Values between two whole numbers of rounds."""


def run(preset: Preset) -> FigureData:
    """N_f: free riders at the equilibrium minus those under either agreement."""
    return sweep(preset).choose("case", "free_riders", "uniform_removed", "individual_removed")


def draw(table: FigureData, _: Preset, width: pictures.Width) -> Figure:
    """Points by case, as in the paper, and the individual agreement."""
    return pictures.plot_cases(table, "removed", pictures.REMOVED, width)


def claims(preset: Preset) -> list[Claim]:
    """What the paper says about the figure that sweeps this parameter."""
    return _CLAIMS[preset.parameter](preset)


def _by_clients(preset: Preset) -> list[Claim]:
    """Figure 3 (section 5.1), footnote and summary included."""
    table = sweep(preset)
    at = table.where(table.swept == 200)
    riders = float(at["free_riders"][0])
    left = riders - float(at["uniform_removed"][0])
    most = removed_share(table).max()
    return [
        more_free_riders(table, "N"),
        more_removed(table, "N"),
        number("N = 200: the critical client is k =", 138, riders + 1),
        number("N = 200: the first converted client is l =", 2, left + 1),
        number("N = 200: free riders at the equilibrium", 137, riders),
        number("N = 200: free riders under the agreement", 1, left),
        number("Free riders are reduced by up to", 99.3, most, decimals=1, unit=" %"),
        converts_most(table, "N", large=100),
    ]


def _by_samples(preset: Preset) -> list[Claim]:
    """Figure 5 (section 5.1)."""
    table = sweep(preset)
    most = removed_share(table).max()
    return [
        more_free_riders(table, "D"),
        few_then_many(table, "D"),
        more_removed(table, "D"),
        number("Free riders are reduced by up to", 98.5, most, decimals=1, unit=" %"),
        converts_most(table, "D", large=10_000),
    ]


def _by_rounds(preset: Preset) -> list[Claim]:
    """Figure 11 (appendix H)."""
    table = sweep(preset)
    most = removed_share(table).max()
    return [
        more_free_riders(table, "G"),
        more_removed(table, "G"),
        judge(
            "The curve is stepwise: an interval of G for each number of free riders.",
            table,
            _stepwise,
        ),
        critical_client_contributes_less(
            table,
            "While there is a critical client, its contribution decreases with G.",
        ),
        _one_more_when_it_reaches_zero(preset),
        number("Free riders are reduced by", 98.4, most, decimals=1, unit=" %"),
        converts_most(table, "G", large=1),
    ]


def _stepwise(table: FigureData) -> Finding:
    steps = np.unique(table["free_riders"]).size
    return fact(steps < len(table), f"{steps} steps over {len(table)} values of G")


def _one_more_when_it_reaches_zero(preset: Preset) -> Claim:
    """Between two whole G several clients may stop, so there are values between them here."""
    values = np.arange(preset.values[0], preset.values[-1], 1.0 / _FINER)
    table = solve_sweep(preset.setting, "rounds", values.tolist())

    def check(table: FigureData) -> Finding:
        ends = steps_up(table["free_riders"]) & (table["case"][:-1] == "I")
        more = np.diff(table["free_riders"])[ends]
        return points(
            more == 1,
            f"by one at {int((more == 1).sum())} of {more.size} ends of a stretch, in steps of "
            f"1/{_FINER} of a round",
            f"by up to {more.max(initial=0):.0f}",
        )

    text = "When the critical client's contribution reaches 0, free riders increase by one."
    return judge(text, table, check)


def _by_cost(preset: Preset) -> list[Claim]:
    """Figure 13 (appendix H)."""
    table = sweep(preset)
    return [
        more_free_riders(table, "E"),
        more_removed(table, "E"),
        judge(
            "The number of reduced free riders has diminishing returns in E.", table, _diminishing
        ),
        few_then_many(table, "E"),
        converts_most(table, "E", large=1e-8),
    ]


def _diminishing(table: FigureData) -> Finding:
    ends = np.linspace(0, len(table) - 1, 6).astype(int)
    gains = np.diff(table["uniform_removed"][ends])
    ours = "each fifth of the range adds " + ", ".join(f"{gain:.0f}" for gain in gains)
    return points(np.diff(gains) < 0, ours)


def _by_patience(preset: Preset) -> list[Claim]:
    """Figure 15 (appendix H)."""
    text = "The discount factor does not affect the number of reduced free riders."
    return [judge(text, sweep(preset), by_count(_unchanged))]


def _unchanged(table: FigureData, count: str) -> Finding:
    removed = table[f"{count}_removed"]
    return constant(
        removed,
        one_or_range(removed),
        f"below {least_patience():.4f} the paper's client l would not keep to any level above 0, "
        "and clients at level 0 contribute nothing",
    )


_CLAIMS = {
    "clients": _by_clients,
    "samples": _by_samples,
    "rounds": _by_rounds,
    "cost_per_sample": _by_cost,
    "discount_factor": _by_patience,
}

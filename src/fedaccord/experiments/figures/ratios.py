"""Figures 4, 6, 12, 14, 16: how much more data the agreements bring, by one parameter."""

import numpy as np
from matplotlib.figure import Figure

from fedaccord.experiments import pictures
from fedaccord.experiments.claims import Claim, judge, number, one_or_range
from fedaccord.experiments.figure_data import Column, FigureData
from fedaccord.experiments.figures.shapes import (
    critical_client_contributes_less,
    falls_in_case_ii,
    generally_increases,
    increases_data,
    less_in_case_ii,
    level_in_case_i,
    most_more_data,
    near,
    quick_then_slow,
    rising,
    total_in_case_i,
    within_a_stretch,
)
from fedaccord.experiments.presets import Preset
from fedaccord.experiments.standard import (
    CONTRIBUTORS_READ_AS,
    Finding,
    ahead_and_behind,
    by_reading,
    constant,
    fact,
    more_than,
    points,
    steps_down,
    steps_up,
)
from fedaccord.experiments.sweep import sweep

_TOTALS = ("total", "uniform_total", "individual_total", "uniform_level")


def run(preset: Preset) -> FigureData:
    """R_d: all training data under either agreement, divided by that at the equilibrium."""
    ratios = ("free_riders", "uniform_ratio", "individual_ratio")
    return sweep(preset).choose("case", *ratios, *_TOTALS)


def draw(table: FigureData, preset: Preset, width: pictures.Width) -> Figure:
    """Points by case, as in the paper, and the individual agreement."""
    return pictures.plot_cases(
        table, "ratio", pictures.RATIO, width, zoom=preset.zoom, zoom_label=pictures.RATIO_NEARER
    )


def claims(preset: Preset) -> list[Claim]:
    """What the paper says about the figure that sweeps this parameter."""
    return _CLAIMS[preset.parameter](preset)


def _by_clients(preset: Preset) -> list[Claim]:
    """Figure 4 (section 5.1), footnote and summary included."""
    table = sweep(preset)
    at, exact = (t.where(t.swept == 181) for t in (table, sweep(preset.unrounded())))
    # the paper's levels are whole samples
    whole = np.floor(exact["uniform_level"]) * exact["uniform_removed"] + exact["total"]
    return [
        _generally_increases_in_case_i(table, "N"),
        falls_in_case_ii(table, "N"),
        less_in_case_ii(table, "N"),
        number("N = 181: m, the free riders at the equilibrium", 120, at["free_riders"][0]),
        number("N = 181: training data at the equilibrium", 610_000, at["total"][0]),
        number(
            "N = 181: training data under the agreement",
            1_112_299,
            at["uniform_total"][0],
            unrounded=whole[0],
        ),
        number(
            "N = 181: the data ratio",
            1.823,
            at["uniform_ratio"][0],
            unrounded=whole[0] / exact["total"][0],
            decimals=3,
        ),
        most_more_data(preset, 82.3),
        number("The largest increase is at N =", 181, table.swept[table["uniform_ratio"].argmax()]),
        increases_data(table, "N", large=100),
    ]


def _generally_increases_in_case_i(table: FigureData, symbol: str) -> Claim:
    return generally_increases(
        f"With a critical client the data ratio generally increases with {symbol}.",
        table.where(table["case"] == "I"),
    )


def _by_samples(preset: Preset) -> list[Claim]:
    """Figure 6 and its subfigure (section 5.1)."""
    table = sweep(preset)
    closer = near(table, preset)
    return [
        generally_increases("The data ratio generally increases with D.", table),
        quick_then_slow(table, "D"),
        most_more_data(preset, 81.2),
        judge(
            "Subfigure: at the beginning of a tooth (with a critical client) the total is "
            "unchanged.",
            closer,
            _total_unchanged,
        ),
        critical_client_contributes_less(
            closer, "Subfigure: the critical client's contribution decreases with D."
        ),
        level_in_case_i(
            table,
            "With a critical client the converted clients' level increases with D.",
            "the level depends on the equilibrium's total, which is then the critical client's "
            "satiation point and does not depend on D; what the critical client contributes less, "
            "the contributors contribute more",
        ),
        falls_in_case_ii(table, "D"),
        less_in_case_ii(table, "D"),
        increases_data(table, "D", large=10_000),
    ]


def _total_unchanged(table: FigureData) -> Finding:
    total = table["uniform_total"]
    changes = (steps_up(total) | steps_down(total))[within_a_stretch(table, "I")]
    ours = f"it changes at {int(changes.sum())} of {changes.size} steps within a stretch"
    return points(~changes, ours)


def _by_rounds(preset: Preset) -> list[Claim]:
    """Figure 12 (appendix H)."""
    table = sweep(preset)
    return [
        _generally_increases_in_case_i(table, "G"),
        level_in_case_i(
            table,
            "With a critical client, converted clients choose more data as G grows.",
            "their level falls in proportion to the equilibrium's total; only the ratio stays",
        ),
        total_in_case_i(
            table,
            "With a critical client, the total data that clients choose increases with G.",
            "the equilibrium's total falls, and the level with it",
        ),
        falls_in_case_ii(table, "G"),
        less_in_case_ii(table, "G"),
        triangles_above_dots(table),
        _converted_choose_less(table),
        most_more_data(preset, 80.9),
        increases_data(table, "G", large=1),
    ]


def triangles_above_dots(table: FigureData) -> Claim:
    """The ratio without a critical client is above that with one."""
    return judge(
        "With the same number of contributors, the data ratio without a critical client is above "
        "that with one.",
        table,
        lambda table: _by_contributors(table, table["uniform_ratio"], "the ranges overlap"),
    )


def _converted_choose_less(table: FigureData) -> Claim:
    """The paper's reason."""
    return judge(
        "With the same number of contributors, converted clients choose less data in total when "
        "there is a critical client.",
        table,
        lambda table: _by_contributors(
            table,
            table["uniform_level"] * table["uniform_removed"],
            "one client fewer is converted then, but the equilibrium's total is larger, and the "
            "level with it",
        ),
    )


def _by_contributors(table: FigureData, values: Column, why: str) -> Finding:
    """The critical client is a contributor, or it is not."""
    anything = table["contributors"]
    counts = (anything, anything - (table["case"] == "I"))
    findings = (_above(table, values, count, why) for count in counts)
    return by_reading(dict(zip(CONTRIBUTORS_READ_AS, findings, strict=True)))


def _above(table: FigureData, values: Column, count: Column, why: str) -> Finding:
    """Whether all values without a critical client are above all with one, count by count."""
    pairs = [
        (
            values[(count == many) & (table["case"] == "II")].min(initial=np.inf),
            values[(count == many) & (table["case"] == "I")].max(initial=-np.inf),
        )
        for many in np.unique(count)
    ]
    both = np.array([pair for pair in pairs if np.isfinite(pair).all()]).reshape(-1, 2)
    above, below = (int(there.sum()) for there in ahead_and_behind(both[:, 0], both[:, 1]))
    ours = f"for {above} of {len(both)} numbers of contributors that have both, not for {below}"
    return more_than(both[:, 0], both[:, 1], ours, why)


def _by_cost(preset: Preset) -> list[Claim]:
    """Figure 14 and its subfigure (appendix H)."""
    table = sweep(preset)
    return [
        _generally_increases_in_case_i(table, "E"),
        quick_then_slow(table, "E"),
        most_more_data(preset, 81.6),
        falls_in_case_ii(table, "E"),
        judge("Subfigure: the curve is a zigzag.", near(table, preset), _zigzag),
    ]


def _zigzag(table: FigureData) -> Finding:
    up, down = (int(way(table["uniform_ratio"]).sum()) for way in (steps_up, steps_down))
    ours = f"of {len(table) - 1} steps {up} lead up, {down} down"
    return fact(up > 0 and down > 0, ours)


def _by_patience(preset: Preset) -> list[Claim]:
    """Figure 16 (appendix H)."""
    table = sweep(preset)
    ratio = table["uniform_ratio"]
    full = table.swept[table["uniform_level"] >= preset.setting.samples]
    return [
        rising(
            "The data ratio first increases with the discount factor.",
            table,
            "uniform_ratio",
            digits=2,
        ),
        number(
            "Converted clients contribute all their data from a discount factor of",
            0.87,
            full[0],
            decimals=2,
        ),
        judge("From 0.87 on the data ratio is constant.", table, _constant),
        number(
            "The data ratio is then",
            1.96,
            ratio[-1],
            decimals=2,
            why=_of_the_critical_client(table, preset.setting.samples),
        ),
    ]


def _constant(table: FigureData) -> Finding:
    then = table["uniform_ratio"][table.swept >= 0.87]
    return constant(then, one_or_range(then), "it changes")


def _of_the_critical_client(table: FigureData, samples: float) -> str:
    alone, agreed = float(table["total"][-1]), float(table["uniform_total"][-1])
    contributed = alone - (float(table["contributors"][-1]) - 1) * samples
    whole = agreed - contributed + samples
    return (
        f"Theorem 3 leaves the critical client at {contributed:,.0f} samples, so it is "
        f"{agreed:,.0f}/{alone:,.0f}; with all of its data it would be {whole:,.0f}/{alone:,.0f} "
        f"= {whole / alone:.2f}"
    )


_CLAIMS = {
    "clients": _by_clients,
    "samples": _by_samples,
    "rounds": _by_rounds,
    "cost_per_sample": _by_cost,
    "discount_factor": _by_patience,
}

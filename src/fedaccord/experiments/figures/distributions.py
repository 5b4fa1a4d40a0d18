"""Figure 17: free riders removed under three distributions of the valuations, by rounds G.

Of 100 clients some have low valuations, uniform in (0, 50], the others high ones, uniform in
(50, 100]. The paper draws once; here many consortia are drawn, and a band covers them all. In some
of them the paper's client l would not keep to any level above 0: there its uniform agreement
removes nobody, and the band reaches down to 0. An agreement that starts at the first client that
would keep to a level is shown as well ("feasible").
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from fedaccord.agreement.batch import solve_batch
from fedaccord.experiments import pictures
from fedaccord.experiments.claims import Claim, judge
from fedaccord.experiments.figure_data import Column, FigureData
from fedaccord.experiments.presets import Preset, Setting
from fedaccord.experiments.standard import MOST, Finding, half_width, measured

DISTRIBUTIONS = {"low80": 80, "low50": 50, "low20": 20}
"""How many of 100 clients have a low valuation."""


def run(preset: Preset) -> FigureData:
    """Means and bands over the draws, for each distribution and G."""
    columns: dict[str, Column] = {preset.parameter: np.array(preset.values)}
    draws, seed = int(preset.options["draws"]), preset.seed or 0
    for name, low in DISTRIBUTIONS.items():
        solved = _solve(preset.setting, preset.values, low, draws, seed)
        columns[f"{name}_free_riders"] = solved["free_riders"].mean(axis=0)
        columns[f"{name}_uniform"] = solved["uniform"].mean(axis=0)
        columns[f"{name}_uniform_low"] = solved["uniform"].min(axis=0)
        columns[f"{name}_uniform_high"] = solved["uniform"].max(axis=0)
        columns[f"{name}_feasible"] = solved["feasible"].mean(axis=0)
        columns[f"{name}_individual"] = solved["individual"].mean(axis=0)
        columns[f"{name}_without"] = 100.0 * solved["without"].mean(axis=0)
    return FigureData(columns)


def draw(table: FigureData, _: Preset, width: pictures.Width) -> Figure:
    """A panel for each distribution: the agreements, and a band for the paper's."""
    words = {name: f"{low} % low, {100 - low} % high" for name, low in DISTRIBUTIONS.items()}
    return pictures.plot_bands(table, words, width)


def claims(preset: Preset) -> list[Claim]:
    """What appendix H says about the figure."""
    table = run(preset)
    return [
        judge(
            "There are more free riders when more clients have low valuations.",
            table,
            lambda table: _more_when_low(_solve_at(preset, table), table, preset.setting.rounds),
        ),
        judge(
            "The agreement converts most free riders under all three distributions.",
            table,
            lambda table: _converts_most(_solve_at(preset, table)),
        ),
    ]


Solved = dict[str, dict[str, Column]]
"""What was solved for each distribution: one row per draw, one column per G."""


def _solve_at(preset: Preset, table: FigureData) -> Solved:
    draws, seed = int(preset.options["draws"]), preset.seed or 0
    at = np.isin(np.array(preset.values), table.swept)
    return {
        name: {
            key: values[:, at]
            for key, values in _solve(preset.setting, preset.values, low, draws, seed).items()
        }
        for name, low in DISTRIBUTIONS.items()
    }


def _more_when_low(solved: Solved, table: FigureData, rounds: float) -> Finding:
    """A draw counts once, with its average over G: it is the same consortium at every G."""
    riders = [of["free_riders"].mean(axis=1) for of in solved.values()]
    more = -np.diff([of.mean() for of in riders])
    halves = np.array([half_width(of) for of in riders])
    at = int(np.argmax(table.swept == rounds))
    each = np.array([of["free_riders"].mean(axis=0) for of in solved.values()])
    ordered = (np.diff(each, axis=0) < 0).all(axis=0)
    return measured(
        more,
        np.hypot(halves[1:], halves[:-1]),
        f"on average {', '.join(f'{of:.1f}' for of in each[:, at])} of 100 with 80, 50, 20 % low "
        f"at G = {table.swept[at]:.0f}; in this order at {int(ordered.sum())} of {len(table)} "
        "values of G",
        "it is the other way round",
    )


def _converts_most(solved: Solved) -> Finding:
    shares = [removed_share(of, "uniform") for of in solved.values()]
    means = np.array([100.0 * share.mean() for share in shares])
    halves = np.array([100.0 * half_width(share.mean(axis=1)) for share in shares])
    without = [100.0 * of["without"].mean() for of in solved.values()]
    feasible = min(100.0 * removed_share(of, "feasible").mean() for of in solved.values())
    return measured(
        means - 100.0 * MOST,
        halves,
        f"{_percents(means)} on average (± {halves.max():.0f} at most) with 80, 50, 20 % low, the "
        f"median {_percents([100.0 * float(np.median(share)) for share in shares])}; nobody in "
        f"{_percents(without)} of the consortia, where the paper's client l would not keep to any "
        f"level above 0. An agreement that starts at the first client that would converts "
        f"{feasible:.0f} % or more on average",
        "it does not on average",
    )


def removed_share(solved: dict[str, Column], which: str) -> Column:
    """The fraction of the free riders that are removed; 1 where there are none."""
    riders = solved["free_riders"]
    return np.where(riders > 0, solved[which] / np.maximum(riders, 1), 1.0)


def _percents(values: Sequence[float] | Column) -> str:
    return ", ".join(f"{value:.0f} %" for value in values)


def draw_valuations(low: int, draws: int, seed: int) -> Column:
    """One row per consortium of 100 clients, `low` of them with low valuations."""
    rng = np.random.default_rng([seed, low])
    drawn = 50.0 * (1.0 - rng.random((draws, 100)))  # in (0, 50]
    drawn[:, low:] += 50.0
    return drawn


@lru_cache(maxsize=6)
def _solve(
    setting: Setting, rounds: tuple[float, ...], low: int, draws: int, seed: int
) -> dict[str, Column]:
    """Free riders, and how many are removed: one row per draw, one column per G."""
    fields: dict[str, Any] = {
        "valuation": np.repeat(draw_valuations(low, draws, seed), len(rounds), axis=0),
        "rounds": np.tile(np.array(rounds), draws)[:, np.newaxis],
        "cost_per_sample": setting.cost_per_sample,
        "samples": setting.samples,
        "discount_factor": setting.discount_factor,
    }
    uniform = solve_batch(**fields, kind="uniform")
    feasible = solve_batch(**fields, kind="uniform", first_converted="feasible")
    individual = solve_batch(**fields, kind="individual")
    riders = uniform.equilibrium_free_riders
    columns = {
        "free_riders": riders,
        "uniform": riders - uniform.free_riders,
        "feasible": riders - feasible.free_riders,
        "individual": riders - individual.free_riders,
        "without": ~uniform.exists & (riders > 0),
    }
    return {name: values.reshape(draws, len(rounds)) for name, values in columns.items()}

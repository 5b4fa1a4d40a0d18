"""Figure 17: free riders removed under three distributions of the valuations, by rounds G.

Of 100 clients some have low valuations, uniform in (0, 50], the others high ones, uniform in
(50, 100]. The paper draws once; here many consortia are drawn, and a band has them all. In some of
them the paper's client l would keep to no level above 0: there its uniform agreement removes
nobody, and the band reaches down to 0. One that starts at the first client that would is shown, too
("feasible").
"""

from functools import lru_cache
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from fedaccord.agreement.batch import solve_batch
from fedaccord.experiments import pictures
from fedaccord.experiments.claims import Claim, statement
from fedaccord.experiments.presets import Preset, Setting
from fedaccord.experiments.table import Column, Table

DISTRIBUTIONS = {"low80": 80, "low50": 50, "low20": 20}
"""How many of 100 clients have a low valuation."""


def run(preset: Preset) -> Table:
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
    return Table(columns)


def draw(table: Table, _: Preset, width: pictures.Width) -> Figure:
    """A panel for each distribution: the agreements, and a band for the paper's."""
    words = {name: f"{low} % low, {100 - low} % high" for name, low in DISTRIBUTIONS.items()}
    return pictures.plot_bands(table, words, width)


def claims(preset: Preset) -> list[Claim]:
    """What appendix H says about the figure."""
    table = run(preset)
    most, half, few = (table[f"{name}_free_riders"] for name in DISTRIBUTIONS)
    ordered = (most > half) & (half > few)
    at = int(np.argmax(table.swept == preset.setting.rounds))
    without = [float(table[f"{name}_without"].mean()) for name in DISTRIBUTIONS]
    shares = [
        100.0 * float((table[f"{name}_feasible"] / table[f"{name}_free_riders"]).min())
        for name in DISTRIBUTIONS
    ]
    return [
        statement(
            "There are more free riders when more clients have low valuations.",
            ordered.all(),
            f"on average {most[at]:.1f}, {half[at]:.1f}, {few[at]:.1f} of 100 with 80, 50, 20 % "
            f"low at G = {table.swept[at]:.0f}; in this order at {int(ordered.sum())} of "
            f"{len(table)} values of G",
        ),
        statement(
            "The agreement converts most free riders under all three distributions.",
            max(without) == 0.0,
            "nobody in "
            + ", ".join(f"{percent:.0f} %" for percent in without)
            + " of the consortia with 80, 50, 20 % low",
            "in those the paper's client l would keep to no level above 0; an agreement that "
            f"starts at the first client that would converts {min(shares):.0f} % of the free "
            "riders on average, or more, at every G",
        ),
    ]


def draw_valuations(low: int, draws: int, seed: int) -> Column:
    """One row a consortium of 100 clients, `low` of them with low valuations."""
    chance = np.random.default_rng([seed, low])
    drawn = 50.0 * (1.0 - chance.random((draws, 100)))  # in (0, 50]
    drawn[:, low:] += 50.0
    return drawn


@lru_cache(maxsize=6)
def _solve(
    setting: Setting, rounds: tuple[float, ...], low: int, draws: int, seed: int
) -> dict[str, Column]:
    """Free riders, and how many are removed: one row a draw, one column a G."""
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

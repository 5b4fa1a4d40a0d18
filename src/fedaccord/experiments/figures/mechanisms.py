"""Both agreements beside the alternatives in the paper: free-rider detection and contract design.

Detection is the paper's: it never errs, so the equilibrium's contributors remain, including the
partial one. Contract design is our reconstruction (`fedaccord.mechanisms.contract`). The paper
prints none of its parameters, so statements about it are checked with other parameters as well.
"""

from dataclasses import asdict
from functools import lru_cache
from typing import Any

import numpy as np

from fedaccord.experiments.claims import Claim, judge, one_or_range, written
from fedaccord.experiments.figure_data import Column, FigureData
from fedaccord.experiments.figures.shapes import (
    all_contributed,
    before_and_after,
    by_count,
    falling,
    how_often,
)
from fedaccord.experiments.presets import Preset, Setting
from fedaccord.experiments.standard import (
    Finding,
    ahead_and_behind,
    constant,
    more_than,
    points,
    steps_down,
    steps_up,
    trend,
)
from fedaccord.experiments.sweep import sweep
from fedaccord.game.paper import paper_consortium
from fedaccord.mechanisms.contract.contract import Contract

_WHOLE = ("clients", "rounds")
_OTHERS = ("detection", "contract")
"""What the agreements are compared with."""
OUR_CHOICE = Contract()
OTHER_CHOICES = (
    Contract(classes=4),
    Contract(classes=10),
    Contract(valuation=1_000.0),
    Contract(valuation=10.0),
    Contract(delay_price=10.0),
    Contract(delay_price=0.1),
    Contract(menu="graded"),
)
"""Parameters that the paper does not print; ours: 5 classes, gamma 100, alpha 1, all or nothing."""
_AS_MANY = 200
"""Number of values with other choices: all values of N, G and the discount factor."""
_NOUNS = {"contributors": "number of contributors", "total": "amount of training data"}


def beside_others(preset: Preset) -> FigureData:
    """The sweep, with contributors and data under detection and under contract design."""
    return _beside(sweep(preset), _contracts(preset.setting, preset.parameter, preset.values))


def beside_others_otherwise(preset: Preset) -> list[FigureData]:
    """The same with other parameters of contract design, on up to 200 of the values."""
    every = -(-len(preset.values) // _AS_MANY)
    table = sweep(preset).where(np.arange(len(preset.values)) % every == 0)
    swept = preset.values[::every]
    return [
        _beside(table, _contracts(preset.setting, preset.parameter, swept, choice))
        for choice in OTHER_CHOICES
    ]


def _beside(table: FigureData, contract: dict[str, Column]) -> FigureData:
    detection = {
        "detection_contributors": table["contributors"],
        "detection_total": table["total"],
    }
    return FigureData({**table.columns, **detection, **contract})


@lru_cache(maxsize=64)
def _contracts(
    setting: Setting,
    parameter: str,
    values: tuple[float, ...],
    mechanism: Contract = OUR_CHOICE,
) -> dict[str, Column]:
    held: dict[str, Any] = asdict(setting)
    swept = [int(value) if parameter in _WHOLE else value for value in values]
    outcomes = [mechanism.outcome(paper_consortium(**(held | {parameter: v}))) for v in swept]
    return {
        "contract_contributors": np.array([float(len(o.roles) - o.free_riders) for o in outcomes]),
        "contract_total": np.array([o.total for o in outcomes]),
    }


def of_each_mechanism(table: FigureData, what: str) -> FigureData:
    """The contributors, or the total, under each."""
    names = ("individual", "uniform", *_OTHERS)
    return table.choose("case", *(f"{name}_{what}" for name in names))


def contributors_compared(table: FigureData, count: str) -> Finding:
    """The agreement's contributors compared with those of the others, in one reading."""
    return _compared(table, table[f"{count}_contributors"], "contributors")


def data_compared(table: FigureData) -> Finding:
    """The agreement's training data compared with that of the others."""
    return _compared(table, table["uniform_total"], "total")


def _compared(table: FigureData, ours: Column, what: str) -> Finding:
    best = np.maximum(*(table[f"{name}_{what}"] for name in _OTHERS))
    more, less = ahead_and_behind(ours, best)
    rest = table.where(~more)
    return more_than(
        ours,
        best,
        f"more than the others at {int(more.sum())}, less at {int(less.sum())} of {len(table):,} "
        "values",
        f"at the {len(rest)} other values, the last {written(rest.swept.max(initial=0.0))}: "
        f"{_none_converted(rest)}. What remains is the equilibrium, as under detection",
    )


def _none_converted(table: FigureData) -> str:
    """At how many values nobody is converted, and why."""
    riders = table["free_riders"]
    without = (riders > 0) & (table["uniform_level"] == 0)
    return (
        f"nobody free-rides at {int((riders == 0).sum())}, there is no uniform agreement at "
        f"{int(without.sum())}"
    )


def detection_falls(table: FigureData, what: str) -> Claim:
    """The claim that detection leaves less as the parameter grows."""
    return falling(f"Under detection the {_NOUNS[what]} decreases.", table, f"detection_{what}")


def contract_unchanged(preset: Preset, what: str) -> Claim:
    """The claim that contract design does not depend on the parameter."""

    def check(table: FigureData) -> Finding:
        values = table[f"contract_{what}"]
        return constant(values, one_or_range(values), "it changes")

    text = f"Under contract design the {_NOUNS[what]} remains unchanged."
    return judge(text, beside_others(preset), check, others=beside_others_otherwise(preset))


def almost_all(table: FigureData, symbol: str) -> Claim:
    """The claim that almost all clients contribute, and their number never changes."""

    def check(table: FigureData, count: str) -> Finding:
        values = table[f"{count}_contributors"]
        changes = np.flatnonzero(np.diff(values))
        first = changes[-1] + 1 if changes.size else 0
        start, before = table.swept[first], table.where(np.arange(len(table)) < first)
        return constant(
            values,
            f"{values[-1]:.0f} of 100 from {symbol} = {written(start)} on"
            + (f", {one_or_range(values[:first])} before" if first else ""),
            f"at the {first} values below {symbol} = {written(start)} at most "
            f"{before['free_riders'].max(initial=0):.0f} free-ride: {_none_converted(before)}",
        )

    text = "Under the agreement the number of contributors remains unchanged, almost all."
    return judge(text, table, by_count(check))


def all_then_a_part(table: FigureData, symbol: str) -> Claim:
    """The claim that converted clients contribute all data when the parameter is small."""

    def check(table: FigureData) -> Finding:
        early, late = before_and_after(table)
        small = all_contributed(early)[early["uniform_level"] > 0]
        after = all_contributed(late)[1:]
        return points(
            small if after.size else np.zeros(1),
            f"on all at {int(small.sum())} of {small.size} values up to {symbol} = "
            f"{written(early.swept[-1])} with an agreement, on a part at {after.size} after it",
            generally=True,
        )

    text = f"When {symbol} is small, converted clients train on all their data, later on a part."
    return judge(text, table, check)


def more_patience_needed(table: FigureData, symbol: str) -> Claim:
    """The paper's reason why converted clients contribute all data at small values."""

    def check(table: FigureData) -> Finding:
        there = table.where(np.isfinite(table["threshold"]))
        threshold = there["threshold"]
        down = steps_down(threshold)
        riders = np.diff(there["free_riders"]) != 0
        return trend(
            there.swept,
            threshold,
            "up",
            f"{threshold[0]:.2f} to {threshold[-1]:.2f}, {how_often(down, 'down')} with {symbol}",
            f"at {int((down & riders).sum())} of these the equilibrium has more free riders, so "
            "more are converted, and each has more to lose",
        )

    text = (
        f"A smaller {symbol} leads to a smaller threshold discount factor (of client l, if the "
        "converted clients contribute all their data)."
    )
    return judge(text, table, check)


def flat_then_down(table: FigureData, symbol: str, falls: str) -> list[Claim]:
    """The claims that the data is constant while converted clients contribute all, then falls."""

    def flat(table: FigureData) -> Finding:
        full = table["uniform_total"][all_contributed(table)]
        why = "the critical client, if there is one, contributes only a part"
        return constant(full, one_or_range(full), why)

    def down(table: FigureData) -> Finding:
        later = before_and_after(table)[1]
        totals = later["uniform_total"]
        return trend(
            later.swept,
            totals,
            "down",
            f"{totals[0]:,.0f} to {totals[-1]:,.0f}, {how_often(steps_up(totals), 'up')}",
            "it goes down in a zigzag",
            generally="gradually" in falls,
        )

    until = written(before_and_after(table)[0].swept[-1])
    return [
        all_then_a_part(table, symbol),
        judge(
            "Under the agreement the training data first remains unchanged "
            f"(while all converted clients contribute all, up to {symbol} = {until}).",
            table,
            flat,
        ),
        judge(f"Then the training data {falls} with {symbol}.", table, down),
        more_patience_needed(table, symbol),
    ]

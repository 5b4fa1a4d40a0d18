"""Statements that the paper makes about many curves: they rise, fall in a zigzag, level off.

A *stretch* is a run of points in one case of the equilibrium with the same number of free riders:
one tooth of the zigzag.
"""

from collections.abc import Callable

import numpy as np

from fedaccord.experiments.claims import Claim, judge, listed, number, written
from fedaccord.experiments.figure_data import Column, FigureData
from fedaccord.experiments.presets import Preset, paper_setting
from fedaccord.experiments.standard import (
    FEW,
    MOST,
    SLOWER,
    Finding,
    by_reading,
    fact,
    points,
    steps,
    steps_down,
    steps_up,
    trend,
)
from fedaccord.experiments.sweep import sweep

COUNTS = {"uniform": "counting who trains on something", "counted": "by the paper's count"}
"""The two readings of who is converted, by the prefix of the column's name."""
_EVERY = 5
"""Every fifth of our values: for E that is 200, as many as a figure would have."""


def by_count(check: Callable[[FigureData, str], Finding]) -> Callable[[FigureData], Finding]:
    """Check how many clients are converted, in both readings."""
    return lambda table: by_reading({COUNTS[count]: check(table, count) for count in COUNTS})


def removed_share(table: FigureData) -> Column:
    """Free riders that the uniform agreement removes, in percent."""
    return np.asarray(100.0 * table["uniform_removed"] / np.maximum(table["free_riders"], 1))


def more_data(table: FigureData) -> Column:
    """By how much the uniform agreement increases the training data, in percent."""
    return np.asarray(100.0 * (table["uniform_ratio"] - 1.0))


def within_a_stretch(table: FigureData, case: str) -> Column:
    """Which steps stay in a stretch of this case."""
    there = table["case"] == case
    return np.asarray(there[1:] & there[:-1] & (np.diff(table["free_riders"]) == 0))


def near(table: FigureData, preset: Preset) -> FigureData:
    """The part that the subfigure shows."""
    assert preset.zoom is not None
    low, high = preset.zoom
    return table.where((table.swept >= low) & (table.swept <= high))


def how_often(steps: Column, way: str) -> str:
    """At how many of these steps the curve goes this way."""
    count = int(steps.sum())
    return f"{way} at {count} of {steps.size} steps" if count else f"never {way}"


def rising(
    text: str,
    table: FigureData,
    column: str,
    digits: int = 0,
    *,
    generally: bool = False,
    why: str = "",
) -> Claim:
    """A column increases with the swept parameter."""

    def check(table: FigureData) -> Finding:
        values = table[column]
        ours = (
            f"{values[0]:,.{digits}f} to {values[-1]:,.{digits}f}, "
            f"{how_often(steps_down(values), 'down')}"
        )
        return trend(table.swept, values, "up", ours, why, generally=generally)

    return judge(text, table, check)


def falling(text: str, table: FigureData, column: str, *, generally: bool = False) -> Claim:
    """A column decreases with the swept parameter."""

    def check(table: FigureData) -> Finding:
        values = table[column]
        ours = f"{values[0]:,.0f} to {values[-1]:,.0f}, {how_often(steps_up(values), 'up')}"
        return trend(table.swept, values, "down", ours, "it also rises", generally=generally)

    return judge(text, table, check)


def more_free_riders(table: FigureData, symbol: str) -> Claim:
    """The statement about the equilibrium."""
    text = f"The number of free riders at the equilibrium increases with {symbol}."
    return rising(text, table, "free_riders", why="it falls or stays the same")


def few_then_many(table: FigureData, symbol: str) -> Claim:
    """The reason for more free riders: with little data, or at a low cost, all are needed."""

    def check(table: FigureData) -> Finding:
        clients = table["contributors"] + table["free_riders"]
        share = table["free_riders"] / clients
        ends = [
            f"{table['free_riders'][n]:.0f} of {clients[n]:.0f} at {symbol} = "
            f"{written(table.swept[n])}"
            for n in (0, -1)
        ]
        few, many = share[0] <= FEW, share[-1] >= MOST
        return fact(few and many, ", ".join(ends), "the first is not few, or the last not many")

    text = f"When {symbol} is small there are few free riders at the equilibrium, many when it is "
    return judge(f"{text}large.", table, check)


def more_removed(table: FigureData, symbol: str) -> Claim:
    """The number of free riders that the uniform agreement removes increases."""

    def check(table: FigureData, count: str) -> Finding:
        removed = table[f"{count}_removed"]
        down = steps_down(removed)
        falls = table.where(np.append(False, down))
        none = int((falls["uniform_level"] == 0).sum())
        return trend(
            table.swept,
            removed,
            "up",
            f"{removed[0]:.0f} to {removed[-1]:.0f}, {how_often(down, 'down')}",
            f"down to {symbol} = {listed(falls.swept)}; at {none} of {len(falls)} there is no "
            "uniform agreement, because the paper's client l would not keep to any level above 0",
        )

    text = f"The number of reduced free riders increases with {symbol}."
    return judge(text, table, by_count(check))


def converts_most(table: FigureData, symbol: str, large: float) -> Claim:
    """Most free riders are converted, from this value on."""

    def check(table: FigureData) -> Finding:
        there = table.where(table.swept >= large)
        share = removed_share(there)
        ours = (
            f"{share.min():.1f} to {share.max():.1f} % from {symbol} = {written(there.swept[0])} on"
        )
        return points(share > 100.0 * MOST, ours)

    text = f"The agreement converts most free riders{_even(table, symbol, large)}."
    return judge(text, table, check)


def increases_data(table: FigureData, symbol: str, large: float) -> Claim:
    """The total exceeds the equilibrium's, from this value on."""

    def check(table: FigureData) -> Finding:
        there = table.where(table.swept >= large)
        more = more_data(there)
        start = written(there.swept[0])
        ours = f"by {more.min():.1f} to {more.max():.1f} % from {symbol} = {start} on"
        return points(more > 0.0, ours)

    text = f"The agreement increases the total data{_even(table, symbol, large)}."
    return judge(text, table, check)


def _even(table: FigureData, symbol: str, large: float) -> str:
    """Large values are mentioned only if the statement is not about the whole range."""
    return f", even when {symbol} is large" if large > table.swept[0] else ""


def most_more_data(preset: Preset, paper: float) -> Claim:
    """The largest increase in training data."""
    more = more_data(sweep(preset))
    return number(
        "Training data is increased by up to",
        paper,
        more.max(),
        unrounded=more_data(sweep(preset.unrounded())).max(),
        coarser=[more[first::_EVERY].max() for first in range(min(_EVERY, len(more)))],
        decimals=1,
        unit=" %",
    )


def generally_increases(text: str, table: FigureData) -> Claim:
    """The data ratio rises overall, if not at every step."""
    return rising(text, table, "uniform_ratio", digits=2, generally=True, why="it hardly rises")


def slope(table: FigureData, column: str) -> float:
    """How much a column changes per unit of the swept parameter."""
    values = table[column]
    if len(table) < 2:
        return float("nan")
    return float((values[-1] - values[0]) / (table.swept[-1] - table.swept[0]))


def before_and_after(table: FigureData) -> tuple[FigureData, FigureData]:
    """The part up to the last point where converted clients contribute all data, and the rest."""
    full = all_contributed(table)
    until = table.swept[full].max() if full.any() else table.swept[0]
    return table.where(table.swept <= until), table.where(table.swept >= until)


def quick_then_slow(table: FigureData, symbol: str) -> Claim:
    """Quickly while the converted clients contribute all their data."""

    def check(table: FigureData) -> Finding:
        early, late = before_and_after(table)
        ratio = late["uniform_ratio"]
        teeth = int(np.unique(late["free_riders"]).size)
        zigzag = steps_up(ratio).any() and steps_down(ratio).any()
        quick, slow = slope(early, "uniform_ratio"), slope(late, "uniform_ratio")
        gains = [part["uniform_ratio"][-1] - part["uniform_ratio"][0] for part in (early, late)]
        return fact(
            quick > SLOWER * abs(slow) and zigzag,
            f"by {gains[0]:.2f} up to {symbol} = {written(early.swept[-1])}, by {gains[1]:.2f} "
            f"after it, in {teeth} teeth",
            "it is not quick at first, or not slow later, or not in a zigzag",
        )

    text = f"The data ratio increases quickly when {symbol} is small, then slowly in a zigzag."
    return judge(text, table, check)


def all_contributed(table: FigureData) -> Column:
    """Where the converted clients contribute all their data."""
    samples = table.swept if table.parameter == "samples" else paper_setting().samples
    return np.asarray(table["uniform_level"] >= samples)


def falls_in_case_ii(table: FigureData, symbol: str) -> Claim:
    """The falling side of a tooth; the last step is named, as there may be none after it."""

    def check(table: FigureData) -> Finding:
        inside, ratio = within_a_stretch(table, "II"), table["uniform_ratio"]
        up, down = steps_up(ratio) & inside, steps_down(ratio) & inside
        flat = inside & ~up & ~down
        none = int((flat & _both_ends(table["uniform_level"] == 0)).sum())
        last = written(table.swept[1:][down].max(initial=0.0))
        return steps(
            ratio,
            inside,
            "down",
            f"down at {int(down.sum())} steps, the last to {symbol} = {last}; up at "
            f"{int(up.sum())}, the same at {int(flat.sum())}"
            + (f", {none} of them without an agreement" if flat.any() else ""),
            "it also rises" if up.any() else "it never falls",
        )

    text = "Without a critical client, under the same number of free riders, the data ratio "
    return judge(f"{text}decreases with {symbol}.", table, check)


def less_in_case_ii(table: FigureData, symbol: str) -> Claim:
    """The paper's reason for the falling side: converted clients, if any, contribute less."""

    def check(table: FigureData) -> Finding:
        level, (inside, capped) = table["uniform_level"], _chosen(table, "II")
        up, down = (int((way(level) & inside).sum()) for way in (steps_up, steps_down))
        size = int(inside.sum())
        ours = (
            f"less at {down}, the same at {size - up - down}, more at {up} of {size} steps within "
            f"a stretch{capped}"
        )
        return steps(level, inside, "down", ours, "it is not less at all of these")

    text = "Without a critical client, under the same number of free riders, converted clients "
    return judge(f"{text}choose less data as {symbol} grows.", table, check)


def _chosen(table: FigureData, case: str) -> tuple[Column, str]:
    """Steps within a stretch that show how what converted clients choose changes, and the others.

    Those who contribute all they have would contribute more if they had it (`RULES`).
    """
    level, part = table["uniform_level"], ~all_contributed(table)
    agreed = within_a_stretch(table, case) & _both_ends(level > 0)
    chosen = agreed & part[1:] & (part[:-1] | steps_down(level))
    others = int((agreed & ~chosen).sum())
    return chosen, f"; at {others} others they contribute all their data" if others else ""


def _both_ends(there: Column) -> Column:
    """Which steps both start and end at such a point."""
    return np.asarray(there[1:] & there[:-1])


def critical_client_contributes_less(table: FigureData, text: str) -> Claim:
    """Its contribution is what remains of the total when the others contribute all data."""

    def check(table: FigureData) -> Finding:
        swept = table.parameter == "samples"
        samples = table.swept if swept else paper_setting().samples
        contributed = table["total"] - (table["contributors"] - 1) * samples
        inside = within_a_stretch(table, "I")
        falls = steps_down(contributed)[inside]
        ours = f"at {int(falls.sum())} of {falls.size} steps within a stretch"
        return steps(contributed, inside, "down", ours)

    return judge(text, table, check)


def level_in_case_i(table: FigureData, text: str, why: str) -> Claim:
    """The level rises along the flat side of a tooth."""

    def check(table: FigureData) -> Finding:
        inside, capped = _chosen(table, "I")
        return _rises(table["uniform_level"], inside, capped, why)

    return judge(text, table, check)


def total_in_case_i(table: FigureData, text: str, why: str) -> Claim:
    """The total rises there."""

    def check(table: FigureData) -> Finding:
        return _rises(table["uniform_total"], within_a_stretch(table, "I"), "", why)

    return judge(text, table, check)


def _rises(values: Column, inside: Column, capped: str, why: str) -> Finding:
    up, down = (int(way(values)[inside].sum()) for way in (steps_up, steps_down))
    ours = f"up at {up}, down at {down} of {int(inside.sum())} steps within a stretch{capped}"
    return steps(values, inside, "up", ours, why)

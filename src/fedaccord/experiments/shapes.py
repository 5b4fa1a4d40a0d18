"""What the paper says of many curves alike: they rise, fall in a zigzag, are quick, then slow.

A *stretch* is a run of points in one case of the equilibrium with the same number of free riders:
one tooth of the zigzag.
"""

from collections.abc import Callable
from functools import partial

import numpy as np

from fedaccord.experiments.claims import Claim, judge, listed, number, plain
from fedaccord.experiments.presets import Preset, find_preset
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
from fedaccord.experiments.table import Column, Table

COUNTS = {"uniform": "counting who trains on something", "counted": "by the paper's count"}
"""Who is converted, in both readings, by the start of the column's name."""
_EVERY = 5
"""Of our values every fifth: for E that is 200, as many as a figure would have."""


def by_count(check: Callable[[Table, str], Finding]) -> Callable[[Table], Finding]:
    """A check of how many are converted, in both readings."""
    return lambda table: by_reading({COUNTS[count]: check(table, count) for count in COUNTS})


def removed_share(table: Table) -> Column:
    """Free riders that the uniform agreement removes, in percent."""
    return np.asarray(100.0 * table["uniform_removed"] / np.maximum(table["free_riders"], 1))


def more_data(table: Table) -> Column:
    """By how much the uniform agreement increases the training data, in percent."""
    return np.asarray(100.0 * (table["uniform_ratio"] - 1.0))


def within_a_stretch(table: Table, case: str) -> Column:
    """Which steps stay in a stretch of this case."""
    there = table["case"] == case
    return np.asarray(there[1:] & there[:-1] & (np.diff(table["free_riders"]) == 0))


def near(table: Table, zoom: tuple[float, float]) -> Table:
    """The part that the subfigure shows."""
    return table.where((table.swept >= zoom[0]) & (table.swept <= zoom[1]))


def how_often(steps: Column, way: str) -> str:
    """At how many of some steps it goes this way."""
    count = int(steps.sum())
    return f"{way} at {count} of {steps.size} steps" if count else f"never {way}"


def rising(
    text: str, table: Table, column: str, digits: int = 0, *, generally: bool = False, why: str = ""
) -> Claim:
    """A column increases with the swept parameter."""

    def check(table: Table) -> Finding:
        values = table[column]
        ours = (
            f"{values[0]:,.{digits}f} to {values[-1]:,.{digits}f}, "
            f"{how_often(steps_down(values), 'down')}"
        )
        return trend(table.swept, values, "up", ours, why, generally=generally)

    return judge(text, table, check)


def falling(text: str, table: Table, column: str, *, generally: bool = False) -> Claim:
    """A column decreases with the swept parameter."""

    def check(table: Table) -> Finding:
        values = table[column]
        ours = f"{values[0]:,.0f} to {values[-1]:,.0f}, {how_often(steps_up(values), 'up')}"
        return trend(table.swept, values, "down", ours, "it also rises", generally=generally)

    return judge(text, table, check)


def more_free_riders(table: Table, symbol: str) -> Claim:
    """At the equilibrium."""
    text = f"The number of free riders at the equilibrium increases with {symbol}."
    return rising(text, table, "free_riders", why="it falls, or stays as it is")


def few_then_many(table: Table, symbol: str) -> Claim:
    """The reason for more free riders: with little to give, or little to pay, all are needed."""

    def check(table: Table) -> Finding:
        clients = table["contributors"] + table["free_riders"]
        share = table["free_riders"] / clients
        ends = [
            f"{table['free_riders'][n]:.0f} of {clients[n]:.0f} at {symbol} = "
            f"{plain(table.swept[n])}"
            for n in (0, -1)
        ]
        few, many = share[0] <= FEW, share[-1] >= MOST
        return fact(few and many, ", ".join(ends), "that is not few, or not many")

    text = f"When {symbol} is small there are few free riders at the equilibrium, many when it is "
    return judge(f"{text}large.", table, check)


def more_removed(table: Table, symbol: str) -> Claim:
    """By the uniform agreement."""

    def check(table: Table, count: str) -> Finding:
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
            "uniform agreement, since the paper's client l would keep to no level above 0",
        )

    text = f"The number of reduced free riders increases with {symbol}."
    return judge(text, table, by_count(check))


def converts_most(table: Table, symbol: str, large: float) -> Claim:
    """Of the free riders, from a value on."""

    def check(table: Table) -> Finding:
        there = table.where(table.swept >= large)
        share = removed_share(there)
        ours = (
            f"{share.min():.1f} to {share.max():.1f} % from {symbol} = {plain(there.swept[0])} on"
        )
        return points(share > 100.0 * MOST, ours)

    text = f"The agreement converts most free riders{_even(table, symbol, large)}."
    return judge(text, table, check)


def increases_data(table: Table, symbol: str, large: float) -> Claim:
    """Against the equilibrium, from a value on."""

    def check(table: Table) -> Finding:
        there = table.where(table.swept >= large)
        more = more_data(there)
        ours = (
            f"by {more.min():.1f} to {more.max():.1f} % from {symbol} = {plain(there.swept[0])} on"
        )
        return points(more > 0.0, ours)

    text = f"The agreement increases the total data{_even(table, symbol, large)}."
    return judge(text, table, check)


def _even(table: Table, symbol: str, large: float) -> str:
    """What is said of the whole range is not said of large values in particular."""
    return f", even when {symbol} is large" if large > table.swept[0] else ""


def most_more_data(preset: Preset, paper: float) -> Claim:
    """The largest increase of the training data."""
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


def generally_increases(text: str, table: Table) -> Claim:
    """The data ratio rises on the whole, if not at every step."""
    return rising(text, table, "uniform_ratio", digits=2, generally=True, why="it hardly rises")


def slope(table: Table, column: str) -> float:
    """How much a column changes, for each unit of the swept parameter."""
    values = table[column]
    if len(table) < 2:
        return float("nan")
    return float((values[-1] - values[0]) / (table.swept[-1] - table.swept[0]))


def before_and_after(table: Table) -> tuple[Table, Table]:
    """The part up to the last point at which converted clients give all they have, and the rest."""
    full = all_given(table)
    until = table.swept[full].max() if full.any() else table.swept[0]
    return table.where(table.swept <= until), table.where(table.swept >= until)


def quick_then_slow(table: Table, symbol: str) -> Claim:
    """Quick while the converted clients give all they have."""

    def check(table: Table) -> Finding:
        early, late = before_and_after(table)
        ratio = late["uniform_ratio"]
        teeth = int(np.unique(late["free_riders"]).size)
        zigzag = steps_up(ratio).any() and steps_down(ratio).any()
        quick, slow = slope(early, "uniform_ratio"), slope(late, "uniform_ratio")
        gains = [part["uniform_ratio"][-1] - part["uniform_ratio"][0] for part in (early, late)]
        return fact(
            quick > SLOWER * abs(slow) and zigzag,
            f"by {gains[0]:.2f} up to {symbol} = {plain(early.swept[-1])}, by {gains[1]:.2f} then, "
            f"in {teeth} teeth",
            "it is not quick, or then not slow, or not in a zigzag",
        )

    text = f"The data ratio increases quickly when {symbol} is small, then slowly in a zigzag."
    return judge(text, table, check)


def all_given(table: Table) -> Column:
    """Where the converted clients give all they have."""
    samples = table.swept if table.parameter == "samples" else find_preset("fig3").setting.samples
    return np.asarray(table["uniform_level"] >= samples)


def falls_in_case_ii(table: Table, symbol: str) -> Claim:
    """The falling side of a tooth; where it ends, since past it there may be no such steps."""

    def check(table: Table) -> Finding:
        inside, ratio = within_a_stretch(table, "II"), table["uniform_ratio"]
        up, down = steps_up(ratio) & inside, steps_down(ratio) & inside
        flat = inside & ~up & ~down
        none = int((flat & _both_ends(table["uniform_level"] == 0)).sum())
        last = plain(table.swept[1:][down].max(initial=0.0))
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


def less_in_case_ii(table: Table, symbol: str) -> Claim:
    """The paper's reason for the falling side: converted clients, if there are any, give less."""

    def check(table: Table) -> Finding:
        level = table["uniform_level"]
        inside = within_a_stretch(table, "II") & _both_ends(level > 0)
        up, down = steps_up(level) & inside, steps_down(level) & inside
        other = inside & ~down
        everything = int((other & _both_ends(all_given(table))).sum())
        return steps(
            level,
            inside,
            "down",
            f"less at {int(down.sum())}, the same at {int((other & ~up).sum())}, more at "
            f"{int(up.sum())} of {int(inside.sum())} steps within a stretch",
            f"at {everything} of the {int(other.sum())} steps at which it is not less they give "
            "all they have, before and after",
        )

    text = "Without a critical client, under the same number of free riders, converted clients "
    return judge(f"{text}choose less data as {symbol} grows.", table, check)


def _both_ends(there: Column) -> Column:
    """Which steps start and end at such a point."""
    return np.asarray(there[1:] & there[:-1])


def critical_client_gives_less(table: Table, text: str) -> Claim:
    """What is left of the total when the others have given all they have."""

    def check(table: Table) -> Finding:
        swept = table.parameter == "samples"
        samples = table.swept if swept else find_preset("fig3").setting.samples
        given = table["total"] - (table["contributors"] - 1) * samples
        inside = within_a_stretch(table, "I")
        falls = steps_down(given)[inside]
        ours = f"at {int(falls.sum())} of {falls.size} steps within a stretch"
        return steps(given, inside, "down", ours)

    return judge(text, table, check)


def level_in_case_i(table: Table, text: str, why: str) -> Claim:
    """Whether the level rises along the flat side of a tooth."""
    return judge(text, table, partial(_rises_in_case_i, column="uniform_level", why=why))


def total_in_case_i(table: Table, text: str, why: str) -> Claim:
    """Whether all that is trained on does."""
    return judge(text, table, partial(_rises_in_case_i, column="uniform_total", why=why))


def _rises_in_case_i(table: Table, column: str, why: str) -> Finding:
    inside, values = within_a_stretch(table, "I"), table[column]
    up, down = (int(way(values)[inside].sum()) for way in (steps_up, steps_down))
    ours = f"up at {up}, down at {down} of {int(inside.sum())} steps within a stretch"
    return steps(values, inside, "up", ours, why)

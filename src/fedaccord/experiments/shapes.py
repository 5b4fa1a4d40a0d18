"""What the paper says of many curves alike: they rise, fall in a zigzag, are quick, then slow.

A *stretch* is a run of points in one case of the equilibrium with the same number of free riders:
one tooth of the zigzag.
"""

import numpy as np
from scipy.stats import spearmanr

from fedaccord.experiments.claims import NOISE, Claim, listed, number, plain, statement
from fedaccord.experiments.presets import Preset, find_preset
from fedaccord.experiments.sweep import sweep
from fedaccord.experiments.table import Column, Table

FEW = 0.1
"""The part of all clients up to which they are few; many are half of them or more."""
GENERALLY = 0.9
"""The rank correlation from which on something "generally increases", or "gradually decreases"."""


def removed_share(table: Table) -> Column:
    """Free riders that the uniform agreement removes, in percent."""
    return np.asarray(100.0 * table["uniform_removed"] / np.maximum(table["free_riders"], 1))


def more_data(table: Table) -> Column:
    """By how much the uniform agreement increases the training data, in percent."""
    return np.asarray(100.0 * (table["uniform_ratio"] - 1.0))


def steps_down(values: Column) -> Column:
    """Which steps lead down."""
    return np.asarray(np.diff(values) < -NOISE * np.abs(values[1:]))


def steps_up(values: Column) -> Column:
    """Which steps lead up."""
    return np.asarray(np.diff(values) > NOISE * np.abs(values[1:]))


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


def slope(table: Table, column: str) -> float:
    """How much a column changes, for each unit of the swept parameter."""
    values = table[column]
    return float((values[-1] - values[0]) / (table.swept[-1] - table.swept[0]))


def more_free_riders(table: Table, symbol: str) -> Claim:
    """At the equilibrium."""
    riders = table["free_riders"]
    down = steps_down(riders)
    return statement(
        f"The number of free riders at the equilibrium increases with {symbol}.",
        not down.any() and riders[-1] > riders[0],
        f"{riders[0]:.0f} to {riders[-1]:.0f}, {how_often(down, 'down')}",
        "it falls, or stays as it is",
    )


def few_then_many(table: Table, symbol: str) -> Claim:
    """The reason for more free riders: with little to give, or little to pay, all are needed."""
    clients = table["contributors"] + table["free_riders"]
    share = table["free_riders"] / clients
    ends = [
        f"{table['free_riders'][n]:.0f} of {clients[n]:.0f} at {symbol} = {plain(table.swept[n])}"
        for n in (0, -1)
    ]
    return statement(
        f"When {symbol} is small there are few free riders at the equilibrium, many when it is "
        "large.",
        share[0] <= FEW and share[-1] >= 0.5,
        ", ".join(ends),
        "that is not few, or not many",
    )


def more_removed(table: Table, symbol: str) -> Claim:
    """By the uniform agreement."""
    removed = table["uniform_removed"]
    down = steps_down(removed)
    falls = table.where(np.append(False, down))
    none = int((falls["uniform_level"] == 0).sum())
    return statement(
        f"The number of reduced free riders increases with {symbol}.",
        len(falls) == 0 and removed[-1] > removed[0],
        f"{removed[0]:.0f} to {removed[-1]:.0f}, {how_often(down, 'down')}",
        f"down to {symbol} = {listed(falls.swept)}; at {none} of {len(falls)} there is no uniform "
        "agreement, since the paper's client l would keep to no level above 0",
    )


def converts_most(table: Table, symbol: str, large: float) -> Claim:
    """Of the free riders, from a value on."""
    share = removed_share(table)[table.swept >= large]
    return statement(
        f"The agreement converts most free riders{_even(table, symbol, large)}.",
        (share > 50.0).all(),
        f"{share.min():.1f} to {share.max():.1f} % from {symbol} = {plain(large)} on",
    )


def increases_data(table: Table, symbol: str, large: float) -> Claim:
    """Against the equilibrium, from a value on."""
    more = more_data(table)[table.swept >= large]
    return statement(
        f"The agreement increases the total data{_even(table, symbol, large)}.",
        (more > 0.0).all(),
        f"by {more.min():.1f} to {more.max():.1f} % from {symbol} = {plain(large)} on",
    )


def _even(table: Table, symbol: str, large: float) -> str:
    """What is said of the whole range is not said of large values in particular."""
    return f", even when {symbol} is large" if large > table.swept[0] else ""


def most_more_data(preset: Preset, paper: float) -> Claim:
    """The largest increase of the training data, at the printed and the unrounded cost."""
    return number(
        "Training data is increased by up to",
        paper,
        more_data(sweep(preset)).max(),
        unrounded=more_data(sweep(preset.unrounded())).max(),
        decimals=1,
        unit=" %",
    )


def trend(table: Table, column: str) -> float:
    """The rank correlation of a column with the swept parameter; what differs by noise is equal."""
    values = table[column]
    steady = np.round(values / (NOISE * np.abs(values).max()))
    return float(spearmanr(table.swept, steady).statistic)


def generally_increases(text: str, table: Table) -> Claim:
    """The data ratio rises on the whole, if not at every step."""
    correlation = trend(table, "uniform_ratio")
    ours = f"rank correlation {correlation:.2f}"
    return statement(text, correlation >= GENERALLY, ours, f"less than {GENERALLY}")


def quick_then_slow(table: Table, symbol: str) -> Claim:
    """Quick while the converted clients give all they have."""
    until = table.swept[_all_given(table)].max()
    early = table.where(table.swept <= until)["uniform_ratio"]
    late = table.where(table.swept >= until)
    teeth = int(np.unique(late["free_riders"]).size)
    gained, rest = early[-1] - early[0], float(np.median(late["uniform_ratio"][-50:])) - early[-1]
    return statement(
        f"The data ratio increases quickly when {symbol} is small, then slowly in a zigzag.",
        gained > 5.0 * abs(rest) and teeth > 3,
        f"by {gained:.2f} up to {symbol} = {plain(until)}, by {rest:.2f} then, in {teeth} teeth",
    )


def _all_given(table: Table) -> Column:
    """Where the converted clients give all they have."""
    samples = table.swept if table.parameter == "samples" else find_preset("fig3").setting.samples
    return np.asarray(table["uniform_level"] >= samples)


def falls_in_case_ii(table: Table, symbol: str) -> Claim:
    """The falling side of a tooth; where it ends, since past it there may be no such steps."""
    inside = within_a_stretch(table, "II")
    ratio = table["uniform_ratio"]
    up, down = steps_up(ratio) & inside, steps_down(ratio) & inside
    flat = inside & ~up & ~down
    none = int((flat & _both_ends(table["uniform_level"] == 0)).sum())
    last = plain(table.swept[1:][down].max(initial=0.0))
    return statement(
        "Without a critical client, under the same number of free riders, the data ratio "
        f"decreases with {symbol}.",
        not up.any() and down.any(),
        f"down at {int(down.sum())} steps, the last to {symbol} = {last}; up at {int(up.sum())}, "
        f"the same at {int(flat.sum())}"
        + (f", {none} of them without an agreement" if flat.any() else ""),
        "a step up refutes it" if up.any() else "it never falls",
    )


def less_in_case_ii(table: Table, symbol: str) -> Claim:
    """The paper's reason for the falling side: converted clients, if there are any, give less."""
    level = table["uniform_level"]
    inside = within_a_stretch(table, "II") & (level[:-1] > 0)
    up, down = steps_up(level) & inside, steps_down(level) & inside
    other = inside & ~down
    everything = int((other & _both_ends(_all_given(table))).sum())
    return statement(
        "Without a critical client, under the same number of free riders, converted clients "
        f"choose less data as {symbol} grows.",
        down.any() and not other.any(),
        f"less at {int(down.sum())}, the same at {int((other & ~up).sum())}, more at "
        f"{int(up.sum())} of {int(inside.sum())} steps within a stretch",
        f"at {everything} of the {int(other.sum())} steps at which it is not less they give all "
        "they have, before and after"
        if inside.any()
        else "there is no step with converted clients",
    )


def _both_ends(there: Column) -> Column:
    """Which steps start and end at such a point."""
    return np.asarray(there[1:] & there[:-1])


def critical_client_gives_less(table: Table, samples: float | Column, text: str) -> Claim:
    """What is left of the total when the others have given all they have."""
    given = table["total"] - (table["contributors"] - 1) * samples
    falls = steps_down(given)[within_a_stretch(table, "I")]
    ours = f"at {int(falls.sum())} of {falls.size} steps within a stretch"
    return statement(text, falls.all(), ours)


def level_in_case_i(table: Table, text: str, why: str) -> Claim:
    """Whether the level rises along the flat side of a tooth."""
    rises = steps_up(table["uniform_level"])[within_a_stretch(table, "I")]
    ours = f"it rises at {int(rises.sum())} of {rises.size} steps within a stretch"
    return statement(text, rises.all(), ours, why)

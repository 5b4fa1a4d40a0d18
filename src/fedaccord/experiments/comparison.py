"""Both agreements beside what else people would do: free-rider detection and contract design.

Detection is the paper's: it never errs, so what is left is the equilibrium's contributors, the
partial one among them. Contract design is our reconstruction (`fedaccord.mechanisms.contract`). The
paper prints none of its parameters, so what is said of it is checked with other parameters as well.
"""

from dataclasses import asdict
from functools import lru_cache
from typing import Any

import numpy as np

from fedaccord.experiments.claims import Claim, judge, one_or_range, plain
from fedaccord.experiments.presets import Preset, Setting
from fedaccord.experiments.shapes import all_given, before_and_after, by_count, falling, how_often
from fedaccord.experiments.standard import (
    NOISE,
    Finding,
    comparison,
    constant,
    points,
    steps_down,
    steps_up,
    trend,
)
from fedaccord.experiments.sweep import sweep
from fedaccord.experiments.table import Column, Table
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
"""Of what the paper does not print; ours are 5 classes, gamma 100, alpha 1, all or nothing."""
_AS_MANY = 200
"""Values of a sweep with other choices; every one of N, G and the discount factor."""
_NOUNS = {"contributors": "number of contributors", "total": "amount of training data"}


def compare(preset: Preset) -> Table:
    """The sweep, with the contributors and the data under detection and under a contract."""
    return _beside(sweep(preset), _contracts(preset.setting, preset.parameter, preset.values))


def compare_otherwise(preset: Preset) -> list[Table]:
    """The same with other parameters of contract design, on up to 200 of the values."""
    every = -(-len(preset.values) // _AS_MANY)
    table = sweep(preset).where(np.arange(len(preset.values)) % every == 0)
    swept = preset.values[::every]
    return [
        _beside(table, _contracts(preset.setting, preset.parameter, swept, choice))
        for choice in OTHER_CHOICES
    ]


def _beside(table: Table, contract: dict[str, Column]) -> Table:
    detection = {
        "detection_contributors": table["contributors"],
        "detection_total": table["total"],
    }
    return Table({**table.columns, **detection, **contract})


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


def of_each_mechanism(table: Table, what: str) -> Table:
    """The contributors, or the total, under each."""
    names = ("individual", "uniform", *_OTHERS)
    return table.choose("case", *(f"{name}_{what}" for name in names))


def most_contributors(preset: Preset) -> Claim:
    """The claim of every second figure: the agreement has the most contributors everywhere."""
    text = "The agreement has the largest number of contributors, under every value."
    table, others = compare(preset), compare_otherwise(preset)
    return judge(text, table, by_count(contributors_compared), others=others)


def most_data(preset: Preset) -> Claim:
    """The claim of every other figure: the agreement has more training data everywhere."""
    text = "The agreement has a larger amount of training data than the other two."
    return judge(text, compare(preset), data_compared, others=compare_otherwise(preset))


def contributors_compared(table: Table, count: str) -> Finding:
    """The agreement's contributors with those of the others, in a reading."""
    return _compared(table, table[f"{count}_contributors"], "contributors")


def data_compared(table: Table) -> Finding:
    """The agreement's training data with that of the others."""
    return _compared(table, table["uniform_total"], "total")


def _compared(table: Table, ours: Column, what: str) -> Finding:
    best = np.maximum(*(table[f"{name}_{what}"] for name in _OTHERS))
    more, less = ours > (1.0 + NOISE) * best, ours < (1.0 - NOISE) * best
    rest = table.where(~more)
    return comparison(
        ours,
        best,
        f"more than the others at {int(more.sum())}, less at {int(less.sum())} of {len(table):,} "
        "values",
        f"at the {len(rest)} other values, the last {plain(rest.swept.max(initial=0.0))}: "
        f"{_none_converted(rest)}. What is left is the equilibrium, as under detection",
    )


def _none_converted(table: Table) -> str:
    """At how many values, and why."""
    riders = table["free_riders"]
    without = (riders > 0) & (table["uniform_level"] == 0)
    return (
        f"nobody free-rides at {int((riders == 0).sum())}, there is no uniform agreement at "
        f"{int(without.sum())}"
    )


def detection_falls(table: Table, what: str) -> Claim:
    """The claim that less is left to detection as the parameter grows."""
    return falling(f"Under detection the {_NOUNS[what]} decreases.", table, f"detection_{what}")


def contract_unchanged(preset: Preset, what: str) -> Claim:
    """The claim that the parameter does not matter to contract design."""

    def check(table: Table) -> Finding:
        values = table[f"contract_{what}"]
        return constant(values, one_or_range(values), "it changes")

    text = f"Under contract design the {_NOUNS[what]} remains unchanged."
    return judge(text, compare(preset), check, others=compare_otherwise(preset))


def a_fifth_by_contract(preset: Preset) -> Claim:
    """The claim that contract design serves 20 of 100 clients."""

    def check(table: Table) -> Finding:
        served = table["contract_contributors"]
        return points(served == 20.0, f"{one_or_range(served)} of 100", "it is not 20 everywhere")

    text = "Under contract design only 20 % of the clients participate."
    return judge(text, compare(preset), check, paper="20 %", others=compare_otherwise(preset))


def almost_all(table: Table, symbol: str) -> Claim:
    """The claim that nearly everyone contributes, always equally many."""

    def check(table: Table, count: str) -> Finding:
        values = table[f"{count}_contributors"]
        changes = np.flatnonzero(np.diff(values))
        first = changes[-1] + 1 if changes.size else 0
        start, before = table.swept[first], table.where(np.arange(len(table)) < first)
        return constant(
            values,
            f"{values[-1]:.0f} of 100 from {symbol} = {plain(start)} on"
            + (f", {one_or_range(values[:first])} before" if first else ""),
            f"at the {first} values below {symbol} = {plain(start)} at most "
            f"{before['free_riders'].max(initial=0):.0f} free-ride: {_none_converted(before)}",
        )

    text = "Under the agreement the number of contributors remains unchanged, almost all."
    return judge(text, table, by_count(check))


def all_then_a_part(table: Table, symbol: str) -> Claim:
    """The claim that converted clients give all when the parameter is small."""

    def check(table: Table) -> Finding:
        early, late = before_and_after(table)
        small = all_given(early)[early["uniform_level"] > 0]
        after = all_given(late)[1:]
        return points(
            small if after.size else np.zeros(1),
            f"on all at {int(small.sum())} of {small.size} values up to {symbol} = "
            f"{plain(early.swept[-1])} with an agreement, on a part at {after.size} after it",
            generally=True,
        )

    text = f"When {symbol} is small, converted clients train on all their data, later on a part."
    return judge(text, table, check)


def contributor_claims(preset: Preset, symbol: str) -> list[Claim]:
    """What is said of the contributors where the parameter does not matter to contract design."""
    table = compare(preset)
    return [
        most_contributors(preset),
        almost_all(table, symbol),
        detection_falls(table, "contributors"),
        a_fifth_by_contract(preset),
        contract_unchanged(preset, "contributors"),
    ]


def more_patience_needed(table: Table, symbol: str) -> Claim:
    """The paper's reason why converted clients give all while the parameter is small."""

    def check(table: Table) -> Finding:
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
            "that more are converted, and each has more to lose",
        )

    text = (
        f"A smaller {symbol} leads to a smaller threshold discount factor (of client l, if the "
        "converted clients give all they have)."
    )
    return judge(text, table, check)


def flat_then_down(table: Table, symbol: str, falls: str) -> list[Claim]:
    """The claims that the data stays while converted clients give all, and decreases after."""

    def flat(table: Table) -> Finding:
        given = table["uniform_total"][all_given(table)]
        why = "the critical client, if there is one, gives only a part"
        return constant(given, one_or_range(given), why)

    def down(table: Table) -> Finding:
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

    until = plain(before_and_after(table)[0].swept[-1])
    return [
        all_then_a_part(table, symbol),
        judge(
            "Under the agreement the training data first remains unchanged "
            f"(while all converted clients give all, up to {symbol} = {until}).",
            table,
            flat,
        ),
        judge(f"Then the training data {falls} with {symbol}.", table, down),
        more_patience_needed(table, symbol),
    ]

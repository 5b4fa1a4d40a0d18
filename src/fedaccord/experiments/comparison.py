"""Both agreements beside what else people would do: free-rider detection and contract design.

Detection is the paper's: it never errs, so what is left is the equilibrium's contributors, the
partial one among them. Contract design is our reconstruction (`fedaccord.baselines.contract`).
"""

from dataclasses import asdict
from functools import lru_cache
from typing import Any

import numpy as np

from fedaccord.baselines.contract import Contract
from fedaccord.experiments.claims import NOISE, Claim, listed, plain, statement, unchanged
from fedaccord.experiments.presets import Preset, Setting
from fedaccord.experiments.shapes import GENERALLY, how_often, steps_down, steps_up, trend
from fedaccord.experiments.sweep import sweep
from fedaccord.experiments.table import Column, Table
from fedaccord.game.paper import paper_consortium

_WHOLE = ("clients", "rounds")
_OTHERS = ("detection", "contract")
"""What the agreements are compared with."""


def compare(preset: Preset) -> Table:
    """The sweep, with the contributors and the data under detection and under a contract."""
    table = sweep(preset)
    contract = _contracts(preset.setting, preset.parameter, preset.values)
    detection = {
        "detection_contributors": table["contributors"],
        "detection_total": table["total"],
    }
    return Table({**table.columns, **detection, **contract})


@lru_cache(maxsize=16)
def _contracts(setting: Setting, parameter: str, values: tuple[float, ...]) -> dict[str, Column]:
    mechanism = Contract()
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


def most_contributors(table: Table) -> Claim:
    """The claim of every second figure: the agreement has the most contributors everywhere."""
    ours = table["uniform_contributors"]
    best = np.maximum(*(table[f"{name}_contributors"] for name in _OTHERS))
    more = int((ours > best).sum())
    return statement(
        "The agreement has the largest number of contributors, under every value.",
        (ours >= best).all(),
        f"more than the others at {more} of {len(table):,} values"
        + (", as many at the rest" if more < len(table) else ""),
        f"fewer at {listed(table.swept[ours < best])}",
    )


def most_data(table: Table) -> Claim:
    """The claim of every other figure: the agreement has more training data everywhere."""
    ours = table["uniform_total"]
    best = np.maximum(*(table[f"{name}_total"] for name in _OTHERS))
    more = ours > (1.0 + NOISE) * best
    others = table.where(~more)
    return statement(
        "The agreement has a larger amount of training data than the other two.",
        more.all(),
        f"more at {int(more.sum())} of {len(table):,} values",
        f"at the {len(others)} others, the last {plain(others.swept.max(initial=0.0))}: "
        f"{_none_converted(others)}. What is left is the equilibrium, as under detection",
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
    values = table[f"detection_{what}"]
    noun = {"contributors": "number of contributors", "total": "amount of training data"}[what]
    up = steps_up(values)
    return statement(
        f"Under detection the {noun} decreases.",
        not up.any() and values[-1] < values[0],
        f"{values[0]:,.0f} to {values[-1]:,.0f}, {how_often(up, 'up')}",
        "it rises, or stays as it is",
    )


def contract_unchanged(table: Table, what: str) -> Claim:
    """The claim that the parameter does not matter to contract design."""
    noun = {"contributors": "number of contributors", "total": "amount of training data"}[what]
    text = f"Under contract design the {noun} remains unchanged."
    return unchanged(text, table[f"contract_{what}"])


def a_fifth_by_contract(table: Table) -> Claim:
    """The claim that contract design serves 20 of 100 clients."""
    served = table["contract_contributors"]
    return statement(
        "Under contract design only 20 % of the clients participate.",
        (served == 20.0).all(),
        f"{_one_or_range(served)} of 100",
        paper="20 %",
    )


def _one_or_range(values: Column) -> str:
    """The number that all are, or the least and the most."""
    low, high = f"{values.min():.0f}", f"{values.max():.0f}"
    return low if low == high else f"{low} to {high}"


def almost_all(table: Table, symbol: str) -> Claim:
    """The claim that nearly everyone contributes, always equally many."""
    values = table["uniform_contributors"]
    changes = np.flatnonzero(np.diff(values))
    first = changes[-1] + 1 if changes.size else 0
    start, before = table.swept[first], table.where(np.arange(len(table)) < first)
    return statement(
        "Under the agreement the number of contributors remains unchanged, almost all.",
        changes.size == 0,
        f"{values[-1]:.0f} of 100 from {symbol} = {plain(start)} on"
        + (f", {_one_or_range(values[:first])} before" if first else ""),
        f"at the {first} values below {symbol} = {plain(start)} at most "
        f"{before['free_riders'].max(initial=0):.0f} free-ride: {_none_converted(before)}",
    )


def all_then_a_part(table: Table, samples: float | Column, symbol: str) -> Claim:
    """The claim that converted clients give all when the parameter is small."""
    full = table["uniform_level"] >= samples
    until = table.swept[full].max()
    small = (table.swept <= until) & (table["uniform_level"] > 0)
    return statement(
        f"When {symbol} is small, converted clients train on all their data, later on a part.",
        full[small].mean() >= GENERALLY and not full[-1],
        f"on all at {int(full[small].sum())} of {int(small.sum())} values up to {symbol} = "
        f"{plain(until)} with an agreement, on a part at all others",
    )


def contributor_claims(preset: Preset, symbol: str) -> list[Claim]:
    """What is said of the contributors where the parameter does not matter to contract design."""
    table = compare(preset)
    return [
        most_contributors(table),
        almost_all(table, symbol),
        detection_falls(table, "contributors"),
        a_fifth_by_contract(table),
        contract_unchanged(table, "contributors"),
    ]


def more_patience_needed(table: Table, symbol: str) -> Claim:
    """The paper's reason why converted clients give all while the parameter is small."""
    there = np.isfinite(table["threshold"])
    table = table.where(there)
    threshold = table["threshold"]
    up, down = steps_up(threshold), steps_down(threshold)
    riders = np.diff(table["free_riders"]) != 0
    return statement(
        f"A smaller {symbol} leads to a smaller threshold discount factor (of client l, if the "
        "converted clients give all they have).",
        not down.any() and up.any(),
        f"{threshold[0]:.2f} to {threshold[-1]:.2f}, {how_often(down, 'down')} with {symbol}",
        f"at {int((down & riders).sum())} of these the equilibrium has more free riders, so that "
        "more are converted, and each has more to lose",
    )


def flat_then_down(table: Table, preset: Preset, symbol: str) -> list[Claim]:
    """The claims that the data stays while converted clients give all, and decreases after."""
    full = table["uniform_level"] >= preset.setting.samples
    until = table.swept[full].max()
    later = table.where(table.swept >= until)
    totals = later["uniform_total"]
    return [
        all_then_a_part(table, preset.setting.samples, symbol),
        unchanged(
            "Under the agreement the training data first remains unchanged "
            f"(while all converted clients give all, up to {symbol} = {plain(until)}).",
            table["uniform_total"][full],
            "the critical client, if there is one, gives only a part",
        ),
        statement(
            f"Then the training data gradually decreases with {symbol}.",
            trend(later, "uniform_total") <= -GENERALLY,
            f"{totals[0]:,.0f} to {totals[-1]:,.0f}, in a zigzag: up at "
            f"{int(steps_up(totals).sum())} of {len(later) - 1} steps",
        ),
        more_patience_needed(table, symbol),
    ]

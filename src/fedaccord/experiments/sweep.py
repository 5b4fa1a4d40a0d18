"""The paper's consortium along one parameter: its equilibrium and both agreements.

All points of a sweep are one call of `solve_batch` for each agreement. Its rows must have equally
many clients: where the number of clients is swept, all have the most, and those too many don't care
for accuracy. They give nothing worth mentioning, and come before all others in the paper's order,
so nobody's place among the others changes.
"""

from collections.abc import Sequence
from dataclasses import asdict
from functools import cache, lru_cache
from typing import Any

import numpy as np

from fedaccord.agreement.batch import solve_batch
from fedaccord.agreement.solve import smallest_discount_factor
from fedaccord.experiments.presets import Preset, Setting
from fedaccord.experiments.table import Column, Table
from fedaccord.game.paper import paper_consortium

_DOES_NOT_CARE = 1e-15
"""A valuation next to nothing; real ones are 0.5 to 100."""


def sweep(preset: Preset) -> Table:
    """One row a value of the swept parameter, with all that the figures show of it.

    The uniform agreement is the paper's optimal SPNE (Algorithm 2), the individual one ours.
    """
    return _kept(preset.setting, preset.parameter, preset.values)


@lru_cache(maxsize=32)
def _kept(setting: Setting, parameter: str, values: tuple[float, ...]) -> Table:
    """Two to four figures show the same sweep."""
    return solve_sweep(setting, parameter, values)


def solve_sweep(setting: Setting, parameter: str, values: Sequence[float]) -> Table:
    """All points of a sweep."""
    swept = np.array(values)[:, np.newaxis]
    fields: dict[str, Any] = asdict(setting) | {parameter: swept}
    clients = np.asarray(fields.pop("clients"), dtype=np.float64)
    rank = np.arange(1.0, clients.max() + 1.0) - (clients.max() - clients)
    there = np.broadcast_to(rank > 0, (len(values), rank.shape[-1]))
    fields["valuation"] = np.where(rank > 0, 100.0 * rank / clients, _DOES_NOT_CARE)
    # a slot has whole rounds; between them valuations stand in, for only ratio / sqrt(G) counts
    turns = np.asarray(fields["rounds"], dtype=np.float64)
    fields["rounds"] = np.ceil(turns)
    fields["valuation"] = fields["valuation"] * np.sqrt(fields["rounds"] / turns)
    return Table({parameter: swept[:, 0], **_columns(fields, there)})


def _columns(fields: dict[str, Any], there: Column) -> dict[str, Column]:
    uniform = solve_batch(**fields, kind="uniform")
    individual = solve_batch(**fields, kind="individual")
    alone, critical = uniform.equilibrium_profile, uniform.critical.any(axis=-1)

    def free_riders(profile: Column) -> Column:
        return np.asarray(((profile == 0) & there).sum(axis=-1))

    clients, riders = there.sum(axis=-1), free_riders(alone)
    first = np.asarray(uniform.first_converted)
    converted = _converted(alone, first)
    columns = {
        "case": np.where(critical, "I", np.where(riders > 0, "II", "all")),
        "free_riders": riders,
        "contributors": clients - riders,
        "total": uniform.equilibrium_total,
        "uniform_level": np.asarray(uniform.level),
        "threshold": _threshold(fields, alone, first, converted),
        "counted_removed": converted,
        "counted_contributors": clients - riders + converted,
    }
    for kind, batch in (("uniform", uniform), ("individual", individual)):
        left = free_riders(batch.profile)
        columns[f"{kind}_removed"] = riders - left
        columns[f"{kind}_contributors"] = clients - left
        columns[f"{kind}_total"] = batch.total
        columns[f"{kind}_ratio"] = batch.ratio
    return columns


def _converted(alone: Column, first: Column) -> Column:
    """Free riders that the paper counts as converted: k - l, or m - l + 1, at any level."""
    from_first = np.arange(alone.shape[-1]) >= first[:, np.newaxis]
    return np.where(first < 0, 0, ((alone == 0) & from_first).sum(axis=-1))


def _threshold(fields: dict[str, Any], alone: Column, first: Column, converted: Column) -> Column:
    """How patient client l must be if the converted clients give all they have (Theorem 3).

    Of the converted clients it has the largest threshold. It deviates to 0, being a free rider at
    the equilibrium. Without a free rider to convert there is none.
    """
    rows = np.arange(len(first))
    rho, price, samples, turns = (
        np.broadcast_to(fields[name], alone.shape)[rows, first]
        for name in ("valuation", "cost_per_sample", "samples", "rounds")
    )
    total = alone.sum(axis=-1)
    others = total + (converted - 1) * samples
    weight = rho / np.sqrt(turns)
    gained = price * samples - weight * (others**-0.5 - (others + samples) ** -0.5)
    lost = weight * (total**-0.5 - others**-0.5)  # nothing, if it is the only one
    patience = np.divide(gained, lost, out=np.full(len(first), np.inf), where=lost > 0)
    return np.where(first < 0, np.nan, patience)


@cache
def least_patience() -> float:
    """The discount factor below which the paper's setting has no uniform agreement."""
    least = smallest_discount_factor(paper_consortium(), "uniform")
    assert least is not None
    return least

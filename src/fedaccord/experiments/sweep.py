"""The paper's consortium along one parameter: its equilibrium and both agreements.

All points of a sweep are one call of `solve_batch` for each agreement. Its rows must all have the
same number of clients: where the number of clients is swept, every row has the largest number, and
the surplus clients hardly value accuracy. They contribute a negligible amount and come first in the
paper's order, so the order of the other clients does not change.
"""

from collections.abc import Sequence
from dataclasses import asdict
from functools import cache, lru_cache
from typing import Any

import numpy as np

from fedaccord.agreement.batch import solve_batch
from fedaccord.agreement.patience import smallest_discount_factor
from fedaccord.experiments.figure_data import Column, FigureData
from fedaccord.experiments.presets import Preset, Setting
from fedaccord.game.paper import paper_consortium

_NEGLIGIBLE = 1e-15
"""The valuation of a surplus client; real ones are 0.5 to 100."""


def sweep(preset: Preset) -> FigureData:
    """One row for each value of the swept parameter, with everything that the figures show.

    The uniform agreement is the paper's optimal SPNE (Algorithm 2); the individual one is ours.
    """
    return _kept(preset.setting, preset.parameter, preset.values)


@lru_cache(maxsize=32)
def _kept(setting: Setting, parameter: str, values: tuple[float, ...]) -> FigureData:
    """Two to four figures show the same sweep."""
    return solve_sweep(setting, parameter, values)


def solve_sweep(setting: Setting, parameter: str, values: Sequence[float]) -> FigureData:
    """All points of a sweep."""
    fields, there = rows_of(setting, parameter, values)
    return FigureData({parameter: np.array(values), **_columns(fields, there)})


def rows_of(
    setting: Setting, parameter: str, values: Sequence[float]
) -> tuple[dict[str, Any], Column]:
    """The arguments of `solve_batch` for a sweep, and which clients of each row are no surplus."""
    swept = np.array(values)[:, np.newaxis]
    fields: dict[str, Any] = asdict(setting) | {parameter: swept}
    clients = np.asarray(fields.pop("clients"), dtype=np.float64)
    rank = np.arange(1.0, clients.max() + 1.0) - (clients.max() - clients)
    there = np.broadcast_to(rank > 0, (len(values), rank.shape[-1]))
    fields["valuation"] = np.where(rank > 0, 100.0 * rank / clients, _NEGLIGIBLE)
    # rounds are whole numbers; a fraction is moved into the valuation: only ratio / sqrt(G) counts
    rounds = np.asarray(fields["rounds"], dtype=np.float64)
    fields["rounds"] = np.ceil(rounds)
    fields["valuation"] = fields["valuation"] * np.sqrt(fields["rounds"] / rounds)
    return fields, there


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
    """Free riders that the paper counts as converted: k - l or m - l + 1, whatever the level."""
    from_first = np.arange(alone.shape[-1]) >= first[:, np.newaxis]
    return np.where(first < 0, 0, ((alone == 0) & from_first).sum(axis=-1))


def _threshold(fields: dict[str, Any], alone: Column, first: Column, converted: Column) -> Column:
    """The threshold of client l if converted clients contribute all their data (Theorem 3).

    It is the largest among the converted clients. Client l deviates to 0, because it is a free
    rider at the equilibrium. Without a free rider to convert there is no threshold.
    """
    rows = np.arange(len(first))
    rho, price, samples, rounds = (
        np.broadcast_to(fields[name], alone.shape)[rows, first]
        for name in ("valuation", "cost_per_sample", "samples", "rounds")
    )
    total = alone.sum(axis=-1)
    others = total + (converted - 1) * samples
    weight = rho / np.sqrt(rounds)
    gained = price * samples - weight * (others**-0.5 - (others + samples) ** -0.5)
    lost = weight * (total**-0.5 - others**-0.5)  # 0 if it is the only one
    patience = np.divide(gained, lost, out=np.full(len(first), np.inf), where=lost > 0)
    return np.where(first < 0, np.nan, patience)


@cache
def least_patience() -> float:
    """The discount factor below which the paper's setting has no uniform agreement."""
    least = smallest_discount_factor(paper_consortium(), "uniform")
    assert least is not None
    return least

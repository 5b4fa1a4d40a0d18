"""Solvers against brute force, for random laws of the class and few clients.

A solved agreement is compared in two ways: every client keeps to it, from the costs alone; and at
none of many larger totals (or levels) the most that each client keeps to adds up to the total.
"""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

import fedaccord as fa
from fedaccord.agreement.batch import Batch, solve_batch
from fedaccord.agreement.solve import SolvedKind
from fedaccord.numbers import BoolArray, FloatArray
from tests.law_oracle import Enforcement, Games, random_games

PUNISHMENTS = (
    fa.Reversion(),
    fa.Suspension(),
    fa.Reversion(3),
    fa.Suspension(None),
    fa.Suspension(2, or_reversion=True),
    fa.Suspension(2, model_keeps=0.3),
    fa.Suspension(1, fees_saved=True),
    fa.Suspension(3, model_keeps=0.2, fees_saved=True, or_reversion=True),
)

NEAR, FURTHER = (1e-7, 1e-5, 1e-3), tuple(np.linspace(0.02, 1.0, 15).tolist())
"""Larger totals that are tried: relative to the solved one, and parts of the way to all samples."""


def setting(seed: int, games: int, *, calm: bool = False) -> Games:
    """The games of a seed, with one punishment after the other."""
    drawn = random_games(
        seed,
        games,
        3 + seed % 3 if calm else 2 + seed % 4,
        personal=seed % 2 == 0,
        empty=seed % 7 == 0,
        calm=calm,
    )
    return replace(
        drawn,
        punishment=fa.Reversion() if calm else PUNISHMENTS[seed % 8],
        nobody_worse=seed % 5 == 0,
        margin=0.05 if seed % 3 == 0 else 0.0,
    )


def solve(games: Games, kind: SolvedKind = "individual") -> Batch:
    return solve_batch(
        valuation=games.ratio,
        cost_per_sample=1.0,
        samples=games.samples,
        discount_factor=games.patience,
        fees=games.fees,
        law=games.law(),
        kind=kind,
        punishment=games.punishment,
        nobody_worse=games.nobody_worse,
        margin=games.margin,
    )


def larger_totals(games: Games, batch: Batch) -> Iterator[FloatArray]:
    """Totals above the solved ones, as columns; above the equilibrium's where there is none."""
    everything = games.samples.sum(axis=1, keepdims=True)
    start = batch.equilibrium_total[:, np.newaxis]
    nothing = np.where(start > 0, start * (1.0 + 1e-6), 1e-6 * everything)
    low = np.where(batch.exists[:, np.newaxis], batch.total[:, np.newaxis], nothing)
    # what a client without patience gains just above its satiation point is of second order
    blind = (games.patience <= games.margin).any(axis=1, keepdims=True)
    for part in NEAR:
        yield np.minimum(low * (1.0 + np.where(blind, max(part, 1e-5), part)), everything)
    for part in FURTHER:
        yield low + part * (everything - low)


def broken(games: Games, batch: Batch, enforcement: Enforcement) -> BoolArray:
    """In which games somebody does not keep to what was solved."""
    total = batch.profile.sum(axis=1, keepdims=True)
    allowed = 10.0 * enforcement.noise + 1e-12 * batch.profile
    slips = enforcement.excess(batch.profile, total) > allowed
    wants_more = enforcement.eager(total * (1.0 + 1e-12)) & (batch.profile < games.samples)
    return np.asarray(batch.exists & (slips | wants_more).any(axis=1))


def check_equilibrium(games: Games, batch: Batch) -> None:
    """The total by halving, and nobody's best response from the costs is cheaper."""
    everything = games.samples.sum(axis=1)
    total = games.equilibrium_total()
    assert (np.abs(batch.equilibrium_total - total[:, 0]) <= 1e-12 * everything).all()
    np.testing.assert_allclose(
        batch.equilibrium_profile.sum(axis=1), total[:, 0], atol=1e-12 * everything.max()
    )
    others = total - batch.equilibrium_profile
    best = games.best_response(np.maximum(others, 0.0), games.samples)
    cost = batch.equilibrium_profile + games.ratio * games.loss(total)
    least = best + games.ratio * games.loss(np.maximum(others, 0.0) + best)
    assert (cost <= least + 1e-12 * (cost + games.samples)).all()


def check_individual(games: Games) -> Batch:
    batch = solve(games)
    check_equilibrium(games, batch)
    enforcement = Enforcement(games, batch.equilibrium_profile)
    assert not broken(games, batch, enforcement).any()
    for total in larger_totals(games, batch):
        above = (total > batch.total[:, np.newaxis] * (1.0 + 1e-8))[:, 0]
        more = enforcement.can_reach(total) & above
        if more.any():  # look again, with all digits
            assert not (enforcement.can_reach(total, 50) & above).any()
    return batch


@pytest.mark.parametrize("seed", range(19))
def test_individual_agreements_of_500_random_laws(seed: int) -> None:
    check_individual(setting(seed, 500, calm=True))


@pytest.mark.parametrize("seed", range(40))
def test_individual_agreements_of_large_clients_under_any_punishment(seed: int) -> None:
    check_individual(setting(seed, 12))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 200))
def test_individual_agreements_of_10_000_random_laws_of_large_clients(seed: int) -> None:
    check_individual(setting(seed, 100))

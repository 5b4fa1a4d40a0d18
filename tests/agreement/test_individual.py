import tracemalloc
from typing import Any

import numpy as np
import pytest

import fedaccord as fa
from fedaccord.agreement import individual
from fedaccord.agreement.bounds import Bounds, bounds_at_all, least_bounds
from fedaccord.agreement.enforcement import scale_one
from fedaccord.agreement.intervals import by_halving
from tests.consortia import with_patience, with_satiation
from tests.oracles import largest_amounts


def crowd(size: int, seed: int, patience: float = 0.8) -> fa.Consortium:
    """Clients of about the same size, none a large part of the total."""
    rng = np.random.default_rng(seed)
    data = rng.uniform(50, 150, size)
    return with_satiation(
        data.sum() * rng.uniform(0.2, 0.7, size), data, rng.uniform(patience, 0.95, size), 50
    )


@pytest.mark.parametrize("seed", range(12))
def test_both_methods_find_the_same_largest_total(seed: int) -> None:
    """Newton's method, for small clients only, and the search over intervals, for any."""
    game = scale_one(fa.solve_equilibrium(crowd(40 + 10 * seed, seed)))
    share = (1.0 - (1.0 - game.patience) ** 0.4) * game.equilibrium_total
    assert (game.samples <= share).all()  # so that both apply
    quick, sure = individual._from_above(game), by_halving(game)
    # both stop within a few units in the last place of the same root
    assert quick.sum() == pytest.approx(sure.sum(), rel=1e-13)
    np.testing.assert_allclose(quick, sure, rtol=1e-9)
    assert quick.sum() > game.start.item()


@pytest.mark.parametrize("seed", range(20))
def test_bounds_are_roots_of_the_condition(seed: int) -> None:
    """Also for clients that are most of the total, and continuous in the total."""
    rng = np.random.default_rng(seed)
    size = int(rng.integers(2, 7))
    data = 10.0 ** rng.uniform(0, 1.5, size)
    eager = int(rng.integers(1, size))
    satiation = data[:eager].sum() * rng.uniform(0.5, 1.0, size)
    satiation[:eager] = data[:eager].sum() * rng.uniform(1.0, 1.6, eager)
    consortium = with_satiation(satiation, data, rng.uniform(0.02, 0.98, size))
    equilibrium = fa.solve_equilibrium(consortium)
    totals = np.linspace(equilibrium.total * 1.0001, data.sum(), 300)
    bounds = Bounds(scale_one(equilibrium))
    found = bounds.at(totals[:, np.newaxis])
    # the oracle bisects 1/128 of the data 60 times, with a tolerance of 1e-13 of the amounts,
    # which a slope of delta >= 0.02 turns into 1e-11
    expected = largest_amounts(consortium, equilibrium.profile, totals)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9 * data.max())


@pytest.mark.slow
def test_bounds_are_continuous_for_positive_discount_factors() -> None:
    """In steps of the total ten times smaller, it changes ten times less."""
    consortium = with_satiation([100.0, 96.0, 90.0], [99.0, 300.0, 5.0], [0.05, 0.1, 0.9])
    equilibrium = fa.solve_equilibrium(consortium)
    bounds = Bounds(scale_one(equilibrium))
    low, high = equilibrium.total * 1.001, 404.0
    largest = []
    for count in (2_000, 20_000):
        found = bounds.at(np.linspace(low, high, count)[:, np.newaxis])
        largest.append(np.abs(np.diff(found, axis=0)).max())
    assert largest[1] < 0.11 * largest[0]


def test_bounds_jump_to_0_at_a_discount_factor_of_0() -> None:
    """delta = 0: all it has up to its satiation point, nothing above; the total stops there."""
    consortium = with_satiation([26.0, *[24.0] * 30], [25.0, *[9.0] * 30], [0.0, *[0.9] * 30])
    agreement = fa.solve_agreement(consortium)
    assert fa.certify(agreement).holds
    # without it the others reach no larger total
    patient = with_patience(consortium, np.array([0.9] * 31))
    assert fa.solve_agreement(patient).total > agreement.total
    assert agreement.total >= 26.0 * (1 - 1e-12)


HANGED = [
    ([2.0, 3.0], [1.0, 1.0], 0.5),
    ([1.9427692, 2.5875952], [0.8622211, 0.8622211], [0.5526, 0.5939]),
    ([3.2427, 1.68076, 1.46867], [0.35797, 0.35797, 0.35797], [0.91, 0.2354, 0.2213]),
    ([1.1711, 1.5427, 1.0860], [0.0549, 0.0891, 2.0962], 0.3269),
]


@pytest.mark.parametrize(("valuation", "samples", "patience"), HANGED)
def test_only_the_critical_client_has_anything_left(
    valuation: list[float], samples: list[float], patience: list[float] | float
) -> None:
    """The bounds touch the total at S, to second order: the search must not converge slowly."""
    consortium = fa.Consortium(
        valuation=valuation,
        cost_per_sample=1.0,
        samples=samples,
        rounds=1,
        discount_factor=patience,
    )
    agreement = fa.solve_agreement(consortium)  # took 1e15 steps once; takes a millisecond
    assert fa.certify(agreement).holds


def test_a_single_client_has_no_agreement() -> None:
    assert not fa.solve_agreement(with_satiation([7.0], 10.0)).exists
    assert not fa.solve_agreement(with_satiation([70.0], 10.0)).exists


@pytest.mark.slow
def test_a_million_clients() -> None:
    """Certified, and in the memory of 20 arrays of that length."""
    size = 1_000_000
    rng = np.random.default_rng(11)
    data = rng.uniform(10.0, 1_000.0, size)
    consortium = with_satiation(
        data.sum() * 10.0 ** rng.uniform(-2, 0, size), data, rng.uniform(0.3, 0.99, size), 50
    )
    _ = consortium.satiation  # cached with the consortium, not the solver's
    tracemalloc.start()
    equilibrium = fa.solve_equilibrium(consortium)
    agreement = fa.solve_agreement(equilibrium)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 20 * 8 * size
    assert agreement.exists
    assert agreement.free_riders == 0
    assert agreement.total > 1.01 * equilibrium.total
    assert fa.certify(agreement).holds
    # and no larger total is feasible: everyone is at its bound
    game = scale_one(equilibrium)
    bounds = Bounds(game).at(np.array([[agreement.total * (1 + 1e-9)]]))
    assert bounds.sum() < agreement.total * (1 + 1e-9)


def test_bounds_at_many_totals_are_those_at_each() -> None:
    """Also with several rows, of which the least counts, and more numbers than fit at once."""
    game = scale_one(fa.solve_equilibrium(fa.paper_consortium(1_000)))
    twice = game.rows(np.array([0, 0]))
    patience = np.array([[0.8], [0.3]]) * np.ones_like(twice.pull)
    totals = np.linspace(1.1, 3.0, 40) * game.start.item()
    for rows in (game, twice.with_patience(patience)):
        one_by_one = [least_bounds(rows, total).min(axis=0) for total in totals.tolist()]
        np.testing.assert_allclose(bounds_at_all(rows, totals), one_by_one, rtol=1e-13)


def test_rounding_does_not_keep_bounds_from_settling(monkeypatch: pytest.MonkeyPatch) -> None:
    searched, steps = [0], [0]
    root, excess = Bounds._root, Bounds._excess

    def counted_root(self: Bounds, *given: Any) -> Any:
        searched[0] += 1
        return root(self, *given)

    def counted_excess(self: Bounds, *given: Any) -> Any:
        steps[0] += 1
        return excess(self, *given)

    monkeypatch.setattr(Bounds, "_root", counted_root)
    monkeypatch.setattr(Bounds, "_excess", counted_excess)
    fa.solve_batch(
        valuation=np.arange(1.0, 101.0),
        cost_per_sample=0.985e-8,
        samples=10_000.0,
        rounds=50,
        discount_factor=np.arange(0.0, 0.5, 0.005)[:, np.newaxis],
    )
    assert steps[0] < 20 * searched[0]

"""Whole samples: every feasible whole total is found; the search has no cut-off."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fedaccord as fa
from fedaccord.agreement.bounds import Bounds
from fedaccord.agreement.enforcement import scale_one
from fedaccord.agreement.whole import lowest_worthwhile, whole_numbers, whole_totals
from fedaccord.numbers import FloatArray
from tests.consortia import FEW, consortia, with_satiation


def beside_a_large_one(size: int) -> fa.Consortium:
    """Small clients whose satiation points are seven times the large contributor's samples."""
    start = 1e5
    worth = 7 / size * np.random.default_rng(0).uniform(0.5, 1.5, size)
    satiation, samples = start * worth ** (2 / 3), np.full(size, 1e4)
    satiation[-1], samples[-1] = 2 * start, start
    return with_satiation(satiation, samples, 0.8)


@pytest.mark.parametrize(
    ("size", "total"),
    [
        (10_000, 824_473),
        pytest.param(30_000, 813_055, marks=pytest.mark.slow),
        pytest.param(70_000, 785_783, marks=pytest.mark.slow),
    ],
)
def test_many_small_clients_beside_a_large_one(size: int, total: int) -> None:
    agreement = fa.solve_agreement(beside_a_large_one(size), whole_samples=True)
    assert agreement.exists
    assert agreement.total == total
    assert (agreement.profile == np.floor(agreement.profile)).all()
    assert fa.certify(agreement).holds
    assert fa.solve_agreement(beside_a_large_one(size)).total - size < total


def test_barely_enough_patience_at_a_large_total() -> None:
    """14 free riders: the amount lost to rounding is as large as the slack of the bounds."""
    start = 1e8
    consortium = with_satiation(
        [*[2 * start] * 10, *(start * np.linspace(0.2, 0.3, 14))],
        [*[start / 10] * 10, *[1e6] * 14],
        0.534025,
    )
    agreement = fa.solve_agreement(consortium, whole_samples=True)
    assert agreement.exists
    assert fa.certify(agreement).holds
    real = fa.solve_agreement(consortium)
    assert start + 70_000 < agreement.total < real.total
    # one total after another: none above it is feasible
    bounds = Bounds(scale_one(agreement.equilibrium))
    totals = np.arange(agreement.total, np.floor(real.total) + 1)
    reached = np.floor(bounds.at(totals[:, np.newaxis]) * (1 + 1e-13)).sum(axis=-1) >= totals
    assert np.flatnonzero(reached).tolist() == [0]


@given(consortium=consortia(FEW, whole_data=True, extreme=False), upwards=st.booleans())
def test_every_whole_total_is_found(consortium: fa.Consortium, upwards: bool) -> None:
    """Compared with all totals, checked one after another."""
    game = scale_one(fa.solve_equilibrium(consortium))
    low, high = lowest_worthwhile(game), consortium.samples.sum()
    totals = np.arange(low, high + 1)
    most = np.floor(Bounds(game).at(totals[:, np.newaxis]) * (1 + 1e-13))
    expected = totals[most.sum(axis=-1) >= totals]
    found = list(whole_totals(game, low, high, upwards=upwards))
    assert found == sorted(expected.tolist(), reverse=not upwards)


@given(consortium=consortia(FEW, st.integers(0, 999).map(lambda n: n / 1000), whole_data=True))
def test_rounding_down_costs_at_most_one_sample_per_client(consortium: fa.Consortium) -> None:
    """A total is feasible if the real-valued bounds exceed it by one sample per client."""
    agreement = fa.solve_agreement(consortium, whole_samples=True)
    game = scale_one(agreement.equilibrium)
    bottom = max(agreement.total, lowest_worthwhile(game) - 1) + 1
    top = min(consortium.samples.sum(), bottom + 1e5)
    totals = np.unique(np.floor(np.geomspace(bottom, max(bottom, top), 300)))
    bounds = Bounds(game).at(totals[:, np.newaxis]).sum(axis=-1)
    assert (bounds - consortium.size < totals).all()


@pytest.mark.parametrize("top", [1.0, 17.0, 1e6, 2.0**53 + 20, 2.0**60])
@pytest.mark.parametrize("clients", [1, 100, 10**6])
def test_the_search_terminates_with_a_result(top: float, clients: int) -> None:
    """Also beyond 2^53, where a float does not hold every whole number."""
    wanted = np.floor(top * 0.7)

    def highest(lows: FloatArray, highs: FloatArray) -> FloatArray:
        return np.where((lows <= wanted) & (wanted <= highs), highs, lows - 1)

    beyond = top >= 2.0**53
    found = list(whole_numbers(highest, 1.0 if not beyond else top / 2, top, clients))
    assert wanted in found if wanted >= 1 else found == []

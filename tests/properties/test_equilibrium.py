"""Properties of every equilibrium, from the cost function and the potential alone."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.optimize import minimize

import fedaccord as fa
from fedaccord.numbers import FloatArray
from tests.consortia import FEW, consortia, permuted, with_satiation
from tests.oracles import pulls, slip_gain, whole_profiles

ROUNDING = 1e-9
"""Relative to the samples at stake. Points within 1e-12 of the total count as tied, sums of up to
60 numbers have errors of about 1e-15, and one giant among small clients costs six more digits."""


def sums_of_others(profile: FloatArray) -> FloatArray:
    """The others' contributions, summed without the client rather than by subtraction."""
    return np.array([np.delete(profile, n).sum() for n in range(profile.size)])


@given(consortia())
def test_no_client_gains_by_any_deviation(consortium: fa.Consortium) -> None:
    profile = fa.solve_equilibrium(consortium).profile
    others = sums_of_others(profile)
    steps = np.concatenate([[0.0], np.logspace(-12, 0, 60), np.linspace(0.0, 1.0, 201)])
    near = np.concatenate([1.0 - np.logspace(-12, -1, 40), 1.0 + np.logspace(-12, -1, 40)])
    slips = [step * consortium.samples for step in steps]
    slips += [np.clip(factor * profile, 0.0, consortium.samples) for factor in near]
    for slip in slips:
        gain = slip_gain(pulls(consortium), profile, others, slip)
        assert (gain <= ROUNDING * (profile + slip)).all()


@given(consortia())
def test_the_total_solves_the_two_inequalities_that_define_it(consortium: fa.Consortium) -> None:
    equilibrium = fa.solve_equilibrium(consortium)
    total, satiation, samples = equilibrium.total, consortium.satiation, consortium.samples
    slack = ROUNDING * total
    assert samples[satiation > total * (1 + ROUNDING)].sum() <= total + slack
    assert samples[satiation >= total * (1 - ROUNDING)].sum() >= total - slack
    assert equilibrium.profile.sum() == pytest.approx(total, rel=ROUNDING)


@given(consortia(FEW), st.integers(0, 7), st.floats(0.0, 20.0), st.floats(1.0, 10.0))
def test_the_profile_adds_up_to_the_total_over_20_orders_of_magnitude(
    consortium: fa.Consortium, position: int, orders: float, beyond: float
) -> None:
    """A very large client at the margin contributes a tiny fraction of its samples."""
    giant = position % consortium.size
    samples = consortium.samples.copy()
    samples[giant] *= 10.0**orders
    level = np.delete(samples, giant).sum()
    satiation = 20.0 * level * np.ones(consortium.size)
    satiation[giant] = beyond * level
    equilibrium = fa.solve_equilibrium(with_satiation(satiation, samples))
    # points within 1e-12 of the total count as tied with it
    assert equilibrium.profile.sum() == pytest.approx(equilibrium.total, rel=1e-11)


def potential(satiation: FloatArray, profile: FloatArray) -> float:
    return float(satiation @ profile - 0.5 * profile.sum() ** 2)


@given(consortia(FEW, extreme=False), st.integers(0, 2**32 - 1))
def test_the_equilibrium_maximises_the_potential(consortium: fa.Consortium, seed: int) -> None:
    """The total is unique: P(x*) - P(x) >= (X - X*)^2 / 2 for every other profile x.

    That holds if and only if no step from x* increases P, which is checked over the whole box; and
    for the best profile that L-BFGS-B reaches from a random start, in x/D and P/X*^2.
    """
    equilibrium = fa.solve_equilibrium(consortium)
    samples, satiation, total = consortium.samples, consortium.satiation, equilibrium.total
    best = potential(satiation, equilibrium.profile)
    start = np.random.default_rng(seed).random(consortium.size)

    def depth(share: FloatArray) -> float:
        return -potential(satiation, share * samples) / total**2

    def gradient(share: FloatArray) -> FloatArray:
        return np.asarray(samples * ((share * samples).sum() - satiation) / total**2)

    bounds = [(0.0, 1.0)] * consortium.size
    found = minimize(depth, start, jac=gradient, bounds=bounds, method="L-BFGS-B", tol=1e-14).x
    for profile in (start * samples, found * samples):
        gap = best - potential(satiation, profile)
        assert gap >= 0.5 * (profile.sum() - total) ** 2 - ROUNDING * total**2
    up = satiation - total
    climb = np.maximum(up * (samples - equilibrium.profile), -up * equilibrium.profile)
    assert climb.sum() <= ROUNDING * total * samples.sum()


@given(consortia(FEW, extreme=False), st.integers(0, 2**32 - 1))
def test_best_response_dynamics_converge_to_the_equilibrium(
    consortium: fa.Consortium, seed: int
) -> None:
    """From any start. Near ties, which converge in steps as small as the gap, are left out."""
    equilibrium = fa.solve_equilibrium(consortium)
    points = np.sort(consortium.satiation)
    distinct = points[np.append(True, np.diff(points) > 1e-12 * points[1:])]
    assume((np.diff(distinct) > 1e-3 * distinct[1:]).all())
    dynamics = fa.run_dynamics(consortium, seed=seed, most_sweeps=50_000)
    # a sweep has converged at 1e-12 of all data, and each sweep shrinks the distance by a factor of
    # at most 1 - 1e-3 here: 1e-9 of the data may remain
    near = ROUNDING * consortium.samples.sum()
    assert dynamics.total == pytest.approx(equilibrium.total, abs=near)
    if equilibrium.unique and distinct.size == points.size:
        np.testing.assert_allclose(dynamics.profile, equilibrium.profile, atol=near)


@given(consortia(), st.randoms(use_true_random=False))
def test_the_order_of_clients_does_not_matter(consortium: fa.Consortium, random: object) -> None:
    order = np.arange(consortium.size)
    random.shuffle(order)  # type: ignore[attr-defined]
    here = fa.solve_equilibrium(consortium)
    there = fa.solve_equilibrium(permuted(consortium, order))
    # sums in another order differ in the last digits
    assert there.total == pytest.approx(here.total, rel=1e-14)
    np.testing.assert_allclose(
        there.profile, here.profile[order], rtol=1e-9, atol=1e-11 * here.total
    )
    assert (there.unique, there.case) == (here.unique, here.case)


@given(consortia(), st.floats(1e-6, 1e6))
def test_only_the_ratio_matters(consortium: fa.Consortium, factor: float) -> None:
    """Valuation and cost per sample scaled alike: the ratio changes in its last digit only."""
    scaled = fa.Consortium(
        valuation=consortium.valuation * factor,
        cost_per_sample=consortium.cost_per_sample * factor,
        samples=consortium.samples,
        rounds=consortium.rounds,
        discount_factor=consortium.discount_factor,
    )
    here, there = fa.solve_equilibrium(consortium), fa.solve_equilibrium(scaled)
    assert there.total == pytest.approx(here.total, rel=1e-14)
    # the critical client contributes the rest of the total, so its rounding error is the total's
    np.testing.assert_allclose(there.profile, here.profile, rtol=1e-12, atol=1e-11 * here.total)


@given(consortia(st.integers(1, 3)))
def test_brute_force_over_whole_samples_finds_a_neighbouring_profile(
    consortium: fa.Consortium,
) -> None:
    """If clients move in whole samples, the total at which nobody moves is within one sample of X*.

    One more sample pays for a client with h_n >= X + 1 and data left, one less for a client with
    h_n <= X - 1 that contributes any: so X cannot be off by more than one sample.
    """
    samples = np.clip(np.round(consortium.samples), 1.0, 9.0)
    scale = samples.sum() / consortium.samples.sum()
    satiation = np.minimum(consortium.satiation * scale, 1e6)
    small = with_satiation(satiation, samples)
    profiles = whole_profiles(samples)
    stays = np.ones(len(profiles), dtype=bool)
    others = profiles.sum(axis=-1, keepdims=True) - profiles
    for slip in range(10):
        allowed = np.minimum(float(slip), samples) * np.ones_like(profiles)
        gain = slip_gain(pulls(small), profiles, others, allowed)
        stays &= (gain <= 1e-12 * (profiles + allowed)).all(axis=-1)
    found = profiles[stays].sum(axis=-1)
    assert found.size > 0
    assert (np.abs(found - fa.solve_equilibrium(small).total) <= 1.0).all()


@given(consortia())
def test_algorithm_1_reproduces_the_equilibrium_for_equal_data(consortium: fa.Consortium) -> None:
    """Equal data, distinct ratios: each client knows only its rank, its own numbers and N."""
    samples = float(consortium.samples[0])
    ratios = np.unique(consortium.ratio * (1.0 + 1e-6 * np.arange(consortium.size)))
    assume(ratios.size == consortium.size and (np.diff(ratios) > 1e-9 * ratios[1:]).all())
    equal = fa.Consortium(
        valuation=ratios,
        cost_per_sample=1.0,
        samples=np.full(ratios.size, samples),
        rounds=consortium.rounds,
        discount_factor=0.5,
    )
    ranks = fa.rank_clients(equal.ratio)
    told = [
        fa.own_contribution(
            ratio, samples=samples, rounds=equal.rounds, rank=rank, clients=equal.size
        )
        for ratio, rank in zip(equal.ratio.tolist(), ranks.tolist(), strict=True)
    ]
    equilibrium = fa.solve_equilibrium(equal)
    # (N - n) D is exact here, a running sum is not
    np.testing.assert_allclose(told, equilibrium.profile, atol=1e-11 * equilibrium.total)

"""The social optimum, compared with first-order conditions and another method."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

import fedaccord as fa
from fedaccord.numbers import FloatArray
from tests.consortia import FEW, consortia


@given(consortia())
def test_first_order_conditions(consortium: fa.Consortium) -> None:
    """A sample costs as much as it saves all clients (an inequality for clients at a bound).

    Relative to the cost per sample; costs within 1e-12 count as tied.
    """
    optimum = fa.solve_social_optimum(consortium)
    saved = consortium.valuation.sum() / (2 * np.sqrt(consortium.rounds) * optimum.total**1.5)
    worth = saved / consortium.cost_per_sample
    assert (worth[optimum.profile > 0] >= 1 - 1e-9).all()
    assert (worth[optimum.profile < consortium.samples] <= 1 + 1e-9).all()
    assert optimum.profile.sum() == pytest.approx(optimum.total, rel=1e-9)


@given(consortia(FEW, extreme=False), st.integers(0, 2**32 - 1))
def test_no_other_method_finds_a_cheaper_profile(consortium: fa.Consortium, seed: int) -> None:
    optimum = fa.solve_social_optimum(consortium)
    least = optimum.cost.sum()

    def together(share: FloatArray) -> float:
        return float(fa.cost(consortium, share * consortium.samples).sum() / least)

    start = np.random.default_rng(seed).uniform(0.1, 0.9, consortium.size)
    bounds = [(1e-9, 1.0)] * consortium.size
    found = minimize(together, start, method="L-BFGS-B", bounds=bounds)
    # with finite differences the optimiser stops about 1e-6 short; the convex cost has one minimum
    assert found.fun >= 1 - 1e-12
    assert found.fun <= 1 + 1e-4


@given(consortia())
def test_the_price_of_anarchy_is_at_least_1(consortium: fa.Consortium) -> None:
    equilibrium = fa.solve_equilibrium(consortium)
    price = fa.price_of_anarchy(equilibrium, fa.solve_social_optimum(consortium))
    # both costs are sums of up to 60 numbers, each with a relative error of 1e-16
    assert price >= 1 - 1e-13

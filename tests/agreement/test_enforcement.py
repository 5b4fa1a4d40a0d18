import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fedaccord as fa
from fedaccord.agreement.enforcement import scale_one, threshold
from fedaccord.agreement.weight import effective_discount_factor
from tests.consortia import FEW, consortia
from tests.oracles import accuracy_gained, best_slip_gain, pulls


@given(consortia(FEW), st.lists(st.floats(0.01, 1.0), min_size=8, max_size=8))
def test_gain_and_saving_are_differences_of_costs(
    consortium: fa.Consortium, shares: list[float]
) -> None:
    equilibrium = fa.solve_equilibrium(consortium)
    profile = np.array(shares[: consortium.size]) * consortium.samples
    total = profile.sum()
    game = scale_one(equilibrium)
    rows = profile[np.newaxis], np.array([[total]])
    pull = pulls(consortium)
    gain = best_slip_gain(pull, profile, total - profile)
    saved = accuracy_gained(pull, np.float64(equilibrium.total), total)  # type: ignore[arg-type]
    saving = saved + equilibrium.profile - profile
    # a difference of two terms, each off by a few units in the last place of the larger
    scale = profile + equilibrium.profile + np.abs(saved) + gain
    assert (np.abs(game.gain(*rows)[0] - gain) <= 1e-9 * scale).all()
    assert (np.abs(game.saving(*rows)[0] - saving) <= 1e-9 * scale).all()


@given(st.floats(0.0, 0.9999999), st.integers(1, 400))
def test_effective_discount_factor_weighs_the_same(delta: float, slots: int) -> None:
    """delta' / (1 - delta') = delta + ... + delta^T, added up term by term."""
    worth = sum(delta**t for t in range(1, slots + 1))
    effective = float(effective_discount_factor(delta, slots))
    assert effective == pytest.approx(worth / (1 + worth), rel=1e-9)
    assert effective <= delta


def test_effective_discount_factor_at_its_limits() -> None:
    assert float(effective_discount_factor(0.0, 5)) == 0.0
    # close to 1, T slots of punishment weigh T against 1
    assert float(effective_discount_factor(0.9999999999999999, 4)) == pytest.approx(0.8, rel=1e-12)
    assert effective_discount_factor([0.1, 0.9], None).tolist() == [0.1, 0.9]


@pytest.mark.parametrize("margin", [-0.1, 1.0, float("nan")])
def test_invalid_margins_are_refused(margin: float) -> None:
    with pytest.raises(fa.InvalidInput, match="margin: must be from 0 to less than 1"):
        scale_one(fa.solve_equilibrium(fa.paper_consortium(2)), margin)


def test_a_margin_reduces_the_discount_factor_to_no_less_than_0() -> None:
    consortium = fa.Consortium(
        valuation=[1, 2], cost_per_sample=1, samples=1, rounds=1, discount_factor=[0.05, 0.8]
    )
    game = scale_one(fa.solve_equilibrium(consortium), 0.1)
    assert game.patience[0].tolist() == pytest.approx([0.0, 0.7])


def test_thresholds_of_every_kind() -> None:
    gain = np.array([0.0, 1.0, 1.0, 1.0, 2.0])
    saving = np.array([5.0, 3.0, 0.0, -2.0, -1.0])
    # nothing to gain; a quarter; only the infinitely patient; none; dearer than the punishment
    assert threshold(gain, saving).tolist() == [0.0, 0.25, 1.0, np.inf, 2.0]

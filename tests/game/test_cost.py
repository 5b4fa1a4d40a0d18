import numpy as np
import pytest

import fedaccord as fa
from fedaccord.game.cost import cost_per_sample_of_cpu, marginal_cost
from fedaccord.game.law import Law


@pytest.fixture
def consortium() -> fa.Consortium:
    return fa.Consortium(
        valuation=[10.0, 3.0],
        cost_per_sample=[2e-3, 1e-3],
        samples=[100, 200],
        rounds=4,
        discount_factor=0.5,
        communication_cost=[0.25, 0.5],
        server_fee=1.0,
    )


def test_cost_by_hand(consortium: fa.Consortium) -> None:
    """X = 25, so A = 1/sqrt(25 * 4) + 1/4 = 0.35."""
    expected = [10 * 0.35 + 0.04 + 0.25 + 1.0, 3 * 0.35 + 0.005 + 0.5 + 1.0]
    assert fa.cost(consortium, [20.0, 5.0]).tolist() == pytest.approx(expected, rel=1e-15)


def test_cost_accepts_a_total_for_what_if_questions(consortium: fa.Consortium) -> None:
    here = fa.cost(consortium, [20.0, 5.0], total=25.0)
    assert here.tolist() == fa.cost(consortium, [20.0, 5.0]).tolist()
    many = fa.cost(consortium, np.zeros((7, 2)), np.arange(1.0, 8.0)[:, np.newaxis])
    assert many.shape == (7, 2)
    assert (np.diff(many, axis=0) < 0).all()


def test_costs_are_infinite_if_nobody_contributes(consortium: fa.Consortium) -> None:
    assert np.isinf(fa.cost(consortium, [0.0, 0.0])).all()


def test_more_rounds_reduce_the_accuracy_loss() -> None:
    assert float(Law.paper(rounds=100).loss(100.0)) == pytest.approx(0.01 + 0.01)


@pytest.mark.parametrize("total", [1.0, 40.0, 250.0])
def test_marginal_cost_is_the_derivative(consortium: fa.Consortium, total: float) -> None:
    """Central differences with a step of 1e-5 X: the third derivative leaves about 1e-10."""
    step = 1e-5 * total
    above = fa.cost(consortium, np.array([50.0, 50.0]) + step, total + step)
    below = fa.cost(consortium, np.array([50.0, 50.0]) - step, total - step)
    slope = (above - below) / (2 * step)
    np.testing.assert_allclose(marginal_cost(consortium, total), slope, rtol=1e-6, atol=1e-9)


def test_marginal_cost_is_0_at_satiation(consortium: fa.Consortium) -> None:
    for n, point in enumerate(consortium.satiation):
        at_point = marginal_cost(consortium, point)[n]
        assert at_point == pytest.approx(0.0, abs=1e-14 * consortium.cost_per_sample[n] * 10)


def test_cost_per_sample_of_cpu() -> None:
    """Eq. 4: half the chip's coefficient, times cycles, times the square of the speed."""
    assert cost_per_sample_of_cpu(2e-28, 1e7, 2e9) == pytest.approx(1e-28 * 1e7 * 4e18)
    assert cost_per_sample_of_cpu(2e-28, 1e7, 4e9) == pytest.approx(4 * 0.004)

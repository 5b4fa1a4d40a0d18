import numpy as np
import pytest

import fedaccord as fa


def test_the_cheapest_samples_come_first() -> None:
    """Two clients that differ only in cost; sum rho / 2 sqrt(G) = 500, so X = (500/E)^(2/3)."""
    consortium = fa.Consortium(
        valuation=[400.0, 600.0],
        cost_per_sample=[1.0, 8.0],
        samples=[40.0, 40.0],
        rounds=1,
        discount_factor=0.5,
    )
    optimum = fa.solve_social_optimum(consortium)
    assert optimum.profile.tolist() == [40.0, 0.0]  # 500^(2/3) = 63 > 40 > (500/8)^(2/3) = 15.7
    assert optimum.total == 40.0


def test_clients_may_be_worse_off_at_the_optimum() -> None:
    consortium = fa.paper_consortium()
    optimum = fa.solve_social_optimum(consortium)
    assert optimum.total == 1_000_000.0
    equilibrium = fa.solve_equilibrium(consortium)
    price = fa.price_of_anarchy(equilibrium, optimum)
    assert price == pytest.approx(equilibrium.cost.sum() / optimum.cost.sum())
    assert price == pytest.approx(1.0028, abs=0.00005)


def test_against_a_fine_grid_of_two_clients() -> None:
    consortium = fa.Consortium(
        valuation=[30.0, 50.0],
        cost_per_sample=[0.9, 1.1],
        samples=[7.0, 9.0],
        rounds=2,
        discount_factor=0.5,
    )
    optimum = fa.solve_social_optimum(consortium)
    grid = np.linspace(0.0, 1.0, 401)
    profiles = np.stack(np.meshgrid(7 * grid, 9 * grid), axis=-1).reshape(-1, 2)[1:]
    costs = fa.cost(consortium, profiles, profiles.sum(axis=-1, keepdims=True)).sum(axis=-1)
    assert optimum.cost.sum() <= costs.min()
    # the grid's cells are 0.02 wide, and the cost is flat at its minimum
    assert optimum.cost.sum() == pytest.approx(costs.min(), rel=1e-4)


def test_samples_that_cost_next_to_nothing_are_all_trained_on() -> None:
    """The sum of valuations over the cost is then more than a float can hold."""
    consortium = fa.Consortium(
        valuation=[1e-320, 1.0],
        cost_per_sample=[1e-320, 1.0],
        samples=1e4,
        rounds=1,
        discount_factor=0.8,
    )
    optimum = fa.solve_social_optimum(consortium)
    assert optimum.profile.tolist() == [1e4, 0.0]
    assert fa.price_of_anarchy(fa.solve_equilibrium(consortium), optimum) >= 1

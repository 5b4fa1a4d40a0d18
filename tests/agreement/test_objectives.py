from typing import Any

import numpy as np
import pytest

import fedaccord as fa
from fedaccord.agreement.agreement import Objective
from fedaccord.agreement.bounds import Bounds
from fedaccord.agreement.enforcement import scale_one
from tests.consortia import with_satiation


@pytest.fixture
def consortium() -> fa.Consortium:
    """Free riders with two costs per sample and the same ratio."""
    return with_satiation(
        [30.0, *[24.0] * 8],
        [25.0, *[20.0] * 8],
        0.9,
        cost_per_sample=[1.0, *[1.0] * 4, *[3.0] * 4],
    )


def test_least_total_cost_uses_the_cheapest_samples_first(consortium: fa.Consortium) -> None:
    agreement = fa.solve_agreement(consortium, objective="least total cost")
    assert agreement.exists
    most = Bounds(scale_one(agreement.equilibrium)).at(np.array([[agreement.total]]))[0]
    if (agreement.profile[5:] > 0).any():
        np.testing.assert_allclose(agreement.profile[1:5], most[1:5], rtol=1e-9)
    # identical clients are asked for the same
    assert np.ptp(agreement.profile[1:5]) < 1e-9
    assert np.ptp(agreement.profile[5:]) < 1e-9


@pytest.mark.slow
def test_least_total_cost_against_a_grid_of_levels(consortium: fa.Consortium) -> None:
    """There are two kinds of client, so a grid over the levels of both finds the least cost."""
    agreement = fa.solve_agreement(consortium, objective="least total cost")
    best = np.inf
    for cheap in np.linspace(0.0, 20.0, 41):
        for dear in np.linspace(0.0, 20.0, 41):
            profile = np.array([25.0, *[cheap] * 4, *[dear] * 4])
            total = fa.cost(consortium, profile).sum()
            if total < best and fa.certify(fa.agreement_on(consortium, profile)).holds:
                best = total
    assert agreement.cost.sum() <= best * (1 + 1e-9)
    # cells are 0.5 wide, and costs slope by less than 3 a sample for 8 clients of some 2000
    assert agreement.cost.sum() == pytest.approx(best, rel=1e-3)


OFTEN_WRONG_ONCE = [
    ([179.3, 167.2, 180.3, 86.3], [5.0, 3.0, 3.0, 6.0], [0.72, 0.52, 0.31, 0.48]),
    ([39.12, 84.61], [12.0, 7.0], [0.0, 0.89]),
]


@pytest.mark.parametrize("objective", ["least total cost", "fair share"])
@pytest.mark.parametrize(("valuation", "samples", "patience"), OFTEN_WRONG_ONCE)
def test_no_objective_creates_an_agreement_where_none_exists(
    valuation: list[float], samples: list[float], patience: list[float] | float, objective: str
) -> None:
    """The critical client's satiation point is the total: it must not be asked for everything."""
    consortium = fa.Consortium(
        valuation=valuation, cost_per_sample=1, samples=samples, rounds=1, discount_factor=patience
    )
    assert not fa.solve_agreement(consortium).exists
    agreement = fa.solve_agreement(consortium, objective=objective)  # type: ignore[arg-type]
    assert not agreement.exists
    assert fa.certify(agreement).holds


@pytest.mark.parametrize("objective", ["least total cost", "fair share"])
def test_clients_that_contribute_everything_anyway_must_not_exceed_the_total(
    objective: str,
) -> None:
    consortium = fa.Consortium(
        valuation=[10.70, 73.75, 66.11],
        cost_per_sample=1,
        samples=[4, 6, 10],
        rounds=1,
        discount_factor=0.958,
    )
    agreement = fa.solve_agreement(consortium, objective=objective)  # type: ignore[arg-type]
    assert fa.certify(agreement).holds


def test_in_whole_samples_clients_that_would_contribute_everything_are_asked_for_it() -> None:
    """Clients 3 and 4 have discount factors near 0, and satiation points just above the total."""
    nearly = 0.9999999999999999
    consortium = fa.Consortium(
        valuation=[
            94795.74927555,
            94795.74927555,
            351390.76149047,
            272979.04941043,
            55558.46244129,
            257834.6813953,
            164224.91751279,
            123621.33500082,
            48835.50570863,
            75059.03061878,
        ],
        cost_per_sample=[
            0.5,
            0.5,
            1.85340991,
            1.43982748,
            0.76745204,
            1.70085762,
            1.2609945,
            1.25770355,
            0.57448301,
            0.51502153,
        ],
        samples=[729, 10, 1000, 52, 24, 536, 1, 153, 100, 100],
        discount_factor=[nearly, 0.05, 1e-12, 1e-12, nearly, nearly, nearly, 0.0, 0.5, 0.0],
        rounds=1,
    )
    agreement = fa.solve_agreement(consortium, objective="fair share", whole_samples=True)
    assert fa.certify(agreement).holds


@pytest.mark.parametrize("objective", ["least total cost", "fair share"])
@pytest.mark.parametrize(
    ("valuation", "samples", "patience"),
    [
        (16.0, [10.0, 10.0, 10.0, 10.0], [0.05, 0.05, 0.05, 0.05]),
        (0.09374433, [10.0, 10.0, 10.0, 100.0], [0.05, 0.216, 0.216, 0.922]),
    ],
)
def test_amounts_below_one_sample_round_down_to_nothing(
    objective: Objective, valuation: float, samples: list[float], patience: list[float]
) -> None:
    """Then the total falls below the equilibrium's, where no agreement is searched for."""
    consortium = fa.Consortium(
        valuation=np.full(4, valuation),
        cost_per_sample=1.0,
        samples=samples,
        discount_factor=patience,
        rounds=1,
    )
    agreement = fa.solve_agreement(consortium, objective=objective, whole_samples=True)
    assert fa.certify(agreement).holds
    assert not agreement.exists


@pytest.mark.slow
def test_totals_without_a_profile_do_not_break_the_search() -> None:
    """The client with a discount factor of 0 causes gaps between the feasible totals."""
    consortium = with_satiation(
        [50.0] * 4 + [40.0] * 3, [10.0] * 7, [0.05, 0.05, 0.05, 0.0, 0.327, 0.35, 0.655]
    )
    agreement = fa.solve_agreement(consortium, objective="fair share")
    assert fa.certify(agreement).holds
    assert agreement.exists


WHOLE: list[tuple[Objective, dict[str, Any], list[float]]] = [
    (  # the real-valued best is (18.50, 5.13): rounded up for client 1, down for client 2
        "least total cost",
        {"valuation": [245, 122], "samples": [19, 29], "discount_factor": 0.72},
        [19, 5],
    ),
]


@pytest.mark.parametrize(("objective", "numbers", "best"), WHOLE)
def test_whole_samples_keep_the_objective(
    objective: Objective, numbers: dict[str, Any], best: list[float]
) -> None:
    consortium = fa.Consortium(**numbers, cost_per_sample=[2, 1], rounds=1)
    agreement = fa.solve_agreement(consortium, objective=objective, whole_samples=True)
    assert agreement.profile.tolist() == best
    assert fa.certify(agreement).holds

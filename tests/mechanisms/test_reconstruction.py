"""The paper's contract design (section 5.2, appendix H), reconstructed: every number it reports.

It prints neither types nor gamma nor alpha. Ours are five delay classes of equal size, theta_n =
E_n, gamma = 100 (the largest valuation), alpha = gamma/100 and an all-or-nothing menu.
"""

from typing import Any

import numpy as np
import pytest

import fedaccord as fa
from fedaccord.mechanisms.contract.contract import Contract
from fedaccord.mechanisms.contract.model import Information, MenuKind
from fedaccord.mechanisms.simple import OracleDetection


def served(**setting: float) -> int:
    """Contributors under the contract; each of them contributes all its data."""
    consortium = fa.paper_consortium(**setting)  # type: ignore[arg-type]
    outcome = Contract().outcome(consortium)
    given = outcome.contributions > 0
    assert (outcome.contributions[given] == consortium.samples[given]).all()
    assert outcome.contributors == given.sum()
    return outcome.contributors


def test_a_fifth_of_the_clients_contribute_all_their_data() -> None:
    outcome = Contract().outcome(fa.paper_consortium())
    assert (outcome.contributors, outcome.partial_contributors, outcome.free_riders) == (20, 0, 80)
    assert outcome.total == 200_000.0
    assert np.flatnonzero(outcome.contributions).tolist() == list(range(0, 100, 5))
    # each is paid what its training costs, E D
    assert outcome.payments[0] == pytest.approx(0.985e-8 * 10_000)
    assert outcome.paid == pytest.approx(20 * 0.985e-4)


@pytest.mark.parametrize("rounds", [1, 2, 5, 10, 50, 100, 200, 500, 1000])
def test_any_number_of_rounds(rounds: int) -> None:
    assert served(rounds=rounds) == 20


@pytest.mark.parametrize("samples", [500, 1000, 5000, 10_000, 20_000, 30_000, 40_000])
def test_any_number_of_samples(samples: int) -> None:
    assert served(samples=samples) == 20


@pytest.mark.parametrize(("clients", "expected"), [(100, 20), (101, 21), (181, 37), (200, 40)])
def test_more_clients(clients: int, expected: int) -> None:
    assert served(clients=clients) == expected


@pytest.mark.parametrize(
    ("cost_per_sample", "expected"),
    [(1e-9, 20), (0.985e-8, 20), (5e-8, 20), (7.9e-8, 20), (7.91e-8, 0), (1e-7, 0), (1e-6, 0)],
)
def test_until_the_cost_per_sample_is_too_high(cost_per_sample: float, expected: int) -> None:
    """The 200,000th sample is worth gamma / (2 sqrt(G) B^1.5) = 7.9057e-8."""
    assert served(cost_per_sample=cost_per_sample) == expected


@pytest.mark.parametrize("information", ["complete", "weak", "strong"])
@pytest.mark.parametrize("menu", ["all-or-nothing", "graded"])
def test_with_equal_costs_there_is_no_private_information(
    information: Information, menu: MenuKind
) -> None:
    outcome = Contract(information=information, menu=menu).outcome(fa.paper_consortium())
    assert outcome.contributors == 20
    assert outcome.paid == pytest.approx(20 * 0.985e-4)
    assert outcome.truthful == (information != "complete")


def test_each_choice_is_an_option() -> None:
    consortium = fa.paper_consortium()
    assert Contract(classes=4).outcome(consortium).contributors == 25
    assert Contract(classes=1).outcome(fa.paper_consortium(clients=40)).contributors == 40
    assert Contract(valuation=10.0).outcome(consortium).contributors == 0
    assert Contract(valuation=10.0, menu="graded").outcome(consortium).contributors > 0
    # if delay is free it waits for everyone: every sample is worth its price here
    assert Contract(delay_price=0.0, valuation=200.0).outcome(consortium).contributors == 100
    # the ten that are ready first, and the thirty that are cheap
    early = Contract(delay=(1.0,) * 10 + (9.0,) * 90).outcome(consortium)
    assert np.flatnonzero(early.contributions).tolist() == list(range(10))
    cheap = Contract(classes=1, cost_per_sample=(1e-9,) * 30 + (1e-6,) * 70).outcome(consortium)
    assert np.flatnonzero(cheap.contributions).tolist() == list(range(30))
    assert cheap.paid == pytest.approx(30 * 1e-9 * 10_000)


@pytest.mark.parametrize(("valuation", "delay_price"), [(None, 1.0), (50.0, 0.5)])
def test_a_unit_of_delay_costs_a_hundredth_of_the_valuation(
    valuation: float | None, delay_price: float
) -> None:
    """The menu's cost includes it: gamma (1/sqrt(G B) + 1/G) + alpha * 1 + payments."""
    consortium = fa.paper_consortium(rounds=10)
    menu = Contract(valuation=valuation).design(consortium)
    assert (menu.deadline, menu.total) == (1.0, 200_000.0)
    loss = (valuation or 100.0) * (1 / np.sqrt(10 * 200_000) + 1 / 10)
    assert menu.expected_cost == pytest.approx(loss + delay_price + 200_000 * 0.985e-8, rel=1e-12)


def test_types_must_cover_all_clients() -> None:
    with pytest.raises(fa.InvalidInput, match="delay: must have 3 numbers, one for each client"):
        Contract(delay=(1.0, 2.0)).outcome(fa.paper_consortium(clients=3))


def test_the_unit_of_money_does_not_matter() -> None:
    """Valuations and costs a thousand times as large: the same clients serve."""
    paper = fa.paper_consortium()
    dear = fa.Consortium(
        valuation=1000 * paper.valuation,
        cost_per_sample=1000 * paper.cost_per_sample,
        samples=paper.samples,
        rounds=paper.rounds,
        discount_factor=paper.discount_factor,
    )
    first, second = Contract().outcome(paper), Contract().outcome(dear)
    assert (first.contributions == second.contributions).all()
    assert second.payments == pytest.approx(1000 * first.payments)


def test_one_client_and_unequal_data() -> None:
    assert served(clients=1) == 1
    consortium = fa.Consortium(
        valuation=[5.0, 9.0, 2.0],
        cost_per_sample=[1e-3, 2e-3, 1e-3],
        samples=[100.0, 300.0, 50.0],
        rounds=10,
        discount_factor=0.8,
    )
    for information in ("complete", "weak", "strong"):
        for menu in ("all-or-nothing", "graded"):
            outcome = Contract(information=information, menu=menu).outcome(consortium)
            assert (outcome.contributions <= consortium.samples).all()
            assert (outcome.payments >= consortium.cost_per_sample * outcome.contributions).all()


def test_invalid_choices() -> None:
    with pytest.raises(fa.InvalidInput) as refused:
        Contract(classes=0, valuation=-1.0, delay_price=float("nan"))
    assert tuple(map(str, refused.value.problems)) == (
        "classes: must be a whole number, 1 or more, got 0",
        "valuation: must be more than 0, got -1",
        "delay_price: must be 0 or more, got nan",
    )
    with pytest.raises(fa.InvalidInput, match="information: must be one of"):
        Contract(information="some")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("choice", "problem"),
    [
        ({"classes": 2.5}, "classes: must be a whole number, 1 or more, got 2.5"),
        ({"classes": "5"}, "classes: must be a whole number, 1 or more, got '5'"),
        ({"classes": 10**400}, "classes: must be 9,007,199,254,740,992 or less"),
        ({"valuation": "x"}, "valuation: must be a number, got 'x'"),
        ({"valuation": 1e308}, "valuation: must be less than 1e+290"),
        ({"delay_price": "1"}, "delay_price: must be a number, got '1'"),
        ({"delay": 5}, "delay: must be numbers, one for each client, got 5"),
        ({"cost_per_sample": "abc"}, "cost_per_sample: must be numbers, one for each client, "),
    ],
)
def test_choices_of_the_wrong_type(choice: dict[str, Any], problem: str) -> None:
    with pytest.raises(fa.InvalidInput) as refused:
        Contract(**choice)
    assert str(refused.value).startswith(problem)


def test_choices_whose_products_overflow() -> None:
    three = fa.paper_consortium(clients=3)
    with pytest.raises(fa.InvalidInput, match="valuation / cost_per_sample is too large"):
        Contract(valuation=1e289, cost_per_sample=(1e-50,) * 3).outcome(three)
    with pytest.raises(fa.InvalidInput, match=r"delay_price \* delay is too large"):
        Contract(delay_price=1e280, delay=(1e300,) * 3).outcome(three)


def test_detection_in_the_papers_figures_is_the_equilibrium_without_free_riders() -> None:
    """50 contributors and a partial one, so that the paper's count is 50 or 51."""
    consortium = fa.paper_consortium()
    outcome = OracleDetection().outcome(consortium)
    assert (outcome.contributors, outcome.partial_contributors, outcome.free_riders) == (50, 1, 49)
    assert (outcome.contributions == fa.solve_equilibrium(consortium).profile).all()
    assert "drops 49 free riders" in outcome.notes[0]
    alone = OracleDetection().outcome(fa.paper_consortium(clients=1))
    assert alone.notes == ("There is no free rider to drop.",)

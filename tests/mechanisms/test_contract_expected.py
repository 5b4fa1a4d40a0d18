"""Strongly incomplete information: expectations by enumeration, amounts by another optimiser."""

import itertools
from math import factorial

import numpy as np
import pytest
from scipy.optimize import LinearConstraint, minimize

from fedaccord.errors import InvalidInput
from fedaccord.game.law import Law
from fedaccord.mechanisms.contract.contract import design_menu
from fedaccord.mechanisms.contract.exponentials import exponential_mixture
from fedaccord.mechanisms.contract.model import ContractModel
from fedaccord.numbers import BoolArray, FloatArray
from tests.laws import LAWS, loss_by_hand, some_law
from tests.mechanisms.models import random_model


def multinomial(clients: int, probability: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Every way in which this many clients can be of these types, and its probability."""
    counts = [
        n
        for n in itertools.product(range(clients + 1), repeat=probability.size)
        if sum(n) == clients
    ]
    chance = [
        factorial(clients)
        * np.prod([q**k / factorial(k) for q, k in zip(probability, n, strict=True)])
        for n in counts
    ]
    return np.array(counts, dtype=np.float64), np.array(chance)


def expected_cost(model: ContractModel, amounts: FloatArray, rewards: FloatArray) -> float:
    """The server's expected cost without the delay, outcome by outcome."""
    counts, chance = multinomial(round(model.all_clients), model.clients / model.all_clients)
    assert chance.sum() == pytest.approx(1.0)
    loss = loss_by_hand(model.law, counts @ amounts + model.own_samples)
    return float(chance @ (model.valuation * loss + counts @ rewards))


@pytest.mark.slow
def test_the_expected_cost_is_exact() -> None:
    """Against the sum over all outcomes; the menu itself computes it as an integral."""
    rng = np.random.default_rng(3)
    for _ in range(60):
        model = random_model(rng, capped=bool(rng.integers(2)), most_types=3)
        menu = design_menu(model, "strong")
        delay = model.delay_price * (menu.deadline or 0.0)
        counted = expected_cost(model, menu.amounts, menu.rewards) + delay
        assert menu.expected_cost == pytest.approx(counted, rel=1e-11)


def best_by_slsqp(model: ContractModel, in_time: BoolArray, start: float) -> float:
    """The lowest expected cost by a general optimiser, with amounts that decrease in theta.

    Rewards are the lowest that satisfy the conditions, found from the last level upwards.
    """
    counts, chance = multinomial(round(model.all_clients), model.clients / model.all_clients)
    at = np.flatnonzero(in_time)
    order = at[np.lexsort((model.cost_per_sample[at], model.samples[at]))]
    enough = model.law.stop(model.valuation / model.cost_per_sample.min())
    top = np.minimum(model.samples, np.maximum(enough, 1e-9))

    def spread(share: FloatArray) -> tuple[FloatArray, FloatArray]:
        amounts, rewards = np.zeros(model.size), np.zeros(model.size)
        amounts[order] = share * top[order]
        for k in range(order.size - 1, -1, -1):
            n = order[k]
            rent = 0.0
            if k + 1 < order.size and model.samples[order[k + 1]] == model.samples[n]:
                after = order[k + 1]
                rent = rewards[after] - model.cost_per_sample[n] * amounts[after]
            rewards[n] = model.cost_per_sample[n] * amounts[n] + max(rent, 0.0)
        return amounts, rewards

    def cost(share: FloatArray) -> float:
        amounts, rewards = spread(np.clip(share, 0.0, 1.0))
        loss = loss_by_hand(model.law, counts @ amounts + model.own_samples) - model.law.floor
        return float(chance @ (model.valuation * loss + counts @ rewards))

    def scaled(share: FloatArray) -> float:
        return cost(share) / unit

    rows = []
    for k in range(order.size - 1):
        if model.samples[order[k]] == model.samples[order[k + 1]]:
            row = np.zeros(order.size)
            row[k], row[k + 1] = 1.0, -1.0
            rows.append(row)
    falling = np.array(rows).reshape(-1, order.size)
    constraints = [LinearConstraint(falling, 0.0, np.inf)] if rows else []
    unit = cost(np.full(order.size, start))
    found = minimize(
        scaled,
        np.full(order.size, start),
        method="SLSQP",
        bounds=[(0.0, 1.0)] * order.size,
        constraints=constraints,
        options={"ftol": 1e-12, "maxiter": 300},
    )
    return min(float(found.fun) * unit, unit)


@pytest.mark.slow
def test_the_best_amounts_against_another_optimiser() -> None:
    """SLSQP with finite differences comes within 1e-4 of the best, and never below it.

    It is started from two points, since the loss is very steep where everyone is asked for little.
    """
    rng = np.random.default_rng(4)
    for _ in range(40):
        model = random_model(rng, capped=bool(rng.integers(2)), most_types=3)
        menu = design_menu(model, "strong")
        fixed = model.valuation / model.rounds
        nobody = model.valuation / np.sqrt(model.rounds * model.own_samples)
        found = min(
            nobody,
            *(
                best_by_slsqp(model, model.delay <= t, start) + model.delay_price * t
                for t in np.unique(model.delay).tolist()
                for start in (0.5, 0.05)
            ),
        )
        assert menu.expected_cost - fixed <= found * (1 + 1e-7)
        assert menu.expected_cost - fixed >= found * (1 - 1e-4)


@pytest.mark.parametrize("name", LAWS)
def test_the_expected_cost_is_exact_for_any_law(name: str) -> None:
    rng = np.random.default_rng([12, len(name)])
    for _ in range(12):
        model = random_model(rng, capped=bool(rng.integers(2)), most_types=3, law=LAWS[name])
        menu = design_menu(model, "strong")
        delay = model.delay_price * (menu.deadline or 0.0)
        counted = expected_cost(model, menu.amounts, menu.rewards) + delay
        assert menu.expected_cost == pytest.approx(counted, rel=1e-11)


@pytest.mark.slow
def test_the_best_amounts_for_any_law_against_another_optimiser() -> None:
    rng = np.random.default_rng(14)
    for _ in range(15):
        law = some_law(rng)
        model = random_model(rng, capped=bool(rng.integers(2)), most_types=3, law=law)
        menu = design_menu(model, "strong")
        fixed = model.valuation * float(law.floor)
        nobody = model.valuation * float(loss_by_hand(law, model.own_samples)) - fixed
        found = min(
            nobody,
            *(
                best_by_slsqp(model, model.delay <= t, start) + model.delay_price * t
                for t in np.unique(model.delay).tolist()
                for start in (0.5, 0.05)
            ),
        )
        assert menu.expected_cost - fixed <= found * (1 + 1e-7)
        assert menu.expected_cost - fixed >= found * (1 - 1e-3)


def test_a_law_as_a_sum_of_exponentials() -> None:
    """Whatever its terms: exponents from a hundredth to fifty, shifts from none to a million."""
    rng = np.random.default_rng(15)
    for _ in range(60):
        terms = int(rng.integers(1, 5))
        shift = np.where(rng.random(terms) < 0.3, 0.0, 10.0 ** rng.uniform(-2, 6, terms))
        unit, exponent = (
            shift + 10.0 ** rng.uniform(0, 3, terms),
            10.0 ** rng.uniform(-2, 1.7, terms),
        )
        law = Law(10.0 ** rng.uniform(-3, 1, terms), unit, shift, exponent)
        own, largest = 10.0 ** rng.uniform(-1, 3), 10.0 ** rng.uniform(1, 7)
        mixture = exponential_mixture(law, own, largest)
        at = np.append(0.0, 10.0 ** np.linspace(-2, np.log10(largest), 30))
        summed = np.exp(-np.outer(at, mixture.rate)) @ mixture.weight
        np.testing.assert_allclose(summed, loss_by_hand(law, at + own), rtol=1e-11)


@pytest.mark.slow
def test_uncertainty_costs_the_server_money() -> None:
    """A random total is worse than a certain one (1/sqrt is convex).

    The server's own sample, which only the uncertain one counts, is too small to matter here.
    """
    rng = np.random.default_rng(6)
    for _ in range(30):
        model = random_model(rng, capped=True, most_types=3, own_samples=1e-9)
        weak, strong = design_menu(model, "weak"), design_menu(model, "strong")
        assert strong.expected_cost >= weak.expected_cost * (1 - 1e-9)


def test_with_many_clients_randomness_hardly_matters() -> None:
    """With 10,000 clients the menu is nearly that for known numbers of each type."""
    model = ContractModel(
        cost_per_sample=[1.0, 1.5, 4.0],
        delay=[1.0, 1.0, 1.0],
        clients=[4000, 3000, 3000],
        samples=10.0,
        rounds=10,
        valuation=2.0 * 1.2 * np.sqrt(10.0) * 30_000.0**1.5,
        delay_price=0.0,
    )
    weak, strong = design_menu(model, "weak"), design_menu(model, "strong")
    assert strong.amounts == pytest.approx(weak.amounts, abs=0.02)
    assert strong.expected_cost == pytest.approx(weak.expected_cost, rel=1e-4)


def test_one_client_of_one_type() -> None:
    """Then nothing is random; only the server's own sample makes a difference."""
    model = ContractModel(
        cost_per_sample=1.0, delay=1, clients=1, rounds=1, valuation=2e6, delay_price=0.0
    )
    menu = design_menu(model, "strong")
    assert menu.amounts[0] == pytest.approx(10_000.0 - 1.0, rel=1e-6)


@pytest.mark.parametrize("probability", [[0.7, 0.2, 0.1], [0.1, 0.2, 0.7], [0.1] * 10])
def test_one_client_of_many_types(probability: list[float]) -> None:
    """Probabilities that add up to 1 except for rounding; every lot is worth its price here."""
    costs = 1e-3 * np.arange(1.0, len(probability) + 1.0)
    model = ContractModel(
        cost_per_sample=costs,
        delay=0,
        clients=probability,
        samples=100,
        rounds=1,
        valuation=1000,
        delay_price=0,
    )
    assert model.all_clients == 1.0
    menu = design_menu(model, "strong")
    assert menu.amounts == pytest.approx(100.0)
    paid = 100 * costs[-1]  # to every type, so that none pretends to be a more expensive one
    assert menu.expected_cost == pytest.approx(1000 / np.sqrt(101) + 1000 + paid, rel=1e-9)


def test_serving_nobody_may_be_cheapest() -> None:
    model = ContractModel(
        cost_per_sample=1.0, delay=1, clients=2, rounds=1, valuation=10.0, delay_price=100.0
    )
    menu = design_menu(model, "strong")
    assert (menu.items, menu.deadline) == ((), None)
    assert menu.expected_cost == pytest.approx(20.0)


def test_too_many_types_are_rejected() -> None:
    model = ContractModel(
        cost_per_sample=np.arange(1.0, 1002.0),
        delay=1,
        clients=1,
        samples=1.0,
        rounds=1,
        valuation=1.0,
        delay_price=0.0,
    )
    with pytest.raises(InvalidInput, match="there are 1,001 different costs per sample"):
        design_menu(model, "strong")

"""Contract design: closed forms against other optimisers, and conditions on every item."""

from collections.abc import Callable

import numpy as np
import pytest
from scipy.optimize import LinearConstraint, minimize

from fedaccord.errors import FedaccordError, InvalidInput
from fedaccord.game.law import Law
from fedaccord.mechanisms.contract.contract import design_menu
from fedaccord.mechanisms.contract.model import ContractModel, Information, Menu, MenuKind
from fedaccord.numbers import BoolArray, FloatArray
from tests.laws import LAWS, loss_by_hand
from tests.mechanisms.models import random_model

Costed = Callable[[FloatArray], tuple[float, FloatArray]]
"""A cost and its gradient."""

SETTINGS: list[Information] = ["complete", "weak", "strong"]


def by_deadline(model: ContractModel, best: Callable[[BoolArray], float]) -> float:
    """The lowest cost over all deadlines; `best` is the lowest with the types that are in time."""
    deadlines = np.unique(model.delay)
    return min(best(model.delay <= t) + model.delay_price * float(t) for t in deadlines)


def _scaled(cost: Costed, unit: float) -> Costed:
    """The same in units of `unit`, with which optimisers converge better."""

    def scaled(x: FloatArray) -> tuple[float, FloatArray]:
        value, slope = cost(x)
        return value / unit, slope / unit

    return scaled


def most_asked(model: ContractModel) -> FloatArray:
    """An upper bound for amounts that may be infinite: beyond it even the cheapest does not pay."""
    theta = model.cost_per_sample.min()
    enough = (model.valuation / (2 * theta * np.sqrt(model.rounds))) ** (2 / 3)
    return np.asarray(np.minimum(model.samples, 2 * enough))


def complete_by_descent(model: ContractModel) -> float:
    """Complete information by a general optimiser: free amounts, rewards equal to costs."""
    whole = most_asked(model)

    def best(in_time: BoolArray) -> float:
        top, number = whole[in_time], model.clients[in_time]
        price = model.cost_per_sample[in_time] * number * top
        scale = model.valuation / np.sqrt(model.rounds)

        def cost(share: FloatArray) -> tuple[float, FloatArray]:
            total = float(number @ (share * top))
            slope = -0.5 * scale * total**-1.5 * number * top
            return scale * total**-0.5 + float(price @ share), slope + price

        unit = cost(np.full(top.size, 0.5))[0]
        found = minimize(
            _scaled(cost, unit),
            np.full(top.size, 0.5),
            jac=True,
            method="L-BFGS-B",
            bounds=[(1e-9, 1.0)] * top.size,
            options={"ftol": 1e-15, "gtol": 1e-10, "maxiter": 1000},
        )
        return float(found.fun) * unit + model.valuation / model.rounds

    return by_deadline(model, best)


@pytest.mark.slow
@pytest.mark.parametrize("capped", [False, True])
def test_complete_information_against_a_numerical_optimiser(capped: bool) -> None:
    """500 random instances; the optimiser stops within 1e-5 of the best, and never below it."""
    rng = np.random.default_rng(20 + capped)
    for _ in range(250):
        model = random_model(rng, capped=capped)
        menu = design_menu(model, "complete")
        found = complete_by_descent(model)
        assert menu.expected_cost <= found * (1 + 1e-9)
        assert menu.expected_cost >= found * (1 - 1e-5)


@pytest.mark.slow
def test_the_closed_form_without_limits() -> None:
    """Only one type serves: i* = argmin 3 (gamma^2 theta / 4G)^(1/3) + alpha t (Ding et al.)."""
    rng = np.random.default_rng(5)
    for _ in range(500):
        model = random_model(rng, capped=False)
        theta, gamma = model.cost_per_sample, model.valuation
        by_type = 3 * np.cbrt(gamma**2 * theta / (4 * model.rounds)) + (
            model.delay_price * model.delay
        )
        served = np.flatnonzero(by_type <= by_type.min() * (1 + 1e-12))
        total = (gamma / (2 * theta[served[0]] * np.sqrt(model.rounds))) ** (2 / 3)
        for information in ("complete", "weak"):
            menu = design_menu(model, information)
            assert {item.type for item in menu.items} <= set(served.tolist())
            assert menu.total == pytest.approx(total, rel=1e-9)
            assert menu.expected_cost == pytest.approx(
                by_type.min() + gamma / model.rounds, rel=1e-9
            )
            # no information rent: each client is paid what its training costs
            paid = menu.amounts * theta
            assert menu.rewards == pytest.approx(paid, rel=1e-9)


def weak_by_descent(model: ContractModel) -> float:
    """Free amounts and rewards, under the conditions themselves, by SLSQP.

    Data sizes are known, so a client can only pretend to be one with as many samples.
    """
    whole = most_asked(model)

    def best(in_time: BoolArray) -> float:
        at = np.flatnonzero(in_time)
        theta, top, number = model.cost_per_sample[at], whole[at], model.clients[at]
        unit = float(theta.max() * top.max())
        size = at.size
        rows = []
        for i in range(size):
            for j in [None, *range(size)]:
                row = np.zeros(2 * size)
                row[size + i], row[i] = 1.0, -theta[i] * top[i] / unit
                if j is not None and i != j and model.samples[at[i]] == model.samples[at[j]]:
                    row[size + j] -= 1.0
                    row[j] += theta[i] * top[j] / unit
                    rows.append(row)
                elif j is None:
                    rows.append(row)
        matrix = np.array(rows)
        scale = model.valuation / np.sqrt(model.rounds)

        def cost(x: FloatArray) -> tuple[float, FloatArray]:
            share, reward = x[:size], x[size:] * unit
            total = float(number @ (share * top))
            slope = np.append(-0.5 * scale * total**-1.5 * number * top, number * unit)
            return scale * total**-0.5 + float(number @ reward), slope

        start = np.append(np.full(size, 0.5), np.full(size, 0.5 * (theta * top).max() / unit))
        start_cost = cost(start)[0]
        found = minimize(
            _scaled(cost, start_cost),
            start,
            jac=True,
            method="SLSQP",
            bounds=[(1e-7, 1.0)] * size + [(0.0, None)] * size,
            constraints=LinearConstraint(matrix, 0.0, np.inf),
            options={"ftol": 1e-14, "maxiter": 500},
        )
        return float(found.fun) * start_cost + model.valuation / model.rounds

    return by_deadline(model, best)


@pytest.mark.slow
def test_weakly_incomplete_information_against_a_numerical_optimiser() -> None:
    """Pooling and telescoping rewards are what the conditions alone lead to.

    SLSQP must ask everyone for a little (1e-7 of the maximum), which costs slightly more.
    """
    rng = np.random.default_rng(8)
    for _ in range(120):
        model = random_model(rng, capped=True)
        menu = design_menu(model, "weak")
        found = weak_by_descent(model)
        assert menu.expected_cost <= found * (1 + 1e-8)
        assert menu.expected_cost >= found * (1 - 1e-5)


@pytest.mark.parametrize("information", SETTINGS)
@pytest.mark.parametrize("kind", ["graded", "all-or-nothing"])
def test_every_item_is_rational_and_compatible(information: Information, kind: MenuKind) -> None:
    """Checked here for each item, independently of the menu's own checks."""
    rng = np.random.default_rng(13)
    for _ in range(25):
        model = random_model(rng, capped=True, most_types=5)
        menu = design_menu(model, information, kind)
        theta = model.cost_per_sample
        for n in range(model.size):
            own = menu.rewards[n] - theta[n] * menu.amounts[n]
            assert own >= -1e-9 * menu.rewards[n]
            if information == "complete":
                continue
            for item in menu.items:
                alike = model.samples[item.type] == model.samples[n]
                if alike and model.delay[n] <= (menu.deadline or 0):
                    other = item.reward - theta[n] * item.amount
                    assert own >= other - 1e-9 * (item.reward + menu.rewards[n])
        if kind == "all-or-nothing":
            whole = (menu.amounts == 0) | (menu.amounts == model.samples)
            assert whole.all()


def test_less_information_costs_the_server_more() -> None:
    rng = np.random.default_rng(21)
    for _ in range(100):
        model = random_model(rng, capped=True)
        complete, weak = (design_menu(model, known) for known in ("complete", "weak"))
        assert weak.expected_cost >= complete.expected_cost * (1 - 1e-12)


def test_information_rent() -> None:
    """Two costs and a limit: all claim the higher cost, so all are paid the same."""
    model = ContractModel(
        cost_per_sample=[1.0, 2.0],
        delay=1,
        clients=[3, 5],
        samples=10.0,
        rounds=1,
        valuation=1e6,
        delay_price=0.0,
    )
    assert design_menu(model, "complete").rewards.tolist() == [10.0, 20.0]
    assert design_menu(model, "weak").rewards.tolist() == [20.0, 20.0]
    assert design_menu(model, "weak").payoffs.tolist() == [10.0, 0.0]


def test_an_expensive_type_may_be_left_out_because_of_information_rents() -> None:
    """phi_2 = 2 + (2 - 1) 9/1 = 11: worth it only for a server that knows."""
    model = ContractModel(
        cost_per_sample=[1.0, 2.0],
        delay=1,
        clients=[9, 1],
        samples=10.0,
        rounds=1,
        valuation=2.0 * 5.0 * 100.0**1.5,  # the 100th sample is worth 5
        delay_price=0.0,
    )
    assert design_menu(model, "complete").amounts.tolist() == [10.0, 10.0]
    weak = design_menu(model, "weak", "all-or-nothing")
    assert weak.amounts.tolist() == [10.0, 0.0]


def test_delay_costs() -> None:
    def served(delay_price: float) -> float | None:
        model = ContractModel(
            cost_per_sample=[2.0, 1.0],
            delay=[1.0, 2.0],
            clients=1,
            rounds=1,
            valuation=1000.0,
            delay_price=delay_price,
        )
        return design_menu(model).deadline

    gain = 3 * np.cbrt(1000.0**2 / 4) * (np.cbrt(2.0) - 1.0)
    assert served(0.99 * gain) == 2.0
    assert served(1.01 * gain) == 1.0


def test_a_menu_that_is_not_incentive_compatible_is_rejected() -> None:
    model = ContractModel(
        cost_per_sample=[1.0, 2.0], delay=1, clients=1, rounds=1, valuation=1.0, delay_price=0.0
    )
    with pytest.raises(FedaccordError, match="not individually rational"):
        Menu(model, "complete", "graded", np.array([1.0, 1.0]), np.array([1.0, 1.0]), 0.0)
    with pytest.raises(FedaccordError, match="not incentive compatible"):
        Menu(model, "weak", "graded", np.array([1.0, 1.0]), np.array([1.0, 2.0]), 0.0)
    Menu(model, "complete", "graded", np.array([1.0, 1.0]), np.array([1.0, 2.0]), 0.0)


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("cost_per_sample", [0.0], r"types\[0\].cost_per_sample: must be more than 0, got 0"),
        ("delay", [-1.0], r"types\[0\].delay: must be 0 or more, got -1"),
        ("clients", [1.5], "clients: must add up to a whole number, got 1.5"),
        ("samples", [float("nan")], r"types\[0\].samples: must be more than 0, got nan"),
        ("valuation", float("inf"), "valuation: must be more than 0, got inf"),
        ("valuation", 1e290, r"valuation: must be less than 1e\+290"),
        ("valuation", "x", "valuation: must be a number, got 'x'"),
        (
            "cost_per_sample",
            [1e-308],
            "valuation / cost_per_sample is too large for a floating-point",
        ),
        ("delay_price", -1.0, "delay_price: must be 0 or more, got -1"),
        ("own_samples", 0.0, "own_samples: must be more than 0, got 0"),
        ("rounds", 0, "rounds: must be a whole number, 1 or more, got 0"),
        ("delay", [[1.0]], "must have one number for each type"),
        ("clients", "many", "must have one number for each type"),
    ],
)
def test_invalid_models(field: str, value: object, words: str) -> None:
    right: dict[str, object] = {
        "cost_per_sample": 1.0,
        "delay": 1.0,
        "clients": 1,
        "rounds": 1,
        "valuation": 100.0,
        "delay_price": 0.0,
    }
    with pytest.raises(InvalidInput, match=words):
        ContractModel(**(right | {field: value}))  # type: ignore[arg-type]


def test_all_or_nothing_requires_finite_data_sizes() -> None:
    model = ContractModel(
        cost_per_sample=1.0, delay=1, clients=1, rounds=1, valuation=1.0, delay_price=0.0
    )
    with pytest.raises(InvalidInput, match="requires finite data sizes"):
        design_menu(model, kind="all-or-nothing")
    with pytest.raises(InvalidInput, match="information: must be one of 'complete'"):
        design_menu(model, "some")  # type: ignore[arg-type]


def descended(model: ContractModel, in_time: BoolArray, virtual: FloatArray) -> float:
    """The lowest cost if a sample of each type has this price, by many random descents."""
    top = np.minimum(model.samples, 2.0 * model.law.stop(model.valuation / virtual.min()) + 1e-9)
    top, number, price = top[in_time], model.clients[in_time], virtual[in_time]

    def cost(share: FloatArray) -> float:
        bought = share * top * number
        return float(model.valuation * loss_by_hand(model.law, bought.sum()) + price @ bought)

    unit = cost(np.full(top.size, 0.5))

    def scaled(share: FloatArray) -> float:
        return cost(share) / unit

    found = [
        minimize(
            scaled,
            np.full(top.size, start),
            method="L-BFGS-B",
            bounds=[(1e-12, 1.0)] * top.size,
            options={"ftol": 1e-15, "gtol": 1e-10},
        ).fun
        for start in (0.9, 0.3, 0.02)
    ]
    return float(min(found)) * unit


@pytest.mark.slow
@pytest.mark.parametrize("capped", [False, True])
@pytest.mark.parametrize("name", LAWS)
def test_complete_information_for_any_law(name: str, capped: bool) -> None:
    rng = np.random.default_rng([31, capped])
    for _ in range(4):
        model = random_model(rng, capped=capped, law=LAWS[name])
        menu = design_menu(model, "complete")
        costs = [
            descended(model, model.delay <= t, model.cost_per_sample) + model.delay_price * t
            for t in np.unique(model.delay).tolist()
        ]
        nobody = model.valuation * float(loss_by_hand(model.law, 0.0))
        found = min(*costs, nobody)
        assert menu.expected_cost <= found * (1 + 1e-9)
        assert menu.expected_cost >= found * (1 - 1e-4)
        weak = design_menu(model, "weak")
        assert weak.expected_cost >= menu.expected_cost * (1 - 1e-12)


def test_a_server_that_can_do_without_data_buys_nothing_that_is_not_worth_the_delay() -> None:
    law = Law.power(100.0, 1.0, 100.0)
    for information in SETTINGS:
        model = ContractModel(
            cost_per_sample=[1.0, 2.0],
            delay=[1.0, 1.0],
            clients=[3.0, 2.0],
            samples=50.0,
            rounds=50,
            valuation=120.0,
            delay_price=1e6,
            law=law,
        )
        menu = design_menu(model, information)
        assert menu.total == 0.0
        assert menu.deadline is None
        own = model.own_samples if information == "strong" else 0.0
        assert menu.expected_cost == pytest.approx(120.0 * 100.0 / (100.0 + own))


def test_a_law_for_each_client_is_not_one_of_the_server() -> None:
    with pytest.raises(InvalidInput, match="law: must be one law"):
        ContractModel(
            cost_per_sample=1.0,
            delay=[1.0, 1.0],
            clients=1.0,
            rounds=5,
            valuation=1.0,
            delay_price=0.0,
            law=Law.personal([LAWS["power"], LAWS["shifted"]]),
        )
    with pytest.raises(InvalidInput, match="too large for a floating-point number"):
        ContractModel(
            cost_per_sample=1.0,
            delay=[1.0, 1.0],
            clients=1.0,
            rounds=5,
            valuation=1.0,
            delay_price=0.0,
            law=Law.of_weights([1e290], [0.0], [1.0]),
        )

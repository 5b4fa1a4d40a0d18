"""Server optimisers, against the published rules written out once more, and against Flower's."""

from math import copysign, sqrt
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fedaccord as fa
from fedaccord.training.optimisers import (
    OPTIMISERS,
    FedAdagrad,
    FedAdam,
    FedAvg,
    FedYogi,
    ServerOptimiser,
    find_optimiser,
)

ADAPTIVE = [FedAdagrad, FedAdam, FedYogi]
FAST: Any = {"rate": "fast"}
NUMBERS = st.floats(-5, 5, allow_subnormal=False)


def published(kind: str, w: float, deltas: list[float], **p: float) -> list[float]:
    """Algorithm 2 of Reddi et al. for one number: w after each round, given its deltas."""
    m, v, found = 0.0, p["tau"] ** 2, []
    for delta in deltas:
        m = p["beta1"] * m + (1 - p["beta1"]) * delta
        if kind == "fedadagrad":
            v = v + delta * delta
        elif kind == "fedyogi":
            sign = 0.0 if v == delta * delta else copysign(1.0, v - delta * delta)
            v = v - (1 - p["beta2"]) * delta * delta * sign
        else:
            v = p["beta2"] * v + (1 - p["beta2"]) * delta * delta
        w = w + p["rate"] * m / (sqrt(v) + p["tau"])
        found.append(w)
    return found


@settings(deadline=None)
@given(
    st.sampled_from(ADAPTIVE),
    NUMBERS,
    st.lists(NUMBERS, min_size=1, max_size=6),
    st.fixed_dictionaries(
        {
            "rate": st.floats(1e-3, 10),
            "beta1": st.floats(0, 0.99),
            "beta2": st.floats(0, 0.9999),
            "tau": st.floats(1e-8, 1),
        }
    ),
)
def test_the_published_rules(kind: Any, w: float, deltas: list[float], numbers: Any) -> None:
    taken = {n: v for n, v in numbers.items() if n != "beta2" or kind is not FedAdagrad}
    optimiser = kind(**taken)
    model = {"w": np.array([w])}
    moments, found = optimiser.start(model), []
    averages = []
    for delta in deltas:
        average = {"w": model["w"] + delta}
        averages.append(float((average["w"] - model["w"])[0]))  # delta, but for rounding
        model, moments = optimiser.step(model, average, moments)
        found.append(float(model["w"][0]))
    expected = published(optimiser.name, w, averages, **numbers)
    assert found == pytest.approx(expected, rel=1e-9, abs=1e-9)


def test_fedavg_takes_the_average() -> None:
    model, average = {"w": np.zeros(3, np.float32)}, {"w": np.array([1.0, 2.0, 0.1])}
    after, moments = FedAvg().step(model, average, FedAvg().start(model))
    assert after["w"].dtype == np.float32
    assert np.array_equal(after["w"], average["w"].astype(np.float32))
    assert moments == {}


@pytest.mark.parametrize("kind", ADAPTIVE)
def test_a_leading_axis_counts_models(kind: Any) -> None:
    """Ten models at once move as each would alone."""
    rng = np.random.default_rng(0)
    together = {"w": rng.normal(size=(10, 2, 3)), "b": rng.normal(size=(10, 2))}
    alone = [{name: value[n] for name, value in together.items()} for n in range(10)]
    moments, own = kind().start(together), [kind().start(one) for one in alone]
    for _ in range(3):
        average = {name: value + rng.normal(size=value.shape) for name, value in together.items()}
        for n in range(10):
            part = {name: value[n] for name, value in average.items()}
            alone[n], own[n] = kind().step(alone[n], part, own[n])
        together, moments = kind().step(together, average, moments)
    for name, value in together.items():
        assert np.array_equal(value, np.stack([one[name] for one in alone]))


@pytest.mark.parametrize("kind", ADAPTIVE)
def test_numbers_that_nobody_changed_stay(kind: Any) -> None:
    model = {"w": np.array([0.1, -3.0], np.float32)}
    after, _ = kind(tau=1e-8).step(model, {"w": model["w"].copy()}, kind().start(model))
    assert np.array_equal(after["w"], model["w"])
    assert after["w"].dtype == np.float32


def test_nothing_is_modified() -> None:
    model, average = {"w": np.ones(2)}, {"w": np.zeros(2)}
    moments = FedAdam().start(model)
    FedAdam().step(model, average, moments)
    assert model["w"].tolist() == [1.0, 1.0]
    assert average["w"].tolist() == [0.0, 0.0]
    assert moments["first"]["w"].tolist() == [0.0, 0.0]


def test_in_words_with_every_digit() -> None:
    assert str(FedAvg()) == "FedAvg"
    assert str(FedYogi(0.1 + 0.2)) == (
        "FedYogi, rate 0.30000000000000004, beta1 0.9, beta2 0.99, tau 0.001"
    )
    assert str(FedAdagrad(1, tau=1e-8)) == "FedAdagrad, rate 1, beta1 0.9, tau 1e-08"


@pytest.mark.parametrize("name", OPTIMISERS)
def test_found_by_name(name: str) -> None:
    found: ServerOptimiser = find_optimiser(name)
    assert found.name == name
    assert found == OPTIMISERS[name]()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: FedAdam(0.0), "rate: must be more than 0, got 0.0"),
        (lambda: FedAdam(float("nan")), "rate: must be more than 0 and finite, got nan"),
        (lambda: FedYogi(tau=0.0), "tau: must be more than 0, got 0.0"),
        (lambda: FedYogi(beta1=1.0), "beta1: must be from 0 to less than 1, got 1.0"),
        (lambda: FedAdam(beta2=-0.1), "beta2: must be from 0 to less than 1, got -0.1"),
        (lambda: find_optimiser("fedadagrad", **FAST), "rate: must be more than 0, got 'fast'"),
        (lambda: find_optimiser("fedavg", rate=1.0), "rate: fedavg has no such number"),
        (
            lambda: find_optimiser("fedadm"),
            "there is no server optimiser called 'fedadm': did you mean 'fedadam'?",
        ),
    ],
)
def test_rejected(make: Any, message: str) -> None:
    with pytest.raises(fa.InvalidInput) as raised:
        make()
    assert str(raised.value) == message


def flowers(kind: str, model: Any, averages: list[Any], **numbers: float) -> list[Any]:
    """The models of Flower's own strategy, round by round, given the clients' averages.

    Its v starts at 0; here it is given ours, tau^2, which the paper asks for.
    """
    from flwr.app import Array, ArrayRecord, MetricRecord, RecordDict
    from flwr.serverapp import strategy

    own: Any = getattr(strategy, kind)(**numbers)
    own.v_t = {name: np.full(value.shape, numbers["tau"] ** 2) for name, value in model.items()}
    found = []
    for turn, average in enumerate(averages, 1):
        own.current_arrays = model
        arrays = ArrayRecord({name: Array(value) for name, value in average.items()})
        content = RecordDict({"arrays": arrays, "metrics": MetricRecord({"num-examples": 1})})
        reply: Any = SimpleNamespace(content=content, has_error=lambda: False)
        after, _ = own.aggregate_train(turn, [reply])
        model = {name: array.numpy() for name, array in after.items()}
        found.append(model)
    return found


@pytest.mark.parametrize("kind", ["FedAdagrad", "FedYogi", "FedAdam"])
def test_against_flowers_strategies(kind: str) -> None:
    """Flower 1.41's rules are the paper's, with beta1 = 0 for FedAdagrad. But FedAdam has a rate
    that corrects the moments' bias, as if it had begun a round earlier.
    """
    pytest.importorskip("flwr")
    rng = np.random.default_rng(1)
    start = {"w": rng.normal(size=(3, 2)), "b": rng.normal(size=2)}
    averages = [{name: rng.normal(size=v.shape) for name, v in start.items()} for _ in range(6)]
    theirs = {"eta": 0.05, "tau": 1e-2}
    if kind != "FedAdagrad":
        theirs |= {"beta_1": 0.8, "beta_2": 0.95}
    expected = flowers(kind, start, averages, **theirs)
    ours = {"beta1": theirs.get("beta_1", 0.0), "tau": 1e-2}
    if kind != "FedAdagrad":
        ours["beta2"] = 0.95
    model, moments = start, find_optimiser(kind.lower(), **ours).start(start)
    for turn, (average, there) in enumerate(zip(averages, expected, strict=True), 1):
        rate = 0.05
        if kind == "FedAdam":
            rate *= sqrt(1 - 0.95 ** (turn + 1)) / (1 - 0.8 ** (turn + 1))
        optimiser = find_optimiser(kind.lower(), rate=rate, **ours)
        model, moments = optimiser.step(model, average, moments)
        for name, value in model.items():
            np.testing.assert_allclose(value, there[name], rtol=1e-12, atol=1e-12)

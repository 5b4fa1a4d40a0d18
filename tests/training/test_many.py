"""Many slots at once are the same as one after another."""

from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import fedaccord as fa
from fedaccord.data.dataset import Dataset, load_dataset
from fedaccord.data.partition import RandomPartition
from fedaccord.training.engine import PlainEngine, TrainingFailed, TrainingPlan
from fedaccord.training.optimisers import FEDAVG, FedAdam, ServerOptimiser
from fedaccord.training.rules import GradientStep, LocalEpochs, LocalRule
from fedaccord.training.task import Model, Parameters, Task, cross_entropy, find_task
from fedaccord.training.vectorised import many
from fedaccord.training.vectorised.many import errors_of_many, list_rows, train_many
from tests.training.engine_contract import (
    DROPOUT,
    LOCALS,
    MORE_LOCALS,
    RELATIVE_DOUBLE,
    SERVERS,
    assert_close,
    in_double,
)
from tests.training.patients import survival_data

SIZES = [17, 3, 40]
NORMALISED = Task(
    "normalised",
    lambda _: nn.Sequential(
        nn.Flatten(), nn.Linear(64, 12), nn.LayerNorm(12), nn.Linear(12, 10)
    ).double(),
)


def frozen(_: Dataset) -> nn.Module:
    """Its first layer is the same for every seed, as one that was trained before would be."""
    layers = nn.Sequential(nn.Flatten(), nn.Linear(64, 9), nn.Tanh(), nn.Linear(9, 10)).double()
    layers[1].requires_grad_(False)
    nn.init.constant_(layers.get_parameter("1.weight"), 0.01)
    nn.init.constant_(layers.get_parameter("1.bias"), 0.1)
    return layers


def groups(
    local: LocalRule,
    task: str | Task = "softmax",
    server: ServerOptimiser = FEDAVG,
    seeds: int = 2,
) -> tuple[list[TrainingPlan], list[Parameters]]:
    """Every group of three clients, with every seed."""
    digits = load_dataset("digits")
    model = Model(find_task(task) if isinstance(task, str) else task, digits)
    plans = []
    for seed in range(seeds):
        drawn = RandomPartition(digits, SIZES, seed).draw(1)
        for group in (g for size in (1, 2, 3) for g in combinations(range(3), size)):
            shares = [share if n in group else share[:0] for n, share in enumerate(drawn)]
            plans.append(TrainingPlan(model, shares, 2, local, seed, server=server))
    return plans, [model.start(plan.seed) for plan in plans]


def assert_equal_one_by_one(
    plans: list[TrainingPlan], starts: list[Parameters], after: Parameters
) -> None:
    for k, (plan, start) in enumerate(zip(plans, starts, strict=True)):
        *_, alone = PlainEngine().rounds(plan, start)
        assert_close({name: value[k] for name, value in after.items()}, alone, RELATIVE_DOUBLE)


@pytest.mark.parametrize("task", ["softmax", "mlp"])
@pytest.mark.parametrize("local", LOCALS + MORE_LOCALS, ids=str)
def test_every_rule_is_that_of_the_plain_engine(local: LocalRule, task: str) -> None:
    plans, starts = groups(local, in_double(task))
    assert_equal_one_by_one(plans, starts, train_many(plans, starts))


@pytest.mark.parametrize("server", SERVERS[1:], ids=lambda server: server.name)
@pytest.mark.parametrize("local", [LOCALS[0], MORE_LOCALS[0], MORE_LOCALS[-1]], ids=str)
def test_every_optimiser_is_that_of_the_plain_engine(
    local: LocalRule, server: ServerOptimiser
) -> None:
    plans, starts = groups(local, in_double("softmax"), server)
    assert_equal_one_by_one(plans, starts, train_many(plans, starts))


@pytest.mark.parametrize(
    "task", [NORMALISED, in_double("cnn"), Task("frozen", frozen)], ids=lambda task: task.name
)
@pytest.mark.parametrize("local", [LOCALS[0], MORE_LOCALS[1]], ids=str)
def test_any_other_model(local: LocalRule, task: Task) -> None:
    plans, starts = groups(local, task, FedAdam(0.02), seeds=2)
    plans, starts = plans[4:10], starts[4:10]
    after = train_many(plans, starts)
    assert list(after) == list(starts[0])
    assert_equal_one_by_one(plans, starts, after)


def survivors(local: LocalRule) -> tuple[list[TrainingPlan], list[Parameters]]:
    """Groups of clients with survival times, for a loss that depends on the rest of a batch."""
    data = survival_data(60)
    task = replace(find_task("cox"), build=lambda d: find_task("cox").build(d).double())
    model = Model(task, data)
    parts = np.split(np.arange(60), [17, 20])
    plans = [
        TrainingPlan(
            model, [part if n in group else part[:0] for n, part in enumerate(parts)], 2, local
        )
        for group in ((0,), (0, 1), (1, 2), (0, 1, 2))
    ]
    return plans, [model.start(plan.seed) for plan in plans]


@pytest.mark.parametrize("local", [GradientStep(0.1), LOCALS[2], MORE_LOCALS[-1]], ids=str)
def test_survival_times(local: LocalRule) -> None:
    plans, starts = survivors(local)
    after = train_many(plans, starts)
    assert_equal_one_by_one(plans, starts, after)
    model = plans[0].model
    losses, errors = errors_of_many(
        model, after, model.dataset.test_inputs, model.dataset.test_labels
    )
    for k in range(len(plans)):
        loss, error = model.evaluate_each({name: value[k] for name, value in after.items()})
        np.testing.assert_allclose(losses[k], loss, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(errors[k], error, rtol=1e-9, atol=1e-12)


def test_other_losses_of_whole_batches_are_trained_slot_by_slot() -> None:
    """Batches of classes cannot be filled up without changing such a loss."""

    def loss(outputs: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        return cross_entropy(outputs, labels) * (1.0 + outputs.mean() ** 2)

    task = Task("whole", in_double("softmax").build, loss, separable=False)
    plans, starts = groups(LocalEpochs(0.05, 16), task, seeds=1)
    assert_equal_one_by_one(plans, starts, train_many(plans, starts))


@pytest.mark.parametrize("task", ["dropout", "frozen differently"])
def test_models_that_are_trained_slot_by_slot(task: str) -> None:
    """Random numbers are each client's own; a frozen layer that is drawn differs by seed."""

    def build(_: Dataset) -> nn.Module:
        layers = nn.Sequential(nn.Flatten(), nn.Linear(64, 9), nn.Tanh(), nn.Linear(9, 10))
        layers[1].requires_grad_(False)
        return layers

    own = DROPOUT if task == "dropout" else Task(task, build)
    plans, starts = groups(LocalEpochs(0.05, 16), own)
    after = train_many(plans[5:9], starts[5:9])
    for k, (plan, start) in enumerate(zip(plans[5:9], starts[5:9], strict=True)):
        *_, alone = PlainEngine().rounds(plan, start)
        assert_close({name: value[k] for name, value in after.items()}, alone)


@pytest.mark.parametrize("local", [LOCALS[0], LOCALS[2], MORE_LOCALS[-1]], ids=str)
@pytest.mark.parametrize("most", [1, 2, 5])
def test_any_chunks_give_the_same(
    monkeypatch: pytest.MonkeyPatch, most: int, local: LocalRule
) -> None:
    """Also if a single slot has more clients than a chunk has rows, and in any order of seeds."""
    plans, starts = groups(local, in_double("mlp"), FedAdam(0.02))
    mixed = np.random.default_rng(0).permutation(len(plans)).tolist()
    plans, starts = [plans[n] for n in mixed], [starts[n] for n in mixed]
    whole = train_many(plans, starts)
    monkeypatch.setattr(many, "_ROWS", most)
    monkeypatch.setattr(many, "_AT_ONCE", 7)
    assert_close(train_many(plans, starts), whole, RELATIVE_DOUBLE)


def test_memory_does_not_grow_with_the_slots(monkeypatch: pytest.MonkeyPatch) -> None:
    plans, _ = groups(LocalEpochs(0.05, 16), "mlp")
    trained = plans[0].model.freeze(plans[0].model.start(0))[1]
    numbers = 64 * 64 + 64 + 640 + 10 + 3 * 16 + 16 * 64  # parameters, samples and inputs of a step
    monkeypatch.setattr(many, "_NUMBERS", 5 * numbers)
    assert many._most_rows(plans, trained) == 5
    chunks = many._chunks(plans, 5)
    rows = [sum(len(plans[n].taking_part) for n in chunk) for chunk in chunks]
    assert max(rows) <= 5
    assert sorted(n for chunk in chunks for n in chunk) == list(range(len(plans)))


def test_mini_batches_are_drawn_once_for_all_plans() -> None:
    local = LocalEpochs(0.05, 16)
    plans, _ = groups(local)
    rows = list_rows(plans, local)
    assert len(rows.of) == 2 * 12
    assert len(rows.distinct) == 2 * 3
    for (plan, n), source in zip(rows.of, rows.sources, strict=True):
        drawn, position = rows.distinct[source]
        assert position == n
        here, there = plan.batches(n, 1), drawn.batches(n, 1)
        assert all(np.array_equal(one, two) for one, two in zip(here, there, strict=True))
    steps = [local.steps_for(len(plan.shares[n])) for plan, n in rows.of]
    assert steps == sorted(steps, reverse=True)


def test_clients_with_other_samples_have_their_own_batches() -> None:
    """Learning curves train the same client on more and more of its samples."""
    local = LocalEpochs(0.05, 4)
    (plan, *_), starts = groups(local, in_double("softmax"))
    plans = [replace(plan, shares=[plan.shares[0][:size]]) for size in (3, 9, 17)]
    plans.append(replace(plans[0], slot=2))
    assert len(list_rows(plans, local).distinct) == 4
    assert_equal_one_by_one(plans, starts[:1] * 4, train_many(plans, starts[:1] * 4))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rounds": 3}, "rounds: must be the same in all plans that are trained at once"),
        ({"local": GradientStep(0.1)}, "local: must be the same in all plans"),
        ({"server": FedAdam()}, "server: must be the same in all plans"),
        ({"model": None}, "model: must be the same in all plans"),
        ({"first": 2}, "first: must be the same in all plans"),
    ],
)
def test_slots_that_cannot_be_trained_together(change: dict[str, Any], message: str) -> None:
    plans, starts = groups(LocalEpochs(0.05, 16), seeds=1)
    change = {
        n: Model(DROPOUT, load_dataset("digits")) if n == "model" else v for n, v in change.items()
    }
    with pytest.raises(fa.InvalidInput, match=message):
        train_many([plans[0], replace(plans[1], **change)], starts[:2])


def test_as_many_starts_as_plans() -> None:
    plans, starts = groups(LocalEpochs(0.05, 16), seeds=1)
    with pytest.raises(fa.InvalidInput, match="7 plans, but 6 models to start from"):
        train_many(plans, starts[1:])


@pytest.mark.parametrize("local", [GradientStep(1e30), LocalEpochs(1e30, 16)], ids=str)
def test_a_failure_names_the_client(local: LocalRule) -> None:
    plans, starts = groups(local, "mlp")
    named = [replace(plan, names=("one", "two", "three"), rounds=9) for plan in plans]
    with pytest.raises(TrainingFailed, match=r"the model of (one|two|three) became NaN"):
        train_many(named, starts)


@pytest.mark.parametrize("task", ["softmax", "mlp", "cnn"])
def test_the_errors_of_many_models(monkeypatch: pytest.MonkeyPatch, task: str) -> None:
    monkeypatch.setattr(many, "_OUTPUTS", 800)
    monkeypatch.setattr(many, "_AT_ONCE", 100)
    plans, starts = groups(LocalEpochs(0.05, 16), task)
    model, after = plans[0].model, train_many(plans[:5], starts[:5])
    data = model.dataset
    losses, errors = errors_of_many(model, after, data.test_inputs, data.test_labels)
    assert losses.dtype == errors.dtype == np.float64
    for k in range(5):
        one = {name: value[k] for name, value in after.items()}
        loss, error = model.evaluate_each(one)
        np.testing.assert_allclose(losses[k], loss, rtol=1e-4, atol=1e-5)
        assert np.array_equal(errors[k], error)


def test_one_and_two_threads() -> None:
    plans, starts = groups(MORE_LOCALS[0], "mlp")
    threads, found = torch.get_num_threads(), []
    try:
        for number in (1, 2):
            torch.set_num_threads(number)
            found.append(train_many(plans, starts))
    finally:
        torch.set_num_threads(threads)
    assert all(torch.equal(found[0][name], found[1][name]) for name in found[0])

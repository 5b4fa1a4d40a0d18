"""The engines, each tested with the same contract."""

from itertools import product
from math import ceil
from typing import Any

import numpy as np
import pytest
import torch

import fedaccord as fa
from fedaccord.data.dataset import load_dataset
from fedaccord.training.engine import PlainEngine, TrainingPlan
from fedaccord.training.rules import GradientStep, LocalEpochs, LocalSteps
from fedaccord.training.task import Model, Task, find_task
from fedaccord.training.vectorised.engine import VectorisedEngine
from tests.training.engine_contract import DROPOUT, EngineContract, assert_close, final, plan


class TestPlain(EngineContract):
    engine = PlainEngine()


class TestVectorised(EngineContract):
    engine = VectorisedEngine()


def test_the_union_of_a_hundred_clients_is_one_step_of_each() -> None:
    """100 clients with 300 of 1,438 digits each: every digit is chosen some 20 times."""
    given = plan([300] * 100, GradientStep(0.3))
    assert given.total == 30_000
    assert_close(final(VectorisedEngine(), given), final(PlainEngine(), given))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rounds": 0}, "rounds: must be 1 or more"),
        ({"shares": [np.array([], int)]}, "nobody contributes a sample"),
    ],
)
def test_rejected_plans(change: dict[str, object], message: str) -> None:
    model = Model(find_task("softmax"), load_dataset("digits"))
    fields = {"shares": [np.arange(5)], "rounds": 1, "local": GradientStep()} | change
    with pytest.raises(fa.InvalidInput, match=message):
        TrainingPlan(model, **fields)  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", [GradientStep, LocalEpochs])
@pytest.mark.parametrize("rate", [0.0, -1.0, float("nan"), float("inf"), 1e300, 1e-300])
def test_rejected_rates(kind: type[GradientStep | LocalEpochs], rate: float) -> None:
    with pytest.raises(fa.InvalidInput, match="rate: must be more than 0 and fit 32 bits"):
        kind(rate)


@pytest.mark.parametrize(
    ("kind", "fields", "message"),
    [
        (LocalEpochs, {"batch": 0}, "batch and epochs: must be 1 or more"),
        (LocalEpochs, {"epochs": 0}, "batch and epochs: must be 1 or more"),
        (LocalSteps, {"batch": 0}, "batch and steps: must be 1 or more"),
        (LocalSteps, {"steps": 0}, "batch and steps: must be 1 or more"),
        (LocalSteps, {"proximal": -1.0}, "proximal: must be 0 or more, got -1.0"),
        (
            LocalEpochs,
            {"optimiser": "adamw"},
            "optimiser: must be one of 'sgd', 'adam', got 'adamw'; did you mean 'adam'?",
        ),
    ],
)
def test_rejected_rules(kind: Any, fields: dict[str, Any], message: str) -> None:
    with pytest.raises(fa.InvalidInput) as raised:
        kind(0.1, **fields)
    assert str(raised.value) == message


def test_rules_in_words() -> None:
    """Older checkpoints have the words of the usual rules."""
    assert str(LocalEpochs(0.05, 7, 2)) == "mini-batches of 7, epochs 2, rate 0.05"
    assert str(LocalSteps(0.05, 7, 2, proximal=0.01, optimiser="adam")) == (
        "mini-batches of 7, steps 2, rate 0.05, proximal 0.01, Adam"
    )


@pytest.mark.parametrize("samples", [1, 5, 8, 9, 40])
def test_local_steps_go_on_through_reshuffled_epochs(samples: int) -> None:
    model, local = Model(find_task("softmax"), load_dataset("digits")), LocalSteps(0.1, 8, 7)
    given = TrainingPlan(model, [np.arange(samples)], 1, local)
    batches, per_epoch = given.batches(0, turn=1), ceil(samples / 8)
    assert len(batches) == 7
    for epoch in range(7 // per_epoch):
        own = np.concatenate(batches[epoch * per_epoch : (epoch + 1) * per_epoch])
        assert sorted(own) == list(range(samples))
    assert len({tuple(batch) for batch in batches}) > 1 or samples == 1


def test_adam_is_pytorchs() -> None:
    """One client, two rounds: torch.optim.Adam on its batches, begun afresh in each round."""
    given = plan([40], LocalSteps(0.02, 8, 9, optimiser="adam", proximal=0.3), "mlp", rounds=2)
    start = given.model.start(3)
    module = find_task("mlp").build(given.model.dataset)
    module.load_state_dict(start)
    for turn in (1, 2):
        adam = torch.optim.Adam(module.parameters(), lr=0.02)
        begun = [value.detach().clone() for value in module.parameters()]
        for batch in given.batches(0, turn):
            adam.zero_grad()
            loss = torch.nn.functional.cross_entropy(
                module(given.inputs[batch]), given.labels[batch]
            )
            apart = sum(
                ((v - w) ** 2).sum() for v, w in zip(module.parameters(), begun, strict=True)
            )
            torch.autograd.backward(loss + 0.3 / 2 * apart)
            adam.step()
    expected = {name: value.detach() for name, value in module.named_parameters()}
    for engine in (PlainEngine(), VectorisedEngine()):
        assert_close(final(engine, given), expected)


def test_a_client_held_to_the_global_model_moves_less() -> None:
    moved = []
    for proximal in (0.0, 0.1, 10.0):
        given = plan([40, 40], LocalSteps(0.05, 8, 20, proximal=proximal), rounds=1)
        after, start = final(VectorisedEngine(), given), given.model.start(3)
        moved.append(float(torch.cat([(after[n] - start[n]).flatten() for n in start]).norm()))
    assert moved[0] > moved[1] > 1.5 * moved[2]


PLACES = list(product((0, 1), (1, 2), (1, 2, 3), (0, 1, 2)))
"""Seeds, slots, rounds and clients."""


def test_batch_order_differs_by_seed_slot_round_client_and_epoch() -> None:
    everyone = [np.arange(40)] * 3
    model, local = Model(find_task("softmax"), load_dataset("digits")), LocalEpochs(epochs=2)
    found = {
        tuple(order.tolist())
        for seed, slot, turn, client in PLACES
        for order in TrainingPlan(model, everyone, 3, local, seed, slot).orders(client, turn)
    }
    assert len(found) == 2 * len(PLACES)
    # nor are these used to draw data, neither for all clients nor for one
    for seeds in [place[:length] for place in PLACES for length in (1, 2, 3)]:
        assert tuple(np.random.default_rng(seeds).permutation(40).tolist()) not in found


def test_dropout_differs_by_seed_slot_round_and_client() -> None:
    model = Model(DROPOUT, load_dataset("digits"))
    torch.manual_seed(7)
    before = torch.rand(1)
    torch.manual_seed(7)
    found = []
    for seed, slot, turn, client in PLACES * 2:
        given = TrainingPlan(model, [np.arange(4)] * 3, 3, LocalEpochs(), seed, slot)
        with given.seeded(client, turn):
            found.append(tuple(torch.rand(4).tolist()))
    assert len(set(found)) == len(PLACES)  # and reproducible
    assert torch.equal(torch.rand(1), before)


@pytest.mark.parametrize("engine", [PlainEngine(), VectorisedEngine()], ids=lambda e: e.name)
@pytest.mark.parametrize("local", [GradientStep(), LocalEpochs(batch=16)], ids=str)
def test_frozen_parameters_stay_the_same_to_the_last_bit(
    engine: PlainEngine | VectorisedEngine, local: GradientStep | LocalEpochs
) -> None:
    """Also when averaged with weights that add up to 1 except for rounding."""
    layers = torch.nn.Flatten(), torch.nn.Linear(64, 9), torch.nn.ReLU(), torch.nn.Linear(9, 10)
    layers[1].requires_grad_(False)
    given = plan([33, 7, 21], local, Task("own", lambda _: torch.nn.Sequential(*layers)))
    start, after = given.model.start(3), final(engine, given)
    assert list(after) == list(start)
    moved = [name for name in start if not torch.equal(start[name], after[name])]
    assert moved == ["3.weight", "3.bias"]

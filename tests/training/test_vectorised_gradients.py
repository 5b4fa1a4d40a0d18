"""Hand-written gradient steps against automatic differentiation in double precision."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.func import functional_call

from fedaccord.data.dataset import Dataset, load_dataset
from fedaccord.training.engine import LocalEpochs, PlainEngine, TrainingPlan
from fedaccord.training.task import Model, Parameters, Task, cross_entropy, find_task
from fedaccord.training.vectorised.engine import VectorisedEngine
from fedaccord.training.vectorised.gradients import find_chain
from tests.training.engine_contract import assert_close, final

FEATURES, CLASSES = 5, 3
ACTIVATIONS: list[Callable[[], nn.Module] | None] = [nn.ReLU, nn.Tanh, nn.Sigmoid, None]


def few(shape: tuple[int, ...] = (FEATURES,)) -> Dataset:
    inputs, labels = np.ones((4, *shape), dtype=np.float32), np.array([0, 1, 2, 0])
    return Dataset("few", inputs, labels, inputs, labels, CLASSES)


def model(*parts: nn.Module, loss: Any = cross_entropy, shape: Any = (FEATURES,)) -> Model:
    return Model(Task("parts", lambda _: nn.Sequential(*parts), loss), few(shape))


@st.composite
def chains(draw: st.DrawFn) -> list[nn.Module]:
    """Up to three layers, each with or without a bias and an activation."""
    widths = [FEATURES, *draw(st.lists(st.integers(1, 6), max_size=2)), CLASSES]
    parts: list[nn.Module] = []
    for n in range(len(widths) - 1):
        parts.append(nn.Linear(widths[n], widths[n + 1], bias=draw(st.booleans())))
        activation = draw(st.sampled_from(ACTIVATIONS))
        parts += [activation()] if activation else []
    return parts


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(chains(), st.integers(1, 4), st.integers(1, 6), st.integers(0, 2**31))
def test_a_step_agrees_with_automatic_differentiation(
    parts: list[nn.Module], clients: int, width: int, seed: int
) -> None:
    """In 64 bits the two differ by rounding only, far below 1e-10."""
    torch.manual_seed(seed)
    built = model(*parts)
    each = {
        name: torch.randn(clients, *value.shape, dtype=torch.float64)
        for name, value in built.module.named_parameters()
    }
    inputs = torch.randn(clients, width, FEATURES, dtype=torch.float64)
    labels = torch.randint(0, CLASSES, (clients, width))
    weights = torch.rand(clients, width, dtype=torch.float64)
    weights[:, -1] = 0.0  # padding
    expected = [
        by_autograd(built.module, {name: v[n] for name, v in each.items()}, *batch, rate=0.3)
        for n, batch in enumerate(zip(inputs, labels, weights, strict=True))
    ]
    chain = find_chain(built)
    assert chain is not None
    first = {name: value[0].clone() for name, value in each.items()}
    gradient = chain.gradient(first, inputs[0], labels[0], weights[0])
    for name, value in first.items():
        stepped = value - 0.3 * gradient[name]
        torch.testing.assert_close(stepped, expected[0][name], rtol=1e-10, atol=1e-10)
    chain.step(each, inputs, labels, weights, 0.3)
    for name, value in each.items():
        there = torch.stack([one[name] for one in expected])
        torch.testing.assert_close(value, there, rtol=1e-10, atol=1e-10)


def by_autograd(
    module: nn.Module, values: Parameters, inputs: Any, labels: Any, weights: Any, *, rate: float
) -> Parameters:
    live = {name: value.clone().requires_grad_() for name, value in values.items()}
    losses = cross_entropy(functional_call(module, live, (inputs,)), labels)
    gradients = torch.autograd.grad((weights * losses).sum(), list(live.values()))
    return {
        name: (value - rate * gradient).detach()
        for (name, value), gradient in zip(live.items(), gradients, strict=True)
    }


def test_the_built_in_chains() -> None:
    digits = load_dataset("digits")
    found = {name: find_chain(Model(find_task(name), digits)) for name in ("softmax", "mlp", "cnn")}
    assert [name for name, chain in found.items() if chain] == ["softmax", "mlp"]


class Twice(nn.Sequential):
    """Looks like a chain but is not."""

    def forward(self, inputs: Any) -> Any:
        outputs: Any = super().forward(inputs)  # type: ignore[no-untyped-call]
        return 2.0 * outputs


def tied() -> list[nn.Module]:
    one, other = nn.Linear(FEATURES, FEATURES), nn.Linear(FEATURES, FEATURES)
    other.weight = one.weight
    return [one, nn.ReLU(), other]


def hooked() -> list[nn.Module]:
    layer = nn.Linear(FEATURES, CLASSES)
    layer.register_forward_hook(lambda module, inputs, outputs: 2.0 * outputs)
    return [layer]


def same_layer_twice() -> list[nn.Module]:
    layer = nn.Linear(FEATURES, FEATURES)
    return [layer, nn.ReLU(), layer]


def frozen() -> list[nn.Module]:
    first, last = nn.Linear(FEATURES, FEATURES), nn.Linear(FEATURES, CLASSES)
    return [first.requires_grad_(False), nn.ReLU(), last]


@pytest.mark.parametrize(
    "parts",
    [
        [nn.ReLU(), nn.Linear(FEATURES, CLASSES)],
        [nn.Linear(FEATURES, CLASSES), nn.ReLU(), nn.Tanh()],
        [nn.Linear(FEATURES, CLASSES), nn.LayerNorm(CLASSES)],
        [nn.Sequential(nn.Linear(FEATURES, CLASSES))],
        tied(),
        hooked(),
        same_layer_twice(),
        frozen(),
    ],
)
def test_models_that_are_not_chains_are_left_to_pytorch(parts: list[nn.Module]) -> None:
    assert find_chain(model(*parts)) is None


def test_other_losses_modules_and_shapes_are_left_to_pytorch() -> None:
    layer = nn.Linear(FEATURES, CLASSES)
    assert find_chain(model(layer)) is not None
    assert find_chain(model(layer, loss=lambda outputs, _: outputs.sum(dim=1))) is None
    assert find_chain(Model(Task("twice", lambda _: Twice(layer)), few())) is None
    # A linear layer on images works only on their last axis, unless they are flattened first.
    narrow = nn.Linear(2 * CLASSES, CLASSES)
    assert find_chain(model(layer, nn.Flatten(), narrow, shape=(2, FEATURES))) is None
    wide = nn.Linear(2 * FEATURES, CLASSES)
    assert find_chain(model(nn.Flatten(), wide, shape=(2, FEATURES))) is not None


@pytest.mark.parametrize(
    "parts",
    [
        [nn.Flatten(), nn.Linear(64, 20), nn.Tanh(), nn.Linear(20, 12, bias=False), nn.ReLU()],
        [nn.Flatten(), nn.Linear(64, 12), nn.LayerNorm(12)],  # through vmap
    ],
)
def test_custom_models_agree_with_the_plain_engine(parts: list[nn.Module]) -> None:
    digits = load_dataset("digits")
    task = Task("own", lambda _: nn.Sequential(*parts, nn.Linear(12, 10)))
    shares = [np.arange(50), np.arange(50, 53), np.arange(60, 100)]
    plan = TrainingPlan(Model(task, digits), shares, 2, LocalEpochs(0.05, batch=8, epochs=2))
    assert_close(final(VectorisedEngine(), plan), final(PlainEngine(), plan))

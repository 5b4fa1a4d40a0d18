"""Steps and slopes of any model, as PyTorch differentiates it."""

import copy
from collections.abc import Callable
from typing import TypeAlias

import torch
from torch import Tensor
from torch.func import grad, vmap
from torch.nn.modules.conv import _ConvNd

from fedaccord.training.task import Model, Parameters

Step: TypeAlias = Callable[[Parameters, Tensor, Tensor, Tensor, float], None]
"""Changes the parameters of some clients, given a batch of each: inputs, labels, weights; rate."""
Slope: TypeAlias = Callable[[Parameters, Tensor, Tensor, Tensor], Parameters]
"""The slope of a weighted loss, given parameters, inputs, labels and weights."""


def general_step(model: Model) -> Step:
    """A step of many clients; the first axis of everything counts the clients.

    At once, unless there are convolutions: many small ones in one call are slower than one by one.
    """
    one_by_one = any(isinstance(part, _ConvNd) for part in model.module.modules())
    slopes_of = _stacked(general_slope(model)) if one_by_one else vmap(grad(_weighted_loss(model)))

    def step(
        each: Parameters, inputs: Tensor, labels: Tensor, weights: Tensor, rate: float
    ) -> None:
        slopes = slopes_of(each, inputs, labels, weights)
        for name, value in each.items():
            value.sub_(slopes[name], alpha=rate)

    return step


def _stacked(slope: Slope) -> Slope:
    """The slopes for many clients, one after another."""

    def slopes(each: Parameters, inputs: Tensor, labels: Tensor, weights: Tensor) -> Parameters:
        found = [
            slope({name: value[n] for name, value in each.items()}, *batch)
            for n, batch in enumerate(zip(inputs, labels, weights, strict=True))
        ]
        return {name: torch.stack([one[name] for one in found]) for name in each}

    return slopes


def general_slope(model: Model) -> Slope:
    """The slope for one client."""
    loss = _weighted_loss(model)

    def slope(
        parameters: Parameters, inputs: Tensor, labels: Tensor, weights: Tensor
    ) -> Parameters:
        live = {name: value.detach().requires_grad_() for name, value in parameters.items()}
        slopes = torch.autograd.grad(loss(live, inputs, labels, weights), list(live.values()))
        return dict(zip(live, slopes, strict=True))

    return slope


def _weighted_loss(model: Model) -> Callable[[Parameters, Tensor, Tensor, Tensor], Tensor]:
    """The loss, with a module of its own: two threads can't use one at the same time."""
    own = copy.copy(model)
    own.module = copy.deepcopy(model.module)

    def loss(values: Parameters, inputs: Tensor, labels: Tensor, weights: Tensor) -> Tensor:
        return (weights * own.losses(values, inputs, labels)).sum()

    return loss

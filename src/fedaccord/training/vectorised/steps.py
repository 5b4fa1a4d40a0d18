"""Steps and gradients of any model, for one client, many clients or all of them at once."""

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import torch
from torch import Tensor
from torch.func import grad, vmap
from torch.nn.modules.conv import _ConvNd

from fedaccord.training.engine import TrainingPlan
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


_AT_ONCE = 1_024
"""Samples whose gradients are worked out together, so that memory does not grow with them."""


@dataclass(frozen=True, eq=False)
class Part:
    """Some of the distinct samples."""

    inputs: Tensor
    labels: Tensor
    weights: Tensor
    """How often each was chosen, over X."""


def split_union(plan: TrainingPlan) -> list[Part]:
    """All distinct samples, in parts; not copied if they are the whole dataset."""
    times = np.bincount(np.concatenate(plan.shares), minlength=plan.model.dataset.size)
    distinct = torch.from_numpy(np.flatnonzero(times))
    weights = torch.from_numpy(times[times > 0] / plan.total).to(plan.inputs.dtype)
    everything = len(distinct) == plan.model.dataset.size
    inputs = plan.inputs if everything else plan.inputs[distinct]
    labels = plan.labels if everything else plan.labels[distinct]
    return [
        Part(inputs[n : n + _AT_ONCE], labels[n : n + _AT_ONCE], weights[n : n + _AT_ONCE])
        for n in range(0, len(weights), _AT_ONCE)
    ]


def step(parameters: Parameters, slopes: Iterator[Parameters], rate: float) -> Parameters:
    """The parameters after a step along the slopes of all parts."""
    after = {name: value.detach().clone() for name, value in parameters.items()}
    for slope in slopes:
        for name, value in after.items():
            value.sub_(slope[name], alpha=rate)
    return after

"""The fast engine: what many clients do is done at once.

One gradient step each, averaged by x_n / X, is one step on the union of all chosen samples, each
weighted by how often it was chosen; so it costs as much as the distinct samples. Mini-batches are
taken by all clients with as many of them at a time, through `torch.func.vmap`; a last batch that
is not full is filled up with examples of weight 0.
"""

from collections import defaultdict
from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor
from torch.func import grad, vmap

from fedaccord.training.engine import GradientStep, LocalEpochs, TrainingPlan
from fedaccord.training.task import Parameters

_AT_ONCE = 8_192
"""Examples whose gradients are worked out together, so that memory does not grow with them."""


class VectorisedEngine:
    """All clients at once."""

    name = "vectorised"

    def rounds(self, plan: TrainingPlan, parameters: Parameters) -> Iterator[Parameters]:
        """The global parameters after each round."""
        if isinstance(plan.local, GradientStep):
            return _gradient_rounds(plan, plan.local, parameters)
        return _epoch_rounds(plan, plan.local, parameters)


def _gradient_rounds(
    plan: TrainingPlan, local: GradientStep, parameters: Parameters
) -> Iterator[Parameters]:
    """One step a round on the union of everyone's samples."""
    distinct, times = np.unique(np.concatenate(plan.shares), return_counts=True)
    weights = torch.from_numpy((times / plan.total).astype(np.float32))
    parts = [
        (torch.from_numpy(distinct[n : n + _AT_ONCE]), weights[n : n + _AT_ONCE])
        for n in range(0, len(distinct), _AT_ONCE)
    ]
    for turn in range(1, plan.rounds + 1):
        fresh = {name: value.detach().clone() for name, value in parameters.items()}
        live = {name: value.detach().requires_grad_() for name, value in parameters.items()}
        for chosen, weight in parts:
            losses = plan.model.losses(live, plan.inputs[chosen], plan.labels[chosen])
            gradients = torch.autograd.grad((weight * losses).sum(), list(live.values()))
            for value, gradient in zip(fresh.values(), gradients, strict=True):
                value.sub_(gradient, alpha=local.rate)
        _check(plan, fresh, None, turn)
        parameters = fresh
        yield parameters


def _epoch_rounds(
    plan: TrainingPlan, local: LocalEpochs, parameters: Parameters
) -> Iterator[Parameters]:
    """Clients with as many batches step together."""

    def loss(values: Parameters, inputs: Tensor, labels: Tensor, weights: Tensor) -> Tensor:
        return (weights * plan.model.losses(values, inputs, labels)).sum()

    gradients = vmap(grad(loss))
    for turn in range(1, plan.rounds + 1):
        average = {name: torch.zeros_like(value) for name, value in parameters.items()}
        for clients, chosen, weights in _buckets(plan, local, turn):
            each = {
                name: value.expand(len(clients), *value.shape).clone()
                for name, value in parameters.items()
            }
            for step in range(chosen.shape[1]):
                examples = chosen[:, step]
                slopes = gradients(
                    each, plan.inputs[examples], plan.labels[examples], weights[:, step]
                )
                for name, value in each.items():
                    value.sub_(slopes[name], alpha=local.rate)
            _check(plan, each, clients, turn)
            share = torch.tensor([len(plan.shares[n]) / plan.total for n in clients])
            for name, value in each.items():
                average[name] += torch.tensordot(share, value, dims=1)
        parameters = average
        yield parameters


def _buckets(
    plan: TrainingPlan, local: LocalEpochs, turn: int
) -> Iterator[tuple[list[int], Tensor, Tensor]]:
    """Clients with as many batches: their examples and weights, by client, step and place."""
    alike: dict[int, list[int]] = defaultdict(list)
    batches = {n: plan.batches(n, turn) for n in plan.taking_part}
    for n, own in batches.items():
        alike[len(own)].append(n)
    for steps, clients in alike.items():
        width = min(local.batch, max(len(plan.shares[n]) for n in clients))
        chosen = np.zeros((len(clients), steps, width), dtype=np.int64)
        weights = np.zeros((len(clients), steps, width), dtype=np.float32)
        for row, n in enumerate(clients):
            for step, batch in enumerate(batches[n]):
                chosen[row, step, : len(batch)] = batch
                weights[row, step, : len(batch)] = 1.0 / len(batch)
        yield clients, torch.from_numpy(chosen), torch.from_numpy(weights)


def _check(
    plan: TrainingPlan, parameters: Parameters, clients: list[int] | None, turn: int
) -> None:
    """Refuse parameters that are no numbers, and say whose they are if one can tell."""
    for value in parameters.values():
        if not bool(value.isfinite().all()):
            if clients is None:
                raise plan.failed(None, turn)
            finite = value.isfinite().flatten(1).all(dim=1)
            raise plan.failed(clients[int(finite.int().argmin())], turn)

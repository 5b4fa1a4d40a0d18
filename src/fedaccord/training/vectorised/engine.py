"""The fast engine: computes the steps of many clients at once.

One gradient step each, averaged with the weights x_n / X, is one step on the union of all chosen
samples. Mini-batches are taken by groups of clients at a time (`split_union`, `split_clients`).
Chains of linear layers are differentiated by hand, any other model by PyTorch (both in
`gradients`). A thread pool works on different parts or groups at the same time. A model that draws
random numbers, as dropout does, is left to the plain engine: each client has its own, in the order
of its batches.

With mini-batches, clients with about as many batches form a group, and all take their first step at
once, then their second. In a group those with the most batches come first: a client that has gone
through all of its own drops off the end, and the others go on as the first rows of the same arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from math import ceil

import numpy as np
import torch
from torch import Tensor

from fedaccord.data.partition import Indices
from fedaccord.training.engine import LocalEpochs, PlainEngine, TrainingPlan
from fedaccord.training.task import Parameters
from fedaccord.training.threads import ThreadPool
from fedaccord.training.vectorised.gradients import find_chain, general_gradient, general_step


class VectorisedEngine:
    """All clients at once."""

    name = "vectorised"

    def rounds(self, plan: TrainingPlan, parameters: Parameters) -> Iterator[Parameters]:
        """The global parameters after each round."""
        if plan.model.random:
            yield from PlainEngine().rounds(plan, parameters)
            return
        plan, start = plan.freeze(parameters)
        with closing(ThreadPool()) as pool:
            if isinstance(plan.local, LocalEpochs):
                found = _epoch_rounds(plan, plan.local, start, pool)
            else:
                found = _gradient_rounds(plan, start, pool)
            for trained in found:
                yield parameters | trained


def _gradient_rounds(
    plan: TrainingPlan, parameters: Parameters, pool: ThreadPool
) -> Iterator[Parameters]:
    """One step per round on the union of all samples."""
    parts = split_union(plan)
    for turn in plan.turns:
        before = parameters
        with pool.in_order(partial(_differentiator, plan, before), parts) as gradients:
            parameters = _stepped(before, gradients, plan.local.rate)
        if not _finite(parameters):
            next(PlainEngine().rounds(plan.from_round(turn), before))  # fails, and names the client
            raise plan.failed(None, turn)
        yield parameters


def _stepped(parameters: Parameters, gradients: Iterator[Parameters], rate: float) -> Parameters:
    """The parameters after a step along the gradients of all parts."""
    after = {name: value.detach().clone() for name, value in parameters.items()}
    for gradient in gradients:
        for name, value in after.items():
            value.sub_(gradient[name], alpha=rate)
    return after


def _differentiator(plan: TrainingPlan, parameters: Parameters) -> Callable[[Part], Parameters]:
    """A function that computes the gradient of a part."""
    chain = find_chain(plan.model)
    gradient = chain.gradient if chain else general_gradient(plan.model)
    now = {name: value.detach() for name, value in parameters.items()}
    return lambda part: gradient(now, part.inputs, part.labels, part.weights)


def _epoch_rounds(
    plan: TrainingPlan, local: LocalEpochs, parameters: Parameters, pool: ThreadPool
) -> Iterator[Parameters]:
    """Groups of clients go through their mini-batches."""
    groups = split_clients(plan, local)
    for turn in plan.turns:
        trainer = partial(_trainer, plan, local, parameters, turn)
        with pool.in_order(trainer, groups) as parts:
            average = {name: torch.zeros_like(value) for name, value in parameters.items()}
            for part in parts:
                for name, value in part.items():
                    average[name] += value
        parameters = average
        yield parameters


def _trainer(
    plan: TrainingPlan, local: LocalEpochs, parameters: Parameters, turn: int
) -> Callable[[list[int]], Parameters]:
    """A function that trains a group and returns its part of the average."""
    chain = find_chain(plan.model)
    take_step = chain.step if chain else general_step(plan.model)

    def train(clients: list[int]) -> Parameters:
        batches = draw_batches(plan, local, clients, turn)
        each = {
            name: value.detach().expand(len(clients), *value.shape).clone()
            for name, value in parameters.items()
        }
        buffer = plan.inputs.new_empty(batches.largest, *plan.inputs.shape[1:])
        for chosen, weights in batches.steps():
            # Into the same buffer at every step: new memory would cost as much as the copy.
            row = chosen.flatten()
            inputs = torch.index_select(plan.inputs, 0, row, out=buffer[: len(row)])
            labels = torch.index_select(plan.labels, 0, row)
            going_on = {name: value[: len(chosen)] for name, value in each.items()}
            take_step(
                going_on,
                inputs.view(*chosen.shape, *inputs.shape[1:]),
                labels.view(chosen.shape),
                weights,
                plan.local.rate,
            )
        share = torch.tensor(
            [len(plan.shares[n]) / plan.total for n in clients], dtype=torch.float64
        )
        part = {
            name: torch.tensordot(share.to(value.dtype), value, dims=1)
            for name, value in each.items()
        }
        if not _finite(part):
            raise plan.failed(_first_lost(each, clients), turn)
        return part

    return train


def _finite(parameters: Parameters) -> bool:
    return all(bool(value.isfinite().all()) for value in parameters.values())


def _first_lost(each: Parameters, clients: list[int]) -> int | None:
    """The first client whose parameters are not finite; None if only the average is not."""
    lost = [
        n
        for row, n in enumerate(clients)
        if not _finite({name: value[row] for name, value in each.items()})
    ]
    return min(lost, default=None)


_AT_ONCE = 1_024
"""Samples whose gradients are computed together, so that memory does not grow with them."""
_LARGEST_GROUP = 10
"""Clients in a group. More are no faster: their numbers no longer fit the processor's cache."""
_FEWEST_GROUPS = 4
"""Groups even of few clients, so that more than one processor has work."""


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


def split_clients(plan: TrainingPlan, local: LocalEpochs) -> list[list[int]]:
    """The groups: who takes part, those with the most batches first."""
    clients = sorted(
        plan.taking_part, key=lambda n: ceil(len(plan.shares[n]) / local.batch), reverse=True
    )
    size = min(_LARGEST_GROUP, ceil(len(clients) / _FEWEST_GROUPS))
    return [clients[n : n + size] for n in range(0, len(clients), size)]


@dataclass(frozen=True, eq=False)
class Batches:
    """All mini-batches of a group in a round, by client, step and place in the batch."""

    chosen: Indices
    """Positions of examples. Places that are left over repeat one of the client's examples."""
    weights: Tensor
    """One over the size of the batch; 0 in the places that are left over."""
    sizes: Indices
    """Of the batches, by client and step; 0 for a client that has no more."""

    @property
    def largest(self) -> int:
        """Examples in a step, at most."""
        return len(self.chosen) * int(self.chosen.shape[2])

    def steps(self) -> Iterator[tuple[Tensor, Tensor]]:
        """Examples and weights, step by step, of the clients that have not yet finished."""
        for step in range(self.chosen.shape[1]):
            clients = np.count_nonzero(self.sizes[:, step])
            width = self.sizes[:, step].max()
            place = np.s_[:clients, step, :width]
            yield torch.from_numpy(self.chosen[place]), self.weights[place]


def draw_batches(plan: TrainingPlan, local: LocalEpochs, clients: list[int], turn: int) -> Batches:
    """The mini-batches of `TrainingPlan.batches`, in one array."""
    counts = [len(plan.shares[n]) for n in clients]
    width = min(local.batch, max(counts))
    steps = local.epochs * max(ceil(count / width) for count in counts)
    chosen = np.zeros((len(clients), steps, width), dtype=np.int64)
    sizes = np.zeros((len(clients), steps), dtype=np.int64)
    for row, (n, count) in enumerate(zip(clients, counts, strict=True)):
        chosen[row] = plan.shares[n][0]
        each = ceil(count / width)
        for epoch, order in enumerate(plan.orders(n, turn)):
            own = slice(epoch * each, (epoch + 1) * each)
            chosen[row, own].reshape(-1)[:count] = order
            sizes[row, own] = width
            sizes[row, own.stop - 1] = count - (each - 1) * width
    real = np.arange(width) < sizes[:, :, None]
    weights = np.where(real, 1.0 / np.maximum(sizes, 1)[:, :, None], 0.0)
    return Batches(chosen, torch.from_numpy(weights).to(plan.inputs.dtype), sizes)

"""The fast engine: computes the steps of many clients at once.

One gradient step each, averaged with the weights x_n / X, is one step on the union of all chosen
samples. Mini-batches are taken by groups of clients at a time (`split_union`, `split_clients`).
Chains of linear layers are differentiated by hand, any other model by PyTorch (both in
`gradients`); the rules of local training are in `steps`. A thread pool works on different parts or
groups at the same time. A model that draws random numbers, as dropout does, is left to the plain
engine: each client has its own, in the order of its batches.

Where an example's loss depends on the others of its batch (`Task.separable`), there is no union:
every client's gradient is that of all its samples. Places left over in a mini-batch then get the
label 0, which counts in no other example's loss if labels are survival times; with classes, such a
task is left to the plain engine as well.

With mini-batches, clients with about as many batches form a group, and all take their first step at
once, then their second. In a group those with the most batches come first: a client that has gone
through all of its own drops off the end, and the others go on as the first rows of the same arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from math import ceil

import numpy as np
import torch
from torch import Tensor

from fedaccord.data.partition import Indices
from fedaccord.training.engine import PlainEngine, Server, TrainingPlan, is_finite
from fedaccord.training.rules import MiniBatches
from fedaccord.training.task import Parameters
from fedaccord.training.threads import ThreadPool, one_thread
from fedaccord.training.vectorised.gradients import find_chain, general_gradient
from fedaccord.training.vectorised.steps import Step, find_steps


class VectorisedEngine:
    """All clients at once."""

    name = "vectorised"

    def rounds(
        self, plan: TrainingPlan, parameters: Parameters, server: Server | None = None
    ) -> Iterator[Parameters]:
        """The global parameters after each round."""
        server = server or Server(plan)
        if plan.model.random or not fits_batches(plan):
            yield from PlainEngine().rounds(plan, parameters, server)
            return
        plan, start = plan.freeze(parameters)
        with closing(ThreadPool()) as pool:
            if isinstance(plan.local, MiniBatches):
                found = _batch_rounds(plan, plan.local, start, server, pool)
            else:
                found = _gradient_rounds(plan, start, server, pool)
            for trained in found:
                yield parameters | trained


def fits_batches(plan: TrainingPlan) -> bool:
    """Whether batches can be filled up without changing anyone's loss."""
    return plan.model.task.separable or plan.model.dataset.survival


def _gradient_rounds(
    plan: TrainingPlan, parameters: Parameters, server: Server, pool: ThreadPool
) -> Iterator[Parameters]:
    """One step per round on the union of all samples."""
    with one_thread():
        parts = split_union(plan)
    for turn in plan.turns:
        with pool.in_order(partial(_differentiator, plan, parameters), parts) as gradients:
            average = _stepped(parameters, gradients, plan.local.rate)
            if not is_finite(average):
                # fails, and names the client
                next(PlainEngine().rounds(plan.from_round(turn), parameters))
                raise plan.failed(None, turn)
            parameters = server.step(parameters, average, turn)
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


def _batch_rounds(
    plan: TrainingPlan,
    local: MiniBatches,
    parameters: Parameters,
    server: Server,
    pool: ThreadPool,
) -> Iterator[Parameters]:
    """Groups of clients go through their mini-batches."""
    groups = split_clients(plan, local)
    for turn in plan.turns:
        trainer = partial(_trainer, plan, local, parameters, turn, server)
        with pool.in_order(trainer, groups) as parts:
            average = server.blank(parameters)
            for part in parts:
                for name, value in part.items():
                    average[name] += value
            parameters = server.step(parameters, average, turn)
        yield parameters


def _trainer(
    plan: TrainingPlan,
    local: MiniBatches,
    parameters: Parameters,
    turn: int,
    server: Server,
) -> Callable[[list[int]], Parameters]:
    """A function that trains a group and returns its part of the average."""
    begin = find_steps(plan.model, local)

    def train(clients: list[int]) -> Parameters:
        each = {
            name: value.detach().expand(len(clients), *value.shape).clone()
            for name, value in parameters.items()
        }
        batches = draw_batches(local, [(plan, n) for n in clients], turn)
        take_steps(plan, batches, each, begin(each))
        share = torch.tensor(
            [len(plan.shares[n]) / plan.total for n in clients], dtype=torch.float64
        )
        precise = {name: server.precise(value) for name, value in each.items()}
        part = {
            name: torch.tensordot(share.to(value.dtype), value, dims=1)
            for name, value in precise.items()
        }
        if not is_finite(part):
            raise plan.failed(_first_lost(each, clients), turn)
        return part

    return train


def take_steps(plan: TrainingPlan, batches: Batches, each: Parameters, take_step: Step) -> None:
    """All steps of a round, for the rows of `each`, which are updated in place."""
    buffer = plan.inputs.new_empty(batches.largest, *plan.inputs.shape[1:])
    for chosen, weights in batches.steps():
        # Into the same buffer at every step: new memory would cost as much as the copy.
        row = chosen.flatten()
        inputs = torch.index_select(plan.inputs, 0, row, out=buffer[: len(row)])
        labels = torch.index_select(plan.labels, 0, row).view(chosen.shape)
        if not plan.model.task.separable:
            labels = labels.masked_fill(weights == 0, 0)
        going_on = {name: value[: len(chosen)] for name, value in each.items()}
        take_step(
            going_on,
            inputs.view(*chosen.shape, *inputs.shape[1:]),
            labels,
            weights,
        )


def _first_lost(each: Parameters, clients: list[int]) -> int | None:
    """The first client whose parameters are not finite; None if only the average is not."""
    lost = [
        n
        for row, n in enumerate(clients)
        if not is_finite({name: value[row] for name, value in each.items()})
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
    """Some of the distinct samples, or all samples of a client."""

    inputs: Tensor
    labels: Tensor
    weights: Tensor
    """How often each was chosen, over X."""


def split_union(plan: TrainingPlan) -> list[Part]:
    """All distinct samples, in parts; not copied if they are the whole dataset.

    A part for each client, if an example's loss depends on the others of its batch.
    """
    if not plan.model.task.separable:
        return [_whole_share(plan, plan.shares[n]) for n in plan.taking_part]
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


def _whole_share(plan: TrainingPlan, share: Indices) -> Part:
    chosen = torch.from_numpy(share)
    weights = plan.inputs.new_full((len(share),), 1.0 / plan.total)
    return Part(plan.inputs[chosen], plan.labels[chosen], weights)


def split_clients(plan: TrainingPlan, local: MiniBatches) -> list[list[int]]:
    """The groups: who takes part, those with the most batches first."""
    clients = sorted(
        plan.taking_part, key=lambda n: local.steps_for(len(plan.shares[n])), reverse=True
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

    def of(self, rows: Indices) -> Batches:
        """The batches of these clients, in this order; those with the most steps come first."""
        return Batches(self.chosen[rows], self.weights[torch.from_numpy(rows)], self.sizes[rows])

    def steps(self) -> Iterator[tuple[Tensor, Tensor]]:
        """Examples and weights, step by step, of the clients that have not yet finished."""
        going_on, widths = np.count_nonzero(self.sizes, axis=0), self.sizes.max(axis=0)
        for step, (clients, width) in enumerate(zip(going_on, widths, strict=True)):
            place = np.s_[:clients, step, :width]
            yield torch.from_numpy(self.chosen[place]), self.weights[place]


def draw_batches(
    local: MiniBatches, clients: Sequence[tuple[TrainingPlan, int]], turn: int
) -> Batches:
    """The mini-batches of `TrainingPlan.batches`, in one array; each client is one of a plan's."""
    shares = [plan.shares[n] for plan, n in clients]
    counts = [len(share) for share in shares]
    width = min(local.batch, max(counts))
    steps = max(local.steps_for(count) for count in counts)
    chosen = np.zeros((len(clients), steps, width), dtype=np.int64)
    sizes = np.zeros((len(clients), steps), dtype=np.int64)
    for row, ((plan, n), count) in enumerate(zip(clients, counts, strict=True)):
        chosen[row] = shares[row][0]
        own, each = local.steps_for(count), ceil(count / width)
        of_epoch = np.full(each, width)
        of_epoch[-1] = count - (each - 1) * width
        sizes[row, :own] = np.resize(of_epoch, own)
        for epoch, order in enumerate(plan.orders(n, turn)):
            taken = chosen[row, epoch * each : min((epoch + 1) * each, own)].reshape(-1)
            taken[:count] = order[: len(taken)]
    real = np.arange(width) < sizes[:, :, None]
    weights = np.where(real, 1.0 / np.maximum(sizes, 1)[:, :, None], 0.0)
    return Batches(chosen, torch.from_numpy(weights).to(plan.inputs.dtype), sizes)

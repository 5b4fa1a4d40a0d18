"""Which samples and clients are worked on together.

With one gradient step per client, the average is one step on the union of all chosen samples, each
weighted by how often it was chosen: see `split_union`.

With mini-batches, clients with about as many batches form a group, and all take their first step at
once, then their second. In a group those with the most batches come first: a client that has gone
through all of its own drops off the end, and the others go on as the first rows of the same arrays.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil

import numpy as np
import torch
from torch import Tensor

from fedaccord.data.partition import Indices
from fedaccord.training.engine import LocalEpochs, TrainingPlan

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

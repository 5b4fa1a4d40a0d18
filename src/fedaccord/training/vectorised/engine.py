"""The fast engine: computes the steps of many clients at once.

One gradient step each, averaged with the weights x_n / X, is one step on the union of all chosen
samples. Mini-batches are taken by groups of clients at a time (both in `batches`). Chains of linear
layers are differentiated by hand, any other model by PyTorch (both in `gradients`). A thread pool
works on different parts or groups at the same time. A model that draws random numbers, as dropout
does, is left to the plain engine: each client has its own, in the order of its batches.
"""

from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial

import torch

from fedaccord.training.engine import LocalEpochs, PlainEngine, TrainingPlan
from fedaccord.training.task import Parameters
from fedaccord.training.threads import ThreadPool
from fedaccord.training.vectorised.batches import Part, draw_batches, split_clients, split_union
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

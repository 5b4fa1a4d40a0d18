"""The fast engine: what many clients do is done at once.

One gradient step each, averaged by x_n / X, is one step on the union of all chosen samples (see
`union`). Mini-batches are taken by groups of clients at a time (see `groups`). Chains of linear
layers are differentiated by hand (see `chain`), any other model by PyTorch (see `general`). Several
threads work on different parts or groups (see `threads`). A model that draws at random, as dropout
does, is left to the readable loop: the draws are each client's own, in the order of its batches.
"""

from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial

import torch

from fedaccord.training.engine import LocalEpochs, TrainingPlan
from fedaccord.training.plain import PlainEngine
from fedaccord.training.task import Parameters
from fedaccord.training.threads import Crew
from fedaccord.training.vectorised.batches import draw_batches, split_clients
from fedaccord.training.vectorised.chain import find_chain
from fedaccord.training.vectorised.steps import Part, general_slope, general_step, split_union, step


class VectorisedEngine:
    """All clients at once."""

    name = "vectorised"

    def rounds(self, plan: TrainingPlan, parameters: Parameters) -> Iterator[Parameters]:
        """The global parameters after each round."""
        if plan.model.random:
            yield from PlainEngine().rounds(plan, parameters)
            return
        plan, start = plan.freeze(parameters)
        with closing(Crew()) as crew:
            if isinstance(plan.local, LocalEpochs):
                found = _epoch_rounds(plan, plan.local, start, crew)
            else:
                found = _gradient_rounds(plan, start, crew)
            for trained in found:
                yield parameters | trained


def _gradient_rounds(
    plan: TrainingPlan, parameters: Parameters, crew: Crew
) -> Iterator[Parameters]:
    """One step a round on the union of everyone's samples."""
    parts = split_union(plan)
    for turn in plan.turns:
        before = parameters
        with crew.in_order(partial(_differentiator, plan, before), parts) as slopes:
            parameters = step(before, slopes, plan.local.rate)
        if not _finite(parameters):
            next(PlainEngine().rounds(plan.from_round(turn), before))  # fails, and says whose it is
            raise plan.failed(None, turn)
        yield parameters


def _differentiator(plan: TrainingPlan, parameters: Parameters) -> Callable[[Part], Parameters]:
    """What works out the slope of a part."""
    chain = find_chain(plan.model)
    slope = chain.slope if chain else general_slope(plan.model)
    now = {name: value.detach() for name, value in parameters.items()}
    return lambda part: slope(now, part.inputs, part.labels, part.weights)


def _epoch_rounds(
    plan: TrainingPlan, local: LocalEpochs, parameters: Parameters, crew: Crew
) -> Iterator[Parameters]:
    """Groups of clients go through their mini-batches."""
    groups = split_clients(plan, local)
    for turn in plan.turns:
        trainer = partial(_trainer, plan, local, parameters, turn)
        with crew.in_order(trainer, groups) as parts:
            average = {name: torch.zeros_like(value) for name, value in parameters.items()}
            for part in parts:
                for name, value in part.items():
                    average[name] += value
        parameters = average
        yield parameters


def _trainer(
    plan: TrainingPlan, local: LocalEpochs, parameters: Parameters, turn: int
) -> Callable[[list[int]], Parameters]:
    """What trains a group, and returns its part of the average."""
    chain = find_chain(plan.model)
    take_step = chain.step if chain else general_step(plan.model)

    def train(clients: list[int]) -> Parameters:
        batches = draw_batches(plan, local, clients, turn)
        each = {
            name: value.detach().expand(len(clients), *value.shape).clone()
            for name, value in parameters.items()
        }
        room = plan.inputs.new_empty(batches.largest, *plan.inputs.shape[1:])
        for chosen, weights in batches.steps():
            # Into the same room at every step: new memory would cost as much as the reading.
            row = chosen.flatten()
            inputs = torch.index_select(plan.inputs, 0, row, out=room[: len(row)])
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
    """The client whose parameters are no numbers any more; None if only their average is none."""
    lost = [
        n
        for row, n in enumerate(clients)
        if not _finite({name: value[row] for name, value in each.items()})
    ]
    return min(lost, default=None)

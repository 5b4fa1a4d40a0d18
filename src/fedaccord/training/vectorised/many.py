"""Many slots at once: the groups that clients could form, say, each with several seeds.

The slots have the same model, rounds, rule and optimiser, and differ in who trains on what. Every
client of every slot is a row of one batched step, so that hundreds of small trainings take about as
long as one. Slots are dealt out in chunks, so that memory stays bounded, and a thread pool works on
different chunks at the same time. A client with the same samples, seed and slot has the same
mini-batches in every plan: they are drawn once for a chunk.

Where each client takes one gradient step, a slot is one row, whatever the number of its clients:
its step is that on the union of their samples, in which each counts as often as it was chosen. If
an example's loss depends on the others of its batch (`Task.separable`), there is no union, and each
client's step is one on a mini-batch of all its samples.

>>> import numpy as np
>>> from fedaccord.data.dataset import load_dataset
>>> from fedaccord.training.rules import LocalSteps
>>> from fedaccord.training.task import find_task
>>> model = Model(find_task("softmax"), load_dataset("digits"))
>>> plans = [
...     TrainingPlan(model, shares, rounds=2, local=LocalSteps(0.1, batch=8, steps=20))
...     for shares in ([np.arange(90)], [np.arange(90), np.arange(90, 200)])
... ]
>>> after = train_many(plans, [model.start(seed=0)] * 2)
>>> after["1.weight"].shape
torch.Size([2, 10, 64])
>>> test = model.dataset.test_inputs, model.dataset.test_labels
>>> losses, errors = errors_of_many(model, after, *test)
>>> errors.shape, bool(errors[1].mean() < errors[0].mean())
((2, 359), True)
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeAlias

import numpy as np
import torch
from torch import Tensor
from torch.func import functional_call, vmap
from torch.nn.modules.conv import _ConvNd

from fedaccord.data.dataset import Inputs, Labels
from fedaccord.data.partition import Indices
from fedaccord.errors import InvalidInput
from fedaccord.numbers import FloatArray
from fedaccord.training.engine import PlainEngine, Server, TrainingFailed, TrainingPlan, is_finite
from fedaccord.training.rules import LocalSteps, MiniBatches
from fedaccord.training.task import Model, Parameters
from fedaccord.training.threads import ThreadPool, one_thread
from fedaccord.training.vectorised.engine import (
    VectorisedEngine,
    draw_batches,
    fits_batches,
    take_steps,
)
from fedaccord.training.vectorised.gradients import find_chain, general_gradients
from fedaccord.training.vectorised.steps import find_steps

_ROWS = 1_024
"""In a chunk, at most: with more, a step takes as long for each of them."""
_NUMBERS = 2_000_000
"""In a chunk, at most, so that memory does not grow with the slots: parameters, samples to train
on in a round, and the inputs of a step."""
_AT_ONCE = 1_024
"""Samples whose gradients, or test examples whose outputs, are computed together."""
_OUTPUTS = 100_000
"""Test examples times models whose outputs are computed together."""


def train_many(plans: Sequence[TrainingPlan], starts: Sequence[Parameters]) -> Parameters:
    """The global parameters at the end of each slot; the first axis counts the slots.

    They are those of `PlainEngine`, but for rounding. A model that draws random numbers, or whose
    frozen parameters differ from slot to slot, is trained slot by slot.
    """
    _check(plans, starts)
    model, trained = plans[0].model.freeze(starts[0])
    frozen = {name: value for name, value in starts[0].items() if name not in trained}
    together = fits_batches(plans[0]) and not model.random
    if not together or any(not _same(frozen, start) for start in starts):
        return _stack([_finished(*each) for each in zip(plans, starts, strict=True)])
    plans = _by_client(plans)
    most = _most_rows(plans, trained)
    chunks, trainer = _chunks(plans, most), partial(_trainer, plans, starts, most)
    with closing(ThreadPool()) as pool, pool.in_order(trainer, chunks) as found:
        parts = list(found)
    place = torch.tensor([n for chunk in chunks for n in chunk]).argsort()
    after = {name: torch.cat([part[name] for part in parts])[place] for name in trained}
    kept = {name: value.expand(len(plans), *value.shape) for name, value in frozen.items()}
    return {name: (after | kept)[name] for name in starts[0]}


def _check(plans: Sequence[TrainingPlan], starts: Sequence[Parameters]) -> None:
    """Reject slots that cannot be trained together."""
    if not plans or len(plans) != len(starts):
        raise InvalidInput(f"{len(plans)} plans, but {len(starts)} models to start from")
    for part in ("model", "rounds", "local", "server", "first"):
        if any(getattr(plan, part) != getattr(plans[0], part) for plan in plans):
            raise InvalidInput("must be the same in all plans that are trained at once", field=part)


def _by_client(plans: Sequence[TrainingPlan]) -> Sequence[TrainingPlan]:
    """The same slots, in which a gradient step on no union is a mini-batch of all samples."""
    local = plans[0].local
    if isinstance(local, MiniBatches) or plans[0].model.task.separable:
        return plans
    one = LocalSteps(local.rate, batch=_largest(plans), steps=1)
    return [replace(plan, local=one) for plan in plans]


def _largest(plans: Sequence[TrainingPlan]) -> int:
    """The most samples of a client."""
    return max(len(share) for plan in plans for share in plan.shares)


def _same(frozen: Parameters, start: Parameters) -> bool:
    return all(torch.equal(value, start[name]) for name, value in frozen.items())


def _finished(plan: TrainingPlan, start: Parameters) -> Parameters:
    *_, last = VectorisedEngine().rounds(plan, start)
    return last


def _stack(models: Sequence[Parameters]) -> Parameters:
    return {name: torch.stack([model[name] for model in models]) for name in models[0]}


def _most_rows(plans: Sequence[TrainingPlan], trained: Parameters) -> int:
    """How many rows there are in a chunk, at most."""
    local, largest = plans[0].local, _largest(plans)
    samples, at_once = 0, min(_AT_ONCE, plans[0].model.dataset.size)
    if isinstance(local, MiniBatches):
        at_once = min(local.batch, largest)
        samples = local.steps_for(largest) * at_once
    numbers = sum(value.numel() for value in trained.values())
    numbers += samples + at_once * plans[0].inputs[0].numel()
    return max(1, min(_ROWS, _NUMBERS // numbers))


def _chunks(plans: Sequence[TrainingPlan], most: int) -> list[list[int]]:
    """Positions of the plans in each chunk; those with the same seed and slot come together."""
    chunks: list[list[int]] = []
    rows = most
    for n in sorted(range(len(plans)), key=lambda n: (plans[n].seed, plans[n].slot)):
        own = len(plans[n].taking_part) if isinstance(plans[n].local, MiniBatches) else 1
        if rows + own > most:
            chunks.append([])
            rows = 0
        chunks[-1].append(n)
        rows += own
    return chunks


def _trainer(
    plans: Sequence[TrainingPlan], starts: Sequence[Parameters], most: int
) -> Callable[[list[int]], Parameters]:
    """A function that runs all rounds of a chunk."""

    def train(chunk: list[int]) -> Parameters:
        frozen = [plans[n].freeze(starts[n]) for n in chunk]
        own, models = [plan for plan, _ in frozen], _stack([trained for _, trained in frozen])
        server = Server(own[0])
        local = own[0].local
        if isinstance(local, MiniBatches):
            average = _batch_average(own, local, server, most)
        else:
            average = _gradient_average(own)
        for turn in own[0].turns:
            models = server.step(models, average(models, turn), turn)
        return models

    return train


Average: TypeAlias = Callable[[Parameters, int], Parameters]
"""The average of the clients' models in each slot, given the global models and the round."""


# --- Mini-batches --------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Rows:
    """All clients of all plans, those with the most steps first."""

    of: list[tuple[TrainingPlan, int]]
    """The plan and the position of the client."""
    plans: Tensor
    """The position of the plan."""
    weights: Tensor
    """x_n / X."""
    sources: Indices
    """Whose mini-batches a row has: those of one of `distinct`."""
    distinct: list[tuple[TrainingPlan, int]]


def list_rows(plans: Sequence[TrainingPlan], local: MiniBatches) -> Rows:
    """The rows of some plans; clients with the same samples, seed and slot have one source."""
    pairs = [(k, n) for k, plan in enumerate(plans) for n in plan.taking_part]
    pairs.sort(key=lambda pair: -local.steps_for(len(plans[pair[0]].shares[pair[1]])))
    found: dict[tuple[int, int, int, bytes], int] = {}
    sources, distinct = [], list[tuple[TrainingPlan, int]]()
    for k, n in pairs:
        plan = plans[k]
        key = (plan.seed, plan.slot, n, plan.shares[n].tobytes())
        if key not in found:
            found[key] = len(distinct)
            distinct.append((plan, n))
        sources.append(found[key])
    return Rows(
        of=[(plans[k], n) for k, n in pairs],
        plans=torch.tensor([k for k, _ in pairs]),
        weights=torch.tensor(
            [len(plans[k].shares[n]) / plans[k].total for k, n in pairs], dtype=torch.float64
        ),
        sources=np.array(sources),
        distinct=distinct,
    )


def _batch_average(
    plans: Sequence[TrainingPlan], local: MiniBatches, server: Server, most: int
) -> Average:
    """Every client of every plan goes through its mini-batches, at most so many at once."""
    rows, begin = list_rows(plans, local), find_steps(plans[0].model, local)

    def average(models: Parameters, turn: int) -> Parameters:
        drawn, found = draw_batches(local, rows.distinct, turn), server.blank(models)
        for n in range(0, len(rows.of), most):
            part = slice(n, n + most)
            each = {name: value[rows.plans[part]] for name, value in models.items()}
            take_steps(plans[0], drawn.of(rows.sources[part]), each, begin(each))
            if not is_finite(each):
                raise _first_lost(rows.of[part], each, turn)
            for name, value in each.items():
                precise = server.precise(value)
                weights = rows.weights[part].to(precise.dtype)
                precise = precise * weights.view(-1, *[1] * (value.ndim - 1))
                found[name].index_add_(0, rows.plans[part], precise)
        return found

    return average


def _first_lost(
    rows: Sequence[tuple[TrainingPlan, int]], each: Parameters, turn: int
) -> TrainingFailed:
    lost = [
        row
        for k, row in enumerate(rows)
        if not is_finite({name: value[k] for name, value in each.items()})
    ]
    plan, client = lost[0]
    return plan.failed(client, turn)


# --- One gradient step ---------------------------------------------------------------------


def _gradient_average(plans: Sequence[TrainingPlan]) -> Average:
    """One step of each plan on the union of its samples, which are weighted by plan."""
    model, rate = plans[0].model, plans[0].local.rate
    chain = find_chain(model)
    gradients_of = chain.gradients if chain else general_gradients(model)
    times = np.stack(
        [
            np.bincount(np.concatenate(p.shares), minlength=model.dataset.size) / p.total
            for p in plans
        ]
    )
    union = np.flatnonzero(times.any(axis=0))
    weights = torch.from_numpy(times[:, union]).to(model.inputs.dtype)
    inputs, labels = plans[0].inputs[union], plans[0].labels[union]

    def average(models: Parameters, turn: int) -> Parameters:
        after = {name: value.clone() for name, value in models.items()}
        for n in range(0, len(union), _AT_ONCE):
            part = slice(n, n + _AT_ONCE)
            some, truth = (
                each[part].expand(len(plans), *each[part].shape) for each in (inputs, labels)
            )
            gradients = gradients_of(models, some, truth, weights[:, part])
            for name, value in after.items():
                value.sub_(gradients[name], alpha=rate)
        if not is_finite(after):
            raise _lost_slot(plans, models, turn)
        return after

    return average


def _lost_slot(plans: Sequence[TrainingPlan], models: Parameters, turn: int) -> TrainingFailed:
    """Why the average of a plan is not finite: the plain engine names the client."""
    for k, plan in enumerate(plans):
        try:
            next(PlainEngine().rounds(plan.from_round(turn), {n: v[k] for n, v in models.items()}))
        except TrainingFailed as error:
            return error
    return plans[0].failed(None, turn)


# --- Evaluation ----------------------------------------------------------------------------


def errors_of_many(
    model: Model, parameters: Parameters, inputs: Inputs, labels: Labels
) -> tuple[FloatArray, FloatArray]:
    """Loss and error of each example under each model; the first axis counts the models.

    As `Model.evaluate_each`, for parameters with a leading axis.
    """
    truth = torch.from_numpy(labels)
    losses, errors = [], []
    with torch.no_grad(), one_thread():
        for outputs in _outputs(model, parameters, inputs):
            losses.append(model.task.loss(outputs, truth))
            errors.append(model.task.measure.errors(outputs, truth))
    found = (torch.stack(each).to(torch.float64).numpy() for each in (losses, errors))
    return next(found), next(found)


def _outputs(model: Model, parameters: Parameters, inputs: Inputs) -> Iterator[Tensor]:
    """The outputs of one model after another, computed for many of them at once."""
    module = copy.deepcopy(model.module).eval()

    def forward(values: Parameters, given: Tensor) -> Tensor:
        outputs: Tensor = functional_call(module, values, (given,))
        return outputs

    given = torch.from_numpy(inputs).to(model.dtype)
    parts = [given[n : n + _AT_ONCE] for n in range(0, len(given), _AT_ONCE)]
    # many small convolutions are slower in one call than in turn
    one_by_one = any(isinstance(part, _ConvNd) for part in module.modules())
    many = 1 if one_by_one else max(1, _OUTPUTS // len(given))
    for n in range(0, len(next(iter(parameters.values()))), many):
        some = {name: value[n : n + many] for name, value in parameters.items()}
        yield from torch.cat([vmap(forward, (0, None))(some, part) for part in parts], dim=1)

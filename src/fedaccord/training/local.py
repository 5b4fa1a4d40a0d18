"""One client's part of a round, as a pure function: the same arguments give the same bits.

Training on Flower and the replay of an audit both call it.
"""

from dataclasses import dataclass, replace

import numpy as np
import torch

from fedaccord.data.partition import Indices
from fedaccord.training.arrays import Arrays
from fedaccord.training.engine import AfterStep, PlainEngine, TrainingPlan
from fedaccord.training.fine_tuning import fine_tune
from fedaccord.training.rules import LocalRule
from fedaccord.training.task import Model, Parameters

_NOTHING = np.array([], dtype=np.int64)


@dataclass(frozen=True)
class Turn:
    """Which round of which client it is, and the seed of everything random in it."""

    slot: int
    turn: int
    position: int
    """The client's position among all."""
    seed: int


def train_locally(
    model: Model,
    local: LocalRule,
    share: Indices,
    parameters: Arrays,
    turn: Turn,
    *,
    steps: int | None = None,
    after_step: AfterStep | None = None,
) -> Arrays:
    """The client's parameters after its own steps on its `share` of the model's examples.

    Only the first `steps` are taken if that is given; `after_step` is shown the parameters after
    each. Neither changes the steps themselves.
    """
    plan = replace(_plan(model, local, share, turn), first=turn.turn, steps=steps)
    (after,) = PlainEngine(after_step).rounds(plan, _tensors(parameters))
    return _arrays(after)


def fine_tune_locally(
    model: Model, local: LocalRule, share: Indices, parameters: Arrays, turn: Turn, *, epochs: int
) -> Arrays:
    """The client's own model after more epochs on its `share`, once the slot's last `turn` is over.

    As `fine_tune` has it for all clients in one process.
    """
    plan = _plan(model, local, share, turn)
    return _arrays(fine_tune(PlainEngine(), plan, _tensors(parameters), epochs)[turn.position])


def _plan(model: Model, local: LocalRule, share: Indices, turn: Turn) -> TrainingPlan:
    """A slot up to this round, in which nobody else takes part."""
    shares = [*[_NOTHING] * turn.position, share]
    return TrainingPlan(model, shares, turn.turn, local, turn.seed, turn.slot)


def _tensors(parameters: Arrays) -> Parameters:
    return {name: torch.from_numpy(array) for name, array in parameters.items()}


def _arrays(parameters: Parameters) -> Arrays:
    return {name: value.numpy() for name, value in parameters.items()}

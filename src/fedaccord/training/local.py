"""One client's part of a round, as a pure function: the same arguments give the same bits.

Training on Flower and the replay of an audit both call it.
"""

from dataclasses import dataclass

import numpy as np
import torch

from fedaccord.data.partition import Indices
from fedaccord.training.arrays import Arrays
from fedaccord.training.engine import (
    AfterStep,
    GradientStep,
    LocalEpochs,
    PlainEngine,
    TrainingPlan,
)
from fedaccord.training.task import Model

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
    local: GradientStep | LocalEpochs,
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
    shares = [*[_NOTHING] * turn.position, share]
    plan = TrainingPlan(
        model, shares, turn.turn, local, turn.seed, turn.slot, first=turn.turn, steps=steps
    )
    given = {name: torch.from_numpy(array) for name, array in parameters.items()}
    (after,) = PlainEngine(after_step).rounds(plan, given)
    return {name: value.numpy() for name, value in after.items()}

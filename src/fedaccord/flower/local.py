"""Training at a client, on exactly as many samples as it contributes."""

from math import prod

import numpy as np
import torch

from fedaccord.data.dataset import Dataset
from fedaccord.data.partition import Partition
from fedaccord.errors import InvalidInput
from fedaccord.protocol.parameters import Arrays
from fedaccord.protocol.terms import Terms
from fedaccord.training.engine import GradientStep, LocalEpochs, PlainEngine, TrainingPlan
from fedaccord.training.task import Model, find_task

_LARGEST_LAYER = 100_000_000
"""Numbers of an example times classes: what softmax can learn on a usual machine."""
_NOTHING = np.array([], dtype=np.int64)


class LocalTraining:
    """The rounds of one client, the same as an engine in one process would have it do."""

    def __init__(
        self,
        model: Model,
        local: GradientStep | LocalEpochs,
        partition: Partition,
        *,
        position: int,
        drawn: int = 0,
        seed: int = 0,
        scale: float = 1.0,
    ) -> None:
        """`position` is the client's among all; its examples are the `drawn`-th of a draw."""
        self.model, self.local, self.partition = model, local, partition
        self.position, self.drawn, self.seed, self.scale = position, drawn, seed, scale
        self._slot, self._examples = 0, _NOTHING

    def __call__(self, slot: int, turn: int, amount: int, parameters: Arrays) -> Arrays:
        """The client's parameters after its own steps from the global ones."""
        if self._slot != slot:
            self._slot, self._examples = slot, self.partition.draw(slot)[self.drawn]
        share = self._examples[: scaled_amount(amount, self.scale)]
        shares = [*[_NOTHING] * self.position, share]
        plan = TrainingPlan(self.model, shares, turn, self.local, self.seed, slot, first=turn)
        given = {name: torch.from_numpy(array) for name, array in parameters.items()}
        (after,) = PlainEngine().rounds(plan, given)
        return {name: value.numpy() for name, value in after.items()}


def scaled_amount(amount: int, scale: float) -> int:
    """On how many examples a client trains that contributes so many samples."""
    return max(1, round(amount * scale)) if amount else 0


def local_steps(terms: Terms) -> GradientStep | LocalEpochs:
    """What a client does in a round."""
    training = terms.training
    if training.local == "epochs":
        return LocalEpochs(training.rate, training.batch, training.epochs)
    return GradientStep(training.rate)


def empty_model(terms: Terms) -> Model:
    """The terms' model for whoever has no data, as the server."""
    training = terms.training
    if prod(training.shape) * training.classes > _LARGEST_LAYER:
        raise InvalidInput(
            "shape and classes: the numbers of an example times the classes must be "
            f"{_LARGEST_LAYER:,} or less"
        )
    inputs, labels = np.zeros((1, *training.shape), np.float32), np.zeros(1, np.int64)
    nothing = Dataset(terms.name, inputs, labels, inputs, labels, training.classes)
    return Model(find_task(training.task), nothing)

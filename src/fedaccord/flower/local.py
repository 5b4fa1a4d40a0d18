"""Training at a client, on as many examples as it contributes."""

from collections.abc import Callable, Sequence
from math import prod
from pathlib import Path

import numpy as np
import torch

from fedaccord.data.dataset import Dataset, Inputs, Labels
from fedaccord.data.inputs import checked, read_examples
from fedaccord.data.partition import Partition
from fedaccord.data.scale import examples_for
from fedaccord.errors import InvalidInput
from fedaccord.protocol.parameters import Arrays
from fedaccord.protocol.terms import Terms
from fedaccord.training.engine import GradientStep, LocalEpochs
from fedaccord.training.local import Turn, train_locally
from fedaccord.training.task import Model, find_task

_LARGEST_LAYER = 100_000_000
"""Numbers per example times classes: what softmax can learn on an ordinary machine."""
_NOTHING = np.array([], dtype=np.int64)


class LocalTraining:
    """The rounds of one client, the same as those of an engine in one process."""

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
        """`position` is the client's position among all; `drawn` its position in the partition."""
        self.model, self.local, self.partition = model, local, partition
        self.position, self.drawn, self.seed, self.scale = position, drawn, seed, scale
        self._slot, self._examples = 0, _NOTHING

    def __call__(
        self, slot: int, turn: int, amount: int, parameters: Arrays, *, first: int = 0
    ) -> Arrays:
        """The client's parameters after its own steps from the global ones."""
        if self._slot != slot:
            self._slot, self._examples = slot, self.partition.draw(slot)[self.drawn]
        start, end = examples_for([first, first + amount], self.scale).tolist()
        share = self._examples[int(start) : int(end)]
        where = Turn(slot, turn, self.position, self.seed)
        return train_locally(self.model, self.local, share, parameters, where)


def local_steps(terms: Terms) -> GradientStep | LocalEpochs:
    """What a client does in a round."""
    training = terms.training
    if training.local == "epochs":
        return LocalEpochs(training.rate, training.batch, training.epochs)
    return GradientStep(training.rate)


def empty_model(terms: Terms, places: Sequence[Path] = ()) -> Model:
    """The terms' model for someone without data, like the server.

    The code of a task of one's own is looked for in `places`, then on the Python path.
    """
    training = terms.training
    if prod(training.shape) * training.classes > _LARGEST_LAYER:
        raise InvalidInput(
            "shape and classes: the numbers per example times the classes must be at most "
            f"{_LARGEST_LAYER:,}"
        )
    inputs, labels = np.zeros((1, *training.shape), np.float32), np.zeros(1, np.int64)
    nothing = Dataset(terms.name, inputs, labels, inputs, labels, training.classes)
    return Model(find_task(training.task, training.code, places), nothing)


def score(
    model: Model, parameters: Arrays, inputs: Inputs, labels: Labels
) -> tuple[float, float] | None:
    """Loss and accuracy of these parameters; None if there is no example to measure with."""
    if len(labels) == 0:
        return None
    given = {name: torch.from_numpy(array) for name, array in parameters.items()}
    return model.evaluate(given, inputs, labels)


def evaluation(
    path: Path, terms: Terms, places: Sequence[Path] = ()
) -> Callable[[Arrays], tuple[float, float] | None]:
    """Gives the loss and the accuracy of a model on the examples in a file."""
    inputs, labels = checked(*read_examples(path))
    shape, training = tuple(inputs.shape[1:]), terms.training
    if shape != training.shape:
        wrong = f"its examples have the shape {shape}, the terms {training.shape}"
        raise InvalidInput(wrong, str(path))
    if labels.dtype.kind == "U" or labels.max() >= training.classes:
        raise InvalidInput(f"its labels must be from 0 to {training.classes - 1}", str(path))
    model = empty_model(terms, places)
    return lambda parameters: score(model, parameters, inputs, labels)

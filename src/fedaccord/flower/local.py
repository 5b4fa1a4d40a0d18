"""Training at a client, on as many examples as it contributes."""

from collections.abc import Callable, Sequence
from math import isfinite, prod
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from fedaccord.data.dataset import Dataset, Inputs, Labels
from fedaccord.data.inputs import checked, read_examples
from fedaccord.data.partition import Indices, Partition
from fedaccord.data.scale import examples_for
from fedaccord.data.survival import is_survival, signed_times
from fedaccord.errors import InvalidInput
from fedaccord.protocol.facts import Scored
from fedaccord.protocol.parameters import Arrays
from fedaccord.protocol.terms import Terms
from fedaccord.protocol.training_terms import optimiser_in_terms
from fedaccord.training.estimates import Estimate, estimate_measure
from fedaccord.training.local import Turn, fine_tune_locally, train_locally
from fedaccord.training.optimisers import ServerOptimiser
from fedaccord.training.rules import GradientStep, LocalEpochs, LocalRule, LocalSteps, MiniBatches
from fedaccord.training.task import Model, find_task

_LARGEST_LAYER = 100_000_000
"""Numbers per example times classes: what softmax can learn on an ordinary machine."""
_NOTHING = np.array([], dtype=np.int64)


class LocalTraining:
    """The rounds of one client, the same as those of an engine in one process."""

    def __init__(
        self,
        model: Model,
        local: LocalRule,
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
        share, where = self._share(slot, amount, first), Turn(slot, turn, self.position, self.seed)
        return train_locally(self.model, self.local, share, parameters, where)

    def fine_tune(
        self, slot: int, last: int, amount: int, parameters: Arrays, *, epochs: int
    ) -> Arrays:
        """The client's own model after more epochs; `last` is the slot's last round."""
        share, where = self._share(slot, amount), Turn(slot, last, self.position, self.seed)
        return fine_tune_locally(self.model, self.local, share, parameters, where, epochs=epochs)

    def _share(self, slot: int, amount: int, first: int = 0) -> Indices:
        """The examples for so many samples of a slot."""
        if self._slot != slot:
            self._slot, self._examples = slot, self.partition.draw(slot)[self.drawn]
        start, end = examples_for([first, first + amount], self.scale).tolist()
        return self._examples[int(start) : int(end)]


def local_steps(terms: Terms) -> LocalRule:
    """What a client does in a round."""
    training = terms.training
    if training.local == "gradient step":
        return GradientStep(training.rate)
    pull, optimiser = training.proximal, training.local_optimiser
    if training.steps is not None:
        return LocalSteps(
            training.rate, training.batch, training.steps, proximal=pull, optimiser=optimiser
        )
    return LocalEpochs(
        training.rate, training.batch, training.epochs, proximal=pull, optimiser=optimiser
    )


def training_in_terms(local: LocalRule, server: ServerOptimiser) -> dict[str, Any]:
    """What clients do in a round, and the server after it, as the terms have it."""
    rules: dict[str, Any] = {"local": "gradient step", "rate": local.rate}
    if isinstance(local, MiniBatches):
        rules |= {
            "batch": local.batch,
            "proximal": local.proximal,
            "local_optimiser": local.optimiser,
        }
    if isinstance(local, LocalEpochs):
        rules |= {"local": "epochs", "epochs": local.epochs}
    elif isinstance(local, LocalSteps):
        rules |= {"local": "steps", "steps": local.steps}
    return rules | optimiser_in_terms(server)


def empty_model(terms: Terms, places: Sequence[Path] = ()) -> Model:
    """The terms' model for someone without data, like the server.

    The code of a task of one's own is looked for in `places`, then on the Python path.
    """
    training = terms.training
    if prod(training.shape) * max(1, training.classes) > _LARGEST_LAYER:
        raise InvalidInput(
            "shape and classes: the numbers per example times the classes must be at most "
            f"{_LARGEST_LAYER:,}"
        )
    inputs, labels = np.zeros((1, *training.shape), np.float32), np.zeros(1, np.int64)
    nothing = Dataset(terms.name, inputs, labels, inputs, labels, training.classes)
    return Model(find_task(training.task, training.code, places), nothing)


def score(model: Model, parameters: Arrays, inputs: Inputs, labels: Labels) -> Scored | None:
    """How good these parameters are; None if the examples do not tell.

    Of survival times no two may be comparable.
    """
    if len(labels) == 0:
        return None
    given = {name: torch.from_numpy(array) for name, array in parameters.items()}
    loss, accuracy = model.evaluate(given, inputs, labels)
    if not (isfinite(loss) and isfinite(accuracy)):
        return None
    return Scored(loss, accuracy, model.task.measure.name)


def score_on(model: Model, parameters: Arrays, chosen: Indices) -> Estimate | None:
    """The measure on these test examples of the model, with its interval; None as in `score`."""
    if len(chosen) == 0:
        return None
    given = {name: torch.from_numpy(array) for name, array in parameters.items()}
    losses, errors = model.evaluate_each(given, chosen)
    if not (np.isfinite(losses).all() and np.isfinite(errors).all()):
        return None
    return estimate_measure(errors[None], model.weight(chosen))


def evaluation(
    path: Path, terms: Terms, places: Sequence[Path] = ()
) -> Callable[[Arrays], Scored | None]:
    """Says how good a model is on the examples in a file."""
    inputs, labels = checked(*read_examples(path))
    shape, training = tuple(inputs.shape[1:]), terms.training
    if shape != training.shape:
        wrong = f"its examples have the shape {shape}, the terms {training.shape}"
        raise InvalidInput(wrong, str(path))
    if (wrong_labels := _wrong_labels(labels, terms)) is not None:
        raise InvalidInput(wrong_labels, str(path))
    model, truth = empty_model(terms, places), signed_times(labels) if training.survival else labels
    return lambda parameters: score(model, parameters, inputs, truth)


def _wrong_labels(labels: npt.NDArray[Any], terms: Terms) -> str | None:
    """Why these labels are not those of the terms."""
    training = terms.training
    if (other := training.other_labels(survival=is_survival(labels))) is not None:
        return other
    if training.survival or (labels.dtype.kind != "U" and labels.max() < training.classes):
        return None
    return f"its labels must be from 0 to {training.classes - 1}"

"""What is trained: a PyTorch module and a loss. A task knows no engine.

Any `torch.nn.Module` will do that has parameters only: a model that also updates buffers while it
trains (batch normalisation) has no weighted average that FedAvg could take.

>>> import torch
>>> from fedaccord.data.dataset import load_dataset
>>> digits = load_dataset("digits")
>>> task = Task("one layer", lambda dataset: torch.nn.Sequential(
...     torch.nn.Flatten(), torch.nn.Linear(64, dataset.classes)))
>>> model = Model(task, digits)
>>> loss, accuracy = model.evaluate(model.start(seed=1), digits.test_inputs, digits.test_labels)
>>> 0.0 <= accuracy <= 1.0
True
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import torch
from torch import Tensor, nn
from torch.func import functional_call

from fedaccord.data.dataset import Dataset, Inputs, Labels
from fedaccord.errors import InvalidInput
from fedaccord.training.threads import one_thread

Parameters: TypeAlias = dict[str, Tensor]
"""A model's parameters by name."""

_EVALUATED_AT_ONCE = 8_192


def cross_entropy(outputs: Tensor, labels: Tensor) -> Tensor:
    """The usual loss of a classifier, one number an example."""
    return nn.functional.cross_entropy(outputs, labels, reduction="none")


@dataclass(frozen=True)
class Task:
    """How to build a model for a dataset, and what its outputs cost, example by example."""

    name: str
    build: Callable[[Dataset], nn.Module]
    loss: Callable[[Tensor, Tensor], Tensor] = cross_entropy


class Model:
    """A task on a dataset. It holds no parameters: they are passed in and out."""

    def __init__(self, task: Task, dataset: Dataset) -> None:
        """Build the module once; `start` says with which parameters to begin."""
        self.task = task
        self.dataset = dataset
        self.module = task.build(dataset)
        if any(True for _ in self.module.buffers()):
            raise InvalidInput(f"task {task.name}: its model has buffers, which have no average")

    def start(self, seed: int) -> Parameters:
        """Parameters to begin with, drawn as the module draws them."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            fresh = self.task.build(self.dataset)
        return {name: value.detach().clone() for name, value in fresh.named_parameters()}

    def losses(self, parameters: Parameters, inputs: Tensor, labels: Tensor) -> Tensor:
        """The loss of each example."""
        return self.task.loss(functional_call(self.module, parameters, (inputs,)), labels)

    def evaluate(
        self, parameters: Parameters, inputs: Inputs, labels: Labels
    ) -> tuple[float, float]:
        """Mean loss and accuracy.

        On one thread: for models this small two would mostly wait for each other.
        """
        total, right = 0.0, 0
        with torch.no_grad(), one_thread():
            for n in range(0, len(labels), _EVALUATED_AT_ONCE):
                part = torch.from_numpy(inputs[n : n + _EVALUATED_AT_ONCE])
                truth = torch.from_numpy(labels[n : n + _EVALUATED_AT_ONCE])
                outputs = functional_call(self.module, parameters, (part,))
                total += float(self.task.loss(outputs, truth).sum())
                right += int((outputs.argmax(dim=1) == truth).sum())
        return total / len(labels), right / len(labels)


def _softmax(dataset: Dataset) -> nn.Module:
    """Softmax regression: one linear layer."""
    return nn.Sequential(nn.Flatten(), nn.Linear(math.prod(dataset.shape), dataset.classes))


def _mlp(dataset: Dataset) -> nn.Module:
    """One hidden layer of 64."""
    return nn.Sequential(
        nn.Flatten(),
        nn.Linear(math.prod(dataset.shape), 64),
        nn.ReLU(),
        nn.Linear(64, dataset.classes),
    )


def _cnn(dataset: Dataset) -> nn.Module:
    """Two small convolutions, for images only."""
    if len(dataset.shape) != 2:
        raise InvalidInput(f"task cnn: needs images, {dataset.name} has none")
    height, width = (size // 2 for size in dataset.shape)
    return nn.Sequential(
        nn.Unflatten(1, (1, dataset.shape[0])),
        nn.Conv2d(1, 8, kernel_size=3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(8, 16, kernel_size=3, padding=1),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(16 * height * width, dataset.classes),
    )


TASKS = {
    name: Task(name, build)
    for name, build in {"softmax": _softmax, "mlp": _mlp, "cnn": _cnn}.items()
}


def find_task(name: str) -> Task:
    """A built-in task by name."""
    if name not in TASKS:
        raise InvalidInput(f"there is no task called {name!r}: choose one of {', '.join(TASKS)}")
    return TASKS[name]

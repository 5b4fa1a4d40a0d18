"""What is trained: a PyTorch module, a loss, and a measure to judge by. A task knows no engine.

Any `torch.nn.Module` without buffers will do: a model that also updates buffers while it trains
(batch normalisation) has no weighted average that FedAvg could take. It trains in the precision of
its own parameters, leaves those alone that need no gradient, and is evaluated in `eval` mode.
A task of one's own is named `module:function` (`fedaccord.training.code`), or added by another
package under a name, by the entry point `fedaccord.tasks`.

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

import copy
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias

import torch
from torch import Tensor, nn
from torch.func import functional_call

from fedaccord.checks import shown, unknown
from fedaccord.data.dataset import Dataset, Inputs, Labels
from fedaccord.data.partition import Indices
from fedaccord.errors import FedaccordError, InvalidInput
from fedaccord.numbers import FloatArray
from fedaccord.plugins import find, names_in
from fedaccord.record import Value
from fedaccord.training.code import check_code, read_code, run_code
from fedaccord.training.cox import cox_loss
from fedaccord.training.measures import ACCURACY, CONCORDANCE, Measure
from fedaccord.training.threads import one_thread

Parameters: TypeAlias = dict[str, Tensor]
"""A model's parameters by name."""

_EVALUATED_AT_ONCE = 8_192
_TRIED = 64


def cross_entropy(outputs: Tensor, labels: Tensor) -> Tensor:
    """The usual loss of a classifier, one number per example."""
    return nn.functional.cross_entropy(outputs, labels, reduction="none")


@dataclass(frozen=True)
class Task:
    """How to build a model for a dataset, its loss, one number per example, and its measure."""

    name: str
    build: Callable[[Dataset], nn.Module]
    loss: Callable[[Tensor, Tensor], Tensor] = cross_entropy
    measure: Measure = ACCURACY
    separable: bool = True
    """Whether an example's loss is the same whatever else is in its batch; Cox's is not."""
    code: str | None = None
    """The digest of its code (`fedaccord.training.code`), if it was found by `module:function`."""


class Model(Value):
    """A task on a dataset. It holds no parameters: they are passed in and out."""

    def __init__(self, task: Task, dataset: Dataset) -> None:
        """Build the module once; `start` gives the parameters to begin with."""
        _check_labels(task, dataset)
        self.task = task
        self.dataset = dataset
        self.module = self._build(seed=0)
        if any(True for _ in self.module.buffers()):
            raise InvalidInput(f"task {task.name}: its model has buffers, which cannot be averaged")
        trained = trained_parameters(self.module)
        if not trained:
            raise InvalidInput(f"task {task.name}: its model has no parameters to train")
        if any("\0" in name for name, _ in self.module.named_parameters()):
            raise InvalidInput(f"task {task.name}: a parameter's name contains a NUL character")
        self.dtype = next(iter(trained.values())).dtype
        self._frozen: Parameters = {}
        self._measured = copy.deepcopy(self.module).eval()
        self.random = self._draws()
        """Whether it draws random numbers while it trains, as dropout does."""

    def _made_of(self) -> dict[str, Any]:
        """The module follows from the task and the dataset."""
        return {"task": self.task, "dataset": self.dataset, "_frozen": self._frozen}

    def __setstate__(self, state: Any) -> None:
        """Build the module again."""
        made_of, _ = state
        Model.__init__(self, made_of["task"], made_of["dataset"])
        self._frozen = made_of["_frozen"]

    def _build(self, seed: int) -> nn.Module:
        """A module whose parameters depend on the seed alone."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            try:
                module = self.task.build(self.dataset)
            except FedaccordError:
                raise
            except Exception as error:
                raise FedaccordError(
                    f"task {self.task.name}: its model cannot be built for {self.dataset.name} "
                    f"({type(error).__name__}: {error})"
                ) from error
        if not isinstance(module, nn.Module):
            raise InvalidInput(
                f"task {self.task.name}: must build a torch.nn.Module, got {type(module).__name__}"
            )
        return module

    def _draws(self) -> bool:
        """Put some examples through the module: has the state of PyTorch's rng changed?"""
        with torch.random.fork_rng(devices=[]):
            before = torch.get_rng_state()
            some = slice(_TRIED)  # more than one: what is drawn may depend on the example
            self.losses({}, self.inputs[some], torch.from_numpy(self.dataset.labels[some]))
            return not torch.equal(before, torch.get_rng_state())

    @cached_property
    def inputs(self) -> Tensor:
        """All examples to train on, in the precision of the parameters."""
        return torch.from_numpy(self.dataset.inputs).to(self.dtype)

    def start(self, seed: int) -> Parameters:
        """Parameters to begin with, initialised as the module does it."""
        fresh = self._build(seed)
        return {name: value.detach().clone() for name, value in fresh.named_parameters()}

    def freeze(self, parameters: Parameters) -> tuple["Model", Parameters]:
        """The model with the frozen parameters filled in, and the parameters that are trained."""
        trained = trained_parameters(self.module)
        one = object.__new__(Model)
        vars(one).update(vars(self))
        one._frozen = self._frozen | {n: v for n, v in parameters.items() if n not in trained}
        return one, {name: value for name, value in parameters.items() if name in trained}

    def losses(self, parameters: Parameters, inputs: Tensor, labels: Tensor) -> Tensor:
        """The loss of each example, as in training."""
        every = self._frozen | parameters
        return self._losses(functional_call(self.module, every, (inputs,)), labels)

    def _losses(self, outputs: Tensor, labels: Tensor) -> Tensor:
        losses = self.task.loss(outputs, labels)
        if losses.shape != labels.shape:
            raise InvalidInput(
                f"task {self.task.name}: its loss must give one number for each example "
                f'(reduction="none"), not the shape {tuple(losses.shape)}'
            )
        return losses

    def evaluate(
        self, parameters: Parameters, inputs: Inputs, labels: Labels
    ) -> tuple[float, float]:
        """Mean loss, and the task's measure: accuracy, or concordance."""
        losses, errors = self._evaluate(parameters, inputs, labels)
        size = len(labels)
        return float(losses.sum()) / size, (size - float(errors.sum())) / size

    def evaluate_each(
        self, parameters: Parameters, chosen: Indices | None = None
    ) -> tuple[FloatArray, FloatArray]:
        """Loss and error of each test example, or of the chosen ones by themselves.

        The mean of the errors is 1 minus the measure.
        """
        some = slice(None) if chosen is None else chosen
        return self._evaluate(
            parameters, self.dataset.test_inputs[some], self.dataset.test_labels[some]
        )

    def weight(self, chosen: Indices) -> float:
        """Of the task's measure on these test examples (`Measure.weight`)."""
        return self.task.measure.weight(torch.from_numpy(self.dataset.test_labels[chosen]))

    def _evaluate(
        self, parameters: Parameters, inputs: Inputs, labels: Labels
    ) -> tuple[FloatArray, FloatArray]:
        """Loss and error of each example.

        Outputs are computed in parts. Loss and measure are then taken of all of them, as an
        example's may depend on the others. On one thread: with models this small, two would mostly
        wait for each other.
        """
        with torch.no_grad(), one_thread():
            parts = [
                functional_call(
                    self._measured,
                    parameters,
                    (torch.from_numpy(inputs[n : n + _EVALUATED_AT_ONCE]).to(self.dtype),),
                )
                for n in range(0, len(labels), _EVALUATED_AT_ONCE)
            ]
            outputs, truth = torch.cat(parts), torch.from_numpy(labels)
            found = self._losses(outputs, truth), self.task.measure.errors(outputs, truth)
        losses, errors = (each.to(torch.float64).numpy() for each in found)
        return losses, errors


def _check_labels(task: Task, dataset: Dataset) -> None:
    """Refuse a task for classes on survival times, and the other way round."""
    if task.measure.survival and not dataset.survival:
        raise InvalidInput(
            f"task {task.name}: learns survival times, but {dataset.name} has classes"
        )
    if dataset.survival and not task.measure.survival:
        raise InvalidInput(
            f"task {task.name}: learns classes, but {dataset.name} has survival times, which the "
            "task cox learns (a task of your own needs its loss and its measure)"
        )


def trained_parameters(module: nn.Module) -> dict[str, nn.Parameter]:
    """The parameters that need a gradient; the others are frozen."""
    return {name: value for name, value in module.named_parameters() if value.requires_grad}


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
        raise InvalidInput(f"task cnn: needs images, but {dataset.name} has none")
    if min(dataset.shape) < 2:
        raise InvalidInput(
            f"task cnn: needs images of at least 2 x 2 pixels, but those of {dataset.name} have "
            f"{dataset.shape[0]} x {dataset.shape[1]}"
        )
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


def _risk(dataset: Dataset) -> nn.Module:
    """One linear layer to a risk score. A bias would cancel in the loss."""
    return nn.Sequential(nn.Flatten(), nn.Linear(math.prod(dataset.shape), 1, bias=False))


TASKS = {
    "softmax": Task("softmax", _softmax),
    "mlp": Task("mlp", _mlp),
    "cnn": Task("cnn", _cnn),
    "cox": Task("cox", _risk, cox_loss, CONCORDANCE, separable=False),
}


def usual_task(dataset: Dataset) -> Task:
    """The task for a dataset unless another is asked for: `cox` for survival times."""
    return TASKS["cox" if dataset.survival else "softmax"]


def find_task(name: str, code: str | None = None, places: Sequence[Path] = ()) -> Task:
    """A task by name: a built-in one, one that another package adds, or one's own.

    One's own is `module:function`, where the function takes a dataset and returns a module, or
    `module:name` of a `Task`, which may have a loss of its own. It is looked for in `places`, then
    on the Python path; `model.py:build` names a file. With the digest of its `code` it is run only
    if it has that digest.
    """
    if not isinstance(name, str):
        hint = "; Task(name, function) makes one of a function" if callable(name) else ""
        raise InvalidInput(
            f"must be a name or a fedaccord.training.Task, got {shown(name)}{hint}", field="task"
        )
    if ":" in name:
        return _own_task(name, code, places)
    found = find("tasks", name, TASKS)
    if found is None:
        known = names_in("tasks", TASKS)
        raise InvalidInput(f"there is no task called {name!r}: {unknown(name, known)}")
    if not isinstance(found, Task):
        raise FedaccordError(
            f"{name}: the entry point must be a fedaccord.training.Task, got {type(found).__name__}"
        )
    return replace(found, name=name)  # terms and checkpoints find it again by this name


def _own_task(name: str, digest: str | None, places: Sequence[Path]) -> Task:
    code = read_code(name, places) if digest is None else check_code(name, digest, places)
    found = run_code(name, code)
    if isinstance(found, Task):
        return replace(found, name=name, code=code.digest)
    if not callable(found):
        raise InvalidInput(
            f"{name}: must be a function of a dataset, or a fedaccord.training.Task, "
            f"got {type(found).__name__}"
        )
    return Task(name, found, code=code.digest)

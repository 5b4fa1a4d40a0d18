"""What a trial is set up from: clients, a dataset, a task, and a scale that makes them fit.

A consortium counts in samples, a dataset in examples, and it may be the smaller of the two. Then
one scale, in examples per sample, converts what clients have and what they contribute, so that each
client's share of the total stays the same.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from fedaccord.checks import check_installed, check_number, check_type, check_whole, shown
from fedaccord.data.dataset import Dataset, load_source
from fedaccord.data.own import OwnPartition, read_data
from fedaccord.data.partition import Partition, RandomPartition, SkewedPartition
from fedaccord.data.scale import fitting_scale, scaled_sizes
from fedaccord.errors import InvalidInput
from fedaccord.game.consortium import Consortium
from fedaccord.numbers import FloatArray, count

if TYPE_CHECKING:
    from fedaccord.training.course import Course
    from fedaccord.training.optimisers import ServerOptimiser
    from fedaccord.training.records import Score
    from fedaccord.training.rules import LocalRule
    from fedaccord.training.task import Model, Task

Progress: TypeAlias = Callable[[int, int, str], None]
"""Called with the steps done so far, the number of steps (0: not known), and what is being done."""


@dataclass(frozen=True)
class RoundScore:
    """How well the model of one run does after a round."""

    profile: str
    seed: int
    slot: int
    """Counted from 1, as are rounds."""
    round: int
    score: "Score"
    measure: str
    """What the score's accuracy is: "accuracy", or "concordance"."""


AfterRound: TypeAlias = Callable[[RoundScore], None]
"""Called after each round of each run. For clients that all train alone: once they are through."""

_ROUNDS = 50
"""In a slot, as in the paper, where no consortium says otherwise."""


@dataclass(frozen=True)
class Clients:
    """Who trains, on how much at most, and for how many rounds."""

    names: Sequence[str]
    samples: FloatArray
    rounds: int = _ROUNDS
    name: str = "contributions"
    """What all of them together are called."""


def clients_of(consortium: Consortium) -> Clients:
    """The clients of a consortium."""
    return Clients(
        consortium.names, consortium.samples, int(consortium.rounds), str(consortium.name)
    )


def build_course(
    clients: Clients,
    *,
    dataset: str | Dataset | None = None,
    data: Any = None,
    task: "str | Task | None" = None,
    local: "LocalRule | None" = None,
    server: "ServerOptimiser | str | None" = None,
    fine_tuning: int = 0,
    rounds: int | None = None,
    skew: float | None = None,
    scale: float | None = None,
    progress: Progress | None = None,
) -> "Course":
    """What all runs of a trial have in common; the arguments are those of `fedaccord.train`."""
    check_installed("training", "torch", "sklearn")

    from fedaccord.training.course import Course

    if dataset is not None and data is not None:
        raise InvalidInput("cannot be combined with data, which is another one", field="dataset")
    if rounds is not None:
        check_whole("rounds", rounds, least=1)
    if scale is not None:
        check_number("scale", scale, above=0)
    source = (
        find_source(dataset, clients.names, progress)
        if data is None
        else _given(data, clients.names, progress)
    )
    if isinstance(source, Dataset):
        partition, scale = _drawn(clients, source, skew, scale)
    else:
        partition, scale = _own(clients, source, skew, scale)
    return Course(
        model=find_model(task, partition(0).dataset),
        partition=partition,
        rounds=rounds or clients.rounds,
        local=local_steps(local),
        server=server_optimiser(server),
        scale=scale,
        names=clients.names,
        fine_tuning=fine_tuning,
    )


def local_steps(local: "LocalRule | None") -> "LocalRule":
    """What a client does in a round; one gradient step unless something else is asked for."""
    from fedaccord.training.rules import GradientStep, LocalEpochs, LocalSteps

    if local is None:
        return GradientStep()
    check_type("local", local, GradientStep, LocalEpochs, LocalSteps)
    return local


def server_optimiser(server: "ServerOptimiser | str | None") -> "ServerOptimiser":
    """What the server does with the average: an optimiser itself, or by name; FedAvg if none."""
    from fedaccord.training.optimisers import FEDAVG, find_optimiser

    if server is None:
        return FEDAVG
    if isinstance(server, str):
        return find_optimiser(server)
    if not (callable(getattr(server, "start", None)) and callable(getattr(server, "step", None))):
        raise InvalidInput(
            f"must be a name or a server optimiser, such as FedAdam(), got {shown(server)}",
            field="server",
        )
    return server


def find_model(task: "str | Task | None", dataset: Dataset) -> "Model":
    """A task, itself or by name, on a dataset whose test can judge it.

    Unless a task is asked for, it is the usual one for the dataset.
    """
    from fedaccord.training.task import Model, Task, find_task, usual_task

    if task is None:
        task = usual_task(dataset)
    model = Model(task if isinstance(task, Task) else find_task(task), dataset)
    if np.isnan(model.evaluate(model.start(0), dataset.test_inputs, dataset.test_labels)[1]):
        raise InvalidInput(
            f"{model.task.measure.name} cannot be measured: of no two test examples is it known "
            "whose event came first",
            source=dataset.name,
        )
    return model


def find_source(
    dataset: str | Dataset | None, names: Sequence[str] | None, progress: Progress | None
) -> OwnPartition | Dataset:
    """A dataset itself, or by name; `digits` unless one is named.

    If it comes with a partition, clients named after its centres have these centres' examples;
    `names` is None if the centres are to be the clients.
    """
    if isinstance(dataset, Dataset):
        return dataset
    if dataset is not None and not isinstance(dataset, str):
        raise InvalidInput(
            "must be a name or a Dataset, which fedaccord.data.as_dataset makes of arrays",
            field="dataset",
        )

    def tell(file: str, done: int, of: int) -> None:
        if progress is not None:
            progress(100 * done // max(of, 1), 100, f"Downloading {file} (%)")

    found = load_source(dataset or "digits", tell)
    return found if isinstance(found, Dataset) or names is None else _by_centre(found, names)


def _by_centre(own: OwnPartition, names: Sequence[str]) -> OwnPartition | Dataset:
    """The parts of the centres that the clients are named after; all in one if none of them is."""
    others = [name for name in names if name not in own.names]
    if not others:
        return own.of(names)
    if len(others) == len(names):
        return own.pooled
    raise InvalidInput(
        f"{shown(others[0])} is no centre of {own.dataset.name}, but others are: name all clients "
        f"after its centres ({', '.join(own.names)}), or none of them",
        field="dataset",
    )


def own_part(own: OwnPartition, names: Sequence[str]) -> OwnPartition:
    """A partition in the order of these clients: by their names, or as it is if it has others."""
    if set(names) <= set(own.names):
        return own.of(names)
    if len(own.names) != len(names):
        raise InvalidInput(
            f"has {count(len(own.names), 'client')}, but there are {len(names)}", field="data"
        )
    return own


def _given(data: Any, names: Sequence[str], progress: Progress | None) -> OwnPartition | Dataset:
    """Data of each client's own, or one dataset for all, in any form that `read_data` accepts."""
    if isinstance(data, OwnPartition):
        return own_part(data, names)
    if progress is not None:
        progress(0, 0, "Reading")
    return read_data(data, names)


def _drawn(
    clients: Clients, dataset: Dataset, skew: float | None, scale: float | None
) -> tuple[Callable[[int], Partition], float]:
    """Every client draws its examples from one dataset."""
    if scale is None:
        scale = fitting_scale(dataset, clients.samples)
    sizes = scaled_sizes(clients.samples, scale)
    if problems := [
        f"{name}: at scale {scale:g} it has {size:,} examples, but {dataset.name} has only "
        f"{dataset.size:,}"
        for name, size in zip(clients.names, sizes, strict=True)
        if size > dataset.size
    ]:
        raise InvalidInput(problems)
    if skew is None:
        return partial(RandomPartition, dataset, sizes), scale
    check_number("skew", skew, above=0)
    SkewedPartition(dataset, sizes, skew)  # rejects a skew that cannot be drawn with
    return partial(SkewedPartition, dataset, sizes, skew), scale


def _own(
    clients: Clients, own: OwnPartition, skew: float | None, scale: float | None
) -> tuple[Callable[[int], Partition], float]:
    """Every client brings its own examples: at least as many as it has samples."""
    if skew is not None:
        raise InvalidInput(
            "cannot be combined with data, where each client has its own", field="skew"
        )
    scale = 1.0 if scale is None else scale
    needed = scaled_sizes(clients.samples, scale)
    if problems := [
        f"{name}: has {has:,} examples, but {needs:,} samples in the consortium"
        if scale == 1
        else f"{name}: has {has:,} examples, but at scale {scale:g} it needs {needs:,}"
        for name, has, needs in zip(clients.names, own.sizes, needed, strict=True)
        if has < needs
    ]:
        raise InvalidInput(problems, source=own.dataset.name)
    return own.reordered, scale

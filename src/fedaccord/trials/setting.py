"""What a trial is set up from: clients, a dataset, a task, and a scale that makes them fit.

A consortium counts in samples, a dataset in examples, and it may be the smaller of the two. Then
one scale, in examples per sample, converts what clients have and what they contribute, so that each
client's share of the total stays the same.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from fedaccord.checks import check_installed, check_number, check_type, check_whole
from fedaccord.data.dataset import Dataset, load_dataset
from fedaccord.data.own import OwnPartition, read_data
from fedaccord.data.partition import Partition, RandomPartition, SkewedPartition
from fedaccord.data.scale import fitting_scale, scaled_sizes
from fedaccord.errors import InvalidInput
from fedaccord.game.consortium import Consortium
from fedaccord.numbers import FloatArray

if TYPE_CHECKING:
    from fedaccord.training.course import Course
    from fedaccord.training.engine import GradientStep, LocalEpochs
    from fedaccord.training.task import Task

Progress: TypeAlias = Callable[[int, int, str], None]
"""Called with the steps done so far, the number of steps (0: not known), and what is being done."""

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
    task: "str | Task" = "softmax",
    local: "GradientStep | LocalEpochs | None" = None,
    rounds: int | None = None,
    skew: float | None = None,
    scale: float | None = None,
    progress: Progress | None = None,
) -> "Course":
    """What all runs of a trial have in common; the arguments are those of `fedaccord.train`."""
    check_installed("training", "torch", "sklearn")

    from fedaccord.training.course import Course
    from fedaccord.training.task import Model

    if dataset is not None and data is not None:
        raise InvalidInput("cannot be combined with data, which is another one", field="dataset")
    if rounds is not None:
        check_whole("rounds", rounds, least=1)
    if scale is not None:
        check_number("scale", scale, above=0)
    source = (
        find_dataset(dataset, progress) if data is None else _given(data, clients.names, progress)
    )
    if isinstance(source, Dataset):
        partition, scale = _drawn(clients, source, skew, scale)
    else:
        partition, scale = _own(clients, source, skew, scale)
    return Course(
        model=Model(find_task_of(task), partition(0).dataset),
        partition=partition,
        rounds=rounds or clients.rounds,
        local=local_steps(local),
        scale=scale,
        names=clients.names,
    )


def local_steps(local: "GradientStep | LocalEpochs | None") -> "GradientStep | LocalEpochs":
    """What a client does in a round; one gradient step unless something else is asked for."""
    from fedaccord.training.engine import GradientStep, LocalEpochs

    if local is None:
        return GradientStep()
    check_type("local", local, GradientStep, LocalEpochs)
    return local


def find_task_of(task: "str | Task") -> "Task":
    """A task itself, or by name."""
    from fedaccord.training.task import find_task

    return find_task(task) if isinstance(task, str) else task


def find_dataset(dataset: str | Dataset | None, progress: Progress | None) -> Dataset:
    """A dataset itself, or by name; `digits` unless one is named."""
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

    return load_dataset(dataset or "digits", tell)


def _given(data: Any, names: Sequence[str], progress: Progress | None) -> OwnPartition | Dataset:
    """Data of each client's own, or one dataset for all, in any form that `read_data` accepts."""
    if isinstance(data, OwnPartition):
        return data
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
        return lambda seed: RandomPartition(dataset, sizes, seed), scale
    check_number("skew", skew, above=0)
    SkewedPartition(dataset, sizes, skew)  # rejects a skew that cannot be drawn with
    return lambda seed: SkewedPartition(dataset, sizes, skew, seed), scale


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

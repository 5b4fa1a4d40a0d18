"""Options of commands that train, and what they make of a consortium."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from fedaccord.checks import check_installed
from fedaccord.cli.console import counting, working
from fedaccord.cli.options import from_one
from fedaccord.errors import InvalidInput, Problem

if TYPE_CHECKING:
    from collections.abc import Callable

    from fedaccord.data.dataset import Dataset
    from fedaccord.data.partition import Partition
    from fedaccord.game.consortium import Consortium
    from fedaccord.training.course import Course
    from fedaccord.training.engine import GradientStep, LocalEpochs
    from fedaccord.training.task import Model

DatasetOption = Annotated[
    str | None,
    typer.Option(
        "--dataset",
        metavar="DATASET",
        show_default=False,
        help="digits, breast-cancer or mnist (digits).",
    ),
]
DataOption = Annotated[
    Path | None,
    typer.Option(
        "--data",
        metavar="DIR",
        help="Your own data: a .npz or .csv file for each client, and one called test.",
    ),
]
TaskOption = Annotated[
    str,
    typer.Option(
        "--task", metavar="TASK", show_default=False, help="softmax, mlp or cnn (softmax)."
    ),
]
LocalOption = Annotated[
    Literal["gradient", "epochs"],
    typer.Option(
        "--local",
        show_default=False,
        help="In a round each client takes one step on all its samples (gradient, as in the "
        "paper), or goes through them in mini-batches (epochs).",
    ),
]
RateOption = Annotated[
    float | None, typer.Option("--rate", help="Learning rate (gradient: 1; epochs: 0.1).")
]
BatchOption = Annotated[
    int | None,
    typer.Option("--batch", callback=from_one, help="Epochs: samples in a mini-batch (64)."),
]
EpochsOption = Annotated[
    int | None, typer.Option("--epochs", callback=from_one, help="Epochs: how many a round (1).")
]
SkewOption = Annotated[
    float | None,
    typer.Option(
        "--skew",
        metavar="ALPHA",
        help="Unlike labels at unlike clients: Dirichlet, the smaller the more (none).",
    ),
]
ScaleOption = Annotated[
    float | None,
    typer.Option(
        "--scale",
        help="Examples of the dataset for one sample of a client (1, or what fits).",
    ),
]


def build_course(
    consortium: "Consortium",
    *,
    dataset: str | None,
    data: Path | None,
    task: str,
    local: "GradientStep | LocalEpochs",
    skew: float | None,
    scale: float | None,
) -> "Course":
    """What all runs have in common."""
    check_installed("training", "torch", "sklearn")

    from fedaccord.training.course import Course
    from fedaccord.training.task import Model, find_task

    chosen = find_task(task)
    if dataset is not None and data is not None:
        raise InvalidInput("--dataset: not together with --data, where everyone has its own")
    if data is None:
        partition, scale = _drawn(consortium, _load(dataset), skew, scale)
    else:
        partition, scale = _own(consortium, data, skew, scale)
    model = Model(chosen, partition(0).dataset)
    return Course(model, partition, int(consortium.rounds), local, scale, consortium.names)


def find_model(dataset: str | None, task: str) -> "Model":
    """A built-in task on a built-in dataset."""
    check_installed("training", "torch", "sklearn")

    from fedaccord.training.task import Model, find_task

    return Model(find_task(task), _load(dataset))


def read_local(
    local: str, rate: float | None, batch: int | None, epochs: int | None
) -> "GradientStep | LocalEpochs":
    """How a client trains in a round."""
    check_installed("training", "torch", "sklearn")

    from fedaccord.training.engine import GradientStep, LocalEpochs

    given = {"rate": rate, "batch": batch, "epochs": epochs}
    said: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    if local == "epochs":
        return LocalEpochs(**said)
    if batch is not None or epochs is not None:
        raise InvalidInput("--batch and --epochs: go with --local epochs only")
    return GradientStep(**said)


def _drawn(
    consortium: "Consortium", dataset: "Dataset", skew: float | None, scale: float | None
) -> tuple["Callable[[int], Partition]", float]:
    """Everyone draws from one dataset."""
    from fedaccord.data.partition import RandomPartition, SkewedPartition
    from fedaccord.data.scale import fitting_scale, scaled_sizes

    if scale is None:
        scale = fitting_scale(dataset, consortium.samples)
    sizes = scaled_sizes(consortium.samples, scale)
    if problems := [
        f"{name}: at scale {scale:g} it has {size:,} examples, but {dataset.name} has only "
        f"{dataset.size:,}"
        for name, size in zip(consortium.names, sizes, strict=True)
        if size > dataset.size
    ]:
        raise InvalidInput(problems)
    if skew is None:
        return lambda seed: RandomPartition(dataset, sizes, seed), scale
    try:
        SkewedPartition(dataset, sizes, skew)
    except InvalidInput as error:
        raise InvalidInput(
            Problem("skew", problem.message, "--skew") if problem.field == "alpha" else problem
            for problem in error.problems
        ) from None
    return lambda seed: SkewedPartition(dataset, sizes, skew, seed), scale


def _own(
    consortium: "Consortium", folder: Path, skew: float | None, scale: float | None
) -> tuple["Callable[[int], Partition]", float]:
    """Everyone brings its own: as many samples as the consortium's file says, or more."""
    from dataclasses import replace

    from fedaccord.data.own import load_folder
    from fedaccord.data.scale import scaled_sizes

    if skew is not None:
        raise InvalidInput("--skew: not together with --data, where everyone has its own")
    with working("Reading"):
        own = load_folder(folder, consortium.names)
    scale = 1.0 if scale is None else scale
    needed = scaled_sizes(consortium.samples, scale)
    if problems := [
        f"{name}: has {has:,} examples, but {needs:,} samples in the consortium"
        for name, has, needs in zip(consortium.names, own.sizes, needed, strict=True)
        if has < needs
    ]:
        raise InvalidInput(problems, source=str(folder))
    return lambda seed: replace(own, seed=seed), scale


def _load(dataset: str | None) -> "Dataset":
    """A built-in dataset, the first of them unless another is named."""
    from fedaccord.data.dataset import load_dataset

    name = dataset or "digits"
    with counting(f"Reading {name}", 100) as reach:
        return load_dataset(
            name,
            lambda file, done, of: reach(100 * done // max(of, 1), f"Downloading {file} (%)"),
        )

"""Who holds which data while it is valued: the same examples with every seed.

Everyone holds as many examples as a consortium says, times the scale: drawn from one dataset, or
from its own records if it has some, of which there may be more. `train` draws clients' examples
again with each seed. Here a client's data is what is valued, so it is drawn once; seeds change only
where training starts, and the order of examples.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from fedaccord.checks import check_installed, check_type, check_whole
from fedaccord.data.dataset import Dataset, Labels
from fedaccord.data.own import OwnPartition, read_data
from fedaccord.data.partition import Indices, Partition, skew_of
from fedaccord.data.scale import examples_for
from fedaccord.errors import InvalidInput
from fedaccord.game.consortium import Consortium
from fedaccord.trials.calibration import clients_in
from fedaccord.trials.setting import Clients, Progress, build_course, clients_of, find_source

if TYPE_CHECKING:
    from fedaccord.training.course import Course

_CLIENTS = 5
"""That share a dataset evenly where nobody says who has what."""


def holders_course(
    consortium: Consortium | None = None,
    *,
    dataset: str | Dataset | None = None,
    data: Any = None,
    clients: int | None = None,
    skew: float | None = None,
    seed: int = 0,
    progress: Progress | None = None,
    **training: Any,
) -> Course:
    """What all groups have in common: the model, and each client's data, with own tests if any.

    Args:
        consortium: who has how many samples. Without one, clients are those of the data, or
            `clients` (5 by default) share the dataset evenly.
        dataset: a dataset, or the name of one; its own centres are the clients if it has any.
        data: each client's own data, as for `fedaccord.train`.
        clients: how many share a dataset that nobody collected, without a consortium.
        skew: gives each of them its own mixture of labels, and a test with this mixture.
        seed: for what is drawn.
        progress: called while data is read.
        training: the other arguments of `fedaccord.train` that say how to train.
    """
    check_installed("training", "torch", "sklearn")
    if dataset is not None and data is not None:
        raise InvalidInput("cannot be combined with data, which is another one", field="dataset")
    if consortium is not None:
        check_type("consortium", consortium, Consortium)
    source = _source(consortium, dataset, data, progress)
    if clients is not None and (consortium is not None or isinstance(source, OwnPartition)):
        raise InvalidInput("the data, or the file, says who the clients are", field="clients")
    who = clients_of(consortium) if consortium else _clients(source, clients)
    course = build_course(who, data=source, skew=skew, progress=progress, **training)
    partition, sizes = course.partition(seed), examples_for(who.samples, course.scale).tolist()
    if isinstance(partition, OwnPartition) and sizes == list(partition.sizes):
        return course
    return _holding(course, partition, sizes)


def _source(
    consortium: Consortium | None,
    dataset: str | Dataset | None,
    data: Any,
    progress: Progress | None,
) -> OwnPartition | Dataset:
    """Data of each client's own, or one dataset for all."""
    names = None if consortium is None else consortium.names
    if data is not None:
        if isinstance(data, OwnPartition | Dataset):
            return data
        if progress is not None:
            progress(0, 0, "Reading")
        return read_data(data, clients_in(data) if names is None else names)
    return find_source(dataset, names, progress)


def _clients(source: OwnPartition | Dataset, number: int | None) -> Clients:
    """The clients that the data has, or this many that share it evenly."""
    if isinstance(source, OwnPartition):
        sizes = np.array(source.sizes, dtype=np.float64)
        return Clients(source.names, sizes, name=source.dataset.name)
    number = min(_CLIENTS, source.size) if number is None else number
    check_whole("clients", number, least=1, most=source.size)
    sizes = np.full(number, float(source.size // number))
    return Clients([f"client-{n}" for n in range(1, number + 1)], sizes, name=source.name)


def _holding(course: Course, partition: Partition, sizes: Sequence[int]) -> Course:
    """The course with so many of the examples that the partition draws now, with every seed."""
    from fedaccord.training.task import Model

    drawn = [own[:size] for own, size in zip(partition.draw(1), sizes, strict=True)]
    data = partition.dataset
    rows = np.concatenate(drawn)
    held = replace(data, inputs=data.inputs[rows], labels=data.labels[rows])
    tests = partition.tests
    if skew_of(partition) is not None:
        tests = [mixture_test(data.labels[own], data.test_labels) for own in drawn]
    own = OwnPartition(held, sizes, tuple(course.names), tests=tests)
    return replace(course, model=Model(course.model.task, held), partition=own.reordered)


def mixture_test(labels: Labels, test_labels: Labels) -> Indices:
    """As many test examples as there are with the mixture of these labels.

    >>> mixture_test(np.array([0, 0, 0, 1]), np.array([1, 0, 0, 1, 0, 2, 0, 0])).tolist()
    [0, 1, 2, 3, 4, 6, 7]
    """
    classes = max(int(labels.max()), int(test_labels.max())) + 1
    wanted = np.bincount(labels, minlength=classes) / len(labels)
    there = np.bincount(test_labels, minlength=classes)
    has = (wanted > 0) & (there > 0)
    number = float((there[has] / wanted[has]).min())
    take = np.where(has, np.maximum(np.rint(number * wanted), 1), 0).astype(int)
    found = [np.flatnonzero(test_labels == c)[:k] for c, k in enumerate(take.tolist())]
    return np.sort(np.concatenate(found))

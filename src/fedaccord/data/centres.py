"""Datasets that come with a partition: the records of several centres, each with its own test."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from fedaccord.checks import check_choice
from fedaccord.data.dataset import Dataset, Labels
from fedaccord.data.own import OwnPartition, one_after_the_other

Normalise: TypeAlias = Literal["centre", "pooled", "none"]
"""By the mean and deviation of the centre's own training records, of everyone's, or not at all."""
_WAYS: tuple[Normalise, ...] = ("centre", "pooled", "none")


@dataclass(frozen=True, eq=False)
class Centre:
    """The records of one centre, in a fixed order."""

    name: str
    inputs: npt.NDArray[np.float64]
    labels: Labels
    training: npt.NDArray[np.bool_]
    """Which of them are trained on; the others are its test."""


def normalised_columns(
    centres: Sequence[Centre], normalise: Normalise, columns: slice = slice(None)
) -> list[Centre]:
    """Some columns with mean 0 and standard deviation 1 (n - 1 in the denominator).

    Both are those of training records, so that nothing is learnt from a test. A column that is the
    same in all of them is only shifted to 0.
    """
    check_choice("normalise", normalise, _WAYS)
    if normalise == "none":
        return list(centres)
    own = [centre.inputs[centre.training, columns] for centre in centres]
    pooled = np.concatenate(own)
    return [
        _normalised(centre, pooled if normalise == "pooled" else trained, columns)
        for centre, trained in zip(centres, own, strict=True)
    ]


def _normalised(centre: Centre, trained: npt.NDArray[np.float64], columns: slice) -> Centre:
    deviation = trained.std(axis=0, ddof=1)
    scale = np.where(deviation > 0, deviation, 1.0)
    inputs = centre.inputs.copy()
    inputs[:, columns] = (inputs[:, columns] - trained.mean(axis=0)) / scale
    return replace(centre, inputs=inputs)


def partition_of(name: str, centres: Sequence[Centre], classes: int) -> OwnPartition:
    """All centres in one dataset; each trains on its own records, and has its own test."""
    dataset = Dataset(
        name=name,
        inputs=np.concatenate([one.inputs[one.training] for one in centres]),
        labels=np.concatenate([one.labels[one.training] for one in centres]),
        test_inputs=np.concatenate([one.inputs[~one.training] for one in centres]),
        test_labels=np.concatenate([one.labels[~one.training] for one in centres]),
        classes=classes,
    )
    return OwnPartition(
        dataset,
        sizes=[int(one.training.sum()) for one in centres],
        names=tuple(one.name for one in centres),
        tests=one_after_the_other([int((~one.training).sum()) for one in centres]),
    )

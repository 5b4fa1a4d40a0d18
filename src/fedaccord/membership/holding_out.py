"""A part of everyone's training examples, held out: what is chosen by it is not chosen by the test.

>>> from fedaccord.data.own import own_partition
>>> rows = [[float(n)] for n in range(6)]
>>> data = {"North": (rows, [0, 1] * 3), "South": (rows, [0, 1] * 3), "test": (rows, [0, 1] * 3)}
>>> fold = held_out(own_partition(data, ["North", "South"], "readings"), fold=0, folds=3)
>>> fold.sizes, [fold.dataset.test_labels[own].tolist() for own in fold.tests]
([4, 4], [[0, 1], [0, 1]])
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from fedaccord.data.own import OwnPartition, one_after_the_other
from fedaccord.data.partition import Indices


def held_out(partition: OwnPartition, fold: int, folds: int, seed: int = 0) -> OwnPartition:
    """Without the test examples: a part of everyone's training examples is its test instead.

    Each of the `folds` parts has its share of every class, or of events and of censored records.
    """
    data = partition.dataset
    trained, tested = [], []
    for n, own in enumerate(_held(partition)):
        order = np.random.default_rng([seed, n]).permutation(own)
        kinds = data.labels[order] > 0 if data.survival else data.labels[order]
        order = order[np.argsort(kinds, kind="stable")]
        out = np.arange(len(order)) % folds == fold
        trained.append(order[~out])
        tested.append(order[out])
    kept, left_out = np.concatenate(trained), np.concatenate(tested)
    return replace(
        partition,
        dataset=replace(
            data,
            inputs=data.inputs[kept],
            labels=data.labels[kept],
            test_inputs=data.inputs[left_out],
            test_labels=data.labels[left_out],
        ),
        sizes=[len(own) for own in trained],
        tests=one_after_the_other([len(own) for own in tested]),
    )


def _held(partition: OwnPartition) -> list[Indices]:
    """The positions of each client's training examples."""
    ends = np.cumsum(partition.sizes)
    return [np.arange(end - size, end) for size, end in zip(partition.sizes, ends, strict=True)]

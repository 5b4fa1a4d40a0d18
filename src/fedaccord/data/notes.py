"""What to know about a partition before its numbers are believed; none of it is a mistake.

A client with a single class, or with a handful of records, can take part in training. But what it
reaches alone, or on its own test, says little.
"""

from collections.abc import Callable, Sequence

import numpy as np

from fedaccord.data.dataset import Labels
from fedaccord.data.own import OwnPartition
from fedaccord.data.partition import Partition

_FEW = 10
"""Records to train on, or to test with."""
_FEW_EVENTS = 5
"""In a test with survival times: each pair that concordance compares has an event in it."""
_ONE_SIDED = 0.9
"""The share of a test that has the same label."""
_LISTED = 6
"""Clients that a note names; any more are counted."""


def partition_notes(partition: Partition) -> list[str]:
    """Whether examples that have owners are dealt out to others, and whose data says little.

    >>> from fedaccord.data.own import own_partition
    >>> both, one = ([[0.0]] * 20, [0, 1] * 10), ([[1.0]] * 12, [1] * 12)
    >>> data = {"North": both, "South": one, "test": both}
    >>> partition_notes(own_partition(data, ["North", "South"], "readings"))
    ['only one class to train on: South (12 records of label 1)']
    """
    if not isinstance(partition, OwnPartition):
        return _dealt(partition)
    labels, test_labels = partition.dataset.labels, partition.dataset.test_labels
    held = [labels[rows] for rows in partition.draw(1)]
    tests = [test_labels[rows] for rows in partition.tests]
    told = {f"fewer than {_FEW} records to train on": _where(partition, held, _few)}
    told |= {f"fewer than {_FEW} records in a client's own test": _where(partition, tests, _few)}
    if partition.dataset.survival:
        told |= {"no events to train on": _where(partition, held, _no_events)}
        few = f"fewer than {_FEW_EVENTS} events in a client's own test, so few pairs to compare"
        told |= {few: _where(partition, tests, _few_events)}
    else:
        told |= {"only one class to train on": _where(partition, held, _one_class)}
        one = "hardly more than one class in a client's own test"
        told |= {one: _where(partition, tests, _one_sided)}
    return [f"{note}: {clients}" for note, clients in told.items() if clients]


def _dealt(partition: Partition) -> list[str]:
    """That examples are not with the centres that collected them."""
    dataset = partition.dataset
    if not dataset.centres:
        return []
    return [
        f"the examples of {dataset.name} are dealt out to the clients at random, since none of "
        f"them is named after a centre that collected some ({', '.join(dataset.centres)})"
    ]


def _where(partition: OwnPartition, parts: Sequence[Labels], tell: Callable[[Labels], str]) -> str:
    """The clients about whose part there is something to tell, each with that."""
    found = [
        f"{name} ({said})"
        for name, labels in zip(partition.names, parts, strict=False)  # own tests may be missing
        if (said := tell(labels))
    ]
    more = f" and {len(found) - _LISTED:,} more" if len(found) > _LISTED else ""
    return ", ".join(found[:_LISTED]) + more


def _few(labels: Labels) -> str:
    return f"{len(labels)}" if len(labels) < _FEW else ""


def _one_class(labels: Labels) -> str:
    return f"{len(labels):,} records of label {labels[0]}" if len(set(labels.tolist())) == 1 else ""


def _one_sided(labels: Labels) -> str:
    values, counts = np.unique(labels, return_counts=True)
    most = int(counts.argmax())
    if counts[most] < _ONE_SIDED * len(labels):
        return ""
    return f"{counts[most]:,} of {len(labels):,} with label {values[most]}"


def _no_events(labels: Labels) -> str:
    return "" if (labels > 0).any() else f"{len(labels):,} records"


def _few_events(labels: Labels) -> str:
    events = int((labels > 0).sum())
    return f"{events} in {len(labels):,} records" if events < _FEW_EVENTS else ""

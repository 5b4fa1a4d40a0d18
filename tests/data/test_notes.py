"""Notes about partitions: what can be trained on, but says little."""

from typing import Any

import numpy as np
import pytest

from fedaccord.data.dataset import load_partition
from fedaccord.data.notes import partition_notes
from fedaccord.data.own import OwnPartition, own_partition
from fedaccord.data.partition import RandomPartition


def classes(*labels: int) -> Any:
    return np.zeros((len(labels), 2)), np.array(labels)


def survival(events: int, size: int) -> Any:
    time = np.arange(1, size + 1)
    return {"X": np.zeros((size, 2)), "time": time, "event": time <= events}


def partition(held: dict[str, Any], tests: Any) -> OwnPartition:
    return own_partition(held | {"test": tests}, list(held), "readings")


EVEN = classes(*[0, 1] * 10)


def test_nothing_to_note() -> None:
    assert partition_notes(partition({"a": EVEN, "b": EVEN}, {"a": EVEN, "b": EVEN})) == []
    assert partition_notes(partition({"a": EVEN, "b": EVEN}, EVEN)) == []
    assert partition_notes(RandomPartition(partition({"a": EVEN}, EVEN).dataset, [5, 5])) == []


def test_few_records() -> None:
    few = classes(*[0, 1] * 4, 1)
    assert partition_notes(partition({"a": EVEN, "b": few}, {"a": few, "b": few})) == [
        "fewer than 10 records to train on: b (9)",
        "fewer than 10 records in a client's own test: a (9), b (9)",
    ]


def test_one_class() -> None:
    ill = classes(*[1] * 20)
    nearly = classes(*[1] * 19, 0)
    assert partition_notes(partition({"a": EVEN, "b": ill}, {"a": EVEN, "b": nearly})) == [
        "only one class to train on: b (20 records of label 1)",
        "hardly more than one class in a client's own test: b (19 of 20 with label 1)",
    ]


def test_few_events() -> None:
    many, few, none = survival(20, 30), survival(4, 30), survival(0, 30)
    assert partition_notes(partition({"a": many, "b": none}, {"a": few, "b": many})) == [
        "no events to train on: b (30 records)",
        "fewer than 5 events in a client's own test, so few pairs to compare: a (4 in 30 records)",
    ]


def test_many_clients_are_counted() -> None:
    few = classes(0, 1)
    [note] = partition_notes(partition({f"c{n}": few for n in range(9)}, EVEN))
    assert note.endswith("c4 (2), c5 (2) and 3 more")


@pytest.mark.originals("heart-disease", "tcga-brca")
def test_the_four_hospitals_and_the_six_regions() -> None:
    hospitals, regions = load_partition("heart-disease"), load_partition("tcga-brca")
    assert hospitals is not None
    assert regions is not None
    assert partition_notes(hospitals) == [
        "only one class to train on: Switzerland (30 records of label 1)",
        "hardly more than one class in a client's own test: Switzerland (15 of 16 with label 1)",
    ]
    assert partition_notes(regions) == [
        "fewer than 5 events in a client's own test, so few pairs to compare: South (4 in 40 "
        "records), Midwest (3 in 33 records), Europe (2 in 33 records), Canada (1 in 11 records)"
    ]

"""Survival times: read from two columns or arrays, checked, and with a sign in a dataset."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import fedaccord as fa
from fedaccord.data.dataset import Dataset
from fedaccord.data.inputs import as_dataset, as_examples, checked, is_one_source
from fedaccord.data.own import load_folder, own_partition, read_data
from fedaccord.data.partition import RandomPartition, SkewedPartition
from fedaccord.data.survival import is_survival, signed_times

INPUTS = np.arange(20.0).reshape(10, 2)
TIME = np.array([5, 8, 3, 0, 12, 7, 7, 1, 30, 2])
EVENT = np.array([1, 0, 1, 0, 1, 1, 0, 1, 0, 1])
SIGNED = [5, -8, 3, 0, 12, 7, -7, 1, -30, 2]
FRAME = pd.DataFrame({"time": TIME, "age": INPUTS[:, 0], "event": EVENT, "dose": INPUTS[:, 1]})
STRUCTURED = np.array(
    list(zip(EVENT == 1, TIME, strict=True)), dtype=[("event", bool), ("time", float)]
)
PAIR = (INPUTS, STRUCTURED)


def mine(labels: list[int], classes: int = 0) -> Dataset:
    """A dataset with these labels, to train on and to test with."""
    inputs, codes = INPUTS[: len(labels)].astype(np.float32), np.array(labels)
    return Dataset("mine", inputs, codes, inputs, codes, classes)


@pytest.mark.parametrize(
    "data",
    [
        {"inputs": INPUTS, "time": TIME, "event": EVENT},
        {"X": INPUTS, "time": TIME.astype(float), "event": EVENT == 1},
        FRAME,
        FRAME.astype({"time": "Int64", "event": bool}),
        PAIR,
        mine(SIGNED),
    ],
    ids=["inputs", "X", "frame", "pandas types", "as scikit-survival", "Dataset"],
)
def test_the_same_labels_in_every_form(data: Any) -> None:
    inputs, labels = checked(*as_examples(data))
    np.testing.assert_array_equal(inputs, INPUTS)
    assert is_survival(labels)
    assert signed_times(labels).tolist() == SIGNED
    own = own_partition({"a": data, "b": data, "test": data}, ["a", "b"], "mine")
    assert (own.dataset.survival, own.dataset.classes) == (True, 0)
    assert own.dataset.labels.tolist() == SIGNED * 2


def test_files(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", inputs=INPUTS, time=TIME, event=EVENT)
    FRAME.to_csv(tmp_path / "b.csv", index=False)
    np.savez(tmp_path / "test.npz", X=INPUTS, time=TIME, event=EVENT)
    own = load_folder(tmp_path, ["a", "b"])
    assert own.dataset.labels.tolist() == SIGNED * 2
    assert own.dataset.inputs[10:].tolist() == INPUTS.tolist()


def test_one_dataset_to_be_dealt_out() -> None:
    data = {"X": INPUTS, "time": TIME, "event": EVENT}
    assert is_one_source(data)
    dataset = read_data(data, ["a", "b"])
    assert isinstance(dataset, Dataset)
    assert (dataset.survival, dataset.size, len(dataset.test_labels)) == (True, 8, 2)
    assert sorted([*dataset.labels.tolist(), *dataset.test_labels.tolist()]) == sorted(SIGNED)


def test_a_label_column_makes_time_and_event_features() -> None:
    _, labels = as_examples(FRAME.assign(label=EVENT))
    assert not is_survival(labels)
    inputs, labels = as_examples(FRAME[["age", "dose", "event"]])
    assert inputs.shape == (10, 2)  # an event without a time is a label like any other
    assert labels.tolist() == EVENT.tolist()


@pytest.mark.parametrize(
    ("time", "event", "message"),
    [
        (TIME / 12, EVENT, r"time must be a whole number: count in smaller units \(days instead"),
        (-TIME, EVENT, "time must be 0 or more, and at most 2,147,483,647"),
        (TIME + 2**40, EVENT, "time must be 0 or more, and at most 2,147,483,647"),
        (TIME * np.nan, EVENT, "time must be 0 or more"),
        (TIME, EVENT + 1, "event must be 1 if it happened at that time, and 0 if it did not"),
        (TIME, EVENT * np.nan, "event must be 1 if it happened"),
        (TIME, np.ones(10), "an event cannot be at time 0: count the first day as 1"),
        (TIME[:9], EVENT, "there must be one time and one event for each example"),
        (TIME, np.zeros(10), "none of the examples has an event, so there is nothing to learn"),
        (["long"] * 10, EVENT, "cannot be read as examples .could not convert string to float"),
    ],
)
def test_rejected(time: Any, event: Any, message: str) -> None:
    with pytest.raises(fa.InvalidInput, match=message) as refused:
        as_dataset({"X": INPUTS, "time": time, "event": event}, "mine")
    assert len(refused.value.problems) == 1


def test_signed_labels_are_not_accepted_as_they_are() -> None:
    with pytest.raises(fa.InvalidInput, match=r"or text \(survival times are given as"):
        as_dataset((INPUTS, np.array(SIGNED)), "mine")


def test_survival_times_and_classes_do_not_mix() -> None:
    data = {"a": PAIR, "b": (INPUTS, EVENT), "test": PAIR}
    with pytest.raises(
        fa.InvalidInput, match="mine: b: its labels are numbers, those of test are survival times"
    ):
        own_partition(data, ["a", "b"], "mine")


def test_no_events_at_any_client() -> None:
    nothing = {"X": INPUTS, "time": TIME, "event": EVENT * 0}
    with pytest.raises(fa.InvalidInput, match="mine: no client has an event, so there is nothing"):
        own_partition({"a": nothing, "b": nothing, "test": PAIR}, ["a", "b"], "mine")
    # one client alone, as on Flower, need not have any
    alone = own_partition({"a": nothing, "test": nothing}, ["a"], "mine")
    assert alone.dataset.labels.max() == 0


def test_the_labels_of_a_dataset() -> None:
    with pytest.raises(fa.InvalidInput, match="training label 1 is 2147483648: must be from -2147"):
        mine([1, 2**31])
    with pytest.raises(fa.InvalidInput, match="training label 0 is -1: must be from 0 to 1"):
        mine([-1, 1], classes=2)
    with pytest.raises(fa.InvalidInput, match="classes: must be a whole number, 0 or more, got -1"):
        mine([0, 1], classes=-1)
    dataset = mine(SIGNED)
    assert dataset.to_dict() == {
        **{"name": "mine", "examples": 10, "test_examples": 10, "shape": [2]},
        **{"classes": 0, "events": 6},
    }


def test_survival_times_have_no_classes_to_skew() -> None:
    dataset = mine(SIGNED)
    assert RandomPartition(dataset, [5, 5]).tests == ()
    with pytest.raises(fa.InvalidInput, match="alpha: mine has survival times, and no classes to"):
        SkewedPartition(dataset, [5, 5], 0.5)

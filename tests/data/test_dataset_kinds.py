"""A dataset from arrays of any kind of number, or from lists."""

from typing import Any

import numpy as np
import pytest

import fedaccord as fa
from fedaccord.data.dataset import Dataset
from fedaccord.data.partition import RandomPartition
from fedaccord.training.course import Course, train
from fedaccord.training.task import Model, find_task

INPUTS = np.random.default_rng(0).random((50, 4))
LABELS = INPUTS[:, 0] > 0.5


def dataset(inputs: Any, labels: Any) -> Dataset:
    return Dataset("own", inputs, labels, inputs, labels, 2)


@pytest.mark.parametrize(
    ("inputs", "labels"),
    [
        (INPUTS, LABELS.astype(np.int64)),
        (INPUTS.astype(np.float32), LABELS.astype(np.int32)),
        (INPUTS.astype(np.float32), LABELS.astype(np.uint8)),
        (INPUTS.tolist(), LABELS.tolist()),
        (np.asfortranarray(INPUTS), LABELS),
        (INPUTS[::-1], LABELS[::-1]),
    ],
)
def test_arrays_of_any_type_can_be_trained_on(inputs: Any, labels: Any) -> None:
    data = dataset(inputs, labels)
    assert data.inputs.dtype == np.float32
    assert data.labels.dtype == np.int64
    np.testing.assert_allclose(data.inputs, inputs, rtol=1e-7)  # 32 bits
    np.testing.assert_array_equal(data.labels, labels)
    model = Model(find_task("softmax"), data)
    course = Course(model, lambda seed: RandomPartition(data, [20, 20], seed), 2)
    assert np.isfinite(train(course, [20, 10]).final.loss)


def test_arrays_of_the_right_type_are_not_copied() -> None:
    inputs, labels = INPUTS.astype(np.float32), LABELS.astype(np.int64)
    data = dataset(inputs, labels)
    assert data.inputs is inputs
    assert data.labels is labels


@pytest.mark.parametrize(
    ("inputs", "labels", "message"),
    [
        (INPUTS + 1j, LABELS, "dataset own: inputs must be numbers, in rows"),
        (INPUTS.astype(str), LABELS, "dataset own: inputs must be numbers, in rows"),
        ([[1.0, 2.0], [3.0]], [0, 1], "dataset own: inputs must be numbers, in rows"),
        (INPUTS[:, 0], LABELS, "dataset own: inputs must be numbers, in rows"),
        (INPUTS, LABELS + 0.5, "dataset own: labels must be whole numbers, one for each example"),
        (INPUTS, LABELS[:, None], "dataset own: labels must be whole numbers, one for each"),
        (np.full((50, 4), 1e200), LABELS, "training inputs must be finite numbers"),
        (1.0, 1, "dataset own: inputs must be numbers, in rows"),
    ],
)
def test_arrays_that_are_not_numeric_are_rejected(inputs: Any, labels: Any, message: str) -> None:
    with pytest.raises(fa.InvalidInput, match=message):
        dataset(inputs, labels)

"""Datasets: the built-in ones, those from other packages, and what is rejected."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import fedaccord as fa
from fedaccord.data.dataset import DATASETS, Dataset, dataset_names, load_dataset, load_partition


@pytest.mark.parametrize(
    ("name", "size", "shape", "classes"),
    [("digits", 1438, (8, 8), 10), ("breast-cancer", 456, (30,), 2)],
)
def test_built_in(name: str, size: int, shape: tuple[int, ...], classes: int) -> None:
    dataset = load_dataset(name)
    assert (dataset.size, dataset.shape, dataset.classes) == (size, shape, classes)
    assert dataset.inputs.dtype == np.float32
    assert set(dataset.labels.tolist()) == set(range(classes))
    # a fifth is for testing and never trained on
    assert len(dataset.test_labels) == (size + len(dataset.test_labels)) // 5
    seen = {example.tobytes() for example in dataset.inputs}
    overlap = sum(example.tobytes() in seen for example in dataset.test_inputs)
    assert overlap <= 0.01 * len(dataset.test_labels)  # digits has a few duplicates


def test_built_in_features_are_on_similar_scales() -> None:
    """Digits from 0 to 1; each measurement of the tumours with mean 0 and deviation 1."""
    digits = load_dataset("digits")
    assert (digits.inputs.min(), digits.inputs.max()) == (0.0, 1.0)
    tumours = load_dataset("breast-cancer")
    everyone = np.concatenate([tumours.inputs, tumours.test_inputs]).astype(np.float64)
    # to single precision, over 569 rows
    np.testing.assert_allclose(everyone.mean(axis=0), 0.0, atol=1e-6)
    np.testing.assert_allclose(everyone.std(axis=0), 1.0, atol=1e-6)


def test_the_split_is_always_the_same() -> None:
    np.testing.assert_array_equal(load_dataset("digits").labels, load_dataset("digits").labels)


def test_an_unknown_dataset() -> None:
    with pytest.raises(fa.InvalidInput, match="no dataset called 'cifar': choose one of digits, "):
        load_dataset("cifar")


def test_a_dataset_from_another_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Found by an entry point, as an installed package declares it."""
    (tmp_path / "readings.py").write_text(
        "def load():\n    return [[float(n), 1.0] for n in range(10)], ['low', 'high'] * 5\n"
    )
    installed = tmp_path / "readings-1.0.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: readings\nVersion: 1.0\n")
    (installed / "entry_points.txt").write_text(
        "[fedaccord.datasets]\nreadings = readings:load\nbroken = readings:nothing\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    assert dataset_names() == [*DATASETS, "broken", "readings"]
    dataset = load_dataset("readings")
    assert (dataset.name, dataset.size, dataset.classes) == ("readings", 8, 2)
    assert dataset.label_names == ("high", "low")
    with pytest.raises(fa.FedaccordError, match="broken: cannot be loaded from 'readings:nothing'"):
        load_dataset("broken")
    with pytest.raises(fa.InvalidInput, match="did you mean 'readings'"):
        load_dataset("reading")


def test_a_partition_from_another_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "clinics.py").write_text(
        "from fedaccord.data import own_partition\n"
        "examples = [[float(n), 1.0] for n in range(10)], [0, 1] * 5\n"
        "def load():\n"
        "    data = {'North': examples, 'South': examples, 'test': examples}\n"
        "    return own_partition(data, ['North', 'South'], 'clinics')\n"
    )
    installed = tmp_path / "clinics-1.0.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: clinics\nVersion: 1.0\n")
    (installed / "entry_points.txt").write_text("[fedaccord.datasets]\nclinics = clinics:load\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    own = load_partition("clinics")
    assert own is not None
    assert (own.names, list(own.sizes)) == (("North", "South"), [10, 10])
    dataset = load_dataset("clinics")
    assert (dataset.size, dataset.centres) == (20, ("North", "South"))
    assert load_partition("digits") is None


def test_all_mistakes_at_once() -> None:
    inputs = np.zeros((3, 2), dtype=np.float32)
    with pytest.raises(fa.InvalidInput) as refused:
        Dataset("mine", inputs, np.array([0, 1, 2]), inputs * np.nan, np.array([0, 1, 1]), 2)
    assert tuple(map(str, refused.value.problems)) == (
        "training label 2 is 2: must be from 0 to 1",
        "test inputs must be finite numbers",
    )


@pytest.mark.parametrize(
    ("inputs", "labels", "message"),
    [
        (np.zeros((0, 2)), np.zeros(0, int), "there are no training examples"),
        (np.zeros((2, 2)), np.zeros(3, int), "2 training inputs but 3 labels"),
        (np.zeros((2, 5)), np.zeros(2, int), "training and test examples have different shapes"),
    ],
)
def test_rejected(inputs: npt.NDArray[Any], labels: npt.NDArray[Any], message: str) -> None:
    test = np.zeros((1, 2), dtype=np.float32)
    with pytest.raises(fa.InvalidInput, match=message):
        Dataset("mine", inputs.astype(np.float32), labels, test, np.zeros(1, int), 2)


def test_without_scikit_learn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sklearn", None)
    with pytest.raises(fa.FedaccordError, match=r"pip install 'fedaccord\[train\]'"):
        load_dataset("digits")

"""MNIST: read from its four files. How these are found is tested in test_originals."""

import gzip
import hashlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from fedaccord.data import mnist
from fedaccord.data.mnist import load_mnist
from fedaccord.data.originals import Original


def idx(array: npt.NDArray[np.int64]) -> bytes:
    """A gzipped IDX file, like those of MNIST."""
    head = bytes([0, 0, 8, array.ndim]) + np.array(array.shape, dtype=">u4").tobytes()
    return gzip.compress(head + array.astype(np.uint8).tobytes(), mtime=0)


def test_four_small_files(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """In place of the original ones, with their own checksums."""
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (30, 28, 28))
    contents = {
        "train-images-idx3-ubyte.gz": idx(images),
        "train-labels-idx1-ubyte.gz": idx(np.arange(30) % 10),
        "t10k-images-idx3-ubyte.gz": idx(rng.integers(0, 256, (10, 28, 28))),
        "t10k-labels-idx1-ubyte.gz": idx(np.arange(10)),
    }
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)
    files = tuple(
        Original(name, hashlib.sha256(content).hexdigest(), "")
        for name, content in contents.items()
    )
    assert [file.name for file in files] == [file.name for file in mnist.FILES.files]
    monkeypatch.setattr(mnist, "FILES", replace(mnist.FILES, files=files))
    monkeypatch.setenv("FEDACCORD_DATA", str(tmp_path))
    dataset = load_mnist()
    assert (dataset.size, dataset.shape, dataset.classes) == (30, (28, 28), 10)
    assert dataset.labels.tolist() == (np.arange(30) % 10).tolist()
    # bytes divided by 255, exactly
    expected = images.astype(np.float32) / np.float32(255)
    np.testing.assert_array_equal(dataset.inputs, expected)
    assert dataset.inputs.max() == 1.0


@pytest.mark.slow
@pytest.mark.originals("mnist")
def test_the_original_files() -> None:
    dataset = load_mnist()
    assert (dataset.size, len(dataset.test_labels)) == (60_000, 10_000)
    assert np.bincount(dataset.labels).tolist()[:3] == [5923, 6742, 5958]

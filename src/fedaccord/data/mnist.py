"""MNIST, from its four original files."""

import gzip

import numpy as np
import numpy.typing as npt

from fedaccord.data.dataset import Dataset, DownloadProgress
from fedaccord.data.originals import Original, Originals

_MIRROR = "https://storage.googleapis.com/cvdf-datasets/mnist/"
"""A mirror kept by the CVDF, which the published loaders of MNIST use."""

_CHECKSUMS = {
    "train-images-idx3-ubyte.gz": (
        "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609"
    ),
    "train-labels-idx1-ubyte.gz": (
        "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c"
    ),
    "t10k-images-idx3-ubyte.gz": (
        "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6"
    ),
    "t10k-labels-idx1-ubyte.gz": (
        "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6"
    ),
}

FILES = Originals(
    folder="mnist",
    title="MNIST",
    files=tuple(Original(name, sha, _MIRROR + name) for name, sha in _CHECKSUMS.items()),
)


def load_mnist(progress: DownloadProgress | None = None) -> Dataset:
    """60,000 handwritten digits of 28 x 28 pixels to train on, and 10,000 to test with."""
    arrays = {name: _read_idx(content) for name, content in FILES.read(progress).items()}
    return Dataset(
        name="mnist",
        inputs=_scaled(arrays["train-images-idx3-ubyte.gz"]),
        labels=arrays["train-labels-idx1-ubyte.gz"].astype(np.int64),
        test_inputs=_scaled(arrays["t10k-images-idx3-ubyte.gz"]),
        test_labels=arrays["t10k-labels-idx1-ubyte.gz"].astype(np.int64),
        classes=10,
    )


def _read_idx(content: bytes) -> npt.NDArray[np.uint8]:
    """The array of an IDX file: its shape as big-endian numbers, then its bytes."""
    raw = gzip.decompress(content)
    dimensions = raw[3]
    start = 4 + 4 * dimensions
    shape = np.frombuffer(raw, dtype=">u4", count=dimensions, offset=4)
    return np.frombuffer(raw, dtype=np.uint8, offset=start).reshape(shape.astype(int))


def _scaled(images: npt.NDArray[np.uint8]) -> npt.NDArray[np.float32]:
    return images.astype(np.float32) / np.float32(255.0)

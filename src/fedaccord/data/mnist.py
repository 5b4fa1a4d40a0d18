"""The four original MNIST files: found on disk, or downloaded once, and always verified.

They are looked for in the directory that FEDACCORD_DATA names (or its `mnist` folder), then
in the user's cache directory; if they are in neither, they are downloaded into the cache.
"""

import gzip
import hashlib
import os
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from http.client import HTTPException
from pathlib import Path

import numpy as np
import numpy.typing as npt

from fedaccord.data.dataset import Dataset, DownloadProgress
from fedaccord.errors import FedaccordError

CHECKSUMS = {
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
"""SHA-256 of each file, as first published."""

MIRROR = "https://storage.googleapis.com/cvdf-datasets/mnist/"
"""A mirror kept by the CVDF, which the published loaders of MNIST use."""


class DataUnavailable(FedaccordError):
    """Data that is not on this machine and could not be downloaded, or is not what it should be."""


def load_mnist(progress: DownloadProgress | None = None) -> Dataset:
    """60,000 handwritten digits of 28 x 28 pixels to train on, and 10,000 to test with."""
    paths = {name: find_file(name, progress) for name in CHECKSUMS}
    arrays = {name: _read_idx(path) for name, path in paths.items()}
    return Dataset(
        name="mnist",
        inputs=_scaled(arrays["train-images-idx3-ubyte.gz"]),
        labels=arrays["train-labels-idx1-ubyte.gz"].astype(np.int64),
        test_inputs=_scaled(arrays["t10k-images-idx3-ubyte.gz"]),
        test_labels=arrays["t10k-labels-idx1-ubyte.gz"].astype(np.int64),
        classes=10,
    )


def find_file(name: str, progress: DownloadProgress | None = None) -> Path:
    """Where one of the four files is, verified; downloaded if it has to be."""
    for folder in _folders():
        path = folder / name
        if path.is_file():
            _verify(path)
            return path
    target = cache_folder() / name
    _download(name, target, progress)
    return target


def cache_folder() -> Path:
    """The user's cache directory for the files, where this operating system has it."""
    try:
        from platformdirs import user_cache_path
    except ImportError:
        raise FedaccordError(
            "the place to keep MNIST is found by platformdirs, which is not installed: "
            "pip install 'fedaccord[train]' brings it"
        ) from None
    return user_cache_path("fedaccord", appauthor=False) / "mnist"


def _folders() -> Iterator[Path]:
    """Where the files may be already."""
    if given := os.environ.get("FEDACCORD_DATA"):
        yield from (Path(given), Path(given) / "mnist")
    yield cache_folder()
    yield Path.home() / ".cache" / "fedaccord" / "mnist"  # where they were kept on every system


def _verify(path: Path) -> None:
    try:
        digest = _sha256(path)
    except OSError as error:
        raise DataUnavailable(f"{path} cannot be read ({error.strerror})") from None
    if digest != CHECKSUMS[path.name]:
        raise DataUnavailable(
            f"{path} is not the original file: its SHA-256 is {digest}, "
            f"it should be {CHECKSUMS[path.name]}; remove it or put the original there"
        )


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _download(name: str, target: Path, progress: DownloadProgress | None) -> None:
    """Download a file under a temporary name, and rename it once it is verified."""
    partial = target.with_name(f"{name}.part")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with urllib.request.urlopen(MIRROR + name, timeout=30) as response:
            size = int(response.headers.get("Content-Length", 0))
            with partial.open("wb") as file:
                while chunk := response.read(1 << 16):
                    file.write(chunk)
                    if progress:
                        progress(name, file.tell(), size)
        if _sha256(partial) != CHECKSUMS[name]:
            raise OSError("the downloaded file is not the original, by its SHA-256")
        partial.replace(target)
    except (OSError, HTTPException) as error:
        raise DataUnavailable(
            f"{name} of MNIST is not on this machine and could not be downloaded ({error}); "
            f"put the four original files into {target.parent}, or set FEDACCORD_DATA to "
            "the directory that has them"
        ) from None
    finally:
        with suppress(OSError):  # the folder may be what is wrong
            partial.unlink(missing_ok=True)


def _read_idx(path: Path) -> npt.NDArray[np.uint8]:
    """The array of an IDX file: its shape as big-endian numbers, then its bytes."""
    raw = gzip.decompress(path.read_bytes())
    dimensions = raw[3]
    start = 4 + 4 * dimensions
    shape = np.frombuffer(raw, dtype=">u4", count=dimensions, offset=4)
    return np.frombuffer(raw, dtype=np.uint8, offset=start).reshape(shape.astype(int))


def _scaled(images: npt.NDArray[np.uint8]) -> npt.NDArray[np.float32]:
    return images.astype(np.float32) / np.float32(255.0)

"""MNIST: found, verified, downloaded once; and the errors if that fails."""

import errno
import gzip
import hashlib
import os
import sys
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

import fedaccord as fa
from fedaccord.data import mnist
from fedaccord.data.mnist import DataUnavailable, load_mnist


def idx(array: npt.NDArray[np.int64]) -> bytes:
    """A gzipped IDX file, like those of MNIST."""
    head = bytes([0, 0, 8, array.ndim]) + np.array(array.shape, dtype=">u4").tobytes()
    return gzip.compress(head + array.astype(np.uint8).tobytes(), mtime=0)


@pytest.fixture
def files(monkeypatch: pytest.MonkeyPatch) -> dict[str, bytes]:
    """Four small files in place of the original ones, with their own checksums."""
    rng = np.random.default_rng(0)
    contents = {
        "train-images-idx3-ubyte.gz": idx(rng.integers(0, 256, (30, 28, 28))),
        "train-labels-idx1-ubyte.gz": idx(np.arange(30) % 10),
        "t10k-images-idx3-ubyte.gz": idx(rng.integers(0, 256, (10, 28, 28))),
        "t10k-labels-idx1-ubyte.gz": idx(np.arange(10)),
    }
    sums = {name: hashlib.sha256(content).hexdigest() for name, content in contents.items()}
    monkeypatch.setattr(mnist, "CHECKSUMS", sums)
    return contents


@pytest.fixture(autouse=True)
def nowhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """No data directory, an empty cache, and a mirror that does not answer."""
    monkeypatch.delenv("FEDACCORD_DATA", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(mnist, "MIRROR", "http://127.0.0.1:9/")
    return tmp_path


def write(folder: Path, files: dict[str, bytes]) -> Path:
    folder.mkdir(parents=True)
    for name, content in files.items():
        (folder / name).write_bytes(content)
    return folder


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A mirror on this machine; the fixture is its folder."""
    folder = tmp_path / "mirror"
    folder.mkdir()

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

    mirror = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder)))
    threading.Thread(target=mirror.serve_forever, daemon=True).start()
    monkeypatch.setattr(mnist, "MIRROR", f"http://127.0.0.1:{mirror.server_port}/")
    yield folder
    mirror.shutdown()
    mirror.server_close()


@pytest.mark.parametrize("inside", [".", "mnist"])
def test_from_the_data_directory(
    files: dict[str, bytes], nowhere: Path, monkeypatch: pytest.MonkeyPatch, inside: str
) -> None:
    write(nowhere / "data" / inside, files)
    monkeypatch.setenv("FEDACCORD_DATA", str(nowhere / "data"))
    dataset = load_mnist()
    assert (dataset.size, dataset.shape, dataset.classes) == (30, (28, 28), 10)
    assert dataset.labels.tolist() == (np.arange(30) % 10).tolist()
    raw = np.frombuffer(gzip.decompress(files["train-images-idx3-ubyte.gz"])[16:], np.uint8)
    # bytes divided by 255, exactly
    expected = raw.reshape(30, 28, 28).astype(np.float32) / np.float32(255)
    np.testing.assert_array_equal(dataset.inputs, expected)
    assert dataset.inputs.max() == 1.0


def test_downloaded_once(files: dict[str, bytes], server: Path) -> None:
    for name, content in files.items():
        (server / name).write_bytes(content)
    told: list[tuple[str, int, int]] = []
    first = load_mnist(lambda *progress: told.append(progress))
    assert {(name, len(files[name]), len(files[name])) for name in files} <= set(told)
    assert sorted(path.name for path in mnist.cache_folder().iterdir()) == sorted(files)
    for name in files:
        (server / name).unlink()
    np.testing.assert_array_equal(load_mnist().inputs, first.inputs)


def test_a_corrupt_download_is_not_kept(files: dict[str, bytes], server: Path) -> None:
    for name in files:
        (server / name).write_bytes(b"something else")
    with pytest.raises(DataUnavailable, match="not the original, by its SHA-256"):
        load_mnist()
    assert not list(mnist.cache_folder().iterdir())


def test_a_corrupt_file_on_disk(
    files: dict[str, bytes], nowhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files["t10k-labels-idx1-ubyte.gz"] = b"something else"
    monkeypatch.setenv("FEDACCORD_DATA", str(write(nowhere / "data", files)))
    with pytest.raises(DataUnavailable, match=r"t10k-labels.*is not the original file.*SHA-256"):
        load_mnist()


@pytest.mark.usefixtures("files")
def test_a_file_without_read_permission(
    files: dict[str, bytes], nowhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FEDACCORD_DATA", str(write(nowhere / "data", files)))

    def forbidden(path: Path) -> bytes:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))

    monkeypatch.setattr(Path, "read_bytes", forbidden)  # root can read any file
    with pytest.raises(DataUnavailable, match=r"images.*gz cannot be read \(Permission denied\)"):
        load_mnist()


def test_no_network() -> None:
    with pytest.raises(DataUnavailable) as refused:
        load_mnist()
    said = str(refused.value)
    assert "could not be downloaded" in said
    assert f"put the four original files into {mnist.cache_folder()}" in said
    assert "\n" not in said


@pytest.mark.usefixtures("files")
def test_a_cache_directory_that_cannot_be_created(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", os.devnull)
    with pytest.raises(DataUnavailable, match=r"could not be downloaded.*Not a directory"):
        load_mnist()


def test_files_in_the_old_cache_are_found(files: dict[str, bytes], nowhere: Path) -> None:
    write(nowhere / "home" / ".cache" / "fedaccord" / "mnist", files)
    assert load_mnist().size == 30


@pytest.mark.usefixtures("files")
def test_without_platformdirs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "platformdirs", None)
    with pytest.raises(fa.FedaccordError, match=r"platformdirs.*pip install 'fedaccord\[train\]'"):
        load_mnist()


DATA = os.environ.get("FEDACCORD_DATA")


@pytest.mark.skipif(DATA is None, reason="needs the original files, in FEDACCORD_DATA")
def test_the_original_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FEDACCORD_DATA", str(DATA))
    dataset = load_mnist()
    assert (dataset.size, len(dataset.test_labels)) == (60_000, 10_000)
    assert np.bincount(dataset.labels).tolist()[:3] == [5923, 6742, 5958]

"""Original files: found, verified, downloaded once; and the errors if that fails."""

import errno
import hashlib
import os
import sys
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

import fedaccord as fa
from fedaccord.data import tcga_brca
from fedaccord.data.dataset import datasets_here
from fedaccord.data.originals import DataUnavailable, Original, Originals

CONTENTS = {"north.csv": b"1,2\n3,4\n", "scan.bin": b"\r\n\x00"}


def originals(mirror: str = "http://127.0.0.1:9/") -> Originals:
    """A text and a binary file; by default with a mirror that does not answer."""
    files = (
        Original(
            name, hashlib.sha256(content).hexdigest(), mirror + name, text=name.endswith(".csv")
        )
        for name, content in CONTENTS.items()
    )
    return Originals("readings", "Readings", tuple(files))


@pytest.fixture(autouse=True)
def nowhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """No data directory, and an empty cache."""
    monkeypatch.delenv("FEDACCORD_DATA", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path


@pytest.fixture
def data(nowhere: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data directory with the files in their folder."""
    monkeypatch.setenv("FEDACCORD_DATA", str(nowhere / "data"))
    return write(nowhere / "data" / "readings")


def write(folder: Path) -> Path:
    folder.mkdir(parents=True)
    for name, content in CONTENTS.items():
        (folder / name).write_bytes(content)
    return folder


@pytest.fixture
def mirror(tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """A server on this machine: its address, and its folder."""
    folder = write(tmp_path / "mirror")

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/", folder
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize("inside", [".", "readings"])
def test_from_the_data_directory(
    nowhere: Path, monkeypatch: pytest.MonkeyPatch, inside: str
) -> None:
    write(nowhere / "data" / inside)
    monkeypatch.setenv("FEDACCORD_DATA", str(nowhere / "data"))
    assert originals().read() == CONTENTS


def test_the_folder_of_the_dataset_comes_first(data: Path) -> None:
    (data.parent / "north.csv").write_bytes(b"of something else")
    assert originals().read() == CONTENTS


def test_line_ends_of_a_text_do_not_count(data: Path) -> None:
    (data / "north.csv").write_bytes(b"1,2\r\n3,4\r\n")
    assert originals().read() == CONTENTS
    (data / "scan.bin").write_bytes(b"\n\x00")
    with pytest.raises(DataUnavailable, match=r"scan\.bin is not the original file"):
        originals().read()


def test_downloaded_once(mirror: tuple[str, Path]) -> None:
    address, folder = mirror
    told: list[tuple[str, int, int]] = []
    files = originals(address)
    assert files.read(lambda *now: told.append(now)) == CONTENTS
    assert {(name, len(each), len(each)) for name, each in CONTENTS.items()} <= set(told)
    assert sorted(path.name for path in files.cache().iterdir()) == sorted(CONTENTS)
    for name in CONTENTS:
        (folder / name).unlink()
    assert files.read() == CONTENTS


def test_a_download_with_other_line_ends(mirror: tuple[str, Path]) -> None:
    address, folder = mirror
    (folder / "north.csv").write_bytes(b"1,2\r\n3,4\r\n")
    files = originals(address)
    assert files.read() == files.read() == CONTENTS


def test_a_corrupt_download_is_not_kept(mirror: tuple[str, Path]) -> None:
    address, folder = mirror
    (folder / "north.csv").write_bytes(b"something else")
    with pytest.raises(DataUnavailable, match="not the original, by its SHA-256"):
        originals(address).read()
    assert not list(originals().cache().iterdir())


@pytest.mark.parametrize("content", [b"1,2\n3", b""], ids=["truncated", "empty"])
def test_a_file_on_disk_that_is_not_the_original(data: Path, content: bytes) -> None:
    (data / "north.csv").write_bytes(content)
    with pytest.raises(DataUnavailable) as refused:
        originals().read()
    said = str(refused.value)
    assert said.startswith(f"{data / 'north.csv'} is not the original file: its SHA-256 is ")
    assert said.endswith("; remove it or put the original there")
    assert "\n" not in said


def test_a_file_without_read_permission(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def forbidden(path: Path) -> bytes:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))

    monkeypatch.setattr(Path, "read_bytes", forbidden)  # root can read any file
    with pytest.raises(DataUnavailable, match=r"north\.csv cannot be read \(Permission denied\)"):
        originals().read()


def test_no_network() -> None:
    with pytest.raises(DataUnavailable) as refused:
        originals().read()
    said = str(refused.value)
    assert said.startswith("north.csv of Readings is not on this machine and could not be downl")
    assert f"put the original files (north.csv, scan.bin) into {originals().cache()}" in said
    assert "set FEDACCORD_DATA" in said
    assert "\n" not in said


def test_a_cache_directory_that_cannot_be_created(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", os.devnull)
    with pytest.raises(DataUnavailable, match=r"could not be downloaded.*Not a directory"):
        originals().read()


def test_files_in_the_old_cache_are_found(nowhere: Path) -> None:
    write(nowhere / "home" / ".cache" / "fedaccord" / "readings")
    assert originals().read() == CONTENTS


def test_without_platformdirs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "platformdirs", None)
    with pytest.raises(
        fa.FedaccordError, match=r"Readings.*platformdirs.*pip install 'fedaccord\[train\]'"
    ):
        originals().read()


def test_datasets_that_are_here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("FEDACCORD_DATA", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("HOME", str(tmp_path))
    assert "tcga-brca" not in datasets_here()
    assert {"digits", "breast-cancer"} <= set(datasets_here())
    for file in tcga_brca.FILES.files:
        (tmp_path / file.name).write_text("")
    assert "tcga-brca" in datasets_here()

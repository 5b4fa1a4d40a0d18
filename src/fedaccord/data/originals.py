"""The original files of published datasets: found on disk, or downloaded once; always verified.

They are looked for in the directory that FEDACCORD_DATA names (in its folder of the dataset's name,
then in itself), then in the user's cache directory; if they are in none of these, they are
downloaded into the cache.
"""

import hashlib
import os
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path

from fedaccord.data.dataset import DownloadProgress
from fedaccord.errors import FedaccordError


class DataUnavailable(FedaccordError):
    """Data that is not on this machine and could not be downloaded, or is not what it should be."""


@dataclass(frozen=True)
class Original:
    """One file as it was published."""

    name: str
    sha256: str
    """Of its content; that of a text with plain newlines."""
    url: str
    text: bool = False
    """Whether its line ends may be those of Windows, too: they do not count."""

    def content(self, path: Path) -> bytes:
        """What is in a file of this name; a text always with plain newlines."""
        content = path.read_bytes()
        return content.replace(b"\r\n", b"\n") if self.text else content


@dataclass(frozen=True)
class Originals:
    """The files of one dataset."""

    folder: str
    """In which they are looked for, inside the data directory and the cache."""
    title: str
    """What the dataset is called in messages."""
    files: tuple[Original, ...]

    def read(self, progress: DownloadProgress | None = None) -> dict[str, bytes]:
        """The content of every file by its name, verified; downloaded if it has to be."""
        return {file.name: self._content(file, progress) for file in self.files}

    def here(self) -> bool:
        """Whether every file is on this machine, so that nothing need be downloaded."""
        try:
            folders = list(self._folders())
        except FedaccordError:  # no platformdirs, so no cache
            return False
        return all(any((each / file.name).is_file() for each in folders) for file in self.files)

    def cache(self) -> Path:
        """The user's cache directory for the files, where this operating system has it."""
        try:
            from platformdirs import user_cache_path
        except ImportError:
            raise FedaccordError(
                f"the place to keep {self.title} is found by platformdirs, which is not installed: "
                "pip install 'fedaccord[train]' brings it"
            ) from None
        return user_cache_path("fedaccord", appauthor=False) / self.folder

    def _content(self, file: Original, progress: DownloadProgress | None) -> bytes:
        for folder in self._folders():
            path = folder / file.name
            if path.is_file():
                return _verified(file, path)
        return self._downloaded(file, self.cache() / file.name, progress)

    def _folders(self) -> Iterator[Path]:
        """Where the files may be already."""
        if given := os.environ.get("FEDACCORD_DATA"):
            yield from (Path(given) / self.folder, Path(given))
        yield self.cache()
        # where they were once kept on every system
        yield Path.home() / ".cache" / "fedaccord" / self.folder

    def _downloaded(self, file: Original, target: Path, progress: DownloadProgress | None) -> bytes:
        """Download a file under a temporary name, and rename it once it is verified."""
        partial = target.with_name(f"{file.name}.part")
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            _fetch(file, partial, progress)
            content = file.content(partial)
            if _sha256(content) != file.sha256:
                raise OSError("the downloaded file is not the original, by its SHA-256")
            partial.replace(target)
        except (OSError, HTTPException) as error:
            names = ", ".join(each.name for each in self.files)
            raise DataUnavailable(
                f"{file.name} of {self.title} is not on this machine and could not be downloaded "
                f"({error}); put the original files ({names}) into {target.parent}, or set "
                "FEDACCORD_DATA to the directory that has them"
            ) from None
        finally:
            with suppress(OSError):  # the folder may be what is wrong
                partial.unlink(missing_ok=True)
        return content


def _verified(file: Original, path: Path) -> bytes:
    try:
        content = file.content(path)
    except OSError as error:
        raise DataUnavailable(f"{path} cannot be read ({error.strerror})") from None
    digest = _sha256(content)
    if digest != file.sha256:
        raise DataUnavailable(
            f"{path} is not the original file: its SHA-256 is {digest}, "
            f"it should be {file.sha256}; remove it or put the original there"
        )
    return content


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _fetch(file: Original, target: Path, progress: DownloadProgress | None) -> None:
    with urllib.request.urlopen(file.url, timeout=30) as response:
        size = int(response.headers.get("Content-Length", 0))
        with target.open("wb") as kept:
            while chunk := response.read(1 << 16):
                kept.write(chunk)
                if progress:
                    progress(file.name, kept.tell(), size)

"""A figure's files: its data, its picture, and what it was made from.

The settings are written last, with a checksum of each file: a figure whose settings match and whose
files are whole need not be made again. What takes long keeps its finished parts until then.
"""

import hashlib
import json
import os
from collections import UserDict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fedaccord.cli.outputs import write_file
from fedaccord.errors import FedaccordError


def make_directory(path: Path) -> None:
    """Make a directory to write to, or say why that can't be."""
    try:
        path.mkdir(parents=True, exist_ok=True)
        probe = path / f".{os.getpid()}"
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise FedaccordError(f"{path}: cannot be written to: {error.strerror or error}") from None


def is_current(directory: Path, name: str, settings: Mapping[str, Any]) -> bool:
    """Whether a figure's files are there, whole, and made with these settings."""
    return bool(read_settings(directory, name) == json.loads(json.dumps(settings)))


def read_settings(directory: Path, name: str, form: str | None = None) -> dict[str, Any]:
    """What a figure was made from; nothing if its files are not there, or not whole.

    With a form, such as csv, only its file of that form counts.
    """
    try:
        settings: dict[str, Any] = json.loads(
            (directory / f"{name}.json").read_text(encoding="utf-8")
        )
        checksums = settings.pop("sha256")
        files = list(checksums) if form is None else [f"{name}.{form}"]
        whole = all(_sha256((directory / file).read_bytes()) == checksums[file] for file in files)
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return {}
    return settings if whole else {}


def write_figure(
    directory: Path, name: str, contents: Mapping[str, bytes], settings: Mapping[str, Any]
) -> None:
    """Write each file whole or not at all, the settings last."""
    (directory / f"{name}.json").unlink(missing_ok=True)  # it speaks of the files before
    for form, data in contents.items():
        write_file(directory / f"{name}.{form}", data)
    sums = {f"{name}.{form}": _sha256(data) for form, data in contents.items()}
    record = json.dumps({**settings, "sha256": sums}, indent=2, ensure_ascii=False) + "\n"
    write_file(directory / f"{name}.json", record)


class PartFile(UserDict[str, Any]):
    """The finished parts of a figure in one file, each written before the next begins.

    Parts of a figure with other settings are not taken over.
    """

    def __init__(self, directory: Path, name: str, settings: Mapping[str, Any]) -> None:
        """Read what is there."""
        super().__init__()
        self.path = part_path(directory, name)
        self.settings = json.loads(json.dumps(settings))
        self.data = self._read()

    def __setitem__(self, part: str, numbers: Any) -> None:
        """Keep a part that is finished; the file is always whole."""
        self.data[part] = numbers
        write_file(self.path, json.dumps({"settings": self.settings, "parts": self.data}))

    def _read(self) -> dict[str, Any]:
        try:
            content = json.loads(self.path.read_text(encoding="utf-8"))
            mine = content["settings"] == self.settings
            return dict(content["parts"]) if mine else {}
        except (OSError, ValueError, TypeError, KeyError):
            return {}


def part_path(directory: Path, name: str) -> Path:
    """Where a figure's finished parts are, as long as it is not."""
    return directory / f"{name}.part.json"


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()

"""A figure's files: its data, its picture, and the settings that it was made with.

The settings are written last, with a checksum of each file: a figure whose settings match and whose
files are complete need not be made again. Training keeps its finished runs in a file until then.
"""

import hashlib
import json
import os
from collections import UserDict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fedaccord.atomic import write_whole
from fedaccord.errors import FedaccordError


def make_directory(path: Path) -> None:
    """Make a directory to write to, or say why that is not possible."""
    try:
        path.mkdir(parents=True, exist_ok=True)
        probe = path / f".{os.getpid()}"
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise FedaccordError(f"{path}: cannot be written to: {error.strerror or error}") from None


def is_current(directory: Path, name: str, settings: Mapping[str, Any]) -> bool:
    """Whether a figure's files exist, are complete, and were made with these settings."""
    return bool(read_settings(directory, name) == json.loads(json.dumps(settings)))


def read_settings(directory: Path, name: str, form: str | None = None) -> dict[str, Any]:
    """What a figure was made with; empty if its files are missing or incomplete.

    With a form, such as csv, only the file of that form is checked.
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
    """Write each file completely or not at all, the settings last."""
    (directory / f"{name}.json").unlink(missing_ok=True)  # it describes the previous files
    for form, data in contents.items():
        write_file(directory / f"{name}.{form}", data)
    sums = {f"{name}.{form}": _sha256(data) for form, data in contents.items()}
    record = json.dumps({**settings, "sha256": sums}, indent=2, ensure_ascii=False) + "\n"
    write_file(directory / f"{name}.json", record)


def write_file(path: Path, content: str | bytes) -> None:
    """Write a file completely or not at all; a link is followed."""
    try:
        target = Path(os.path.realpath(path))
        write_whole(target, content.encode() if isinstance(content, str) else content)
    except OSError as error:
        raise FedaccordError(f"{path}: cannot be written: {error.strerror or error}") from None


class PartFile(UserDict[str, Any]):
    """The finished runs of a training experiment in one file, written after each run.

    Runs with other settings are ignored.
    """

    def __init__(self, directory: Path, name: str, settings: Mapping[str, Any]) -> None:
        """Read what is there."""
        super().__init__()
        self.path = part_path(directory, name)
        self.settings = json.loads(json.dumps(settings))
        self.data = self._read()

    def __setitem__(self, part: str, numbers: Any) -> None:
        """Keep a finished run; the file is always complete."""
        self.data[part] = numbers
        write_file(self.path, json.dumps({"settings": self.settings, "parts": self.data}))

    def _read(self) -> dict[str, Any]:
        try:
            content = json.loads(self.path.read_text(encoding="utf-8"))
            same = content["settings"] == self.settings
            return dict(content["parts"]) if same else {}
        except (OSError, ValueError, TypeError, KeyError):
            return {}


def part_path(directory: Path, name: str) -> Path:
    """The file of finished runs, which is there until the figure is complete."""
    return directory / f"{name}.part.json"


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()

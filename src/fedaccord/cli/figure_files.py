"""A figure's files: its data, its picture, and what it was made from.

The settings are written last, with a checksum of each file: a figure whose settings match and whose
files are whole need not be made again.
"""

import hashlib
import json
import os
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


def read_settings(directory: Path, name: str) -> dict[str, Any]:
    """What a figure was made from; nothing if its files are not there, or not whole."""
    try:
        settings: dict[str, Any] = json.loads(
            (directory / f"{name}.json").read_text(encoding="utf-8")
        )
        checksums = settings.pop("sha256").items()
        whole = all(_sha256((directory / file).read_bytes()) == sum_ for file, sum_ in checksums)
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


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()

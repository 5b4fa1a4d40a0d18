"""The data of a figure, in columns of equal length, and the files that it is kept in.

The settings are written last, with a checksum of each file: a figure whose settings match and whose
files are complete need not be made again. Training keeps its finished runs in a file until then.
"""

import csv
import hashlib
import io
import json
import os
from collections import UserDict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fedaccord.atomic import write_whole
from fedaccord.errors import FedaccordError
from fedaccord.files.reading import guarded, unguarded

Column = npt.NDArray[Any]


@dataclass(frozen=True, eq=False)
class FigureData:
    """Columns by name.

    >>> table = FigureData({"clients": np.array([2.0, 3.0]), "case": np.array(["all", "I"])})
    >>> print(table.as_csv(), end="")
    clients,case
    2,all
    3,I
    """

    columns: Mapping[str, Column]

    def __getitem__(self, name: str) -> Column:
        """One column."""
        return self.columns[name]

    def __len__(self) -> int:
        """How many rows there are."""
        return len(self.swept)

    @property
    def parameter(self) -> str:
        """The name of the swept parameter."""
        return next(iter(self.columns))

    @property
    def swept(self) -> Column:
        """Its values."""
        return self.columns[self.parameter]

    def choose(self, *names: str) -> "FigureData":
        """The swept parameter and these columns."""
        return FigureData({name: self.columns[name] for name in (self.parameter, *names)})

    def where(self, rows: npt.NDArray[np.bool_]) -> "FigureData":
        """Some of the rows."""
        return FigureData({name: values[rows] for name, values in self.columns.items()})

    def as_csv(self) -> str:
        """As CSV; a number is written so that reading it back gives the same number."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(self.columns)
        columns = [map(_cell, values.tolist()) for values in self.columns.values()]
        writer.writerows(zip(*columns, strict=True))
        return text.getvalue()


def read_figure_data(text: str) -> FigureData:
    """Read what `as_csv` wrote."""
    head, *rows = csv.reader(io.StringIO(text))
    return FigureData({name: _column(values) for name, *values in zip(head, *rows, strict=True)})


def _column(values: list[str]) -> Column:
    try:
        return np.array([float(value) for value in values])
    except ValueError:
        return np.array([unguarded(value) for value in values])


def _cell(value: Any) -> Any:
    return int(value) if isinstance(value, float) and value.is_integer() else guarded(value)


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

"""What is accepted as examples: arrays, frames, PyTorch datasets and files.

`as_examples` turns any of these into an array of inputs and one of labels:

| Given | Inputs and labels |
|---|---|
| a pair `(inputs, labels)` | as they are |
| a mapping, or an `.npz` file | its arrays `inputs` and `labels`, or `X` and `y` |
| a pandas or Polars frame, or a `.csv` file | the label is the column `label`, or else the last |
| a PyTorch `Dataset`, or anything like one | its items are pairs of an input and a label |

Labels are 0, 1, 2, ... or text. Survival times (`fedaccord.data.survival`) are two arrays or
columns, `time` and `event`, instead of the labels. Neither pandas nor PyTorch is imported here.

>>> inputs, labels = as_examples({"X": [[1.0, 2.0], [3.0, 4.0]], "y": ["cat", "dog"]})
>>> inputs.shape, labels.tolist()
((2, 2), ['cat', 'dog'])
"""

import csv
import zlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
import numpy.typing as npt

from fedaccord.checks import in_brief, shown
from fedaccord.data.dataset import Dataset, split
from fedaccord.data.separators import with_commas
from fedaccord.data.survival import (
    EVENT,
    TIME,
    checked_times,
    from_signed,
    is_survival,
    signed_times,
    survival_labels,
)
from fedaccord.errors import InvalidInput
from fedaccord.numbers import count

Examples = tuple[npt.NDArray[Any], npt.NDArray[Any]]
"""Inputs and labels, one of each per example, of whatever type they were stored in."""

_KEYS = ("inputs", "labels"), ("X", "y"), ("inputs", TIME, EVENT), ("X", TIME, EVENT)
_LABEL = "label"
"""The column that is the label, wherever it is."""
_GAPS = ("", "?", "NA", "N/A")
"""What stands in a table where a value is missing, beside NaN, which is read as a number."""

_UNREADABLE = (
    *(BadZipFile, zlib.error, EOFError, KeyError, OSError, ValueError),
    csv.Error,
    RuntimeError,  # a password, or a compression that this machine does not have
    MemoryError,  # a damaged shape, larger than any machine
)
"""What a damaged file leads to, wherever the damage is."""

_WIDE = 1_000.0
"""Standard deviations of features that differ by more than this factor are worth a note."""


def as_examples(data: Any) -> Examples:
    """The inputs and labels of whatever was given, as arrays; `InvalidInput` if it is neither.

    The values are not checked yet: `own_partition` and `as_dataset` do that.
    """
    try:
        return _examples(data)
    except (TypeError, ValueError, RuntimeError) as error:
        raise InvalidInput(f"cannot be read as examples ({in_brief(str(error))})") from None


def as_dataset(data: Any, name: str = "data") -> Dataset:
    """Examples that belong to no client yet; a fifth, always the same, is kept for testing."""
    if isinstance(data, Dataset):
        return data
    try:
        inputs, labels = checked(*as_examples(data))
        if len(labels) < 5:
            raise InvalidInput(
                f"needs at least 5 examples to keep a fifth for testing, has {len(labels)}"
            )
        if is_survival(labels):
            return split(name, inputs, _with_events(labels), survival=True)
        codes, names = labels, text_labels([labels])
        if names:
            codes = coded(labels, names)
        elif missing := sorted(set(range(int(labels.max()) + 1)) - set(labels.tolist()))[:1]:
            raise InvalidInput(
                f"labels: must be 0, 1, 2, ... or text; the largest is {labels.max()}, "
                f"but there is no {missing[0]}"
            )
    except InvalidInput as error:
        raise InvalidInput(error.problems, source=name) from None
    return split(name, inputs, codes, names)


def _with_events(labels: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    if not labels[EVENT].any():
        raise InvalidInput("none of the examples has an event, so there is nothing to learn")
    return signed_times(labels)


def read_examples(path: Path) -> Examples:
    """The examples in an `.npz` or `.csv` file."""
    try:
        return _read_npz(path) if path.suffix == ".npz" else _read_csv(path)
    except _UNREADABLE as error:
        why = in_brief(str(error))  # it may quote a damaged file
        raise InvalidInput(f"{path.name}: cannot be read as examples ({why})") from None


def is_one_source(data: Mapping[Any, Any]) -> bool:
    """Whether a mapping has inputs and labels (or times and events) in it, not clients."""
    return any(set(keys) == set(data) for keys in _KEYS)


def checked(inputs: npt.ArrayLike, labels: npt.ArrayLike) -> Examples:
    """As many inputs as labels, finite numbers as inputs; labels of one of the three kinds.

    Labels are whole numbers, text, or survival times: then they are an array with the fields `time`
    and `event`, which `signed_times` turns into the labels of a `Dataset`.
    """
    inputs, labels = np.asarray(inputs), _listed(np.asarray(labels))
    if inputs.ndim < 2 or labels.ndim != 1 or len(inputs) != len(labels) or len(labels) == 0:
        raise InvalidInput("must have as many inputs as labels, and at least one")
    if 0 in inputs.shape:
        raise InvalidInput(f"its examples have the shape {inputs.shape[1:]}: they are empty")
    times = is_survival(labels)
    if inputs.dtype.kind not in "biuf" or (labels.dtype.kind not in "biufU" and not times):
        raise InvalidInput("inputs must be real numbers, labels whole numbers or text")
    if not (np.abs(inputs) <= np.finfo(np.float32).max).all():
        raise InvalidInput(f"inputs must be finite numbers{_gaps(inputs)}")
    inputs = inputs.astype(np.float32)
    if times:
        return inputs, checked_times(labels)
    if labels.dtype.kind == "U":
        return inputs, labels
    if not (labels == np.floor(labels)).all() or not ((labels >= 0) & (labels < 2**31)).all():
        raise InvalidInput(
            "labels must be whole numbers, 0 or more, or text (survival times are given as time "
            "and event)"
        )
    return inputs, labels.astype(np.int64)


def _gaps(inputs: npt.NDArray[Any]) -> str:
    """Which column of a table has nothing but gaps, if one has."""
    if inputs.ndim != 2 or not (empty := np.isnan(inputs).all(axis=0)).any():
        return ""
    return f"; column {int(empty.argmax()) + 1} has nothing but gaps"


def text_labels(parts: Iterable[npt.NDArray[Any]]) -> tuple[str, ...]:
    """All labels in alphabetical order if they are text; none if they are numbers."""
    found: set[Any] = set()
    for labels in parts:
        if labels.dtype.kind == "U":
            found |= set(labels.tolist())
    return tuple(sorted(found))


def coded(labels: npt.NDArray[Any], names: Sequence[str]) -> npt.NDArray[np.int64]:
    """Text labels as their positions among all labels."""
    return np.searchsorted(np.array(names), labels).astype(np.int64)


def scale_note(dataset: Dataset) -> str | None:
    """A note if features are measured on wildly different scales; nothing is rescaled here.

    The largest standard deviation is compared with the lower quartile, not with the smallest:
    at the edge of a picture there are always pixels that hardly vary.
    """
    if len(dataset.shape) > 1:
        return None
    spread = np.std(dataset.inputs, axis=0, dtype=np.float64)
    spread = np.sort(spread[spread > 0])
    if spread.size < 2:
        return None
    low, high = float(np.quantile(spread, 0.25, method="lower")), float(spread[-1])
    if high <= _WIDE * low:
        return None
    return (
        f"the features of {dataset.name} are on very different scales (standard deviations from "
        f"{low:.3g} to {high:.3g}); gradient steps work better if you standardise them first"
    )


# --- From objects --------------------------------------------------------------------------


def _examples(data: Any) -> Examples:
    if isinstance(data, Mapping):
        return _arrays(data)
    if hasattr(data, "columns") and hasattr(data, "to_numpy"):  # a frame of pandas or Polars
        return _from_frame(data)
    if isinstance(data, Dataset):
        return data.inputs, from_signed(data.labels) if data.survival else data.labels
    if isinstance(data, tuple | list) and len(data) == 2:
        return _array(data[0]), _labels(data[1])
    if hasattr(data, "__getitem__") and hasattr(data, "__len__") and not isinstance(data, str):
        return _from_items(data[n] for n in range(len(data)))
    if hasattr(data, "__iter__") and not isinstance(data, str):  # an IterableDataset
        return _from_items(data)
    raise InvalidInput(f"cannot be read as examples (a {type(data).__name__})")


def _arrays(data: Mapping[str, Any]) -> Examples:
    """The arrays of a mapping, by one of the sets of names."""
    for inputs, *labels in _KEYS:
        if inputs in data and all(each in data for each in labels):
            return _array(data[inputs]), _target([data[each] for each in labels])
    there = in_brief(", ".join(map(repr, data)) or "nothing")
    raise ValueError(f"it must have inputs and labels, or X and y; there is {there}")


def _target(columns: Sequence[Any]) -> npt.NDArray[Any]:
    """The labels, from one column or array; or survival times, from two."""
    if len(columns) == 1:
        return _labels(columns[0])
    time, event = (_array(column) for column in columns)
    return survival_labels(time, event)


def _target_names(names: Sequence[Any]) -> list[Any]:
    """Which columns of a table are not features: the label, or time and event."""
    if _LABEL not in names and TIME in names and EVENT in names:
        return [TIME, EVENT]
    return [_LABEL] if _LABEL in names else list(names[-1:])


def _from_frame(frame: Any) -> Examples:
    """A column for each feature, and one for the label, or two for survival times."""
    names = list(frame.columns)
    target = _target_names(names)
    features = {name: _listed(np.asarray(frame[name])) for name in names if name not in target}
    if not features:
        raise ValueError("a frame needs at least one feature and a label")
    for name, column in features.items():
        if column.dtype.kind not in "biuf":
            raise ValueError(f"the column {name!r} is not numeric")
    inputs = np.column_stack(list(features.values()))
    return inputs, _target([np.asarray(frame[name]) for name in target])


def _from_items(items: Iterable[Any]) -> Examples:
    """Pairs of an input and a label."""
    inputs, labels = [], []
    for item in items:
        one, label = item
        inputs.append(_array(one))
        labels.append(_array(label)[()])
    return np.array(inputs), _labels(labels)


def _array(values: Any) -> npt.NDArray[Any]:
    """An array, also of a tensor that is on another device or has a gradient."""
    if hasattr(values, "detach"):
        values = values.detach().cpu()
    return np.asarray(values)


def _labels(values: Any) -> npt.NDArray[Any]:
    """An array of labels; in a list, NumPy would turn numbers beside text into text."""
    if isinstance(values, list):
        return np.asarray(values, dtype=object)
    labels = _array(values)
    return survival_labels(labels[TIME], labels[EVENT]) if is_survival(labels) else labels


def _listed(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Python objects as an array of one type, where they are all of one."""
    if values.dtype.kind == "T":  # NumPy's own strings of any length
        return values.astype(str)
    if values.dtype.kind != "O":
        return values
    kinds = {isinstance(value, str) for value in values.ravel().tolist()}
    return np.array(values.tolist()) if len(kinds) == 1 else values


# --- From files ----------------------------------------------------------------------------


def _read_npz(path: Path) -> Examples:
    try:
        with path.open("rb") as file:  # NumPy would leave a damaged one open
            arrays = np.load(file, allow_pickle=False)
            if isinstance(arrays, np.ndarray):
                raise ValueError("it holds one array, not inputs and labels")
            with arrays:
                return _arrays(arrays)
    except ValueError as error:
        if "pickle" in str(error):  # NumPy advises to load it nevertheless, which runs its code
            raise ValueError("it does not hold arrays of numbers") from None
        raise


def _read_csv(path: Path) -> Examples:
    lines = path.read_text(encoding="utf-8-sig").splitlines()
    rows = [line for line in lines if line.strip() and not line.lstrip().startswith("#")]
    header, rows = _without_header(with_commas(rows))
    if not rows:
        raise ValueError("there are no rows")
    first = _cells(rows[0])
    if len(first) < 2:
        raise ValueError(
            "its rows have one cell: put commas or semicolons between the features and the label"
        )
    if header and len(header) != len(first):
        raise ValueError(f"there are {len(header)} names of columns, but {len(first)} columns")
    target = [header.index(name) for name in _target_names(header)] or [len(first) - 1]
    if all(_is_number(first[column]) for column in target):
        try:
            table = np.loadtxt(rows, delimiter=",", ndmin=2, comments=None, quotechar='"')
        except ValueError as error:
            raise ValueError(_wrong_cells(rows, header) or error) from None
        return np.delete(table, target, axis=1), _target([table[:, column] for column in target])
    split_rows = _split(rows)
    try:
        features = [
            [float(cell) for n, cell in enumerate(row) if n not in target] for row in split_rows
        ]
    except ValueError as error:
        raise ValueError(_wrong_cells(rows, header, target) or error) from None
    labels = [np.array([row[column].strip() for row in split_rows]) for column in target]
    return np.array(features), _target(labels)


def _split(rows: list[str]) -> list[list[str]]:
    """The cells of each row, equally many in all of them."""
    split_rows = list(csv.reader(rows, skipinitialspace=True))
    width = len(split_rows[0])
    for n, row in enumerate(split_rows, start=1):
        if len(row) != width:
            raise ValueError(f"row {n} has {count(len(row), 'cell')}, the first one {width}")
    return split_rows


def _wrong_cells(rows: list[str], header: list[str], text: Sequence[int] = ()) -> str | None:
    """What is wrong with the first column that is not all numbers; None if all of them are."""
    for n, column in enumerate(zip(*_split(rows), strict=True)):
        wrong = [cell.strip() for cell in column if not _is_number(cell)]
        if not wrong or n in text:
            continue
        name = shown(header[n]) if header else str(n + 1)
        if len(wrong) == len(column):
            return f"the column {name} has nothing but gaps or text: leave it out for all clients"
        cells = count(len(wrong), "cell")
        return (
            f"the column {name} has {cells} without a number ({shown(wrong[0])}): "
            "fill the gaps, or leave these rows out"
        )
    return None


def _without_header(rows: list[str]) -> tuple[list[str], list[str]]:
    """The names of the columns, if the first line has some, and the other lines.

    A line with text among its features is one (a gap is no text). So is a line with text as its
    label if the next line has a number there: labels are all numbers or all text.
    """
    if not rows:
        return [], rows
    first = _cells(rows[0])
    second = _cells(rows[1]) if len(rows) > 1 else []
    text = [not _is_number(cell) and cell not in _GAPS for cell in first]
    named = _LABEL in first or any(text[:-1])
    if named or (text[-1] and bool(second) and _is_number(second[-1])):
        return first, rows[1:]
    return [], rows


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in next(csv.reader([line], skipinitialspace=True))]


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True

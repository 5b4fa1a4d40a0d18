"""Your own data: one file a client, or a function.

A directory has one `.npz` file (arrays `inputs` and `labels`) or one `.csv` file (numbers, the
label last; a first line of column names is left out) for each client, named after it, and one
called `test` to measure with. Labels are 0, 1, 2, ...: each is at some client.
"""

import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
import numpy.typing as npt

from fedaccord.checks import in_brief, normalised
from fedaccord.data.dataset import Dataset, Inputs, Labels
from fedaccord.data.partition import Indices
from fedaccord.errors import InvalidInput, Problem

Examples = tuple[npt.NDArray[Any], npt.NDArray[Any]]
"""Inputs and labels, one of each an example, of whatever type they were stored in."""

_LABELS = 1_000
"""More classes than that only with as many examples: else the last column is something else."""

_UNREADABLE = (
    *(BadZipFile, zlib.error, EOFError, KeyError, OSError, ValueError),
    RuntimeError,  # a password, or a compression that this machine does not have
    MemoryError,  # a damaged shape, larger than any machine
)
"""What comes of a damaged file, wherever the damage is."""


@dataclass(frozen=True, eq=False)
class OwnPartition:
    """Each client has its own examples: the same in every slot, in another order."""

    dataset: Dataset
    sizes: Sequence[int]
    names: Sequence[str]
    seed: int = 0

    def draw(self, slot: int) -> list[Indices]:
        """The examples of each client, in the order of this slot."""
        ends = np.cumsum(self.sizes)
        return [
            end - size + np.random.default_rng([self.seed, slot, n]).permutation(size)
            for n, (size, end) in enumerate(zip(self.sizes, ends, strict=True))
        ]


def load_folder(folder: Path, names: Sequence[str], seed: int = 0) -> OwnPartition:
    """The data of the clients called `names`, from a directory with one file for each."""
    if not folder.is_dir():
        raise InvalidInput(f"{folder}: there is no such directory")
    try:
        files = _files(folder)
    except OSError as error:
        raise InvalidInput(f"{folder}: cannot be read: {error.strerror or error}") from None
    return own_partition(lambda name: _read(_file(files, name)), names, folder.name, seed)


def own_partition(
    examples_of: Callable[[str], Examples], names: Sequence[str], name: str, seed: int = 0
) -> OwnPartition:
    """The data of the clients called `names`, from a function of a client's name.

    The function is asked for `test`, too, for examples to measure with. All mistakes are told
    at once.
    """
    names = [normalised(name) for name in names]
    check_names(names)
    parts = _all_parts(examples_of, [*names, "test"], name)
    shapes = {who: inputs.shape[1:] for who, (inputs, _) in parts.items()}
    width = shapes["test"]
    if problems := [
        f"{who}: its examples have the shape {shape}, those of test {width}"
        for who, shape in shapes.items()
        if shape != width
    ]:
        raise InvalidInput(problems, source=name)
    # one client alone, as on Flower, need not have every label
    if len(names) > 1 and (problems := _label_problems(parts)):
        raise InvalidInput(problems, source=name)
    dataset = Dataset(
        name=name,
        inputs=np.concatenate([parts[who][0] for who in names]),
        labels=np.concatenate([parts[who][1] for who in names]),
        test_inputs=parts["test"][0],
        test_labels=parts["test"][1],
        classes=1 + max(int(labels.max(initial=0)) for _, labels in parts.values()),
    )
    return OwnPartition(dataset, [len(parts[who][1]) for who in names], tuple(names), seed)


def check_names(names: Sequence[str]) -> None:
    """Refuse clients whose file would be that of the examples to measure with."""
    if "test" in names:
        raise InvalidInput("no client can be called test: those are the examples to measure with")


def _all_parts(
    examples_of: Callable[[str], Examples], names: Sequence[str], source: str
) -> dict[str, tuple[Inputs, Labels]]:
    """Everyone's examples, or the mistakes of everyone's."""
    parts: dict[str, tuple[Inputs, Labels]] = {}
    problems: list[str | Problem] = []
    for who in names:
        try:
            parts[who] = _checked(who, *examples_of(who))
        except InvalidInput as refused:
            problems += refused.problems
    if problems:
        raise InvalidInput(problems, source=source)
    most = max(_LABELS, sum(len(labels) for _, labels in parts.values()))
    if problems := [
        f"{who}: a label is {labels.max()}, which cannot be one of 0, 1, 2, ... (the label is last)"
        for who, (_, labels) in parts.items()
        if labels.max() >= most
    ]:
        raise InvalidInput(problems, source=source)
    return parts


def _label_problems(parts: dict[str, tuple[Inputs, Labels]]) -> list[str]:
    """Labels that could not be learned, as no client has them."""
    found = {who: set(labels.tolist()) for who, (_, labels) in parts.items()}
    tested = found.pop("test")
    learned = set().union(*found.values())
    if unknown := sorted(tested - learned):
        return [f"test: a label is {unknown[0]}, which no client has"]
    gap = next(label for label in range(len(learned) + 1) if label not in learned)
    return [
        f"{who}: a label is {max(labels)}, but no client has {gap}: they must be 0, 1, 2, ..."
        for who, labels in found.items()
        if max(labels) > gap
    ]


def _files(folder: Path) -> dict[str, list[Path]]:
    """The files by client: some file systems spell a name in another of Unicode's forms."""
    found: dict[str, list[Path]] = {}
    for path in sorted(folder.iterdir()):
        if path.suffix in (".npz", ".csv") and path.is_file():
            found.setdefault(normalised(path.stem), []).append(path)
    return found


def _file(files: Mapping[str, list[Path]], name: str) -> Path:
    """The file of a client, of either kind."""
    found = files.get(name, [])
    if len(found) != 1:
        number = f"are {len(found)}" if found else "is none"
        raise InvalidInput(f"{name}: there must be one file, .npz or .csv, there {number}")
    return found[0]


def _read(path: Path) -> Examples:
    try:
        return _read_npz(path) if path.suffix == ".npz" else _read_csv(path)
    except _UNREADABLE as error:
        why = in_brief(str(error))  # it may quote a damaged file
        raise InvalidInput(f"{path.name}: cannot be read as examples ({why})") from None


def _read_npz(path: Path) -> Examples:
    with path.open("rb") as file:  # NumPy would leave a damaged one open
        arrays = np.load(file, allow_pickle=False)
        if isinstance(arrays, np.ndarray):
            raise ValueError("it holds one array, not inputs and labels")
        with arrays:
            return arrays["inputs"], arrays["labels"]


def _read_csv(path: Path) -> Examples:
    lines = path.read_text(encoding="utf-8-sig").splitlines()
    rows = [line for line in lines if line.strip()]
    if rows and not _numbers(rows[0]):
        rows = rows[1:]
    if not rows:
        raise ValueError("there are no rows")
    table = np.loadtxt(rows, delimiter=",", ndmin=2)
    return table[:, :-1], table[:, -1]


def _numbers(line: str) -> bool:
    try:
        [float(cell) for cell in line.split(",")]
    except ValueError:
        return False
    return True


def _checked(who: str, inputs: npt.ArrayLike, labels: npt.ArrayLike) -> tuple[Inputs, Labels]:
    """As many inputs as labels, numbers all, and labels that are whole ones."""
    inputs, labels = np.asarray(inputs), np.asarray(labels)
    if inputs.ndim < 2 or labels.ndim != 1 or len(inputs) != len(labels) or len(labels) == 0:
        raise InvalidInput(f"{who}: must have as many inputs as labels, and at least one")
    if 0 in inputs.shape:
        raise InvalidInput(f"{who}: its examples have the shape {inputs.shape[1:]}: they are empty")
    if not {inputs.dtype.kind, labels.dtype.kind} <= set("biuf"):
        raise InvalidInput(f"{who}: inputs and labels must be numbers, and not complex ones")
    if not (labels == np.floor(labels)).all() or not ((labels >= 0) & (labels < 2**31)).all():
        raise InvalidInput(f"{who}: labels must be whole numbers, 0 or more")
    if not (np.abs(inputs) <= np.finfo(np.float32).max).all():
        raise InvalidInput(f"{who}: inputs must be finite numbers")
    return inputs.astype(np.float32), labels.astype(np.int64)

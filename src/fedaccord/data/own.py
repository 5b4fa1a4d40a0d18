"""Your own data: each client has its own examples, from a folder, a mapping or a function.

A folder has one `.npz` or `.csv` file for each client, named after it, and one called `test` to
measure with; `fedaccord.data.inputs` says what is in them.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from fedaccord.checks import normalised
from fedaccord.data.dataset import Dataset
from fedaccord.data.inputs import (
    Examples,
    as_dataset,
    as_examples,
    checked,
    coded,
    is_one_source,
    read_examples,
    text_labels,
)
from fedaccord.data.partition import Indices
from fedaccord.errors import InvalidInput, Problem

_LABELS = 1_000
"""More classes than that only with as many examples: else the last column is something else."""


@dataclass(frozen=True, eq=False)
class OwnPartition:
    """Each client has its own examples: the same in every slot, in a different order."""

    dataset: Dataset
    sizes: Sequence[int]
    names: Sequence[str]
    seed: int = 0

    def reordered(self, seed: int) -> "OwnPartition":
        """The same examples in the orders of another seed."""
        return replace(self, seed=seed)

    def draw(self, slot: int) -> list[Indices]:
        """The examples of each client, in the order of this slot."""
        ends = np.cumsum(self.sizes)
        return [
            end - size + np.random.default_rng([self.seed, slot, n]).permutation(size)
            for n, (size, end) in enumerate(zip(self.sizes, ends, strict=True))
        ]


def read_data(
    data: Any, names: Sequence[str], name: str = "data", seed: int = 0
) -> OwnPartition | Dataset:
    """Anything that is accepted as data, for the clients called `names`.

    A folder, a mapping of client names and a function of a client's name say who has which
    examples. Anything else is one dataset, for a partition to deal out.
    """
    if isinstance(data, str | Path):
        return load_folder(Path(data), names, seed)
    if isinstance(data, Mapping) and not is_one_source(data):
        return own_partition(data, names, name, seed)
    if callable(data) and not hasattr(data, "__getitem__"):
        return own_partition(data, names, name, seed)
    return as_dataset(data, name)


def load_folder(folder: Path, names: Sequence[str], seed: int = 0) -> OwnPartition:
    """The data of the clients called `names`, from a directory with one file for each."""
    if not folder.is_dir():
        raise InvalidInput(f"{folder}: there is no such directory")
    try:
        files = _files(folder)
    except OSError as error:
        raise InvalidInput(f"{folder}: cannot be read: {error.strerror or error}") from None
    return own_partition(lambda name: read_examples(_file(files, name)), names, folder.name, seed)


def own_partition(
    examples_of: Callable[[str], Any] | Mapping[str, Any],
    names: Sequence[str],
    name: str,
    seed: int = 0,
) -> OwnPartition:
    """The data of the clients called `names`, from a mapping or a function of a client's name.

    Each client's examples, and those of `test` to measure with, are anything that `as_examples`
    accepts. All mistakes are reported at once.
    """
    names = [normalised(name) for name in names]
    check_names(names)
    source = _looked_up(examples_of) if isinstance(examples_of, Mapping) else examples_of
    parts = _all_parts(source, [*names, "test"], name)
    # one client alone, as on Flower, need not have every label
    if len(names) > 1 and (problems := _label_problems(parts)):
        raise InvalidInput(problems, source=name)
    labels = text_labels(labels for _, labels in parts.values())
    if labels:
        parts = {who: (inputs, coded(own, labels)) for who, (inputs, own) in parts.items()}
    dataset = Dataset(
        name=name,
        inputs=np.concatenate([parts[who][0] for who in names]),
        labels=np.concatenate([parts[who][1] for who in names]),
        test_inputs=parts["test"][0],
        test_labels=parts["test"][1],
        classes=1 + max(int(labels.max(initial=0)) for _, labels in parts.values()),
        label_names=labels,
    )
    return OwnPartition(dataset, [len(parts[who][1]) for who in names], tuple(names), seed)


def check_names(names: Sequence[str]) -> None:
    """Refuse a client whose file would be that of the test examples."""
    if "test" in names:
        raise InvalidInput("no client can be called test: that is the name of the test examples")


def _looked_up(data: Mapping[str, Any]) -> Callable[[str], Any]:
    """A mapping as a function: names may be spelt in another of Unicode's forms."""
    known = {normalised(name): examples for name, examples in data.items()}

    def examples_of(name: str) -> Any:
        if name not in known:
            raise InvalidInput(f"{name}: there are no examples of this name")
        return known[name]

    return examples_of


def _all_parts(
    examples_of: Callable[[str], Any], names: Sequence[str], source: str
) -> dict[str, Examples]:
    """Everyone's examples, or the mistakes in everyone's."""
    parts: dict[str, Examples] = {}
    problems: list[str | Problem] = []
    for who in names:
        try:
            found = examples_of(who)
        except InvalidInput as error:  # says whose
            problems += error.problems
            continue
        try:
            parts[who] = checked(*as_examples(found))
        except InvalidInput as error:
            problems += [problem.inside(who) for problem in error.problems]
    if not problems:
        problems += _shape_problems(parts) or _kind_problems(parts)
    if problems:
        raise InvalidInput(problems, source=source)
    return parts


def _shape_problems(parts: Mapping[str, Examples]) -> list[str]:
    width = parts["test"][0].shape[1:]
    return [
        f"{who}: its examples have the shape {inputs.shape[1:]}, those of test {width}"
        for who, (inputs, _) in parts.items()
        if inputs.shape[1:] != width
    ]


def _kind_problems(parts: Mapping[str, Examples]) -> list[str]:
    """Labels that are text here and numbers there, or numbers that cannot be classes."""
    kinds = {
        who: "text" if labels.dtype.kind == "U" else "numbers" for who, (_, labels) in parts.items()
    }
    if len(set(kinds.values())) > 1:
        return [
            f"{who}: its labels are {kind}, those of test are {kinds['test']}"
            for who, kind in kinds.items()
            if kind != kinds["test"]
        ]
    if kinds["test"] == "text":
        return []
    most = max(_LABELS, sum(len(labels) for _, labels in parts.values()))
    return [
        f"{who}: a label is {labels.max()}, which cannot be one of 0, 1, 2, ... "
        f"(the label is the column called label, or else the last)"
        for who, (_, labels) in parts.items()
        if labels.max() >= most
    ]


def _label_problems(parts: Mapping[str, Examples]) -> list[str]:
    """Labels that could not be learned, as no client has them."""
    found = {who: set(labels.tolist()) for who, (_, labels) in parts.items()}
    tested = found.pop("test")
    learned = set().union(*found.values())
    if unknown := sorted(tested - learned):
        return [f"test: a label is {unknown[0]!r}, which no client has"]
    if isinstance(next(iter(learned)), str):
        return []
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
        raise InvalidInput(f"{name}: there must be one file, .npz or .csv; there {number}")
    return found[0]

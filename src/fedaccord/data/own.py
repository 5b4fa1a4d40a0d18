"""Your own data: each client has its own examples, from a folder, a mapping or a function.

A folder has one `.npz` or `.csv` file for each client, named after it, and one called `test` to
measure with; `fedaccord.data.inputs` says what is in them. Instead of the file `test` there may be
a folder `test` with a file for each client: its own test. The common test is then all of them
together, with the examples of a file `test` beside them, if there is one as well.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fedaccord.checks import no_such_client, normalised
from fedaccord.data.dataset import Dataset
from fedaccord.data.inputs import (
    as_dataset,
    as_examples,
    checked,
    coded,
    is_one_source,
    read_examples,
    text_labels,
)
from fedaccord.data.partition import Indices
from fedaccord.data.survival import EVENT, is_survival, signed_times
from fedaccord.errors import InvalidInput, Problem
from fedaccord.record import Value

_LABELS = 1_000
"""More classes than that only with as many examples: else the last column is something else."""
_TEST = "test"


@dataclass(frozen=True, eq=False)
class OwnPartition(Value):
    """Each client has its own examples: the same in every slot, in a different order.

    The dataset has the clients' examples one after the other: those of the first client first.
    """

    dataset: Dataset
    sizes: Sequence[int]
    names: Sequence[str]
    seed: int = 0
    tests: Sequence[Indices] = ()
    """For each client the positions of its own test examples among all test examples. Empty if
    there is only the common test."""

    def __post_init__(self) -> None:
        """Refuse examples that are not there."""
        source = self.dataset.name
        if len(self.sizes) != len(self.names) or sum(self.sizes) > self.dataset.size:
            raise InvalidInput("sizes must be one for each client, of the examples", source)
        if len(self.tests) not in (0, len(self.names)):
            raise InvalidInput("tests must be one for each client, or none at all", source)
        last = len(self.dataset.test_labels) - 1
        if any(len(own) == 0 or own.min() < 0 or own.max() > last for own in self.tests):
            raise InvalidInput(f"tests must be positions from 0 to {last}, for each client", source)

    @property
    def pooled(self) -> Dataset:
        """All examples as one dataset, which still says who collected them."""
        return replace(self.dataset, centres=tuple(self.names))

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

    def of(self, names: Sequence[str]) -> "OwnPartition":
        """The partition of some of its clients, in this order, with nobody else's examples.

        Test examples that belong to no client stay.
        """
        known = [normalised(name) for name in self.names]
        if wrong := [name for name in names if normalised(name) not in known]:
            raise InvalidInput(no_such_client(wrong[0], known), self.dataset.name)
        chosen = [known.index(normalised(name)) for name in names]
        if chosen == list(range(len(known))):
            return self
        ends = np.cumsum(self.sizes)
        rows = np.concatenate([np.arange(ends[n] - self.sizes[n], ends[n]) for n in chosen])
        tests = [self.tests[n] for n in chosen] if len(self.tests) else []
        nobodys = np.setdiff1d(np.arange(len(self.dataset.test_labels)), _joined(self.tests))
        return OwnPartition(
            _taken(self.dataset, rows, _joined([*tests, nobodys])),
            [self.sizes[n] for n in chosen],
            tuple(self.names[n] for n in chosen),
            self.seed,
            one_after_the_other([len(own) for own in tests]),
        )


def _joined(parts: Sequence[Indices]) -> Indices:
    return np.concatenate([np.array([], dtype=np.int64), *parts])


def _taken(dataset: Dataset, rows: Indices, test_rows: Indices) -> Dataset:
    """Some of the examples of a dataset."""
    return replace(
        dataset,
        inputs=dataset.inputs[rows],
        labels=dataset.labels[rows],
        test_inputs=dataset.test_inputs[test_rows],
        test_labels=dataset.test_labels[test_rows],
    )


def one_after_the_other(sizes: Sequence[int]) -> tuple[Indices, ...]:
    """Positions of parts of these sizes."""
    ends = np.cumsum(sizes, dtype=np.int64)
    return tuple(np.arange(end - size, end) for size, end in zip(sizes, ends, strict=True))


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
        tests = _files(folder / _TEST) if (folder / _TEST).is_dir() else None
    except OSError as error:
        raise InvalidInput(f"{folder}: cannot be read: {error.strerror or error}") from None

    def read(name: str) -> Any:
        return read_examples(_file(files, name))

    if tests is None:
        return own_partition(read, names, folder.name, seed)
    own_tests = _OwnTests(
        of=lambda name: read_examples(_file(tests, name, f"{_TEST}/")),
        common=partial(read, _TEST) if _TEST in files else None,
    )
    return _assembled(read, lambda: own_tests, names, folder.name, seed)


def own_partition(
    examples_of: Callable[[str], Any] | Mapping[str, Any],
    names: Sequence[str],
    name: str,
    seed: int = 0,
) -> OwnPartition:
    """The data of the clients called `names`, from a mapping or a function of a client's name.

    Each client's examples, and those of `test` to measure with, are anything that `as_examples`
    accepts. Those of `test` may be a mapping as well, with each client's own test examples; an item
    `test` in it adds examples to the common test that belong to no client. All mistakes are
    reported at once.
    """
    read = _looked_up(examples_of) if isinstance(examples_of, Mapping) else examples_of

    def read_test() -> Any:
        test = read(_TEST)
        if not isinstance(test, Mapping) or not {normalised(key) for key in test} & set(names):
            return test
        common = (lambda: test[_TEST]) if _TEST in test else None
        return _OwnTests(_looked_up(test, f"{_TEST}/"), common)

    return _assembled(read, read_test, names, name, seed)


def check_names(names: Sequence[str]) -> None:
    """Refuse a client whose file would be that of the test examples."""
    if _TEST in names:
        raise InvalidInput("no client can be called test: that is the name of the test examples")


def _looked_up(data: Mapping[str, Any], place: str = "") -> Callable[[str], Any]:
    """A mapping as a function: names may be spelt in another of Unicode's forms."""
    known = {normalised(name): examples for name, examples in data.items()}

    def examples_of(name: str) -> Any:
        if name not in known:
            raise InvalidInput(f"{place}{name}: there are no examples of this name")
        return known[name]

    return examples_of


# --- From everyone's parts to one dataset --------------------------------------------------


class _OwnTests(NamedTuple):
    """A test for each client instead of one for all."""

    of: Callable[[str], Any]
    """The test examples of a client, by its name."""
    common: Callable[[], Any] | None
    """Test examples that belong to no client, if there are any."""


class _Part(NamedTuple):
    """The checked examples of one client, or one of the tests."""

    place: str
    """What it is called in messages."""
    inputs: npt.NDArray[np.float32]
    labels: npt.NDArray[Any]

    @property
    def kind(self) -> str:
        """Of its labels."""
        if is_survival(self.labels):
            return "survival times"
        return "text" if self.labels.dtype.kind == "U" else "numbers"


def _assembled(
    read: Callable[[str], Any],
    read_test: Callable[[], Any],
    names: Sequence[str],
    title: str,
    seed: int,
) -> OwnPartition:
    """Everyone's examples in one dataset, with own tests if there are some; or all mistakes."""
    names = [normalised(name) for name in names]
    check_names(names)
    problems: list[str | Problem] = []
    held = _parts({who: partial(read, who) for who in names}, problems)
    own, common = _test_parts(read_test, names, problems)
    together = len(names) > 1
    # one client alone, as on Flower, need not have every label, and may be part of the common test
    if not problems:
        problems += _part_problems(held, [*own, *common], labels=together)
    if not problems and together and own and common and _repeats(own, common[0]):
        problems.append(
            f"{_TEST}: repeats everyone's own test examples: leave it out, since the common test "
            "is all of them together"
        )
    if problems:
        raise InvalidInput(problems, source=title)
    return OwnPartition(
        _dataset(title, held, [*own, *common]),
        [len(part.labels) for part in held],
        tuple(names),
        seed,
        one_after_the_other([len(part.labels) for part in own]),
    )


def _test_parts(
    read_test: Callable[[], Any], names: Sequence[str], problems: list[str | Problem]
) -> tuple[list[_Part], list[_Part]]:
    """Everyone's own test, and the common one (none or one)."""
    try:
        test = read_test()
    except InvalidInput as error:
        problems += error.problems
        return [], []
    if not isinstance(test, _OwnTests):
        return [], _parts({_TEST: lambda: test}, problems)
    own = _parts({f"{_TEST}/{who}": partial(test.of, who) for who in names}, problems)
    return own, [] if test.common is None else _parts({_TEST: test.common}, problems)


def _dataset(title: str, held: Sequence[_Part], tests: Sequence[_Part]) -> Dataset:
    """All parts in one, with labels that mean the same in each."""
    survival = held[0].kind == "survival times"
    names = text_labels(part.labels for part in [*held, *tests])

    def labels(parts: Sequence[_Part]) -> npt.NDArray[np.int64]:
        given = np.concatenate([part.labels for part in parts])
        return signed_times(given) if survival else coded(given, names) if names else given

    train, test = labels(held), labels(tests)
    return Dataset(
        name=title,
        inputs=np.concatenate([part.inputs for part in held]),
        labels=train,
        test_inputs=np.concatenate([part.inputs for part in tests]),
        test_labels=test,
        classes=0 if survival else 1 + int(max(train.max(), test.max())),
        label_names=names,
    )


def _parts(readers: Mapping[str, Callable[[], Any]], problems: list[str | Problem]) -> list[_Part]:
    """What could be read and is right; the mistakes in the rest are added to `problems`."""
    parts = []
    for place, read in readers.items():
        try:
            found = read()
        except InvalidInput as error:  # says whose
            problems += error.problems
            continue
        try:
            parts.append(_Part(place, *checked(*as_examples(found))))
        except InvalidInput as error:
            problems += [problem.inside(place) for problem in error.problems]
    return parts


def _part_problems(held: Sequence[_Part], tests: Sequence[_Part], *, labels: bool) -> list[str]:
    """What does not fit together: the first test is what all others are compared with."""
    first, parts = tests[0], [*held, *tests]
    shape = first.inputs.shape[1:]
    if problems := [
        f"{part.place}: its examples have the shape {part.inputs.shape[1:]}, those of "
        f"{first.place} {shape}"
        for part in parts
        if part.inputs.shape[1:] != shape
    ]:
        return problems
    if problems := [
        f"{part.place}: its labels are {part.kind}, those of {first.place} are {first.kind}"
        for part in parts
        if part.kind != first.kind
    ]:
        return problems
    if first.kind == "numbers" and (problems := _class_problems(parts)):
        return problems
    return _label_problems(held, tests) if labels else []


def _class_problems(parts: Sequence[_Part]) -> list[str]:
    """Numbers that cannot be classes."""
    most = max(_LABELS, sum(len(part.labels) for part in parts))
    return [
        f"{part.place}: a label is {part.labels.max()}, which cannot be one of 0, 1, 2, ... "
        f"(the label is the column called label, or else the last)"
        for part in parts
        if part.labels.max() >= most
    ]


def _label_problems(held: Sequence[_Part], tests: Sequence[_Part]) -> list[str]:
    """Labels that could not be learned, as no client has them."""
    if held[0].kind == "survival times":
        none = not any(part.labels[EVENT].any() for part in held)
        return ["no client has an event, so there is nothing to learn"] if none else []
    found = {part.place: set(part.labels.tolist()) for part in held}
    learned = set().union(*found.values())
    for part in tests:
        if unknown := sorted(set(part.labels.tolist()) - learned):
            return [f"{part.place}: a label is {unknown[0]!r}, which no client has"]
    if isinstance(next(iter(learned)), str):
        return []
    gap = next(label for label in range(len(learned) + 1) if label not in learned)
    return [
        f"{who}: a label is {max(labels)}, but no client has {gap}: they must be 0, 1, 2, ..."
        for who, labels in found.items()
        if max(labels) > gap
    ]


def _repeats(own: Sequence[_Part], common: _Part) -> bool:
    """Whether the common test has everyone's own test examples in it."""
    there = _rows(common)
    return all(_rows(part) <= there for part in own)


def _rows(part: _Part) -> set[tuple[bytes, Any]]:
    pairs = zip(part.inputs, part.labels.tolist(), strict=True)
    return {(inputs.tobytes(), label) for inputs, label in pairs}


def _files(folder: Path) -> dict[str, list[Path]]:
    """The files by client: some file systems spell a name in another of Unicode's forms."""
    found: dict[str, list[Path]] = {}
    for path in sorted(folder.iterdir()):
        if path.suffix in (".npz", ".csv") and path.is_file():
            found.setdefault(normalised(path.stem), []).append(path)
    return found


def _file(files: Mapping[str, list[Path]], name: str, place: str = "") -> Path:
    """The file of a client, of either kind."""
    found = files.get(name, [])
    if len(found) != 1:
        number = f"are {len(found)}" if found else "is none"
        raise InvalidInput(f"{place}{name}: there must be one file, .npz or .csv; there {number}")
    return found[0]

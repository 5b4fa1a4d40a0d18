"""Datasets: inputs and labels, for training and for testing; the built-in ones and others'."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from fedaccord import plugins
from fedaccord.checks import check_installed, check_whole, unknown
from fedaccord.errors import InvalidInput
from fedaccord.record import Record

if TYPE_CHECKING:
    from fedaccord.data.own import OwnPartition

Inputs: TypeAlias = npt.NDArray[np.float32]
Labels: TypeAlias = npt.NDArray[np.int64]
DownloadProgress: TypeAlias = Callable[[str, int, int], None]
"""Called while a file downloads: its name, how many bytes have arrived, and of how many."""
LONGEST_TIME = 2**31 - 1
"""The largest survival time: a 64-bit float, in which a task compares times, has room to spare."""


@dataclass(frozen=True, eq=False, repr=False)
class Dataset(Record):
    """Labelled examples. The first axis of the inputs counts examples, the rest is their shape.

    Inputs are stored as 32-bit floats and labels as 64-bit integers, whatever their type was.
    Labels are classes, 0, 1, 2, ...; or, if there are 0 classes, survival times: t for an event at
    time t, and -t for a record that was followed up to t without one (censored). A record that was
    censored at 0 tells nothing.
    """

    name: str
    inputs: Inputs
    labels: Labels
    test_inputs: Inputs
    test_labels: Labels
    classes: int
    """How many labels there are; 0 if they are survival times."""
    label_names: tuple[str, ...] = ()
    """What the labels 0, 1, 2, ... stand for, if they were text."""
    centres: tuple[str, ...] = ()
    """Who collected the examples, for a dataset that comes with a partition of its own."""

    def __post_init__(self) -> None:
        """Refuse examples that could not be trained on, and report all mistakes at once."""
        for name in ("inputs", "labels", "test_inputs", "test_labels"):
            object.__setattr__(self, name, self._kept(name))
        check_whole("classes", self.classes, least=0)
        problems = [
            *_part_problems("training", self.inputs, self.labels, self.classes),
            *_part_problems("test", self.test_inputs, self.test_labels, self.classes),
        ]
        if not problems and self.inputs.shape[1:] != self.test_inputs.shape[1:]:
            problems.append("training and test examples have different shapes")
        if problems:
            raise InvalidInput(problems, source=f"dataset {self.name}")

    def _kept(self, name: str) -> npt.NDArray[Any]:
        """An array of numbers as it is stored; not copied if it has that type already."""
        try:
            given = np.asarray(getattr(self, name))
        except ValueError:  # rows of different lengths
            given = np.array(None)
        labels = name.endswith("labels")
        if labels and (given.dtype.kind not in "bui" or given.ndim != 1):
            problem = f"{name} must be whole numbers, one for each example"
            raise InvalidInput(problem, source=f"dataset {self.name}")
        if not labels and (given.dtype.kind not in "buif" or given.ndim < 2):
            problem = f"{name} must be numbers, in rows (or images) of one size"
            raise InvalidInput(problem, source=f"dataset {self.name}")
        with np.errstate(over="ignore"):  # too large for 32 bits: reported as not finite
            return np.ascontiguousarray(given, dtype=np.int64 if labels else np.float32)

    @property
    def size(self) -> int:
        """How many examples there are to train on."""
        return len(self.labels)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of one example."""
        return self.inputs.shape[1:]

    @property
    def survival(self) -> bool:
        """Whether the labels are survival times, not classes."""
        return self.classes == 0

    def _facts(self) -> dict[str, Any]:
        facts = {
            "name": self.name,
            "examples": self.size,
            "test_examples": len(self.test_labels),
            "shape": self.shape,
            "classes": self.classes,
        }
        if self.survival:
            facts["events"] = int((self.labels > 0).sum())
        if self.centres:
            facts["centres"] = self.centres
        return facts


def _part_problems(part: str, inputs: Inputs, labels: Labels, classes: int) -> list[str]:
    if len(inputs) == 0:
        return [f"there are no {part} examples"]
    if len(inputs) != len(labels):
        return [f"{len(inputs)} {part} inputs but {len(labels)} labels"]
    problems = []
    if not np.isfinite(inputs).all():
        problems.append(f"{part} inputs must be finite numbers")
    first, last = (0, classes - 1) if classes else (-LONGEST_TIME, LONGEST_TIME)
    wrong = (labels < first) | (labels > last)
    if wrong.any():
        n = int(np.argmax(wrong))
        problems.append(f"{part} label {n} is {labels[n]}: must be from {first} to {last}")
    return problems


def load_dataset(name: str, progress: DownloadProgress | None = None) -> Dataset:
    """A dataset by name: a built-in one, or one that another package brings.

    Built in are `digits`, `breast-cancer`, `mnist`, `heart-disease`, `heart-disease-shared`,
    `heart-disease-imputed` and `tcga-brca`. All but the first two are read from disk or downloaded;
    `progress` is called meanwhile. Another package brings a dataset by an entry point in the group
    `fedaccord.datasets`: a function without arguments that returns a `Dataset`, an `OwnPartition`
    of one, or anything that `as_dataset` accepts.

    >>> load_dataset("digits").shape
    (8, 8)
    """
    found = load_source(name, progress)
    return found if isinstance(found, Dataset) else found.pooled


def load_partition(name: str, progress: DownloadProgress | None = None) -> "OwnPartition | None":
    """Who collected which examples of a dataset, with a test for each; None if nobody says so.

    Those called `heart-disease` and `tcga-brca` come with such a partition.

    >>> load_partition("digits") is None
    True
    """
    found = load_source(name, progress)
    return None if isinstance(found, Dataset) else found


def load_source(name: str, progress: DownloadProgress | None = None) -> "OwnPartition | Dataset":
    """A dataset by name: with the partition that it comes with, if there is one."""
    if name in DATASETS:
        return DATASETS[name](progress)
    loader = plugins.find("datasets", name, _OTHERS)
    if loader is None:
        raise InvalidInput(f"there is no dataset called {name!r}: {unknown(name, dataset_names())}")
    from fedaccord.data.inputs import as_dataset
    from fedaccord.data.own import OwnPartition

    found = loader()
    return found if isinstance(found, OwnPartition) else as_dataset(found, name)


def dataset_names() -> list[str]:
    """The names that `load_dataset` knows."""
    return plugins.names_in("datasets", DATASETS)


def datasets_here() -> list[str]:
    """Those of `dataset_names` that are on this machine: nothing need be downloaded.

    >>> datasets_here()[:2]
    ['digits', 'breast-cancer']
    """
    from fedaccord.data import heart_disease, mnist, tcga_brca

    files = {
        "mnist": mnist.FILES,
        **dict.fromkeys(_HEART_DISEASE, heart_disease.FILES),
        "tcga-brca": tcga_brca.FILES,
    }
    return [name for name in dataset_names() if name not in files or files[name].here()]


def _digits(_: DownloadProgress | None) -> Dataset:
    """1,797 digits of 8 x 8 pixels, inside scikit-learn."""
    bunch = _from_sklearn("digits")
    return split("digits", bunch.images / 16.0, bunch.target)


def _breast_cancer(_: DownloadProgress | None) -> Dataset:
    """569 tumours, 30 measurements each, malignant or benign, inside scikit-learn."""
    bunch = _from_sklearn("breast_cancer")
    centred = (bunch.data - bunch.data.mean(axis=0)) / bunch.data.std(axis=0)
    return split("breast-cancer", centred, bunch.target)


def _from_sklearn(name: str) -> Any:
    check_installed(f"the dataset {name}", "sklearn")
    from sklearn import datasets

    return getattr(datasets, f"load_{name}")()


def _mnist(progress: DownloadProgress | None) -> Dataset:
    from fedaccord.data.mnist import load_mnist

    return load_mnist(progress)


def _heart_disease(progress: DownloadProgress | None) -> "OwnPartition":
    from fedaccord.data.heart_disease import load_heart_disease

    return load_heart_disease(progress=progress)


def _heart_disease_shared(progress: DownloadProgress | None) -> "OwnPartition":
    from fedaccord.data.heart_disease import load_heart_disease

    return load_heart_disease(normalise="pooled", progress=progress)


def _heart_disease_imputed(progress: DownloadProgress | None) -> "OwnPartition":
    from fedaccord.data.heart_disease import load_heart_disease

    return load_heart_disease("imputed", progress=progress)


def _tcga_brca(progress: DownloadProgress | None) -> "OwnPartition":
    from fedaccord.data.tcga_brca import load_tcga_brca

    return load_tcga_brca(progress=progress)


DATASETS: "dict[str, Callable[[DownloadProgress | None], OwnPartition | Dataset]]" = {
    "digits": _digits,
    "breast-cancer": _breast_cancer,
    "mnist": _mnist,
    "heart-disease": _heart_disease,
    "heart-disease-shared": _heart_disease_shared,
    "heart-disease-imputed": _heart_disease_imputed,
    "tcga-brca": _tcga_brca,
}
_HEART_DISEASE = ("heart-disease", "heart-disease-shared", "heart-disease-imputed")
_OTHERS: dict[str, Callable[[], Any]] = {}
"""None of the datasets of other packages is built in."""


def split(
    name: str,
    inputs: npt.NDArray[Any],
    labels: npt.NDArray[np.int64],
    label_names: tuple[str, ...] = (),
    *,
    survival: bool = False,
) -> Dataset:
    """A fifth of the examples, always the same, is kept for testing."""
    order = np.random.default_rng(0).permutation(len(labels))
    test, train = np.split(order, [len(labels) // 5])
    return Dataset(
        name=name,
        inputs=inputs[train].astype(np.float32),
        labels=labels[train].astype(np.int64),
        test_inputs=inputs[test].astype(np.float32),
        test_labels=labels[test].astype(np.int64),
        classes=0 if survival else int(labels.max()) + 1,
        label_names=label_names,
    )

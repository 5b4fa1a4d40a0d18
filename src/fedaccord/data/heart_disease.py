"""Heart disease at four hospitals (UCI), as FLamby prepares it or with all records.

The 14 columns of the four files: age, sex, cp (type of chest pain), trestbps (blood pressure at
rest), chol (cholesterol), fbs (blood sugar above 120 mg/dl), restecg (ECG at rest), thalach
(highest heart rate), exang (angina under exercise), oldpeak and slope (of the ST segment), ca
(vessels seen under fluoroscopy), thal (of a thallium scan), and the diagnosis: 0 without a narrowed
vessel, 1 to 4 with one. The label is 1 for any of the latter. Gaps are "?".

Two variants:

- `flamby`: 740 records, prepared as in the benchmark FLamby, so that results can be compared with
  its. The columns slope, ca and thal are left out, and every record that still has a gap. 13
  features.
- `imputed`: all 920 records and all columns. A cholesterol or a blood pressure of 0 is a gap as
  well: no living patient has one, and in Switzerland all 123 are 0. A gap is filled with the median
  of the centre's own training records, or their most frequent value if the column is a category or
  a yes or no; where fewer than 10 of them have a value, with that of everyone's training records.
  18 features.

In both, cp and restecg (in `imputed` also slope and thal) become one column of zeros and ones for
each level but the first, behind the other columns; each centre keeps about a third of its records
for its own test, stratified by label if there are more than two of each; and the features are
normalised by training records.
"""

from collections.abc import Sequence
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from fedaccord.checks import check_choice, check_installed
from fedaccord.data.centres import Centre, Normalise, normalised_columns, partition_of
from fedaccord.data.dataset import DownloadProgress, Labels
from fedaccord.data.originals import Original, Originals
from fedaccord.data.own import OwnPartition

Variant: TypeAlias = Literal["flamby", "imputed"]

_UCI = "https://archive.ics.uci.edu/ml/machine-learning-databases/heart-disease/"
_CHECKSUMS = {
    "processed.cleveland.data": "a74b7efa387bc9d108d7d0115d831fe9b414b29ae7124f331b622b4efa0427c8",
    "processed.hungarian.data": "d1ad108f785768cd3d7e82dc522e6f5a61eea93cccfb3a46ee8076f73fc3d796",
    "processed.switzerland.data": (
        "834a405ccf5b66ab4056bb77794adc8df0b7125186454c0a1d002d33c6c3b314"
    ),
    "processed.va.data": "e7c93d8d0d2acdadfa4c5e8de768e2191e7f618b952e29623f1f0d5949ff6b8f",
}

FILES = Originals(
    folder="heart-disease",
    title="Heart Disease (UCI)",
    files=tuple(Original(name, sha, _UCI + name, text=True) for name, sha in _CHECKSUMS.items()),
)

CENTRES = ("Cleveland", "Hungary", "Switzerland", "Long Beach")
"""In the order of the files; Long Beach is the Veterans Affairs Medical Center (`va`)."""

_TRESTBPS, _CHOL, _LABEL = 3, 4, 13
_FLAMBY = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, _LABEL]
"""The columns that have few gaps."""
_CATEGORIES = (2, 6, 10, 12)
"""cp, restecg, slope and thal: their numbers have no order, or no distance."""
_MEASURED = (0, 3, 4, 7, 9, 11)
"""Age, trestbps, chol, thalach, oldpeak and ca: their numbers measure or count something."""
_ENOUGH = 10
"""Training records of a centre with a value, for a gap to be filled from its own."""
_TRAINING, _SEED = 0.66, 43
"""FLamby's part of the records to train on, and its seed."""

_NAMES = {"flamby": "", "imputed": "-imputed", "centre": "", "pooled": "-shared", "none": "-raw"}
"""What a variant and a normalisation add to the name of the dataset."""

_Table: TypeAlias = npt.NDArray[np.float64]
_Mask: TypeAlias = npt.NDArray[np.bool_]


def load_heart_disease(
    variant: Variant = "flamby",
    normalise: Normalise = "centre",
    progress: DownloadProgress | None = None,
) -> OwnPartition:
    """The records of Cleveland, Hungary, Switzerland and Long Beach, each with its own test.

    `normalise` by the mean and standard deviation of each centre's own training records (`centre`,
    as in FLamby), of everyone's (`pooled`), or not at all (`none`).
    """
    check_choice("variant", variant, ("flamby", "imputed"))
    check_installed("the dataset heart-disease", "sklearn")
    tables = [_read(content) for content in FILES.read(progress).values()]
    if variant == "flamby":
        tables = [_complete(table) for table in tables]
    labels = [(table[:, -1] > 0).astype(np.int64) for table in tables]
    training = [_training(own) for own in labels]
    tables = [table[:, :-1] for table in tables]
    if variant == "imputed":
        tables = _filled([_with_all_gaps(table) for table in tables], training)
    centres = [
        Centre(*parts) for parts in zip(CENTRES, _encoded(tables), labels, training, strict=True)
    ]
    centres = normalised_columns(centres, normalise)
    name = f"heart-disease{_NAMES[variant]}{_NAMES[normalise]}"
    return partition_of(name, centres, classes=2)


def _read(content: bytes) -> _Table:
    """The numbers of a file, NaN where there is a gap."""
    rows = [line.split(",") for line in content.decode("ascii").splitlines()]
    return np.array([[np.nan if cell == "?" else float(cell) for cell in row] for row in rows])


def _complete(table: _Table) -> _Table:
    """The records without a gap, of the columns that have few."""
    kept = table[:, _FLAMBY]
    return kept[~np.isnan(kept).any(axis=1)]


def _training(labels: Labels) -> _Mask:
    """Which records of a centre are trained on."""
    from sklearn.model_selection import train_test_split

    counts = np.bincount(labels, minlength=2)
    _, test = train_test_split(
        np.arange(len(labels)),
        train_size=_TRAINING,
        test_size=1.0 - _TRAINING,
        random_state=_SEED,
        stratify=labels if (counts > 2).all() else None,
    )
    chosen = np.ones(len(labels), dtype=np.bool_)
    chosen[test] = False
    return chosen


def _with_all_gaps(table: _Table) -> _Table:
    """A copy in which measurements of 0 that nobody survives are gaps, too."""
    found = table.copy()
    for column in (_TRESTBPS, _CHOL):
        found[found[:, column] == 0, column] = np.nan
    return found


def _filled(tables: Sequence[_Table], training: Sequence[_Mask]) -> list[_Table]:
    """Copies without gaps; what fills them comes from training records alone."""
    filled = [table.copy() for table in tables]
    for column in range(tables[0].shape[1]):
        known = [table[own, column] for table, own in zip(tables, training, strict=True)]
        known = [values[~np.isnan(values)] for values in known]
        for table, own in zip(filled, known, strict=True):
            values = own if len(own) >= _ENOUGH else np.concatenate(known)
            usual = np.median(values) if column in _MEASURED else _most_frequent(values)
            table[np.isnan(table[:, column]), column] = usual
    return filled


def _most_frequent(values: npt.NDArray[np.float64]) -> float:
    """The smallest of them if there are several."""
    levels, counts = np.unique(values, return_counts=True)
    return float(levels[counts.argmax()])


def _encoded(tables: Sequence[_Table]) -> list[_Table]:
    """Categories as zeros and ones behind the other columns, with the levels of all centres."""
    width = tables[0].shape[1]
    categories = [column for column in _CATEGORIES if column < width]
    others = [column for column in range(width) if column not in categories]
    everyone = np.concatenate(tables)
    levels = {column: np.unique(everyone[:, column])[1:] for column in categories}
    return [
        np.column_stack(
            [table[:, others]] + [table[:, [column]] == levels[column] for column in categories]
        )
        for table in tables
    ]

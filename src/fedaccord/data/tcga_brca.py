"""Survival of breast cancer in six regions (TCGA-BRCA), as prepared for the benchmark FLamby.

1,088 patients and 39 columns: the age, and 38 columns of zeros and ones (race, stage, treatment and
others). The label is the number of days to death, or, with a minus sign, to the last day on which
the patient was known to be alive. The region is that of the site that the patient's identifier
names; the eight patients of other sites are left out. Each region tests on a fifth of its patients,
chosen by FLamby.
"""

import csv
import io
from typing import TypeAlias

import numpy as np

from fedaccord.data.centres import Centre, Normalise, normalised_columns, partition_of
from fedaccord.data.dataset import DownloadProgress
from fedaccord.data.originals import Original, Originals
from fedaccord.data.own import OwnPartition
from fedaccord.data.survival import checked_times, signed_times, survival_labels

_FLAMBY = "https://raw.githubusercontent.com/owkin/FLamby/main/flamby/datasets/fed_tcga_brca/"

FILES = Originals(
    folder="tcga-brca",
    title="TCGA-BRCA",
    files=(
        Original(
            name="brca.csv",
            sha256="07cb53423f7d579d33cfdbf2cba57b2aee75318b85866c68ce39a75b1f1ba020",
            url=_FLAMBY + "brca.csv",
            text=True,
        ),
        Original(
            name="centers.csv",
            sha256="d610df2dae0203ea229c9579747ed3eb8d28e137c5378f55acc6fe6b4632bb1d",
            url=_FLAMBY + "centers.csv",
            text=True,
        ),
        Original(
            name="train_test_split.csv",
            sha256="1249c6543a4060ff0fdaf8510fc37017755836db6c9fc5e6af96057c36510990",
            url=_FLAMBY + "dataset_creation_scripts/train_test_split.csv",
            text=True,
        ),
    ),
)

CENTRES = ("Northeast", "South", "West", "Midwest", "Europe", "Canada")
"""In FLamby's order; the first four are of the United States."""

_AGE = slice(0, 1)
"""The only column that is not 0 or 1."""
_Row: TypeAlias = dict[str, str]


def load_tcga_brca(
    normalise: Normalise = "pooled", progress: DownloadProgress | None = None
) -> OwnPartition:
    """The patients of six regions, each with its own test; labels are survival times in days.

    `normalise` the age by the mean and standard deviation of everyone's training records
    (`pooled`), of each region's own (`centre`), or leave it in years, as FLamby does (`none`). The
    other columns are zeros and ones.
    """
    files = {name: _rows(content) for name, content in FILES.read(progress).items()}
    regions = {row["TSS Code"]: row["Region"] for row in files["centers.csv"]}
    sets = {row["pid"]: row["fold"] for row in files["train_test_split.csv"]}
    patients = [row for row in files["brca.csv"] if row["pid"] in sets]
    centres = [
        _centre(name, [row for row in patients if regions[_site(row)] == name], sets)
        for name in CENTRES
    ]
    return partition_of("tcga-brca", normalised_columns(centres, normalise, _AGE), classes=0)


def _rows(content: bytes) -> list[_Row]:
    return list(csv.DictReader(io.StringIO(content.decode("utf-8"))))


def _site(patient: _Row) -> str:
    """The code of the site, the second part of an identifier like TCGA-E2-A9RU."""
    return patient["pid"].split("-")[1]


def _centre(name: str, patients: list[_Row], sets: dict[str, str]) -> Centre:
    features = [column for column in patients[0] if column not in ("pid", "E", "T")]
    times = survival_labels(*(np.array([row[key] for row in patients], float) for key in "TE"))
    return Centre(
        name=name,
        inputs=np.array([[float(row[column]) for column in features] for row in patients]),
        labels=signed_times(checked_times(times)),
        training=np.array([sets[row["pid"]] == "train" for row in patients]),
    )

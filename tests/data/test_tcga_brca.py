"""The six regions: sizes, labels, and whose patient is whose."""

import csv
import os
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from fedaccord.data import tcga_brca
from fedaccord.data.dataset import load_dataset, load_partition
from fedaccord.data.tcga_brca import CENTRES, load_tcga_brca
from tests.data.conftest import Publish

DATA = os.environ.get("FEDACCORD_DATA")
original = pytest.mark.originals("tcga-brca")


def rows(name: str) -> list[dict[str, str]]:
    with (Path(str(DATA)) / "tcga-brca" / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@original
def test_the_sizes_of_flamby() -> None:
    own = load_tcga_brca()
    assert tuple(own.names) == CENTRES
    assert list(own.sizes) == [248, 156, 164, 129, 129, 40]
    assert [len(test) for test in own.tests] == [63, 40, 42, 33, 33, 11]
    assert (own.dataset.shape, own.dataset.classes, own.dataset.survival) == ((39,), 0, True)
    assert (own.dataset.labels > 0).sum() + (own.dataset.test_labels > 0).sum() == 151


@original
def test_flambys_numbers_of_the_centres_are_these_regions() -> None:
    """Its split numbers them; here the region is that of the site in the identifier."""
    regions = {row["TSS Code"]: row["Region"] for row in rows("centers.csv")}
    found = Counter(
        (row["fold2"], regions[row["pid"].split("-")[1]]) for row in rows("train_test_split.csv")
    )
    own = load_tcga_brca()
    expected = {
        (f"{part}_{n}", name): size
        for n, name in enumerate(CENTRES)
        for part, size in (("train", own.sizes[n]), ("test", len(own.tests[n])))
    }
    assert found == expected


@original
def test_raw_columns_and_labels() -> None:
    """In each region, the same patients as by hand: age and label, whatever their order."""
    own = load_tcga_brca("none")
    folds = {row["pid"]: row["fold2"] for row in rows("train_test_split.csv")}
    for n, drawn in enumerate(own.draw(1)):
        there = [row for row in rows("brca.csv") if folds.get(row["pid"]) == f"train_{n}"]
        expected = sorted(
            (float(row["age_at_index"]), float(row["T"]) * (1 if row["E"] == "1.0" else -1))
            for row in there
        )
        ages, labels = own.dataset.inputs[drawn, 0], own.dataset.labels[drawn]
        assert sorted(zip(ages.tolist(), labels.tolist(), strict=True)) == expected
    everyone = np.concatenate([own.dataset.labels, own.dataset.test_labels])
    assert (everyone == 0).sum() == 12
    assert set(np.unique(own.dataset.inputs[:, 1:])) == {0.0, 1.0}


@original
def test_only_the_age_is_normalised() -> None:
    raw = load_tcga_brca("none").dataset
    pooled = load_tcga_brca().dataset
    np.testing.assert_array_equal(raw.inputs[:, 1:], pooled.inputs[:, 1:])
    # to single precision, over 866 patients
    np.testing.assert_allclose(pooled.inputs[:, 0].mean(dtype=np.float64), 0.0, atol=1e-6)
    np.testing.assert_allclose(pooled.inputs[:, 0].std(ddof=1), 1.0, atol=1e-5)
    own = load_tcga_brca("centre")
    for drawn in own.draw(1):
        np.testing.assert_allclose(own.dataset.inputs[drawn, 0].mean(), 0.0, atol=1e-5)


@original
def test_by_name() -> None:
    own = load_partition("tcga-brca")
    assert own is not None
    assert own.dataset.to_dict()["events"] == 119
    assert load_dataset("tcga-brca").centres == CENTRES


def test_small_files(publish: Publish) -> None:
    """A patient of another region, or without a set, is left out; regions follow from the site."""
    codes = {name: f"{n}X" for n, name in enumerate((*CENTRES, "Other"))}
    patients = [
        (f"TCGA-{code}-{n}", name, n) for name, code in codes.items() for n in range(1, 4)
    ] + [("TCGA-0X-9", "Northeast", 9)]
    texts = {
        "brca.csv": "pid,age_at_index,stage,E,T\n"
        + "".join(f"{pid},{50 + n},{n % 2},{n % 2}.0,{10 * n}.0\n" for pid, _, n in patients),
        "centers.csv": "TSS Code,Source Site,Country,State,Region\n"
        + "".join(f"{code},A site,USA,PA,{name}\n" for name, code in codes.items()),
        "train_test_split.csv": "pid,fold,fold2\n"
        + "".join(f"{pid},{'test' if n == 3 else 'train'},\n" for pid, _, n in patients if n < 9),
    }
    publish(tcga_brca, texts)
    own = load_tcga_brca("none")
    assert list(own.sizes) == [2] * 6
    assert own.dataset.labels.tolist() == [10, -20] * 6
    assert own.dataset.test_labels.tolist() == [30] * 6
    assert own.dataset.inputs[:2].tolist() == [[51.0, 1.0], [52.0, 0.0]]

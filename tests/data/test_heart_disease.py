"""The four hospitals: FLamby's preparation against pandas, and gaps that are filled."""

import os
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split

import fedaccord as fa
from fedaccord.data import heart_disease
from fedaccord.data.dataset import load_dataset, load_partition
from fedaccord.data.heart_disease import CENTRES, load_heart_disease
from fedaccord.data.own import OwnPartition
from tests.data.conftest import Publish

DATA = os.environ.get("FEDACCORD_DATA")
original = pytest.mark.originals("heart-disease")
FILES = [file.name for file in heart_disease.FILES.files]


def part(own: OwnPartition, centre: int) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """The inputs of a centre, for training and for its own test."""
    end = sum(own.sizes[: centre + 1])
    train = own.dataset.inputs[end - own.sizes[centre] : end]
    return train, own.dataset.test_inputs[own.tests[centre]]


@original
def test_the_sizes_of_flamby() -> None:
    own = load_heart_disease()
    assert tuple(own.names) == CENTRES == ("Cleveland", "Hungary", "Switzerland", "Long Beach")
    assert (list(own.sizes), [len(test) for test in own.tests]) == (
        [199, 172, 30, 85],
        [104, 89, 16, 45],
    )
    assert (own.dataset.shape, own.dataset.classes) == ((13,), 2)
    # 139 of Cleveland's 303 are ill, and all but one of the 46 in Switzerland
    ill = [own.dataset.labels[rows].sum() for rows in own.draw(1)]
    assert ill == [91, 65, 30, 66]
    assert [own.dataset.test_labels[rows].sum() for rows in own.tests] == [48, 33, 15, 35]


def flambys_tables() -> tuple[list[pd.DataFrame], list[npt.NDArray[np.bool_]]]:
    """The features of each centre with pandas, and which rows are trained on."""
    frames, training = [], []
    for name in FILES:
        frame = pd.read_csv(Path(str(DATA)) / "heart-disease" / name, header=None)
        frame = frame.replace("?", np.nan).drop(columns=[10, 11, 12]).dropna().apply(pd.to_numeric)
        ill = (frame.pop(13) > 0).astype(int).to_numpy()
        enough = all((ill == label).sum() > 2 for label in (0, 1))
        rows, _ = train_test_split(
            np.arange(len(ill)),
            test_size=1 - 0.66,
            train_size=0.66,
            random_state=43,
            shuffle=True,
            stratify=ill if enough else None,
        )
        frames.append(frame)
        training.append(np.isin(np.arange(len(ill)), rows))
    everyone = pd.get_dummies(pd.concat(frames, keys=CENTRES), columns=[2, 6], drop_first=True)
    return [everyone.loc[name].astype(float) for name in CENTRES], training


@original
@pytest.mark.parametrize("normalise", ["centre", "pooled", "none"])
def test_the_features_of_flamby(normalise: Any) -> None:
    own = load_heart_disease(normalise=normalise)
    tables, training = flambys_tables()
    together = pd.concat([table[rows] for table, rows in zip(tables, training, strict=True)])
    for n, (table, rows) in enumerate(zip(tables, training, strict=True)):
        known = together if normalise == "pooled" else table[rows]
        mean, deviation = known.mean(), known.std(ddof=1) + 1e-9
        if normalise == "none":
            mean, deviation = 0.0 * mean, 0.0 * deviation + 1.0
        expected = ((table - mean) / deviation).to_numpy()
        train, test = part(own, n)
        # inputs are stored in 32 bits
        np.testing.assert_allclose(train, expected[rows], rtol=1e-6, atol=1e-6)
        np.testing.assert_allclose(test, expected[~rows], rtol=1e-6, atol=1e-6)


@original
def test_all_records_with_gaps_filled() -> None:
    own = load_heart_disease("imputed", normalise="none")
    assert (list(own.sizes), [len(test) for test in own.tests]) == (
        [199, 194, 81, 132],
        [104, 100, 42, 68],
    )
    assert own.dataset.shape == (18,)
    everyone = np.concatenate([own.dataset.inputs, own.dataset.test_inputs])
    blood_pressure, cholesterol = everyone[:, 2], everyone[:, 3]
    assert blood_pressure.min() >= 80
    assert cholesterol.min() >= 85
    # Switzerland has no cholesterol at all: everyone's median of the others
    train, test = part(own, 2)
    assert set(train[:, 3]) == set(test[:, 3])
    assert len(set(train[:, 3])) == 1
    # the four categories: at most one level of each is 1
    for first, last in ((9, 12), (12, 14), (14, 16), (16, 18)):
        levels = everyone[:, first:last]
        assert set(np.unique(levels)) == {0.0, 1.0}
        assert levels.sum(axis=1).max() == 1
    ages = np.sort(np.concatenate([part(own, 0)[0], part(own, 0)[1]])[:, 0])
    read = pd.read_csv(Path(str(DATA)) / "heart-disease" / FILES[0], header=None)
    np.testing.assert_array_equal(ages, np.sort(read[0]))


@original
@pytest.mark.parametrize(
    ("normalise", "together"),
    [
        ("centre", [0.724, 0.750, 0.753, 0.750, 0.600]),
        ("pooled", [0.795, 0.779, 0.798, 0.812, 0.822]),
    ],
)
def test_what_normalisation_does(normalise: Any, together: list[float]) -> None:
    """The table in docs/reference/datasets.md."""
    own = load_heart_disease(normalise=normalise)
    data = own.dataset
    model = LogisticRegression(max_iter=1000).fit(data.inputs, data.labels)
    everyone = np.arange(len(data.test_labels))
    found = [model.score(data.test_inputs[k], data.test_labels[k]) for k in (everyone, *own.tests)]
    # one of Switzerland's 16 test records is 0.06
    assert found == pytest.approx(together, abs=0.01)


@original
def test_by_name() -> None:
    own = load_partition("heart-disease")
    assert own is not None
    assert load_dataset("heart-disease").centres == CENTRES
    np.testing.assert_array_equal(own.dataset.inputs, load_heart_disease().dataset.inputs)
    shared = load_partition("heart-disease-shared")
    assert shared is not None
    assert (shared.dataset.name, shared.dataset.size) == ("heart-disease-shared", 486)
    assert load_heart_disease("imputed", "none").dataset.name == "heart-disease-imputed-raw"
    imputed = load_partition("heart-disease-imputed")
    assert imputed is not None
    assert (imputed.dataset.name, imputed.dataset.size) == ("heart-disease-imputed", 606)
    everyone = np.concatenate([imputed.dataset.inputs, imputed.dataset.test_inputs])
    assert np.abs(everyone).max() < 20  # no column is blown up by a deviation near 0


# --- Small files ---------------------------------------------------------------------------


def record(age: int, label: int, **known: str) -> str:
    """A line of a file: everything but the age and the label the same, unless it is given."""
    usual = {
        **{"sex": "1", "cp": "1", "trestbps": "120", "chol": "200", "fbs": "0", "restecg": "0"},
        **{"thalach": "150", "exang": "0", "oldpeak": "1", "slope": "1", "ca": "0", "thal": "3"},
    }
    return ",".join([str(age), *(usual | known).values(), str(label)]) + "\n"


def centre(size: int, **known: str) -> str:
    return "".join(record(40 + n, n % 3, **known) for n in range(size))


def write(publish: Publish, *centres: str) -> None:
    publish(heart_disease, dict(zip(FILES, centres, strict=True)))


def test_records_with_gaps_are_left_out_by_flamby(publish: Publish) -> None:
    gap = record(99, 1, chol="?") + record(98, 0, ca="?")
    write(publish, centre(9) + gap, centre(12, cp="4"), centre(6), centre(6, restecg="2"))
    own = load_heart_disease(normalise="none")
    ages = np.concatenate([own.dataset.inputs, own.dataset.test_inputs])[:, 0]
    assert 99 not in ages  # cholesterol counts, ca does not
    assert 98 in ages
    # cp has the levels 1 and 4, restecg 0 and 2: one column each
    assert own.dataset.shape == (10,)


def test_gaps_are_filled_from_training_records_alone(publish: Publish) -> None:
    """If only a test record changes, the training records and all fillings stay."""
    chol = [str(200 + 3 * n) for n in range(30)]
    lines = [record(40 + n, n % 2, chol=chol[n]) for n in range(30)] + [record(80, 1, chol="?")]
    others = (centre(12), centre(12), centre(12))
    write(publish, "".join(lines), *others)
    before = load_heart_disease("imputed", "none")
    train, test = part(before, 0)
    values = np.array([float(cell) for cell in chol])
    known = np.isin(np.arange(40, 70), train[:, 0])
    filled = np.concatenate([train, test])
    assert filled[filled[:, 0] == 80, 3] == np.median(values[known])
    tested = int(test[test[:, 0] < 70, 0][0]) - 40
    lines[tested] = record(40 + tested, tested % 2, chol="900")
    write(publish, "".join(lines), *others)
    after = load_heart_disease("imputed", "none")
    np.testing.assert_array_equal(after.dataset.inputs, before.dataset.inputs)


def test_a_column_of_gaps_is_filled_from_the_other_centres(publish: Publish) -> None:
    """Also if the gaps are zeros, and for categories: their most frequent value."""
    empty = centre(12, chol="0", trestbps="0", thal="?", slope="?")
    write(publish, centre(15, chol="300"), centre(15, chol="300", thal="7"), empty, centre(30))
    own = load_heart_disease("imputed", "none")
    train, test = part(own, 2)
    for rows in (train, test):
        assert set(rows[:, 3]) == {200.0}  # 20 of the 38 that are known
        assert set(rows[:, 2]) == {120.0}
        assert set(rows[:, -1]) == {0.0}  # thal 3, not 7


def test_few_known_values_are_no_median(publish: Publish) -> None:
    """Nine records of a centre with a cholesterol do not decide about the others."""
    few = centre(9, chol="500") + centre(30, chol="?")
    write(publish, few, centre(30), centre(12), centre(12))
    train, test = part(load_heart_disease("imputed", "none"), 0)
    assert set(np.concatenate([train, test])[:, 3]) == {200.0, 500.0}


def test_a_centre_with_one_class(publish: Publish) -> None:
    ill = "".join(record(40 + n, 1) for n in range(12))
    write(publish, centre(12), centre(12), ill, centre(12))
    own = load_heart_disease()
    assert set(own.dataset.labels[own.draw(1)[2]].tolist()) == {1}


def test_columns_without_variation_are_shifted_to_0(publish: Publish) -> None:
    write(publish, *[centre(12)] * 4)
    own = load_heart_disease()
    assert np.abs(own.dataset.inputs[:, 1:]).max() == 0
    assert np.isfinite(own.dataset.inputs).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"variant": "all"}, "variant: must be one of 'flamby', 'imputed', got 'all'"),
        ({"normalise": "center"}, "normalise: must be one of .* did you mean 'centre'"),
    ],
)
def test_rejected(options: dict[str, Any], message: str, publish: Publish) -> None:
    write(publish, *[centre(12)] * 4)
    with pytest.raises(fa.InvalidInput, match=message):
        load_heart_disease(**options)

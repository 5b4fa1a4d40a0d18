"""Everything that is accepted as examples, and the errors for everything else."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from torch.utils.data import IterableDataset, TensorDataset

import fedaccord as fa
from fedaccord.data.dataset import Dataset, load_dataset
from fedaccord.data.inputs import as_dataset, as_examples, read_examples, scale_note
from fedaccord.data.own import OwnPartition, load_folder, own_partition, read_data

INPUTS = np.arange(20.0).reshape(10, 2)
LABELS = np.array([0, 1] * 5)
WORDS = np.array(["no", "yes"] * 5)


class Items(torch.utils.data.Dataset[Any]):
    """A custom map-style dataset: each item is computed."""

    def __len__(self) -> int:
        return len(INPUTS)

    def __getitem__(self, n: int) -> tuple[torch.Tensor, int]:
        return torch.tensor(INPUTS[n]), int(LABELS[n])


class Stream(IterableDataset[Any]):
    def __iter__(self) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        return iter(zip(torch.tensor(INPUTS), torch.tensor(LABELS), strict=True))


FRAME = pd.DataFrame({"age": INPUTS[:, 0], "dose": INPUTS[:, 1], "label": LABELS})


@pytest.mark.parametrize(
    "data",
    [
        (INPUTS, LABELS),
        [INPUTS.tolist(), LABELS.tolist()],
        (torch.tensor(INPUTS, requires_grad=True), torch.tensor(LABELS)),
        {"inputs": INPUTS, "labels": LABELS},
        {"X": INPUTS, "y": LABELS},
        FRAME,
        FRAME[["label", "age", "dose"]],
        FRAME.rename(columns={"label": "outcome"}),
        FRAME.astype({"age": "Int64", "label": "category"}),
        TensorDataset(torch.tensor(INPUTS), torch.tensor(LABELS)),
        Items(),
        Stream(),
    ],
    ids=[
        *("pair", "lists", "tensors", "inputs and labels", "X and y"),
        *("frame", "label first", "no label column", "pandas types"),
        *("TensorDataset", "Dataset", "IterableDataset"),
    ],
)
def test_the_same_examples_in_every_form(data: Any) -> None:
    inputs, labels = as_examples(data)
    np.testing.assert_array_equal(inputs, INPUTS)
    np.testing.assert_array_equal(labels, LABELS)
    partition = own_partition({"a": data, "test": data}, ["a"], "mine")
    assert partition.dataset.size == 10


@pytest.mark.parametrize("dtype", ["U3", "O", pd.Series(WORDS).dtype], ids=str)
def test_text_labels_are_numbered_in_alphabetical_order(dtype: Any) -> None:
    labels = pd.Series(WORDS).astype(dtype) if not isinstance(dtype, str) else WORDS.astype(dtype)
    dataset = as_dataset((INPUTS, labels), "mine")
    assert (dataset.classes, dataset.label_names) == (2, ("no", "yes"))
    assert set(dataset.labels.tolist()) == {0, 1}


def test_text_labels_have_the_same_number_at_every_client() -> None:
    data = {
        "a": (INPUTS[:2], ["cat", "cat"]),
        "b": (INPUTS[:3], ["dog", "ape", "dog"]),
        "test": (INPUTS[:1], ["dog"]),
    }
    dataset = own_partition(data, ["a", "b"], "mine").dataset
    assert dataset.label_names == ("ape", "cat", "dog")
    assert (dataset.labels.tolist(), dataset.test_labels.tolist()) == ([1, 1, 2, 0, 2], [2])


@pytest.mark.parametrize(
    ("text", "labels"),
    [
        ("1,2,cat\n3,4,dog\n", ["cat", "dog"]),
        ("x,y,kind\n1,2,cat\n3,4,dog\n", ["cat", "dog"]),
        ("label,x,y\ncat,1,2\ndog,3,4\n", ["cat", "dog"]),
        ('"label","x","y"\n"cat, black",1,2\ndog,3,4\n', ["cat, black", "dog"]),
        ("label,x,y\n1,1,2\n0,3,4\n", [1, 0]),
        ("0,1,target\n1,2,1\n3,4,0\n", [1, 0]),
        ("# a comment\n1,2,1\n3,4,0\n", [1, 0]),
        ("x;y;label\n1;2;cat\n3;4;dog\n", ["cat", "dog"]),
        ("x\ty\tlabel\n1\t2\t1\n3\t4\t0\n", [1, 0]),
        ("x;y;label\n1,0;2;1\n3,00;4;0\n", [1, 0]),
        ("1,0;2,0;1\n3,0;4,000;0\n", [1, 0]),  # the others show that 4,000 is 4
        ("x;y;label\n1;2;cat\n3;4;dog, brown\n", ["cat", "dog, brown"]),
        ("1,2,cat;black\n3,4,dog;brown\n", ["cat;black", "dog;brown"]),
    ],
)
def test_csv_files_with_the_label_in_any_column(
    text: str, labels: list[str | int], tmp_path: Path
) -> None:
    (tmp_path / "a.csv").write_text(text, encoding="utf-8")
    inputs, found = read_examples(tmp_path / "a.csv")
    assert inputs.tolist() == [[1.0, 2.0], [3.0, 4.0]]
    assert found.tolist() == labels


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (
            "age,chol,label\n63,233,0\n67,?,1\n41,?,1\n",
            "the column 'chol' has 2 cells without a number ('?'): fill the gaps, or leave these "
            "rows out",
        ),
        (
            "age,chol,label\n63,,0\n67,,1\n",
            "the column 'chol' has nothing but gaps or text: leave it out for all clients",
        ),
        ("63,?,0\n67,200,1\n", "the column 2 has 1 cell without a number ('?'): fill the gaps, or"),
        ("age,chol,label\n63,NA,ill\n67,250,well\n", "the column 'chol' has 1 cell without a num"),
        ("age,chol,label\n63,233,0\n67,28", "row 2 has 2 cells, the first one 3"),
        ("age,chol,label\n63,233,ill\n67,28", "row 2 has 2 cells, the first one 3"),
        ("1 2 0\n3 4 1\n", "its rows have one cell: put commas or semicolons between"),
        (
            "x;label\n1,234;0\n2,345;1\n",
            "it is not certain that '1,234' has a decimal comma: write",
        ),
        ("x;label\n1,5;0\n2.5;1\n", "it is not certain that '1,5' has a decimal comma: write"),
    ],
    ids=[
        *("gaps", "a column of gaps", "no header", "text labels", "cut off"),
        *("cut off, text labels", "spaces", "decimals or thousands", "two decimal marks"),
    ],
)
def test_gaps_in_csv_files(text: str, why: str, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(text, encoding="utf-8")
    (tmp_path / "test.csv").write_text("1,2,0\n", encoding="utf-8")
    with pytest.raises(fa.InvalidInput) as refused:
        load_folder(tmp_path, ["a"])
    [problem] = refused.value.problems
    assert str(problem).startswith(f"a.csv: cannot be read as examples ({why}")


def test_gaps_in_arrays() -> None:
    gaps = INPUTS.copy()
    gaps[3, 0] = np.nan
    with pytest.raises(fa.InvalidInput, match=r"mine: inputs must be finite numbers$"):
        as_dataset((gaps, LABELS), "mine")
    gaps[:, 1] = np.nan
    with pytest.raises(
        fa.InvalidInput, match="inputs must be finite numbers; column 2 has nothing"
    ):
        as_dataset((gaps, LABELS), "mine")


def test_npz_files_with_either_pair_of_names(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", X=INPUTS, y=WORDS)
    np.savez(tmp_path / "test.npz", inputs=INPUTS, labels=WORDS)
    assert load_folder(tmp_path, ["a"]).dataset.label_names == ("no", "yes")
    np.savez(tmp_path / "a.npz", X=INPUTS, labels=LABELS)
    with pytest.raises(
        fa.InvalidInput, match="inputs and labels, or X and y; there is 'X', 'labels'"
    ):
        load_folder(tmp_path, ["a"])


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (7, r"mine: cannot be read as examples \(a int\)"),
        ("digits", r"mine: cannot be read as examples \(a str\)"),
        ({"X": INPUTS}, "it must have inputs and labels, or X and y; there is 'X'"),
        (FRAME.assign(age="old"), "the column 'age' is not numeric"),
        (FRAME[["label"]], "a frame needs at least one feature and a label"),
        ((INPUTS, [0, "one"] * 5), "inputs must be real numbers, labels whole numbers or text"),
        ((INPUTS[:4], LABELS[:4]), "needs at least 5 examples"),
        ((INPUTS, LABELS + 1), "the largest is 2, but there is no 0"),
        ((INPUTS, LABELS[:3]), "must have as many inputs as labels"),
    ],
)
def test_rejected(data: Any, message: str) -> None:
    with pytest.raises(fa.InvalidInput, match=message):
        as_dataset(data, "mine")


def test_text_and_numbers_do_not_mix_between_clients() -> None:
    data = {"a": (INPUTS, WORDS), "b": (INPUTS, LABELS), "test": (INPUTS, LABELS)}
    with pytest.raises(fa.InvalidInput, match="a: its labels are text, those of test are numbers"):
        own_partition(data, ["a", "b"], "mine")


def test_a_client_that_is_not_in_the_mapping() -> None:
    with pytest.raises(fa.InvalidInput, match="b: there are no examples of this name"):
        own_partition({"a": (INPUTS, LABELS), "test": (INPUTS, LABELS)}, ["a", "b"], "mine")


def test_data_per_client_and_data_to_be_divided(tmp_path: Path) -> None:
    for name in ("a", "test"):
        np.savez(tmp_path / f"{name}.npz", X=INPUTS, y=LABELS)
    by_client: list[Any] = [
        tmp_path,
        str(tmp_path),
        {"a": (INPUTS, LABELS), "test": FRAME},
        lambda name: (INPUTS, LABELS),
    ]
    assert all(isinstance(read_data(data, ["a"]), OwnPartition) for data in by_client)
    together: list[Any] = [(INPUTS, LABELS), {"X": INPUTS, "y": LABELS}, FRAME, Items()]
    for data in together:
        dataset = read_data(data, ["a"])
        assert isinstance(dataset, Dataset)
        assert (dataset.size, len(dataset.test_labels)) == (8, 2)
    digits = load_dataset("digits")
    assert read_data(digits, ["a"]) is digits


def test_badly_scaled_features_get_a_note_and_are_not_changed() -> None:
    wild = INPUTS * [1.0, 1e5]
    dataset = as_dataset((wild, LABELS), "mine")
    note = scale_note(dataset)
    assert note is not None
    assert note.startswith("the features of mine are on very different scales (standard dev")
    assert dataset.inputs.max() == wild.max()


def test_ordinary_features_and_pictures_get_no_note() -> None:
    assert scale_note(as_dataset((INPUTS, LABELS))) is None
    assert scale_note(load_dataset("breast-cancer")) is None
    digits = load_dataset("digits")
    assert scale_note(digits) is None
    flat = (digits.inputs.reshape(len(digits.inputs), -1), digits.labels)
    assert scale_note(as_dataset(flat)) is None

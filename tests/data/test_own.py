"""Your own data, from files and from a function."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fedaccord as fa
from fedaccord.data.dataset import Dataset
from fedaccord.data.inputs import Examples
from fedaccord.data.own import OwnPartition, load_folder, own_partition

INPUTS = np.arange(12.0).reshape(6, 2)
LABELS = np.array([0, 1, 2, 0, 1, 2])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    np.savez(tmp_path / "North.npz", inputs=INPUTS, labels=LABELS)
    (tmp_path / "South.csv").write_text("x,y,label\n1,2,0\n3,4,1\n", encoding="utf-8")
    (tmp_path / "test.csv").write_text("5,6,2\n", encoding="utf-8")
    return tmp_path


def test_a_folder_of_files(folder: Path) -> None:
    partition = load_folder(folder, ["South", "North"])
    assert list(partition.sizes) == [2, 6]
    assert partition.dataset.classes == 3
    south, north = partition.draw(1)
    assert sorted(partition.dataset.inputs[south].tolist()) == [[1.0, 2.0], [3.0, 4.0]]
    assert sorted(partition.dataset.inputs[north].tolist()) == INPUTS.tolist()
    assert partition.dataset.test_labels.tolist() == [2]


def test_the_same_examples_in_a_different_order_in_each_slot(folder: Path) -> None:
    partition = load_folder(folder, ["North"], seed=1)
    orders = [partition.draw(slot)[0].tolist() for slot in (1, 2, 3)]
    assert sorted(orders[0]) == sorted(orders[1]) == list(range(6))
    assert len({tuple(order) for order in orders}) > 1
    assert orders[0] == load_folder(folder, ["North"], seed=1).draw(1)[0].tolist()


def test_a_function() -> None:
    partition = own_partition(lambda name: (INPUTS, LABELS), ["a", "b"], "mine")
    assert partition.dataset.size == 12
    assert partition.draw(1)[1].min() == 6


def test_client_data_of_different_widths(folder: Path) -> None:
    np.savez(folder / "West.npz", inputs=np.zeros((2, 3)), labels=[0, 1])
    np.savez(folder / "East.npz", inputs=np.zeros((2, 4)), labels=[0, 1])
    with pytest.raises(fa.InvalidInput) as refused:
        load_folder(folder, ["North", "West", "East"])
    assert tuple(map(str, refused.value.problems)) == (
        "West: its examples have the shape (3,), those of test (2,)",
        "East: its examples have the shape (4,), those of test (2,)",
    )


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("Bad.csv", b"1,2\n3\n", "Bad.csv: cannot be read as examples"),
        ("Bad.csv", b"1,2,0.5\n", "Bad: labels must be whole numbers, 0 or more"),
        ("Bad.csv", b"1,2,-1\n", "Bad: labels must be whole numbers, 0 or more"),
        ("Bad.csv", b"a,b,label\n", "Bad.csv: cannot be read as examples .there are no rows"),
        ("Bad.csv", b"", "Bad.csv: cannot be read as examples .there are no rows"),
        ("Bad.csv", b"1,2,nan\n", "Bad: labels must be whole numbers, 0 or more"),
        ("Bad.csv", b"1,2,1e30\n", "Bad: labels must be whole numbers, 0 or more"),
        ("Bad.csv", b"1,2,20230101\n", "Bad: a label is 20230101, which cannot be"),
        ("Bad.csv", b"nan,2,0\n", "Bad: inputs must be finite numbers"),
        ("Bad.csv", b"1e300,2,0\n", "Bad: inputs must be finite numbers"),
        ("Bad.npz", b"no zip file", "Bad.npz: cannot be read as examples"),
        ("Bad.csv", b"1\n0\n", "Bad.csv: cannot be read as examples .its rows have one cell"),
    ],
)
def test_bad_files(folder: Path, name: str, content: bytes, message: str) -> None:
    (folder / name).write_bytes(content)
    with pytest.raises(fa.InvalidInput, match=message):
        load_folder(folder, ["Bad"])


def test_missing_files(folder: Path) -> None:
    with pytest.raises(fa.InvalidInput, match=r"West: .* .npz or .csv; there is none"):
        load_folder(folder, ["West"])
    with pytest.raises(fa.InvalidInput, match="there is no such directory"):
        load_folder(folder / "nowhere", ["North"])
    np.savez(folder / "South.npz", inputs=INPUTS, labels=LABELS)
    with pytest.raises(fa.InvalidInput, match=r"South: .* .npz or .csv; there are 2"):
        load_folder(folder, ["South"])


def test_all_mistakes_of_all_clients_at_once(folder: Path) -> None:
    (folder / "North.npz").write_bytes(b"no zip file")
    (folder / "South.csv").write_text("1,2,-1\n", encoding="utf-8")
    with pytest.raises(fa.InvalidInput) as refused:
        load_folder(folder, ["North", "South", "West"])
    whose = [str(problem).split(":")[0] for problem in refused.value.problems]
    assert whose == ["North.npz", "South", "West"]
    assert refused.value.source == folder.name


def test_one_array_is_not_inputs_and_labels(folder: Path) -> None:
    with (folder / "West.npz").open("wb") as file:
        np.save(file, INPUTS)
    with pytest.raises(fa.InvalidInput, match=r"West.npz: .*it holds one array"):
        load_folder(folder, ["West"])


def test_a_byte_order_mark_is_skipped(folder: Path) -> None:
    (folder / "West.csv").write_text("1,2,0\n3,4,1\n", encoding="utf-8-sig")
    assert list(load_folder(folder, ["West"]).sizes) == [2]


def test_no_client_may_be_called_test(folder: Path) -> None:
    with pytest.raises(fa.InvalidInput, match="no client can be called test"):
        load_folder(folder, ["North", "test"])


def labelled(**labels: list[int]) -> Callable[[str], Examples]:
    """Examples for each client, and test, with these labels."""
    return lambda name: (np.zeros((len(labels[name]), 2)), np.array(labels[name]))


@pytest.mark.parametrize(
    ("labels", "problems"),
    [
        ({"a": [0, 1], "b": [1, 500], "test": [0]}, ["b: a label is 500, but no client has 2"]),
        (
            {"a": [1, 2], "b": [2], "test": [1]},
            ["a: a label is 2, but no client has 0", "b: a label is 2, but no client has 0"],
        ),
        ({"a": [0, 1], "b": [1], "test": [0, 2]}, ["test: a label is 2, which no client has"]),
    ],
)
def test_labels_that_no_client_has(labels: dict[str, list[int]], problems: list[str]) -> None:
    with pytest.raises(fa.InvalidInput) as refused:
        own_partition(labelled(**labels), ["a", "b"], "mine")
    told = [
        str(problem).removesuffix(": they must be 0, 1, 2, ...")
        for problem in refused.value.problems
    ]
    assert told == problems


def test_no_client_needs_every_label() -> None:
    both = own_partition(labelled(a=[0, 0], b=[1, 2], test=[2]), ["a", "b"], "mine")
    assert both.dataset.classes == 3
    # nor does a single client, as on Flower, where nobody sees the others' data
    alone = own_partition(labelled(a=[0, 2], test=[3]), ["a"], "mine")
    assert alone.dataset.classes == 4


@pytest.mark.parametrize("part", ["inputs", "labels"])
def test_complex_numbers(part: str) -> None:
    arrays = {"inputs": INPUTS, "labels": LABELS}
    arrays[part] = arrays[part] + 1j
    with pytest.raises(fa.InvalidInput, match="a: inputs must be real numbers, labels whole"):
        own_partition(lambda _: (arrays["inputs"], arrays["labels"]), ["a"], "mine")


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_damaged_anywhere(folder: Path, save: Callable[..., None]) -> None:
    """Whichever byte is wrong, the file is read, or rejected with a one-sentence error."""
    save(folder / "Bad.npz", inputs=INPUTS, labels=LABELS)
    whole = (folder / "Bad.npz").read_bytes()
    refused = []
    for place in range(0, len(whole), 7):
        damaged = bytearray(whole)
        damaged[place] ^= 0xFF
        (folder / "Bad.npz").write_bytes(damaged)
        try:
            load_folder(folder, ["Bad"])
        except fa.InvalidInput as error:
            refused.append(len(error.problems))
    assert len(refused) > 20
    assert set(refused) == {1}


# --- Own tests -----------------------------------------------------------------------------


@pytest.fixture
def tests(folder: Path) -> Path:
    """A test for each client instead of one for all."""
    (folder / "test.csv").unlink()
    (folder / "test").mkdir()
    (folder / "test" / "North.csv").write_text("1,1,0\n2,2,1\n", encoding="utf-8")
    np.savez(folder / "test" / "South.npz", inputs=[[9.0, 9.0]], labels=[2])
    return folder


def test_a_folder_with_a_test_for_each_client(tests: Path) -> None:
    own = load_folder(tests, ["South", "North"])
    assert [positions.tolist() for positions in own.tests] == [[0], [1, 2]]
    assert own.dataset.test_inputs.tolist() == [[9.0, 9.0], [1.0, 1.0], [2.0, 2.0]]
    assert own.dataset.test_labels.tolist() == [2, 0, 1]
    assert own.reordered(3).tests == own.tests


def test_test_examples_that_belong_to_no_client(tests: Path) -> None:
    (tests / "test.csv").write_text("5,6,2\n", encoding="utf-8")
    own = load_folder(tests, ["North", "South"])
    assert [positions.tolist() for positions in own.tests] == [[0, 1], [2]]
    assert own.dataset.test_inputs[3].tolist() == [5.0, 6.0]


def test_test_examples_are_not_counted_twice(tests: Path) -> None:
    (tests / "test.csv").write_text("1,1,0\n2,2,1\n9,9,2\n0,0,1\n", encoding="utf-8")
    with pytest.raises(fa.InvalidInput, match="test: repeats everyone's own test examples: leave"):
        load_folder(tests, ["North", "South"])


def test_a_client_without_its_own_test(tests: Path) -> None:
    (tests / "test" / "South.npz").unlink()
    with pytest.raises(fa.InvalidInput) as refused:
        load_folder(tests, ["North", "South"])
    assert str(refused.value) == (
        f"{tests.name}: test/South: there must be one file, .npz or .csv; there is none"
    )


def test_mistakes_in_own_tests(tests: Path) -> None:
    (tests / "test" / "North.csv").write_text("1,1,0.5\n", encoding="utf-8")
    np.savez(tests / "test" / "South.npz", inputs=[[9.0, 9.0, 9.0]], labels=[2])
    with pytest.raises(fa.InvalidInput, match="test/North: labels must be whole numbers"):
        load_folder(tests, ["North", "South"])
    (tests / "test" / "North.csv").write_text("1,1,0\n", encoding="utf-8")
    with pytest.raises(fa.InvalidInput) as refused:
        load_folder(tests, ["North", "South"])
    assert [str(problem) for problem in refused.value.problems] == [
        "test/South: its examples have the shape (3,), those of test/North (2,)"
    ]
    np.savez(tests / "test" / "South.npz", inputs=[[9.0, 9.0]], labels=[7])
    with pytest.raises(fa.InvalidInput, match="test/South: a label is 7, which no client has"):
        load_folder(tests, ["North", "South"])


def test_own_tests_in_a_mapping_or_from_a_function() -> None:
    examples = (INPUTS, LABELS)
    data: dict[str, Any] = {"a": examples, "b": examples}
    data |= {"test": {"a": examples, "b": (INPUTS[:1], [2])}}
    sources: list[Any] = [data, data.__getitem__]
    for source in sources:
        own = own_partition(source, ["a", "b"], "mine")
        assert [len(positions) for positions in own.tests] == [6, 1]
    nobodys = (INPUTS[:2] + 1, [0, 1])
    more: dict[str, Any] = data | {"test": {"a": examples, "b": (INPUTS[:1], [2]), "test": nobodys}}
    own = own_partition(more, ["a", "b"], "mine")
    assert len(own.dataset.test_labels) == 9
    with pytest.raises(fa.InvalidInput, match="mine: test/b: there are no examples of this name"):
        own_partition(data | {"test": {"a": examples}}, ["a", "b"], "mine")


def test_without_own_tests_there_are_none(folder: Path) -> None:
    assert load_folder(folder, ["South", "North"]).tests == ()


# --- Some of the clients -------------------------------------------------------------------


def test_the_partition_of_some_clients(tests: Path) -> None:
    (tests / "test.csv").write_text("5,6,2\n", encoding="utf-8")
    own = load_folder(tests, ["North", "South"])
    assert own.of(["North", "South"]) is own
    south = own.of(["South"])
    assert (list(south.sizes), south.names) == ([2], ("South",))
    assert south.dataset.inputs.tolist() == [[1.0, 2.0], [3.0, 4.0]]
    assert [positions.tolist() for positions in south.tests] == [[0]]
    assert south.dataset.test_inputs.tolist() == [[9.0, 9.0], [5.0, 6.0]]
    turned = own.of(["South", "North"])
    assert list(turned.sizes) == [2, 6]
    assert turned.dataset.labels[turned.draw(1)[0]].max() == 1
    with pytest.raises(fa.InvalidInput, match="there is no client called 'Nord'; did you mean 'No"):
        own.of(["South", "Nord"])


def test_the_common_test_stays_with_some_clients(folder: Path) -> None:
    south = load_folder(folder, ["North", "South"]).of(["South"])
    assert (south.tests, south.dataset.test_inputs.tolist()) == ((), [[5.0, 6.0]])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sizes": [6]}, "mine: sizes must be one for each client"),
        ({"sizes": [6, 1]}, "mine: sizes must be one for each client"),
        ({"tests": [np.array([0])]}, "mine: tests must be one for each client, or none at all"),
        ({"tests": [np.array([0]), np.array([6])]}, "mine: tests must be positions from 0 to 5"),
        ({"tests": [np.array([0]), np.array([], int)]}, "mine: tests must be positions from 0"),
    ],
)
def test_partitions_that_cannot_be(options: dict[str, Any], message: str) -> None:
    inputs = INPUTS.astype(np.float32)
    data = Dataset("mine", inputs, LABELS, inputs, LABELS, 3)
    with pytest.raises(fa.InvalidInput, match=message):
        replace(OwnPartition(data, [4, 2], ("a", "b")), **options)

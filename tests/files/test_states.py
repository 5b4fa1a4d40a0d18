"""States, transitions, leaving and growth in consortium files."""

from pathlib import Path

import numpy as np
import pytest

import fedaccord as fa
from fedaccord.files.consortium import example_text
from fedaccord.files.states import load_either

STATES = """
[[states]]
name = "all six"

[[states]]
name = "summer"
without = ["Riverside"]
times = { samples = 0.5, valuation = 2.0 }
clients = [{ name = "St Mary", samples = 9_999, quality = 1.5 }]

[transitions]
"all six" = { "all six" = 0.9, "summer" = 0.1 }
"""


def written(directory: Path, *changes: tuple[str, str]) -> Path:
    """The example with states, and with some of its text replaced."""
    text = example_text() + STATES
    for old, new in changes:
        assert old in text
        text = text.replace(old, new, 1)
    path = directory / "consortium.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_states_are_read(tmp_path: Path) -> None:
    changing = fa.load_changing(written(tmp_path))
    assert changing.states == ("all six", "summer")
    np.testing.assert_allclose(changing.transitions, [[0.9, 0.1], [0.0, 1.0]])
    summer = changing.consortia[1]
    assert summer.size == 5
    assert summer.samples.tolist() == [14_000, 10_000, 9_999, 8_000, 6_000]
    assert summer.valuation[0] == 1_720_000
    assert summer.quality.tolist() == [1, 1, 1.5, 1, 1]
    assert changing.consortia[0].samples.sum() == 116_000


def test_a_file_without_states_never_changes(tmp_path: Path) -> None:
    path = tmp_path / "plain.toml"
    path.write_text(example_text(), encoding="utf-8")
    changing = fa.load_changing(path)
    assert changing.transitions.tolist() == [[1.0]]
    assert isinstance(load_either(path), fa.Consortium)


def test_load_consortium_leaves_the_states_out_and_says_so(tmp_path: Path) -> None:
    with pytest.warns(fa.FileNote, match="the states are left out here"):
        consortium = fa.load_consortium(written(tmp_path))
    assert consortium.samples.sum() == 116_000
    assert isinstance(load_either(written(tmp_path)), fa.ChangingConsortium)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('["Riverside"]', '["River"]', "without: there is no client called 'River'"),
        ('["Riverside"]', '"Riverside"', r"states\[1\].without: must be a list, got 'Riverside'"),
        ("without =", "with =", r"states\[1\].with: unknown key; did you mean 'without'"),
        ("{ samples = 0.5,", "{ sample = 0.5,", "times.sample: unknown key; did you mean"),
        ("{ samples = 0.5,", "{ samples = 0,", r"states\[1\].times.samples: must be more than 0"),
        ('"St Mary", samples', '"Mary", samples', r"clients\[0\].name: there is no client called"),
        ("samples = 9_999", "samples = -1", "must be more than 0, got -1"),
        ("samples = 9_999", "discount_factor = 0.5", "discount_factor: unknown key"),
        ('name = "summer"', "name = 3", r"states\[1\].name: must be text in quotes, got 3"),
        ('name = "summer"', 'name = "all six"', "'all six' is the name of"),
        ('name = "summer"', "", r"states\[1\].name: is missing"),
        ("= 0.9,", "= 0.8,", "transitions.all six: the probabilities must add up to 1, got 0.9"),
        ('"summer" = 0.1', '"sumer" = 0.1', "no such state; did you mean 'summer'"),
        ("[transitions]", "[transition]", "transition: unknown key"),
        ("currency =", "growth = 0.5\ncurrency =", "counts as 1.35, which must be less than 1"),
        ("currency =", "leaves = 1\ncurrency =", "leaves: must be from 0 to less than 1, got 1"),
        ("currency =", 'leaves = "often"\ncurrency =', "leaves: must be a number, got 'often'"),
    ],
)
def test_mistakes_get_one_sentence(tmp_path: Path, old: str, new: str, message: str) -> None:
    with pytest.raises(fa.InvalidInput, match=message) as error:
        fa.load_changing(written(tmp_path, (old, new)))
    assert str(error.value).startswith(str(tmp_path))


@pytest.mark.parametrize("states", ["states = 3\n", "states = []\n", ""])
def test_transitions_need_states(tmp_path: Path, states: str) -> None:
    path = tmp_path / "consortium.toml"
    path.write_text(states + example_text() + "[transitions]\n", encoding="utf-8")
    with pytest.raises(fa.InvalidInput, match=r"states: (is missing|must be tables)"):
        fa.load_changing(path)


def test_clients_twice_in_a_state(tmp_path: Path) -> None:
    again = 'clients = [{ name = "Riverside" }, '
    with pytest.raises(fa.InvalidInput, match="'St Mary' is there twice"):
        fa.load_changing(written(tmp_path, ("clients = [{", 'clients = [{ name = "St Mary" }, {')))
    fa.load_changing(written(tmp_path, ("clients = [", again)))


def test_leaving_and_growth(tmp_path: Path) -> None:
    path = tmp_path / "consortium.toml"
    text = example_text().replace("currency =", "leaves = 0.05\ngrowth = 0.1\ncurrency =", 1)
    path.write_text(text.replace("samples = 28_000", "samples = 28_000\nleaves = 0.2"))
    consortium = fa.load_consortium(path)
    assert consortium.discount_factor[0] == pytest.approx(0.9 * 0.8 * 1.1)
    assert consortium.discount_factor[2] == pytest.approx(0.8 * 0.95 * 1.1)

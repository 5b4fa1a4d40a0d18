"""Curve files: what is read, what is refused with which line, and that what is written is read."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from fedaccord.errors import InvalidInput
from fedaccord.files.curve import curve_text, load_curve
from fedaccord.game.curve import Curve

GOOD = "samples,seed,value\n" + "".join(
    f"{size},{seed},{2 / size**0.5 + seed / 1000}\n"
    for size in (10, 20, 40, 80, 160)
    for seed in range(3)
)


def written(folder: Path, text: str) -> Path:
    file = folder / "curve.csv"
    file.write_text(text, encoding="utf-8")
    return file


def test_a_curve_by_hand(tmp_path: Path) -> None:
    curve = load_curve(written(tmp_path, GOOD), "loss")
    assert curve.sizes.tolist() == [10, 20, 40, 80, 160]
    assert (curve.seeds, curve.measure, curve.examples) == ((0, 1, 2), "loss", 0)
    assert curve.values[1, 2] == 2 / 20**0.5 + 0.002


def test_without_seeds_and_in_any_order(tmp_path: Path) -> None:
    text = "Value, Samples\n\n0.2,80\n0.5,10\n0.4,20\n0.3,40\n\n"
    curve = load_curve(written(tmp_path, text))
    assert curve.seeds == (0,)
    assert curve.mean.tolist() == [0.5, 0.4, 0.3, 0.2]


@st.composite
def curves(draw: Any) -> Curve:
    sizes = sorted(draw(st.sets(st.integers(1, 10**6), min_size=4, max_size=8)))
    seeds = sorted(draw(st.sets(st.integers(0, 99), min_size=1, max_size=4)))
    values = st.floats(1e-6, 1e6)
    table = draw(arrays(np.float64, (len(sizes), len(seeds)), elements=values))
    missing = draw(arrays(np.bool_, (len(sizes), len(seeds))))
    missing[:, 0] = False  # at least one value at each size
    examples = draw(st.none() | st.integers(1, 5))
    kept = None
    if examples:
        kept = draw(arrays(np.float64, (len(sizes), examples), elements=values))
    return Curve(sizes, seeds, np.where(missing, np.nan, table), "loss", kept)


@given(curve=curves())
def test_what_is_written_is_read(curve: Curve, tmp_path_factory: pytest.TempPathFactory) -> None:
    again = load_curve(written(tmp_path_factory.mktemp("curve"), curve_text(curve)), "loss")
    assert np.array_equal(again.sizes, curve.sizes)
    kept = ~np.isnan(curve.values).all(axis=0)
    assert again.seeds == tuple(np.array(curve.seeds)[kept].tolist())
    assert np.array_equal(again.values, curve.values[:, kept], equal_nan=True)
    assert (again.by_example is None) == (curve.by_example is None)
    if curve.by_example is not None:
        assert np.array_equal(np.asarray(again.by_example), curve.by_example)


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("", "line 1: is empty"),
        ("samples,seed,error\n", "line 1: unknown column 'error'"),
        ("samples,samples,value\n", "line 1: there are two columns 'samples'"),
        ("samples,seed\n", "line 1: column 'value' is missing"),
        ("samples,seed,value\n10,0\n", "line 2: has 2 cells, the first line has 3"),
        ("samples,seed,value\n10,0,nan\n", "line 2, value: must be a number, 0 or more, got 'nan'"),
        ("samples,seed,value\n10,0,-1\n", "line 2, value: must be a number, 0 or more, got '-1'"),
        ("samples,seed,value\n,0,1\n", "line 2, samples: is missing"),
        ("samples,seed,value\n1.5,0,1\n", "line 2, samples: must be a whole number, 1 or more"),
        ("samples,seed,value\n10,0,1\n10,0,2\n", "line 3: the same samples and seed as on line 2"),
        ("samples,seed,value,example\n10,0,1,3\n", "line 2: has a seed and an example"),
        (
            "samples,value,example\n10,1,3\n10,2,3\n",
            "line 3: the same samples and example as on line 2",
        ),
        ("samples,seed,value\n10,0,0.4\n20,0,0.3\n", "has 2 sizes, which show no shape"),
        (GOOD.replace("value\n", "value,example\n").replace("\n", ",\n"), "cells"),
        ('samples,value\n"10,1\n', "is not CSV"),
    ],
)
def test_refused(tmp_path: Path, text: str, wrong: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        load_curve(written(tmp_path, text))
    assert wrong in str(refused.value)
    assert "curve.csv: " in str(refused.value)


def test_examples_must_be_complete_and_at_measured_sizes(tmp_path: Path) -> None:
    head, *rows = GOOD.splitlines()
    kept = [f"{row}," for row in rows]
    whole = [f"{size},,0.1,{n}" for size in (10, 20, 40, 80, 160) for n in range(2)]

    def read(examples: list[str]) -> Curve:
        return load_curve(written(tmp_path, "\n".join([f"{head},example", *kept, *examples])))

    assert read(whole).examples == 2
    with pytest.raises(InvalidInput, match="example 1 has no value at 160 samples"):
        read(whole[:-1])
    with pytest.raises(InvalidInput, match="no seed has a value at 15 samples"):
        read([*whole, "15,,0.1,0"])

"""Accuracy and the law, on a small dataset: shapes, seeds, intervals, and fits that are known."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from fedaccord.experiments import accuracy, law
from fedaccord.experiments.figures import find_training_module
from fedaccord.experiments.pictures import save
from fedaccord.experiments.table import Table, read_table
from tests.experiments.presets_for_tests import small_training

pytest.importorskip("torch")
pytest.importorskip("sklearn")

ACCURACY = small_training("accuracy", scales=[1.0, 0.1])
LAW = small_training("law", samples=[20, 100, 500], rounds=[1, 2, 5])


def test_accuracy_has_a_row_a_round_and_repeats() -> None:
    told: list[int] = []
    table = accuracy.run(ACCURACY, lambda done, _: told.append(done))
    assert told == list(range(accuracy.steps(ACCURACY)))
    assert table.swept.tolist() == [1, 2, 3, 4, 5, 6]
    assert table["slot"].tolist() == [1, 1, 1, 2, 2, 2]
    for size in (100, 10):
        for name in accuracy.MECHANISMS:
            assert (table[f"{name}_{size}_accuracy"] > 0.0).all()
            assert np.isfinite(table[f"{name}_{size}_loss_half"]).all()
        assert (table[f"equilibrium_{size}_gain"] == 0.0).all()
    assert accuracy.run(ACCURACY).as_csv() == table.as_csv()


@pytest.mark.parametrize(("name", "preset"), [("accuracy", ACCURACY), ("law", LAW)])
def test_training_is_drawn_and_told_from_its_csv(name: str, preset: object) -> None:
    module = find_training_module(name)
    table = read_table(module.run(preset).as_csv())  # type: ignore[arg-type]
    for width in ("one-column", "two-columns"):
        figure = module.draw(table, preset, width)  # type: ignore[arg-type]
        assert all(axes.get_ylabel() for axes in figure.axes)
    assert save(figure, name)["svg"]
    claims = module.claims(table, preset)  # type: ignore[arg-type]
    assert claims
    assert all(claim.why or claim.verdict == "holds" for claim in claims)


def test_the_law_has_a_row_a_pair() -> None:
    table = law.run(LAW)
    assert table["samples"].tolist() == [20] * 3 + [100] * 3 + [500] * 3
    assert table["rounds"].tolist() == [1, 2, 5] * 3
    assert (table["loss"] > 0).all()


@given(st.floats(0.1, 10), st.floats(0.1, 10), st.floats(0.0, 1.0))
def test_a_loss_of_separate_terms_is_found(a: float, b: float, c: float) -> None:
    X, G = (grid.ravel() for grid in np.meshgrid([100.0, 1e3, 1e4], [1.0, 10.0, 100.0]))
    loss = a / np.sqrt(X) + b / np.sqrt(G) + c
    # three numbers from nine without noise: exact but for rounding
    np.testing.assert_allclose(law.fit_separate(X, G, loss), loss, rtol=1e-9)


def made_up(loss: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> Table:
    X, G = (grid.ravel() for grid in np.meshgrid([1e2, 1e3, 1e4], [1.0, 9.0, 81.0], indexing="ij"))
    return Table({"samples": X, "rounds": G, "loss": loss(X, G)})


def test_the_verdict_on_the_law_follows_the_losses() -> None:
    as_assumed = made_up(lambda X, G: 9 / np.sqrt(X * G) + 1 / G + 0.2)
    assert [claim.verdict for claim in law.claims(as_assumed, LAW)] == ["holds"] * 3
    otherwise = made_up(lambda X, G: 2 - np.log10(X) * np.log10(3 * G) / 5)
    assert [claim.verdict for claim in law.claims(otherwise, LAW)] == [
        "does not hold",
        "does not hold",
        "holds",
    ]


def test_a_half_width_is_students() -> None:
    values = np.array([[0.8, 0.1], [0.9, 0.2], [1.0, 0.6]])
    interval = stats.ttest_1samp(values, 0.0).confidence_interval(0.95)
    np.testing.assert_allclose(accuracy.half_width(values), (interval.high - interval.low) / 2)
    assert np.isnan(accuracy.half_width(values[:1])).all()

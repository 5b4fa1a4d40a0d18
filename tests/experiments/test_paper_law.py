"""The paper's law against measurements: recovered if it holds, rejected if it does not."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import lsq_linear

import fedaccord as fa
from fedaccord.experiments.figures.paper_law import fit_paper_law

TOTALS, TURNS = (
    grid.ravel().astype(float)
    for grid in np.meshgrid([10, 30, 100, 300, 1000], [1, 2, 5, 10, 50], indexing="ij")
)
coefficients = st.floats(0.01, 100.0)


@given(coefficients, coefficients, st.floats(0.0, 100.0))
def test_recovers_an_exact_law(data: float, rounds: float, floor: float) -> None:
    law = fit_paper_law(TOTALS, TURNS, data / np.sqrt(TOTALS * TURNS) + rounds / TURNS + floor)
    # the largest term is up to 1e4 times another, which leaves a relative accuracy of 1e-10
    found = [law.data, law.rounds, law.floor]
    np.testing.assert_allclose(found, [data, rounds, floor], rtol=1e-6, atol=1e-8)
    assert law.fits
    assert law.error < 1e-8


@given(st.lists(st.floats(0.0, 5.0), min_size=25, max_size=25))
def test_no_other_law_of_this_form_fits_better(losses: list[float]) -> None:
    measured = np.array(losses)
    law = fit_paper_law(TOTALS, TURNS, measured)
    columns = np.column_stack([1 / np.sqrt(TOTALS * TURNS), 1 / TURNS, np.ones_like(TURNS)])
    other = lsq_linear(columns, measured, bounds=(0.0, np.inf), tol=1e-14)
    assert np.sum(law.residuals**2) <= 2 * other.cost + 1e-9
    assert min(law.data, law.rounds, law.floor) >= 0.0


def test_reports_data_that_does_not_follow_the_law() -> None:
    straight = fit_paper_law(TOTALS, TURNS, 2.0 - 0.03 * TURNS)
    assert not straight.fits
    assert "explains only" in straight.objections[0]
    rising = fit_paper_law(TOTALS, TURNS, 0.001 * TOTALS)
    assert "more data does not lower the loss at all" in rising.objections
    assert not fit_paper_law(TOTALS, TURNS, np.ones_like(TURNS)).fits


@pytest.mark.parametrize("losses", [[1.0, 2.0, 3.0], [1.0, 2.0, 3.0, np.nan]])
def test_too_few_losses_to_fit(losses: list[float]) -> None:
    size = len(losses)
    with pytest.raises(fa.InvalidInput, match="needs four or more, all finite"):
        fit_paper_law(TOTALS[:size], TURNS[:size], np.array(losses))

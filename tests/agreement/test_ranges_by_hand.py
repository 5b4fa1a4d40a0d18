"""Ratios known only within a range: under suspension the lowest one decides, client by client.

The numbers are those of the table in our notes on suspension. Reversion is computed here by hand:
its worst case for a client is its own lowest ratio and everyone else's highest.
"""

from dataclasses import replace

import numpy as np
import pytest

import fedaccord as fa
from fedaccord.agreement.bounds import Bounds
from fedaccord.agreement.enforcement import scale_one
from fedaccord.files.consortium import example_consortium
from tests.consortia import with_patience

HOSPITALS = example_consortium()


def with_valuations(consortium: fa.Consortium, factor: object) -> fa.Consortium:
    return fa.Consortium(
        valuation=consortium.valuation * np.asarray(factor),
        cost_per_sample=consortium.cost_per_sample,
        samples=consortium.samples,
        rounds=consortium.rounds,
        discount_factor=consortium.discount_factor,
    )


def largest_under_suspension(
    consortium: fa.Consortium, low: float, slots: int | None = None
) -> float:
    lowest = with_valuations(consortium, low)
    return fa.solve_agreement(lowest, objective="most data", punishment=fa.Suspension(slots)).total


def largest_under_reversion(consortium: fa.Consortium, low: float, high: float) -> float | None:
    """The largest total that every client keeps to in its own worst corner; None: there is none."""
    size = consortium.size
    corners = []
    for n in range(size):
        factors = np.full(size, high)
        factors[n] = low
        corners.append(fa.solve_equilibrium(with_valuations(consortium, factors)))
    game = scale_one(fa.solve_equilibrium(with_valuations(consortium, low)))
    start = np.array([[corner.total for corner in corners]])
    own = np.array([[corner.profile[n] for n, corner in enumerate(corners)]])
    worst = replace(
        game, equilibrium=own, equilibrium_total=start, punished=own, punished_total=start
    )
    low_end, high_end = float(start.max()) * 1.000001, float(consortium.samples.sum())
    for _ in range(3):  # on a grid, then between its last two points, and again
        totals = np.linspace(low_end, high_end, 1_000)
        kept = Bounds(worst).at(totals[:, np.newaxis]).sum(axis=-1) >= totals * (1 - 1e-12)
        if not kept.any():
            return None
        last = int(np.flatnonzero(kept)[-1])
        low_end, high_end = totals[last], totals[min(last + 1, totals.size - 1)]
    return float(low_end)


@pytest.mark.parametrize("low", [0.9, 0.7, 0.5])
def test_ranges_of_half_to_double_cost_no_data(low: float) -> None:
    assert largest_under_suspension(HOSPITALS, low) == 116_000
    for clients in (100, 181, 200):
        paper = fa.paper_consortium(clients)
        assert largest_under_suspension(paper, low) == paper.samples.sum()


def test_a_tenth_to_ten_times() -> None:
    for clients in (181, 200):
        paper = fa.paper_consortium(clients)
        assert largest_under_suspension(paper, 0.1) == paper.samples.sum()
    assert largest_under_suspension(HOSPITALS, 0.1) == pytest.approx(106_797, abs=0.6)
    assert largest_under_suspension(HOSPITALS, 0.1, slots=1) == pytest.approx(60_578, abs=0.6)
    paper = fa.paper_consortium()
    assert largest_under_suspension(paper, 0.1) == 1_000_000
    hasty = with_patience(paper, 0.1)
    for low, total in ((0.9, 1_000_000), (0.7, 1_000_000), (0.5, 997_484), (0.1, 973_158)):
        assert largest_under_suspension(hasty, low) == pytest.approx(total, abs=0.6)


@pytest.mark.parametrize(
    ("clients", "edges"),
    [
        (None, (0.407, 0.216, 0.170)),
        (100, (0.099, 0.054, 0.040)),
        (181, (0.175, 0.095, 0.071)),
        (200, (0.193, 0.105, 0.079)),
    ],
)
def test_how_low_ratios_may_be(clients: int | None, edges: tuple[float, ...]) -> None:
    consortium = HOSPITALS if clients is None else fa.paper_consortium(clients)
    for slots, edge in zip((1, 3, None), edges, strict=True):
        for side, holds in ((0.001, True), (-0.001, False)):
            lowest = with_valuations(consortium, edge + side)
            asked = fa.agreement_on(lowest, consortium.samples, fa.Suspension(slots))
            assert fa.certify(asked).holds == holds


RANGES = ((0.9, 1.1), (0.7, 1.3), (0.5, 2.0), (0.1, 10.0))
"""Known to 10 %, to 30 %, half to double, a tenth to ten times."""


@pytest.mark.parametrize(
    ("clients", "patience", "totals"),
    [
        (100, 0.8, (991_737, 985_919, 966_986, None)),
        (181, 0.8, (1_797_286, 1_790_157, 1_768_472, None)),
        (200, 0.8, (1_986_253, 1_978_568, 1_956_186, None)),
        (100, 0.1, (897_905, 823_328, None, None)),
        (None, None, (102_133, None, None, None)),
    ],
)
def test_reversion_needs_the_others_highest(
    clients: int | None, patience: float | None, totals: tuple[int | None, ...]
) -> None:
    consortium = HOSPITALS
    if clients is not None and patience is not None:
        consortium = fa.paper_consortium(clients, discount_factor=patience)
    for (low, high), total in zip(RANGES, totals, strict=True):
        found = largest_under_reversion(consortium, low, high)
        assert found == (None if total is None else pytest.approx(total, abs=0.51))


@pytest.mark.parametrize(
    ("clients", "totals"),
    [(None, (111_368, None, None)), (100, (994_697, 989_975, 975_132))],
)
def test_acceptance_against_the_equilibrium_needs_them_too(
    clients: int | None, totals: tuple[int | None, ...]
) -> None:
    """Nobody is worse off than at the equilibrium in its worst corner.

    For clients of nearly endless patience that is all that reversion asks for; suspension holds
    more at their own discount factors.
    """
    consortium = HOSPITALS if clients is None else fa.paper_consortium(clients)
    patient = with_patience(consortium, 1.0 - 1e-10)
    for (low, high), total in zip(RANGES, totals, strict=False):
        assert largest_under_suspension(consortium, low) == consortium.samples.sum()
        found = largest_under_reversion(patient, low, high)
        assert found == (None if total is None else pytest.approx(total, abs=0.51))

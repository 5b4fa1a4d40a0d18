"""The settings of our notes on suspension, and what many tests ask of them."""

from typing import Any

import fedaccord as fa
from fedaccord.files.consortium import example_consortium

HOSPITALS = example_consortium()
SETTINGS = {"hospitals": HOSPITALS} | {
    f"N={clients}": fa.paper_consortium(clients) for clients in (100, 181, 200)
}
FIVE = fa.Consortium(
    valuation=[20, 30, 40, 60, 80],
    cost_per_sample=[0.004, 0.005, 0.012, 0.006, 0.008],
    samples=250,
    rounds=50,
    discount_factor=0.9,
)
"""Data-rich: satiation points of 38 to 79, and 250 samples each."""


def all_data(consortium: fa.Consortium, **fields: Any) -> fa.Agreement:
    """Everyone trains on all it has."""
    return fa.agreement_on(consortium, consortium.samples, fa.Suspension(**fields))


def largest(consortium: fa.Consortium, punishment: Any, **options: Any) -> float:
    """The largest total that holds."""
    agreement = fa.solve_agreement(
        consortium, objective="most data", punishment=punishment, **options
    )
    assert fa.certify(agreement).holds
    return agreement.total

"""Laws of the loss that our notes on laws use: with the paper's slope at the equilibrium."""

import numpy as np

import fedaccord as fa
from fedaccord.files.consortium import example_consortium
from fedaccord.game.law import Law

HOSPITALS = example_consortium()
PAPER = fa.paper_consortium()
NEARLY_EXPONENTIAL = 1e10
"""An exponent so large that (1 + X / (p L))^-p is exp(-X / L) to ten digits."""

MEASURED_LIKE = fa.Consortium(
    valuation=[39000, 30300, 29000, 22500, 13600, 19800],
    cost_per_sample=1.0,
    samples=[312, 223, 201, 245, 178, 134],
    discount_factor=[0.9, 0.85, 0.8, 0.8, 0.7, 0.75],
    rounds=50,
    law=Law.mixture([6.4555, 0.8714, 0.0232, 0.0434], [11.7, 21.1, 405.5, 732.2]),
)


def tangent(consortium: fa.Consortium, exponent: float, shift: float = 0.0) -> fa.Consortium:
    """The same clients with a power law of the same slope at the equilibrium's total S."""
    total = fa.solve_equilibrium(consortium).total
    slope = float(consortium.law.slope(total))
    scale = slope * (total + shift) ** (exponent + 1.0) / exponent
    return consortium.with_law(Law.power(scale, exponent, shift))


def exponential(consortium: fa.Consortium, length: float) -> fa.Consortium:
    """The same with exp(-X / length), as a power with a very large exponent and shift."""
    total = fa.solve_equilibrium(consortium).total
    slope = float(consortium.law.slope(total))
    shift = NEARLY_EXPONENTIAL * length
    beyond = total / shift
    at_zero = slope * length * np.exp((NEARLY_EXPONENTIAL + 1.0) * np.log1p(beyond))
    return consortium.with_law(Law.mixture([at_zero], [shift], NEARLY_EXPONENTIAL))


def scaled(law: Law, factor: float) -> Law:
    """A law of one term, times a factor."""
    return Law(law.value * factor, law.unit, law.shift, law.exponent)


def ten_clients(worth: float, patience: float) -> fa.Consortium:
    """The loss without data is finite, and the first sample is worth less than it costs."""
    law = Law.power(scale=100.0, exponent=1.0, shift=100.0)
    return fa.Consortium(
        valuation=np.full(10, worth * 100.0),
        cost_per_sample=1.0,
        samples=100.0,
        discount_factor=patience,
        rounds=1,
        law=law,
    )

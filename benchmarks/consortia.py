"""The consortia that are solved: random, and comparable to the paper's setting."""

from typing import Any

import numpy as np

import fedaccord as fa
from fedaccord.files.consortium import example_consortium
from fedaccord.game.law import Law

Fields = dict[str, Any]
"""The arguments of a Consortium, or of a batch."""


def random_fields(seed: int, *shape: int) -> Fields:
    """Clients like the paper's, but each with its own data, costs, valuation and patience.

    The ratios grow with N^1.5, so that the equilibrium's total grows with N and about half of the
    clients free-ride, whatever their number.
    """
    rng = np.random.default_rng(seed)
    clients = shape[-1]
    return {
        "valuation": rng.uniform(1.0, 100.0, shape) * (clients / 100) ** 1.5,
        "cost_per_sample": 0.985e-8 * rng.uniform(0.5, 1.5, shape),
        "samples": rng.integers(5_000, 15_000, shape, endpoint=True).astype(np.float64),
        "discount_factor": rng.uniform(0.6, 0.95, shape),
        "rounds": 50,
    }


def random_consortium(seed: int, clients: int) -> fa.Consortium:
    """One random consortium, with nothing computed yet."""
    return fa.Consortium(**random_fields(seed, clients))


def fresh(consortium: fa.Consortium) -> fa.Consortium:
    """The same consortium with nothing computed yet."""
    return fa.Consortium(
        valuation=consortium.valuation,
        cost_per_sample=consortium.cost_per_sample,
        samples=consortium.samples,
        discount_factor=consortium.discount_factor,
        rounds=consortium.rounds,
    )


def six_hospitals(law: Law) -> fa.Consortium:
    """The example's hospitals with this law, and the total that they have at their equilibrium.

    For that all valuations are multiplied by one number, which makes up for the law's slope.
    """
    hospitals = example_consortium()
    total = fa.solve_equilibrium(hospitals).total
    return fa.Consortium(
        valuation=hospitals.valuation * float(hospitals.law.slope(total) / law.slope(total)),
        cost_per_sample=hospitals.cost_per_sample,
        samples=hospitals.samples,
        rounds=hospitals.rounds,
        discount_factor=hospitals.discount_factor,
        names=hospitals.names,
        law=law,
    )

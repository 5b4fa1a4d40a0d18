"""Random servers and types of clients, for the tests of contract design."""

import numpy as np

from fedaccord.game.law import Law
from fedaccord.mechanisms.contract.model import ContractModel


def random_model(
    rng: np.random.Generator,
    *,
    capped: bool,
    most_types: int = 4,
    own_samples: float = 1.0,
    law: Law | None = None,
) -> ContractModel:
    """A model whose best total is from a hundredth to ten times what the clients have."""
    types = int(rng.integers(1, most_types + 1))
    clients = rng.integers(1, 5, types)
    theta = 10.0 ** rng.uniform(-8, 0) * np.exp(rng.normal(0.0, 0.7, types))
    if rng.random() < 0.3:
        theta = theta[rng.integers(0, types, types)]  # ties
    data = 10.0 ** rng.uniform(1, 4)
    rounds = int(rng.integers(1, 100))
    wanted = 10.0 ** rng.uniform(-2, 1) * data * clients.sum()
    valuation = 2.0 * theta.min() * np.sqrt(rounds) * wanted**1.5
    if law is not None:
        valuation = float(theta.min() / law.slope(wanted))
    samples = data * (rng.choice([0.5, 1.0, 2.0], types) if rng.random() < 0.5 else 1.0)
    return ContractModel(
        cost_per_sample=theta,
        delay=rng.integers(1, 4, types),
        clients=clients,
        samples=samples if capped else np.inf,
        rounds=rounds,
        valuation=valuation,
        delay_price=valuation / np.sqrt(rounds * wanted) * rng.choice([0.0, 0.1, 1.0]),
        own_samples=own_samples,
        law=law,
    )

"""The setting of the paper's evaluation (section 5), the built-in consortium."""

import numpy as np

from fedaccord.checks import check_whole
from fedaccord.game.consortium import Consortium


def paper_consortium(
    clients: int = 100,
    samples: float = 10_000,
    rounds: int = 50,
    cost_per_sample: float = 0.985e-8,
    discount_factor: float = 0.8,
) -> Consortium:
    """N clients with equal samples and cost, and valuations rho_n = 100 n / N.

    >>> paper_consortium(clients=4).valuation.tolist()
    [25.0, 50.0, 75.0, 100.0]
    """
    check_whole("clients", clients)
    return Consortium(
        name=f"the paper's setting, {clients} {'client' if clients == 1 else 'clients'}",
        valuation=100.0 * np.arange(1, clients + 1) / clients,
        cost_per_sample=np.full(clients, cost_per_sample),
        samples=np.full(clients, samples),
        rounds=rounds,
        discount_factor=np.full(clients, discount_factor),
    )

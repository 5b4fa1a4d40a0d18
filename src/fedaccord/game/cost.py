"""What a slot costs a client: accuracy loss, computation, communication, fee (eq. 3-5).

    F_n(x) = rho_n (1/sqrt(X G) + 1/G) + E_n x_n + C_n + p,   X = sum of the contributions

If nobody contributes (X = 0), the accuracy loss, and with it every cost, is infinite.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fedaccord.game.consortium import Consortium
from fedaccord.numbers import FloatArray


def accuracy_loss(total: npt.ArrayLike, rounds: npt.ArrayLike) -> FloatArray:
    """A = 1/sqrt(X G) + 1/G, the bound on the model's accuracy loss (eq. 3).

    >>> float(accuracy_loss(505_000, rounds=50))
    0.020199007...
    """
    rounds = np.asarray(rounds, dtype=np.float64)
    with np.errstate(divide="ignore"):
        loss: FloatArray = 1.0 / np.sqrt(np.asarray(total) * rounds) + 1.0 / rounds
    return loss


def marginal_loss(total: npt.ArrayLike, rounds: npt.ArrayLike) -> FloatArray:
    """dA/dX = -1 / (2 sqrt(G) X^1.5): how much one more sample lowers the loss, as a negative."""
    total = np.asarray(total, dtype=np.float64)
    with np.errstate(divide="ignore"):
        slope: FloatArray = -1.0 / (2.0 * np.sqrt(np.asarray(rounds, np.float64)) * total**1.5)
    return slope


def cost_per_sample_of_cpu(chip: float, cycles_per_sample: float, hertz: float) -> float:
    """E = chip/2 * cycles * speed^2: the cost per sample from the CPU's figures (eq. 4).

    >>> cost_per_sample_of_cpu(chip=2e-28, cycles_per_sample=1e7, hertz=2e9)
    0.0039999...
    """
    return chip / 2.0 * cycles_per_sample * hertz**2


def cost(
    consortium: Consortium, contribution: npt.ArrayLike, total: npt.ArrayLike | None = None
) -> FloatArray:
    """F_n for every client (eq. 5): the cost of one slot.

    Args:
        consortium: The clients.
        contribution: x_n, what each client contributes.
        total: X, what all clients contribute together; by default the sum of `contribution`.
    """
    contribution = np.asarray(contribution, dtype=np.float64)
    if total is None:
        total = contribution.sum()
    result: FloatArray = (
        consortium.valuation * accuracy_loss(total, consortium.rounds)
        + consortium.cost_per_sample * contribution
        + consortium.communication_cost
        + consortium.server_fee
    )
    return result


def marginal_cost(consortium: Consortium, total: npt.ArrayLike) -> FloatArray:
    """dF_n/dx_n = E_n - rho_n / (2 sqrt(G) X^1.5): negative while another sample still pays."""
    gained = consortium.valuation * marginal_loss(total, consortium.rounds)
    result: FloatArray = consortium.cost_per_sample + gained
    return result

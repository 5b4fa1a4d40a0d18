"""What a slot costs a client: accuracy loss, computation, communication, fee (eq. 3-5).

    F_n(x) = rho_n A(X) + E_n x_n + C_n + p,   X = sum of q_m x_m

A is the law of the loss (`law`), the paper's 1/sqrt(X G) + 1/G unless the consortium has its own,
and q_m the quality of a client's samples, 1 unless given. If nobody contributes (X = 0), the
paper's loss, and with it every cost, is infinite; a law with shifts is finite there.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fedaccord.game.consortium import Consortium
from fedaccord.numbers import FloatArray


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
        total: X, what the law sees of all contributions; by default that of `contribution`.
    """
    contribution = np.asarray(contribution, dtype=np.float64)
    if total is None:
        total = (contribution * consortium.quality).sum()
    result: FloatArray = (
        consortium.valuation * consortium.law.loss(total)
        + consortium.cost_per_sample * contribution
        + consortium.communication_cost
        + consortium.server_fee
    )
    return result


def marginal_cost(consortium: Consortium, total: npt.ArrayLike) -> FloatArray:
    """dF_n/dx_n = E_n - q_n rho_n m(X): negative while another sample still pays."""
    gained = consortium.quality * consortium.valuation * consortium.law.slope(total)
    result: FloatArray = consortium.cost_per_sample - gained
    return result

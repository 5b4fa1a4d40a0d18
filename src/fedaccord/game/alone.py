"""What a client does and pays outside the consortium, with a model that it trains by itself.

Alone, client n trains on m_n = min(h_n / q_n, D_n) of its samples: up to its satiation point, or on
all it has. A slot then costs it V_n = rho_n A(q_n m_n) + E_n m_n + C_n + p. No client can be made
to pay more than that, whatever the others do, and none pays more at the equilibrium.

>>> from fedaccord.game.equilibrium import solve_equilibrium
>>> from fedaccord.game.paper import paper_consortium
>>> consortium = paper_consortium(clients=3)
>>> alone_contribution(consortium).tolist()
[10000.0, 10000.0, 10000.0]
>>> bool((alone_cost(consortium) >= solve_equilibrium(consortium).cost).all())
True
"""

import numpy as np

from fedaccord.game.consortium import Consortium
from fedaccord.game.cost import cost
from fedaccord.numbers import FloatArray


def alone_contribution(consortium: Consortium) -> FloatArray:
    """m_n: how many samples each client trains on alone."""
    return np.minimum(consortium.satiation / consortium.quality, consortium.samples)


def alone_cost(consortium: Consortium, *, fees: bool = True) -> FloatArray:
    """V_n: what a slot alone costs each client; without `fees` it saves C_n and p."""
    amount = alone_contribution(consortium)
    paid = cost(consortium, amount, amount * consortium.quality)
    return paid if fees else paid - consortium.communication_cost - consortium.server_fee

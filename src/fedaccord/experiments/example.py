"""The example in section 3, a footnote: two equal clients have more than one equilibrium."""

import numpy as np

from fedaccord.experiments.claims import Claim, found
from fedaccord.experiments.standard import fact
from fedaccord.game.consortium import Consortium
from fedaccord.game.equilibrium import best_response

PROFILES = ((4.0, 6.0), (5.0, 5.0))


def claims() -> list[Claim]:
    """With h_1 = h_2 = 10 and D_1 = D_2 = 10, both profiles are equilibria."""
    consortium = Consortium(
        valuation=[200.0, 200.0], cost_per_sample=1.0, samples=10.0, rounds=10, discount_factor=0.8
    )
    answers = [best_response(consortium, np.array(profile[::-1])) for profile in PROFILES]
    apart = max(float(np.abs(a - p).max()) for a, p in zip(answers, PROFILES, strict=True))
    return [
        found(
            "Two clients with h = 10 and D = 10 each: (4, 6) and (5, 5) are both equilibria.",
            fact(apart < 1e-9, "each is the best response to itself"),
        )
    ]

"""A client's own row of the certificate, from its private numbers and the public terms.

For a client only the total of the others matters, not how it is made up. So its row is the first
one of a certificate for two clients, itself and all others taken together.
"""

from dataclasses import dataclass

import numpy as np

from fedaccord.agreement.agreement import Agreement
from fedaccord.agreement.certificate import certify
from fedaccord.agreement.punishment import Punishment, PunishmentName, as_punishment
from fedaccord.game.consortium import Consortium
from fedaccord.game.equilibrium import Equilibrium
from fedaccord.game.law import Law
from fedaccord.numbers import SUMS_DIFFER


@dataclass(frozen=True)
class OwnRow:
    """What the certificate says about one client."""

    cost_agreement: float
    cost_equilibrium: float
    cost_deviation: float
    deviation: float
    threshold: float
    slack: float
    keeps: bool
    """Whether keeping to the agreement, and to the punishment, is its best choice."""
    cost_punished: float
    """What it pays in a slot of the punishment."""
    gives_more: bool
    """Whether it would rather contribute more than agreed, which breaks nothing."""


def own_row(
    *,
    valuation: float,
    cost_per_sample: float,
    samples: float,
    discount_factor: float,
    contribution: float,
    total: float,
    equilibrium_contribution: float,
    equilibrium_total: float,
    rounds: int,
    law: Law | None = None,
    punishment: Punishment | PunishmentName = "reversion",
    communication_cost: float = 0.0,
) -> OwnRow:
    """The row of the client with these numbers, when all clients together contribute `total`.

    The law of the loss is the paper's with these rounds, unless another one is given.
    """
    others = np.array([total - contribution, equilibrium_total - equilibrium_contribution])
    # or else a client that contributes nothing either way could see a loss in the last digits
    if abs(others[0] - others[1]) <= SUMS_DIFFER * total:
        others[0] = others[1]
    pair = Consortium(
        valuation=[valuation, 1.0],
        cost_per_sample=[cost_per_sample, 1.0],
        samples=[samples, max(1.0, others.max())],
        discount_factor=discount_factor,
        communication_cost=[communication_cost, 0.0],
        rounds=rounds,
        law=law,
    )
    alone = np.array([equilibrium_contribution, max(0.0, others[1])], float)
    equilibrium = Equilibrium(pair, alone, equilibrium_total, unique=True, case=None, critical=())
    profile = np.array([contribution, max(0.0, others[0])], float)
    row = certify(Agreement(equilibrium, profile, "given", punishment=as_punishment(punishment)))
    return OwnRow(
        cost_agreement=float(row.cost_agreement[0]),
        cost_equilibrium=float(row.cost_equilibrium[0]),
        cost_deviation=float(row.cost_deviation[0]),
        deviation=float(row.deviation[0]),
        threshold=float(row.threshold[0]),
        slack=float(row.slack[0]),
        keeps=bool(row.keeps[0] and row.punishment_holds[0]),
        cost_punished=float(row.cost_punished[0]),
        gives_more=bool(row.gives_more[0]),
    )

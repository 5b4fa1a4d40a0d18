"""What false alarms cost under suspension, from all states of all clients at once."""

from itertools import product

import numpy as np

import fedaccord as fa


def chain_cost(agreement: fa.Agreement) -> float:
    """What false alarms cost all clients together in a slot on average, by value iteration.

    A state says for how many slots each client is still out. The costs are those of the paper's
    law. Everyone is in at first.
    """
    consortium, slots = agreement.consortium, agreement.punishment.slots
    assert slots is not None
    false = agreement.monitoring.false_alarms(consortium.names)
    states = list(product(range(slots + 1), repeat=consortium.size))
    place = {state: n for n, state in enumerate(states)}
    active = np.array(states) == 0
    total = (active * agreement.profile).sum(axis=1)[:, np.newaxis]
    with np.errstate(divide="ignore"):
        loss = consortium.valuation / np.sqrt(float(consortium.rounds) * total)
    certificate = fa.certify(agreement)
    constant = certificate.cost_agreement - (
        consortium.valuation / np.sqrt(consortium.rounds * agreement.total)
        + consortium.cost_per_sample * agreement.profile
    )
    together = loss + consortium.cost_per_sample * agreement.profile + constant
    cost = np.where(active, together, certificate.cost_alone)
    moves = np.zeros((len(states), len(states)))
    for n, state in enumerate(states):
        present = np.flatnonzero(active[n])
        for alarms in product((False, True), repeat=present.size):
            after = [max(left - 1, 0) for left in state]
            chance = 1.0
            for client, alarm in zip(present.tolist(), alarms, strict=True):
                chance *= false[client] if alarm else 1.0 - false[client]
                after[client] = slots if alarm else 0
            moves[n, place[tuple(after)]] += chance
    paid = 0.0
    for n, delta in enumerate(consortium.discount_factor.tolist()):
        value = np.linalg.solve(np.eye(len(states)) - delta * moves, cost[:, n])
        paid += (1.0 - delta) * value[0] - certificate.cost_agreement[n]
    return float(paid)

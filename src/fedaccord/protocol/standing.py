"""Algorithm 1 between server and client, for any data sizes: what the server tells each client.

With equal data sizes, a client's rank and N are enough, as in the paper. Otherwise, and in a tie at
the margin, the client must know how many samples the clients ranked above it have (`above`), and
how many it and those tied with it have (`tied`). Its own equilibrium contribution is then

    x*_n = D_n clip(h_n - above, 0, tied) / tied.

>>> from fedaccord.game.consortium import Consortium
>>> from fedaccord.game.equilibrium import solve_equilibrium
>>> consortium = Consortium(valuation=[5e3, 9e3, 1e3], cost_per_sample=1.0, samples=[40, 60, 80],
...                         rounds=5, discount_factor=0.8)
>>> standing = standings_of(solve_equilibrium(consortium))[0]
>>> standing
Standing(rank=2, clients=3, above=60, tied=40)
>>> own_equilibrium(5e3, 40, consortium.law, standing)
40.0
"""

from itertools import pairwise
from typing import NamedTuple

from fedaccord.game.algorithm1 import own_contribution, rank_clients
from fedaccord.game.equilibrium import Equilibrium
from fedaccord.game.law import Law


class Standing(NamedTuple):
    """A client's place among all."""

    rank: int
    """By ratio, ascending, from 1."""
    clients: int
    """N."""
    above: int | None = None
    tied: int | None = None


def standings_of(equilibrium: Equilibrium) -> list[Standing]:
    """What the server tells each client: only what it needs."""
    consortium, critical = equilibrium.consortium, set(equilibrium.critical)
    samples = consortium.samples.tolist()
    ranks = rank_clients(consortium.ratio).tolist()
    place = sorted(range(consortium.size), key=lambda n: ranks[n])
    above = dict.fromkeys(place, 0.0)
    for lower, higher in pairwise(reversed(place)):
        above[higher] = above[lower] + samples[lower]
    tied = sum(samples[n] for n in critical)
    highest = min((above[n] for n in critical), default=0.0)  # the samples above all tied clients
    result = []
    for n, rank in enumerate(ranks):
        if consortium.equal_samples and not (n in critical and len(critical) > 1):
            result.append(Standing(rank, consortium.size))
        elif n in critical:
            result.append(Standing(rank, consortium.size, int(highest), int(tied)))
        else:
            result.append(Standing(rank, consortium.size, int(above[n]), int(samples[n])))
    return result


def can_follow(before: Standing, after: Standing) -> bool:
    """Whether a client's place can become another one within a slot, as clients drop out.

    While all are present it stays the same. With `gone` fewer, up to that many were ranked below.

    >>> can_follow(Standing(2, 3, 60, 40), Standing(2, 3, 0, 40))
    False
    >>> can_follow(Standing(2, 3, 60, 40), Standing(2, 2, 0, 40))
    True
    """
    gone = before.clients - after.clients
    if gone == 0:
        return after == before
    return 0 <= before.rank - after.rank <= gone and 1 <= after.rank <= after.clients


def own_equilibrium(ratio: float, samples: int, law: Law, standing: Standing) -> float:
    """The client's half: its equilibrium contribution, from its own numbers and its standing."""
    if standing.above is None or not standing.tied:
        return own_contribution(
            ratio, samples=samples, law=law, rank=standing.rank, clients=standing.clients
        )
    satiation = float(law.stop(ratio))
    share = min(max(satiation - standing.above, 0.0), float(standing.tied)) / standing.tied
    return samples * share

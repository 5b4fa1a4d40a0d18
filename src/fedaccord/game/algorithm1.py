"""Algorithm 1, distributed: a server and clients that tell each other very little.

A client reports its ratio and learns its rank and N; from these and its own numbers it computes
its equilibrium contribution. As in the paper, all clients are assumed to have the same number of
samples; the law of the loss is the paper's unless another one is given.

>>> import numpy as np
>>> ranks = rank_clients(np.array([5e9, 9e9, 1e9]))     # on the server
>>> ranks.tolist()
[2, 3, 1]
>>> own_contribution(9e9, samples=400_000, rounds=50, rank=3, clients=3)    # at a client
400000.0
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fedaccord.checks import check_number, check_whole
from fedaccord.errors import InvalidInput
from fedaccord.game.law import Law


def rank_clients(ratios: npt.ArrayLike) -> npt.NDArray[np.int64]:
    """The server's half (lines 1-2): each client's rank by ascending ratio, from 1.

    Equal ratios are ranked in the order in which they were reported.
    """
    reported = np.asarray(ratios, dtype=np.float64)
    if reported.ndim != 1 or not (np.isfinite(reported) & (reported > 0)).all():
        raise InvalidInput("must be a list of numbers, each more than 0", field="ratios")
    ranks = np.empty(reported.size, dtype=np.int64)
    ranks[np.argsort(reported, kind="stable")] = np.arange(1, reported.size + 1)
    return ranks


def own_contribution(
    ratio: float,
    *,
    samples: float,
    rank: int,
    clients: int,
    rounds: int | None = None,
    law: Law | None = None,
) -> float:
    """A client's half (lines 4-11): its equilibrium contribution, from rank and N alone.

    The law of the loss is given, or the paper's with so many rounds.
    """
    check_number("ratio", ratio, above=0)
    check_number("samples", samples, above=0)
    if law is None:
        check_whole("rounds", rounds)
        law = Law.paper(np.asarray(rounds))
    if not 1 <= rank <= clients:
        raise InvalidInput(f"must be from 1 to {clients}, got {rank}", field="rank")
    satiation = float(law.stop(ratio))
    above = (clients - rank) * samples  # what the clients ranked above this one have
    if satiation < above:
        return 0.0
    if satiation > above + samples:
        return float(samples)
    return satiation - above

"""Selfish play when ratios are known only to ranges: the equilibrium that hurts each client least.

A client at the equilibrium pays least, so that reverting to it threatens least, if all others want
as much as they may: their satiation points and data are at their highest. Its own ratio is at its
lowest, where it is threatened least by anything (see `fedaccord.agreement.box`). So each client has
a corner of the box of its own, and an equilibrium of its own. With S0_n the total of the others
alone and S the one with everyone at its highest, client n at its lowest has

    Y_n = h_n, but at least S0_n and at most S,

gives all it has if h_n > S, nothing if h_n <= S0_n, and otherwise what the others leave.
"""

from functools import partial
from typing import NamedTuple

import numpy as np

from fedaccord.game.filling import fill
from fedaccord.game.law import Law
from fedaccord.numbers import FloatArray


class Corners(NamedTuple):
    """For each client its own corner: what it contributes there, and the total."""

    own: FloatArray
    total: FloatArray
    largest: FloatArray
    """S with everyone at its highest, as a column: no equilibrium of the box has a larger total."""


def corners(
    low: FloatArray, high: FloatArray, samples: FloatArray, pull: FloatArray, law: Law
) -> Corners:
    """The corners of each row, from the lowest and highest satiation points.

    `samples` has the lowest and highest (rows) of each client; `pull` and `law` say what a client
    at its lowest pays, which decides between data sizes of its own.
    """
    most = np.broadcast_to(samples[1], high.shape)
    filled = fill(high, most)
    others = np.stack(
        [_without_each(*row) for row in zip(high, most, filled.total[:, 0], strict=True)]
    )
    total = np.clip(low, others, filled.total)
    at_own = np.stack([_others_supply(*row) for row in zip(high, most, low, strict=True)])
    between = np.clip(low - at_own, 0.0, most)
    own = np.where(low > filled.total, most, np.where(low <= others, 0.0, between))
    for n in np.flatnonzero(samples[0] < samples[1]).tolist():
        for row in np.flatnonzero(own[:, n] > samples[0, n]).tolist():
            mine = law.each(partial(_entry, row, n), high.shape)
            client = _Client(low[row, n], pull[row, n], mine, samples[0, n], own[row, n])
            rest = np.delete(high[row], n), np.delete(samples[1], n)
            own[row, n], total[row, n] = _least_cost(client, *rest)
    return Corners(own, total, filled.total)


def _without_each(high: FloatArray, samples: FloatArray, everyone: float) -> FloatArray:
    """S0_n of every client at once: the total of all others.

    In descending order of satiation points h_i, with the samples added up to c_i, the total without
    a contributor n is the largest min(h_i, c_i - D_n). Since c_i - h_i ascends, it is where that
    passes D_n. The others do without a free rider anyway.
    """
    order = np.argsort(-high, kind="stable")
    points, given = high[order], samples[order].cumsum()
    place = np.searchsorted(given - points, samples)
    after = np.append(points, 0.0)[place]
    before = np.append(0.0, given)[place] - samples
    total = np.minimum(np.maximum(after, before), everyone)
    return np.where(high < everyone, everyone, np.maximum(total, 0.0))


def _others_supply(high: FloatArray, samples: FloatArray, at: FloatArray) -> FloatArray:
    """What all other clients supply together at each client's own total `at`."""
    ascending = np.argsort(high, kind="stable")
    left = np.append(samples[ascending][::-1].cumsum()[::-1], 0.0)
    supplied = left[np.searchsorted(high[ascending], at)]
    return np.asarray(supplied - np.where(high >= at, samples, 0.0))


class _Client(NamedTuple):
    """A client at its lowest, which has at least the fewest samples and contributes at most."""

    low: float
    pull: float
    law: Law
    fewest: float
    most: float


def _entry(row: int, column: int, values: FloatArray) -> FloatArray:
    return values[row : row + 1, column : column + 1]


def _least_cost(client: _Client, high: FloatArray, samples: FloatArray) -> tuple[float, float]:
    """What a client contributes, and the total, for the data size that leaves it the least cost.

    The more it contributes, the total rises to the next satiation point of another client and
    stays there until that one contributes nothing. Its cost is least at the end of such a rise, or
    with the fewest or the most that it may contribute.
    """
    ends = high - np.array([samples[high >= point].sum() for point in high])
    inside = (ends >= client.fewest) & (ends <= client.most) & (high < client.low)
    tried = np.concatenate([[client.fewest, client.most], ends[inside]])
    totals = np.array([_total_with(own, high, samples) for own in tried.tolist()])
    paid = tried + client.pull * client.law.loss(totals).ravel()
    best = int(np.argmin(paid))
    return float(tried[best]), float(min(totals[best], client.low))


def _total_with(own: float, high: FloatArray, samples: FloatArray) -> float:
    """The total when one client contributes `own` and the others are selfish."""
    order = np.argsort(-high, kind="stable")
    given = own + samples[order].cumsum()
    return float(np.maximum(np.minimum(high[order], given).max(initial=0.0), own))

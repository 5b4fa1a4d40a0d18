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
import numpy.typing as npt

from fedaccord.game.filling import filled_total
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
    largest = filled_total(high, most)
    own, total = np.where(low > largest, most, 0.0), np.broadcast_to(largest, high.shape).copy()
    for row, everyone in enumerate(largest[:, 0].tolist()):
        # all others are in this equilibrium what they are in everyone's highest
        turned = np.flatnonzero((high[row] >= everyone) & (low[row] <= everyone))
        if turned.size:
            found = _turned(turned, low[row, turned], high[row], most[row], everyone)
            own[row, turned], total[row, turned] = found
    for n in np.flatnonzero(samples[0] < samples[1]).tolist():
        for row in np.flatnonzero(own[:, n] > samples[0, n]).tolist():
            mine = law.each(partial(_entry, row, n), high.shape)
            client = _Client(low[row, n], pull[row, n], mine, samples[0, n], own[row, n])
            rest = np.delete(high[row], n), np.delete(samples[1], n)
            own[row, n], total[row, n] = _least_cost(client, *rest)
    return Corners(own, total, largest)


def _turned(
    clients: npt.NDArray[np.int64],
    low: FloatArray,
    high: FloatArray,
    samples: FloatArray,
    everyone: float,
) -> tuple[FloatArray, FloatArray]:
    """What clients contribute, and the total, that want more than `everyone` only at their highest.

    In descending order of satiation points h_i, with the samples added up to c_i, the total of the
    others of client n, S0_n, is the largest min(h_i, c_i - D_n). Since c_i - h_i ascends, it is
    where that passes D_n. Without n the total falls by at most D_n, so only the points from there
    to `everyone` have to be sorted; whoever wants more contributes all it has anyway.
    """
    mine = samples[clients]
    near = np.flatnonzero((high <= everyone) & (high >= everyone - mine.max()))
    order = near[np.argsort(-high[near], kind="stable")]
    base = float(samples @ (high > everyone))
    points, given = high[order], base + samples[order].cumsum()
    place = np.searchsorted(given - points, mine)
    after, before = np.append(points, 0.0)[place], np.append(base, given)[place] - mine
    others = np.clip(np.maximum(after, before), 0.0, everyone)
    # what all others supply at a client's own point: those who are satiated there or later
    supplied = np.append(base, given)[np.searchsorted(-points, -low, side="right")] - mine
    own = np.where(low <= others, 0.0, np.clip(low - supplied, 0.0, mine))
    return own, np.clip(low, others, everyone)


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

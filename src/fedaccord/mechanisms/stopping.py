"""When clients stop as a level rises, for many consortia at once: one per row.

The formulas are those of `clock`, in its units: client n has a worth of q_n D_n samples and a pull
a_n = q_n rho_n / E_n, and stop(a) is the total at which the slope of its law is 1 / a.

>>> from fedaccord.game.law import Law
>>> worth = np.array([[100.0, 100.0, 100.0]])
>>> pull = np.array([[2e3, 4e3, 9e3]])
>>> serial_shares(Law.paper(rounds=1), pull, worth).round(3).tolist()
[[0.693, 0.913, 1.0]]
>>> exchanged(Law.paper(rounds=1), pull, worth).round(1).tolist()
[[69.3, 91.3, 100.0]]
"""

import numpy as np
import numpy.typing as npt

from fedaccord.game.law import Law
from fedaccord.numbers import BoolArray, FloatArray


def clock_shares(law: Law, pull: FloatArray, worth: FloatArray) -> FloatArray:
    """phi_n: the share of everyone's data at which each client would stop the clock."""
    everything = worth.sum(axis=-1, keepdims=True)
    with np.errstate(over="ignore"):  # one who would give everything
        stops = law.stop(pull * (everything / worth))
    return np.asarray(np.minimum(stops / everything, 1.0))


def serial_shares(law: Law, pull: FloatArray, worth: FloatArray) -> FloatArray:
    """The share at which each client leaves the serial clock; with one law for all by one sort."""
    if law.is_personal:
        return levels(law, pull, worth, np.ones_like(worth))
    order = np.argsort(pull / worth, axis=-1)
    ranked = np.take_along_axis(worth, order, axis=-1)
    key = np.take_along_axis(pull, order, axis=-1) / ranked
    left = ranked[:, ::-1].cumsum(axis=-1)[:, ::-1]  # W_in when each client stops
    with np.errstate(over="ignore"):
        stops = law.stop(key * left)
    # when one leaves, the next may have had enough already: it stops at the same moment
    reached = np.minimum(np.maximum.accumulate(stops, axis=-1), left[:, :1])
    risen = (np.diff(reached, prepend=0.0, axis=-1) / left).cumsum(axis=-1)
    shares = np.empty_like(worth)
    np.put_along_axis(shares, order, np.minimum(risen, 1.0), axis=-1)
    return shares


def exchanged(law: Law, pull: FloatArray, worth: FloatArray) -> FloatArray:
    """What each client gives under fair exchange.

    With one law for all, the next to stop is the client with the least data or the one with the
    lowest pull among those still in, so that each stop looks at two clients of a row only.
    """
    if law.is_personal:
        return levels(law, pull, np.ones_like(worth), worth)
    rows = np.arange(len(worth))
    by_data, by_pull = _Queue(worth), _Queue(pull)
    given = np.full(worth.shape, np.nan)
    level = reached = np.zeros(len(worth))
    for left in range(worth.shape[-1], 0, -1):
        still_in = np.isnan(given)
        least, lowest = by_data.first(still_in), by_pull.first(still_in)
        room = worth[rows, least] - level
        with np.errstate(over="ignore"):
            stop = law.stop(pull[rows, lowest] * left)
        sooner = np.maximum(stop - reached, 0.0) / left
        client = np.where(sooner < room, lowest, least)
        rise = np.minimum(sooner, room)
        level = np.minimum(level + rise, worth[rows, client])
        reached = reached + rise * left
        given[rows, client] = level
    return given


class _Queue:
    """The clients of each row in ascending order of something."""

    def __init__(self, values: FloatArray) -> None:
        self.order = np.argsort(values, axis=-1)
        self.rows = np.arange(len(values))
        self.place = np.zeros(len(values), dtype=np.int64)

    def first(self, still_in: BoolArray) -> npt.NDArray[np.int64]:
        """The first client of each row that is still in; those before it never come back."""
        while True:
            client = self.order[self.rows, self.place]
            gone = ~still_in[self.rows, client]
            if not gone.any():
                return client
            self.place = self.place + gone


def levels(law: Law, pull: FloatArray, weights: FloatArray, highest: FloatArray) -> FloatArray:
    """The level at which each client stops, whatever its law: in N steps over all clients.

    A client gives its weight times its level, and stops at its highest level at the latest.
    """
    answer, active = np.zeros_like(weights), np.ones(weights.shape, dtype=bool)
    level = reached = np.zeros((len(weights), 1))
    for _ in range(weights.shape[-1]):
        left = np.where(active, weights, 0.0).sum(axis=-1, keepdims=True)
        with np.errstate(over="ignore", divide="ignore"):
            stops = law.stop(np.where(active, pull * (left / weights), 0.0))
        rises = np.minimum(np.maximum(stops - reached, 0.0) / left, highest - level)
        client = np.argmin(np.where(active, rises, np.inf), axis=-1)[:, np.newaxis]
        rise = np.take_along_axis(rises, client, axis=-1)
        level = np.minimum(level + rise, np.take_along_axis(highest, client, axis=-1))
        reached = reached + rise * left
        np.put_along_axis(answer, client, level, axis=-1)
        np.put_along_axis(active, client, False, axis=-1)
    return answer

"""When clients stop as a level rises, for many consortia at once: one per row.

The formulas are those of `clock`, in its units: client n has a worth of q_n D_n samples and a pull
a_n = q_n rho_n / E_n, and stop(a) is the total at which the slope of its law is 1 / a.

>>> from fedaccord.game.law import Law
>>> worth = np.array([[100.0, 100.0, 100.0]])
>>> pull = np.array([[2e3, 4e3, 9e3]])
>>> serial_shares(Law.paper(rounds=1), pull, worth).round(3).tolist()
[[0.693, 0.913, 1.0]]
>>> levels(Law.paper(rounds=1), pull, np.ones((1, 3)), worth).round(1).tolist()
[[69.3, 91.3, 100.0]]
"""

import numpy as np

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


def levels(law: Law, pull: FloatArray, weights: FloatArray, highest: FloatArray) -> FloatArray:
    """The level at which each client stops, client after client: in N steps over all rows.

    A client gives its weight times its level, and stops at its highest level at the latest.
    """
    answer, active = np.zeros_like(weights), np.ones(weights.shape, dtype=bool)
    level = reached = np.zeros((len(weights), 1))
    for _ in range(weights.shape[-1]):
        left = np.where(active, weights, 0.0).sum(axis=-1, keepdims=True)
        first, stop = _first_to_stop(law, pull / weights, left, active)
        least = np.argmin(np.where(active, highest, np.inf), axis=-1)[:, np.newaxis]
        sooner = np.maximum(stop - reached, 0.0) / left
        room = np.take_along_axis(highest, least, axis=-1) - level
        client = np.where(sooner < room, first, least)
        rise = np.minimum(sooner, room)
        level = np.minimum(level + rise, np.take_along_axis(highest, client, axis=-1))
        reached = reached + rise * left
        np.put_along_axis(answer, client, level, axis=-1)
        np.put_along_axis(active, client, False, axis=-1)
    return answer


def _first_to_stop(
    law: Law, key: FloatArray, left: FloatArray, active: BoolArray
) -> tuple[np.ndarray[tuple[int, ...], np.dtype[np.int64]], FloatArray]:
    """The client of each row that stops at the lowest total, and that total; both as columns."""
    with np.errstate(over="ignore", divide="ignore"):
        if law.is_personal:
            stops = np.where(active, law.stop(np.where(active, key * left, 0.0)), np.inf)
            first = np.argmin(stops, axis=-1)[:, np.newaxis]
            return first, np.take_along_axis(stops, first, axis=-1)
        first = np.argmin(np.where(active, key, np.inf), axis=-1)[:, np.newaxis]
        return first, law.stop(np.take_along_axis(key, first, axis=-1) * left)

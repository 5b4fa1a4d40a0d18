"""Who contributes how much when clients stop at their satiation points; one game per row.

In descending order of their satiation points, clients contribute all their samples until the
total has passed the next client's point. The total is the unique X with

    sum of D_n over {h_n > X}  <=  X  <=  sum of D_n over {h_n >= X}.

With h_n of the stage game this is the equilibrium (Theorem 1, for any data sizes); with the
points at which society is satiated it is the social optimum. Ties at the margin make the
profile ambiguous, but not the total: tied clients contribute the same share of their samples.
If every point is 0, as under a law that is finite without data it may be, nobody contributes.
"""

from typing import NamedTuple

import numpy as np

from fedaccord.numbers import BoolArray, FloatArray

TIE = 1e-12
"""Satiation points this close (relative) are tied, and a client this close to its own is at it.
A ratio and its cube root have rounding errors of a few 1e-16, so ratios that are equal on paper
may differ by that much; sums of contributions by some more."""

_SORTED_AT_ONCE = 20_000
"""Up to this many clients, sorting all is faster than narrowing them down first."""

_SAMPLE = 10_000
"""How many clients are sampled to estimate the total of very many."""


class Filling(NamedTuple):
    """What clients contribute: all above the margin, a share at it, nothing below it."""

    profile: FloatArray
    total: FloatArray
    at_margin: BoolArray
    share: FloatArray


def fill(satiation: FloatArray, samples: FloatArray) -> Filling:
    """Fill each row (last axis: clients) up to its total; `total` and `share` are columns."""
    reached = filled_total(satiation, samples)
    nobody = satiation.max(axis=-1, keepdims=True) <= 0.0
    total = np.maximum(reached, np.finfo(np.float64).tiny)
    above = satiation > total * (1.0 + TIE)
    at_margin = (satiation >= total * (1.0 - TIE)) ^ above
    profile = samples * above
    share = np.zeros(total.shape)
    tied_at = np.flatnonzero(at_margin)
    if tied_at.size:
        row, column = np.unravel_index(tied_at, at_margin.shape)
        tied = samples[row, column]
        capacity = np.bincount(row, tied, len(total))[:, np.newaxis]
        left = total - profile.sum(axis=-1, keepdims=True)
        share = np.clip(left / np.where(capacity > 0, capacity, np.inf), 0.0, 1.0)
        # A remainder that is tiny next to both their samples and the total is rounding. Next to a
        # very large client's samples alone it need not be, and if nobody else contributes, it is
        # the whole total.
        rounding = TIE * np.minimum(capacity, total)
        nothing = (left < rounding) & above.any(axis=-1, keepdims=True)
        share = np.where(nothing, 0.0, np.where(capacity - left < rounding, 1.0, share))
        profile[row, column] = share[row, 0] * tied
    if not nobody.any():
        return Filling(profile, total, at_margin, share)
    return Filling(profile, np.where(nobody, 0.0, total), at_margin & ~nobody, share)


def filled_total(satiation: FloatArray, samples: FloatArray) -> FloatArray:
    """X for each row, as a column: the largest min(h, samples of all clients with h or more)."""
    if satiation.size > _SORTED_AT_ONCE and satiation.shape[0] == 1:
        return _total_of_many(satiation[0], samples[0])
    rows = np.arange(len(satiation))[:, np.newaxis] * satiation.shape[-1]
    descending = rows + np.argsort(satiation, axis=-1)[:, ::-1]
    points = satiation.take(descending)
    given = samples.take(descending).cumsum(axis=-1)
    result: FloatArray = np.minimum(points, given).max(axis=-1, keepdims=True)
    return result


def _total_of_many(satiation: FloatArray, samples: FloatArray) -> FloatArray:
    """The same for one very long row: estimate it from a sample, then sort only what is near."""
    step = satiation.size // _SAMPLE
    order = np.argsort(-satiation[::step])
    points = satiation[::step][order]
    given = samples[::step][order].cumsum() * (samples.sum() / samples[::step].sum())
    guess = int(np.argmax(np.minimum(points, given)))
    leeway = _SAMPLE // 50
    high = points[guess - leeway] if guess >= leeway else np.inf
    low = points[guess + leeway] if guess + leeway < points.size else 0.0
    base = float(samples @ (satiation > high).astype(np.float64))
    near = np.flatnonzero((satiation > low) & (satiation <= high))
    if base > high or base + float(samples[near].sum()) <= low:  # the sample was misleading
        near, base = np.arange(satiation.size), 0.0
    order = near[np.argsort(-satiation[near])]
    given = base + samples[order].cumsum()
    reached = np.minimum(satiation[order], given).max(initial=base)
    return np.array([[reached]])

"""What slips pay, given how they are seen; searched for, from the cost function alone.

A slip gains something once and is found with some probability. If an audit checks only some samples
that probability depends on how large the slip is, so that all sizes are tried: what counts is the
most that a slip gains divided by the probability that an audit finds it. Shortfalls from all of the
agreed samples down to 2^-30 of them are tried, half as large each time, and then a golden-section
search continues around the best. What is gained per sample changes by a part of s, and the
probability by a part of k s, between a shortfall of s and the limit of none at all: that is where
the search ends in the tolerance.
"""

from typing import NamedTuple

import numpy as np

from fedaccord.agreement.loss import Numbers
from fedaccord.agreement.monitoring import Monitoring
from fedaccord.agreement.search import best_deviation, gain_of_less, golden_section
from fedaccord.game.consortium import Consortium
from fedaccord.numbers import BoolArray, FloatArray

_HALVINGS = 30
"""Shortfalls down to 2^-30, 1e-9, of what was agreed are tried."""

_GOLDEN_STEPS = 50
"""Each step leaves 0.62 of the bracket, all of them 4e-11; the error at a maximum is its square."""


class Slips(NamedTuple):
    """The best deviation of each client."""

    deviation: FloatArray
    """What it would contribute; more than agreed where that pays."""
    gain: FloatArray
    """What that saves it in that slot."""
    found: FloatArray
    """The probability that an audit finds it."""
    largest: FloatArray
    """What the best slip would save if it were not looked for."""

    @property
    def tempting(self) -> FloatArray:
        """The gain divided by the probability of being found."""
        return np.asarray(self.gain / self.found)

    def only(self, these: BoolArray) -> "Slips":
        """The same, but for all others nothing to gain."""
        gain, largest = np.where(these, self.gain, 0.0), np.where(these, self.largest, 0.0)
        return self._replace(gain=gain, largest=largest)


def best_slips(
    consortium: Consortium, profile: FloatArray, total: Numbers, monitoring: Monitoring
) -> Slips:
    """The deviation of each client that tempts it most; the total may differ from one to another.

    The cost is convex in a client's own contribution: one that gains by contributing more gains by
    no slip.
    """
    deviation, gain = best_deviation(consortium, profile, total)
    found = np.ones_like(gain)
    if monitoring.samples_checked is None:
        return Slips(deviation, gain, found, gain)
    part, least = _most_tempting(consortium, profile, total, monitoring)
    saved = gain_of_less(consortium, total, part * profile)
    slips = (deviation <= profile) & (saved > 0)
    return Slips(
        np.where(slips, profile - part * profile, deviation),
        np.where(slips, saved, gain),
        np.where(slips, least, found),
        gain,
    )


def _most_tempting(
    consortium: Consortium, profile: FloatArray, total: Numbers, monitoring: Monitoring
) -> tuple[FloatArray, FloatArray]:
    """The part of its samples that each client is most tempted to leave out; how likely found."""

    def worth(exponent: FloatArray) -> FloatArray:
        """Gain by probability of being found, of a shortfall of 2^-exponent."""
        part = 0.5**exponent
        return gain_of_less(consortium, total, part * profile) / monitoring.seen(part)

    best, best_worth = np.zeros_like(profile), worth(np.zeros_like(profile))
    for exponent in range(1, _HALVINGS + 1):
        tried = np.full_like(profile, float(exponent))
        here = worth(tried)
        better = here > best_worth
        best, best_worth = np.where(better, tried, best), np.where(better, here, best_worth)
    low, high = np.maximum(best - 1.0, 0.0), np.minimum(best + 1.0, float(_HALVINGS))
    last = golden_section(worth, low, high, _GOLDEN_STEPS)
    best = np.where(worth(last) > best_worth, last, best)
    part = 0.5**best
    return np.asarray(part), monitoring.seen(part)

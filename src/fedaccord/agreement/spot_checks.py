"""Slips that only some checked samples can give away.

An audit that checks k of the claimed samples finds a shortfall of a part s with probability
v(s) = 1 - (1 - s)^k. A client with x samples agreed and pull a that is short by y = s x gains
g(y) = y - a (L(T - y) - L(T)), which does not depend on x. No shortfall pays if

    g(s x)  <=  v(s) B    for all s,

B being what the punishment weighs, so what counts is the largest g/v. For k = 1 that is its limit
at s = 0, x (1 - b) with b = a times the slope of L at T, since g is concave. For k > 1, g - c v is
first convex and then concave in s for every c, because L'' falls: g/v has one peak (it is
quasiconcave), which a golden-section search finds, or is largest at an end.

For given T it grows with x, so that a client still keeps to one interval of amounts from 0 on.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from fedaccord.game.law import Law
from fedaccord.numbers import FloatArray

_GOLDEN = (np.sqrt(5.0) - 1.0) / 2.0
_STEPS = 45
"""Each step leaves 0.62 of the bracket, all of them 4e-10; at the peak the error is its square."""

_NEXT_TO = 1e-6
"""The part of the bracket in which a peak cannot be told from its end: the error is its square."""


class Tempting(NamedTuple):
    """The shortfall with the most gain for the probability of being found."""

    gain: FloatArray
    """The largest g/v."""
    part: FloatArray
    """Where it is attained; 0: as the shortfall vanishes."""


class Odds(NamedTuple):
    """A given part of any amount, and how likely it is found to be missing."""

    part: FloatArray
    checked: int

    @property
    def found(self) -> FloatArray:
        """v(s)."""
        with np.errstate(divide="ignore"):
            return np.asarray(-np.expm1(self.checked * np.log1p(-self.part)))

    @property
    def each(self) -> FloatArray:
        """s / v(s), which is 1/k in the limit of 0."""
        some = self.part > 0
        return np.divide(
            self.part, self.found, out=np.full_like(self.part, 1.0 / self.checked), where=some
        )


def gained(
    law: Law, pull: FloatArray, amount: FloatArray, total: FloatArray, odds: Odds
) -> FloatArray:
    """g/v of a given part of the amount."""
    short = odds.part * amount
    some = short > 0
    fall = law.fall(total - short, short, total)
    dearer = np.divide(fall, short, out=np.zeros_like(fall), where=some)
    steep = np.where(some, dearer, law.slope(total))
    return np.asarray(odds.each * amount * (1.0 - pull * steep))


def most_tempting(
    law: Law,
    pull: FloatArray,
    satiation: FloatArray,
    *,
    amount: FloatArray,
    total: FloatArray,
    checked: int,
) -> Tempting:
    """The largest g/v over all shortfalls; beyond T - h a larger one gains less."""
    shape = np.broadcast_shapes(pull.shape, np.shape(amount), np.shape(total))
    amount, total = np.broadcast_to(amount, shape), np.broadcast_to(total, shape)
    nowhere = np.zeros(shape)
    at_once = np.maximum(gained(law, pull, amount, total, Odds(nowhere, checked)), 0.0)
    if checked == 1:
        return Tempting(np.where(satiation < total, at_once, 0.0), nowhere)
    room = np.maximum(total - satiation, 0.0)
    most = np.minimum(np.divide(room, amount, out=np.ones(shape), where=amount > 0), 1.0)

    def at(part: FloatArray) -> FloatArray:
        return gained(law, pull, amount, total, Odds(part, checked))

    at_most = at(most)
    # with one peak, it is at an end if the function falls from there
    at_an_end = (at_once >= at(_NEXT_TO * most)) | (at_most >= at((1.0 - _NEXT_TO) * most))
    best = Tempting(at_once, nowhere)
    tried = [(most, at_most)]
    if not (at_an_end | (satiation >= total)).all():
        part = _peak(at, most)
        tried.append((part, at(part)))
    for part, gain in tried:
        better = gain > best.gain
        best = Tempting(np.where(better, gain, best.gain), np.where(better, part, best.part))
    return Tempting(np.where(satiation < total, best.gain, 0.0), best.part)


def _peak(at: Callable[[FloatArray], FloatArray], most: FloatArray) -> FloatArray:
    """Where a quasiconcave function of [0, most] is largest, by golden-section search."""
    low, high = np.zeros_like(most), most
    left, right = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
    at_left, at_right = at(left), at(right)
    for _ in range(_STEPS):
        leftwards = at_left >= at_right
        low, high = np.where(leftwards, low, left), np.where(leftwards, right, high)
        width = _GOLDEN * (high - low)
        fresh = np.where(leftwards, high - width, low + width)
        at_fresh = at(fresh)
        left, right = np.where(leftwards, fresh, right), np.where(leftwards, left, fresh)
        at_left, at_right = (
            np.where(leftwards, at_fresh, at_right),
            np.where(leftwards, at_left, at_fresh),
        )
    return np.asarray(np.where(at_left >= at_right, left, right))

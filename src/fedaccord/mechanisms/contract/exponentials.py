"""A law of the loss as a sum of exponentials, whose expected values are easy.

Each term of a law is an integral of exponentials, (X + s)^-p = integral of u^(p-1) exp(-u (X + s))
du / Gamma(p) over u > 0. In v = log u the integrand falls off on both sides, and the trapezoidal
rule has a relative error of 2 |Gamma(p + 2 pi i / step)| / Gamma(p) for every X. To the left of the
first node exp(-u X) is 1 for every X in question, so what is left out there is a constant, the sum
of a geometric series.

>>> law = Law.paper(rounds=50)
>>> mixture = exponential_mixture(law, own=1.0, largest=1e4)
>>> float(mixture.weight @ np.exp(-mixture.rate * 99.0)), float(law.loss(100.0) - law.floor)
(0.0141421356237..., 0.0141421356237...)
"""

from typing import NamedTuple

import numpy as np

from fedaccord.game.law import Law
from fedaccord.numbers import FloatArray

_EXACT = 2e-14
"""The relative error that is allowed: no more than the rounding error of the sums."""
_WIDEST_STEP = 0.3
_NOTHING = 37.0
"""exp(-37) is less than the rounding error of a number."""
_LEFT_OUT = 1e-17
"""The part of an integral beyond the last node."""


class ExponentialMixture(NamedTuple):
    """sum of weight exp(-rate X)."""

    rate: FloatArray
    weight: FloatArray


def exponential_mixture(law: Law, own: float, largest: float) -> ExponentialMixture:
    """A(X + own) - floor as a mixture that is exact for X from 0 to `largest`."""
    from scipy.special import gammainccinv, gammaln

    terms = [np.array([float(number) for number in term[1:]]) for term in law.terms]
    value, unit, shift, exponent = np.array([term for term in terms if term[0] > 0]).T
    start = shift + own  # each term is value (unit / (X + start))^exponent
    first = -np.log(largest + float(start.max())) - _NOTHING
    last = np.log(float((gammainccinv(exponent, _LEFT_OUT) / start).max()))
    step = _step(exponent)
    v = first + step * np.arange(int(np.ceil((last - first) / step)) + 1)
    rate = np.exp(v)
    scale = np.log(value) - gammaln(exponent)
    weight = np.zeros_like(v)
    for at, size, begins, power in zip(scale, np.log(unit), start, exponent, strict=True):
        weight += step * np.exp(at + power * (v + size) - rate * begins)
    before = step * np.exp(scale + exponent * (first + np.log(unit))) / np.expm1(step * exponent)
    return ExponentialMixture(np.append(rate, 0.0), np.append(weight, before.sum()))


def _step(exponent: FloatArray) -> float:
    """The largest step whose error is allowed for every exponent."""
    from scipy.special import gammaln, loggamma

    step = _WIDEST_STEP
    while True:
        error = loggamma(exponent + 2j * np.pi / step).real - gammaln(exponent)
        if (error <= np.log(_EXACT / 2.0)).all():
            return step
        step *= 0.9

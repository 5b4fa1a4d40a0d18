"""What the law of the loss says, computed once more for the certificate.

Only the numbers of its terms are taken from the law, and none of its formulas. Differences are
computed without cancellation.
"""

from typing import NamedTuple, TypeAlias

import numpy as np

from fedaccord.game.law import ARRAYS, Law
from fedaccord.numbers import FloatArray

Numbers: TypeAlias = FloatArray | np.float64

_STEEP = 64.0
"""Exponents above this make a term with a shift nearly an exponential."""


class Term(NamedTuple):
    """One term of a law, for some of the clients: value (unit / (X + shift))^exponent."""

    value: FloatArray
    unit: FloatArray
    shift: FloatArray
    exponent: FloatArray
    is_root: bool
    """Whether it is a number over sqrt(X)."""
    is_square: bool
    """Whether its exponent is 2."""
    is_steep: bool
    """Whether rounding would grow with its exponent, so that it is computed by logarithms."""

    def at(self, total: Numbers) -> FloatArray:
        """The term at a total."""
        if self.is_steep:
            beyond = (total + (self.shift - self.unit)) / self.unit
            return np.asarray(self.value * np.exp(-self.exponent * np.log1p(beyond)))
        return np.asarray(self.value * (self.unit / (total + self.shift)) ** self.exponent)

    def root_fall(self, before: Numbers, after: Numbers, change: Numbers) -> FloatArray:
        """What it falls by from one total to another, if it is a number over the root."""
        roots = np.sqrt(before), np.sqrt(after)
        part = change / (roots[0] * roots[1] * (roots[0] + roots[1]))
        return np.asarray(self.value * np.sqrt(self.unit) * part)

    def fall(self, low: Numbers, gap: Numbers) -> FloatArray:
        """What it falls by from the smaller of two totals, `low`, to the larger, `gap` away."""
        start = low + self.shift
        if self.is_square:
            better, step = self.unit / (start + gap), gap / start
            return np.asarray(self.value * better**2 * step * (2.0 + step))
        return np.asarray(self.at(low) * -np.expm1(-self.exponent * np.log1p(gap / start)))


def is_in_class(law: Law) -> bool:
    """Whether the law is a floor and powers that fall: convex, as the searches need it."""
    positive = (law.unit > 0).all() and (law.exponent > 0).all()
    not_negative = (law.value >= 0).all() and (law.shift >= 0).all()
    numbers = (law.value, law.unit, law.shift, law.exponent, law.floor)
    return bool(positive and not_negative and all(np.isfinite(given).all() for given in numbers))


def terms_of(law: Law, part: slice = slice(None)) -> list[Term]:
    """The terms, for some of the clients."""
    given = [getattr(law, name) for name in ARRAYS]

    def row(values: FloatArray, j: int) -> FloatArray:
        one = np.asarray(values[min(j, len(values) - 1)])
        return one if one.size == 1 else np.asarray(one[part])

    return [_term(*(row(values, j) for values in given)) for j in range(max(map(len, given)))]


def _term(value: FloatArray, unit: FloatArray, shift: FloatArray, exponent: FloatArray) -> Term:
    return Term(
        value,
        unit,
        shift,
        exponent,
        is_root=bool(np.all(exponent == 0.5) and np.all(shift == 0.0)),
        is_square=bool(np.all(exponent == 2.0)),
        is_steep=bool(np.all(exponent > _STEEP) and np.all(shift > 0.0)),
    )


def loss_of(law: Law, total: Numbers) -> FloatArray:
    """A(X) without the floor; infinite without data unless every term has a shift."""
    with np.errstate(divide="ignore"):
        return np.asarray(sum(term.at(total) for term in terms_of(law)))


def slope_of(law: Law, total: FloatArray) -> FloatArray:
    """-A'(X): what one more sample is worth, in units of the loss."""
    with np.errstate(divide="ignore"):
        parts = [term.at(total) * term.exponent / (total + term.shift) for term in terms_of(law)]
    return np.asarray(sum(parts))


def loss_difference(
    terms: list[Term], before: Numbers, after: Numbers, change: Numbers
) -> FloatArray:
    """A(before) - A(after) for after = before + change.

    Each term is compared from the smaller of both totals on, so that nothing cancels. For a number
    over the root there is a formula that needs no such care, and most of the time is spent here.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        if len(terms) == 1 and terms[0].is_root:
            fall = terms[0].root_fall(before, after, change)
        else:
            low, gap = np.minimum(before, after), np.abs(change)
            fall = np.sign(change) * sum(term.fall(low, gap) for term in terms)
        return np.asarray(np.where(np.asarray(change) == 0.0, 0.0, fall))

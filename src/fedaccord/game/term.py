"""One term of a law of the loss: value (unit / (X + shift))^exponent, and what follows from it.

The exponents 1/2, 1 and 2 have formulas that need no logarithm; all others share one.
"""

from typing import Literal, NamedTuple

import numpy as np

from fedaccord.numbers import FloatArray

Form = Literal["root", "power 1", "power 2", "any", "steep"]
"""Which formula suits it; "root" is the exponent 1/2 without a shift, as in the paper's law."""

_STEEP = 64.0
"""Powers with a shift and exponents above this, nearly exponentials, are computed by logarithms:
the rounding of unit / (X + shift) would grow with the exponent."""


class Term(NamedTuple):
    """One term of a law: value (unit / (X + shift))^exponent."""

    form: Form
    value: FloatArray
    unit: FloatArray
    shift: FloatArray
    exponent: FloatArray

    def loss(self, total: FloatArray) -> FloatArray:
        """The term itself."""
        if self.form == "root":
            return np.asarray(self.value / np.sqrt(total))
        ratio = self.unit / (total + self.shift)
        if self.form == "power 1":
            return np.asarray(self.value * ratio)
        if self.form == "power 2":
            return np.asarray(self.value * (ratio * ratio))
        if self.form == "steep":
            beyond = (total + (self.shift - self.unit)) / self.unit
            return np.asarray(self.value * np.exp(-self.exponent * np.log1p(beyond)))
        return np.asarray(self.value * ratio**self.exponent)

    def slope(self, total: FloatArray) -> FloatArray:
        """Minus its derivative."""
        if self.form == "root":
            return np.asarray(0.5 * self.value / (total * np.sqrt(total)))
        return np.asarray(self.exponent * self.loss(total) / (total + self.shift))

    def bend(self, total: FloatArray) -> FloatArray:
        """Its second derivative."""
        return np.asarray((self.exponent + 1.0) * self.slope(total) / (total + self.shift))

    def fall(self, total: FloatArray, gap: FloatArray, after: FloatArray) -> FloatArray:
        """Its value at `total` less that at `after` = total + gap, without cancellation."""
        if self.form == "root":
            low, high = np.sqrt(total), np.sqrt(after)
            return np.asarray(self.value * gap / (low * high * (low + high)))
        low, high = total + self.shift, after + self.shift
        if self.form == "power 1":
            return np.asarray(self.value * self.unit * (gap / (low * high)))
        if self.form == "power 2":
            ratio = self.unit / low / high
            return np.asarray(self.value * gap * (low + high) * (ratio * ratio))
        lost = -np.expm1(-self.exponent * np.log1p(gap / low))
        return np.asarray(self.loss(total) * lost)

    def stop(self, ratio: FloatArray) -> FloatArray:
        """Where its slope is 1 / ratio, computed so that no ratio overflows; may be negative."""
        if self.form == "root":
            root = np.cbrt(ratio)
            return np.asarray(root * root / np.cbrt(4.0 / (self.value * self.value)))
        power = 1.0 / (self.exponent + 1.0)
        if self.form == "steep":
            log = np.log(self.value * self.exponent / self.unit) + np.log(ratio)
            return np.asarray(self.unit * np.expm1(power * log) + (self.unit - self.shift))
        steep = (self.value * self.exponent / self.unit) ** power
        return np.asarray(self.unit * (steep * np.asarray(ratio) ** power) - self.shift)

    def reach(self, loss: FloatArray) -> FloatArray:
        """Where the term has this value; may be negative."""
        if self.form == "root":
            return np.asarray((self.value / loss) ** 2)
        return np.asarray(self.unit * (self.value / loss) ** (1.0 / self.exponent) - self.shift)


def term_of(value: FloatArray, unit: FloatArray, shift: FloatArray, exponent: FloatArray) -> Term:
    """A term, and which formula is quickest for it."""
    form: Form = "any"
    if np.all(exponent == 0.5) and np.all(shift == 0.0) and np.all(unit == 1.0):
        form = "root"
    elif np.all(exponent == 1.0):
        form = "power 1"
    elif np.all(exponent == 2.0):
        form = "power 2"
    elif np.all(exponent > _STEEP) and np.all(shift > 0.0):
        form = "steep"
    return Term(form, *map(_single, (value, unit, shift, exponent)))


def _single(number: FloatArray) -> FloatArray:
    """A number that is the same for all clients without dimensions: operations are quicker then."""
    return number.reshape(()) if number.size == 1 else number

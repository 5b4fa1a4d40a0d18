"""Discounted sums, computed by multiplication and addition only.

Those two are rounded in the same way on every machine; powers and logarithms are not.
"""

from math import inf

import numpy as np

from fedaccord.numbers import FloatArray


def power(delta: FloatArray, exponent: int) -> FloatArray:
    """delta^exponent, by squaring.

    >>> power(np.array([0.5, 0.0]), 10).tolist(), power(np.array([0.0]), 0).tolist()
    ([0.0009765625, 0.0], [1.0])
    """
    result, factor = np.ones_like(delta), delta
    while exponent:
        if exponent % 2:
            result = result * factor
        exponent //= 2
        factor = factor * factor
    return result


def worth(delta: FloatArray, slots: float) -> FloatArray:
    """1 + delta + ... + delta^(slots - 1); `slots` may be infinite.

    Doubling the number of terms k multiplies the sum by (1 + delta^k), so few steps are needed.

    >>> worth(np.array([0.5, 0.0]), 3).tolist(), worth(np.array([0.5, 0.0]), inf).tolist()
    ([1.75, 1.0], [2.0, 1.0])
    """
    if slots == inf:
        return np.asarray(1.0 / (1.0 - delta))
    left = int(slots)
    result, terms, factor = np.zeros_like(delta), np.ones_like(delta), delta
    while left:
        if left % 2:
            result = terms + factor * result
        left //= 2
        terms = terms * (1.0 + factor)
        factor = factor * factor
    return result


def discounted(costs: FloatArray, delta: FloatArray, slots: float) -> FloatArray:
    """The sum of delta^k times the k-th row of `costs`; a single row stands for all slots."""
    if len(costs) == 1:
        return np.asarray(costs[0] * worth(delta, slots))
    result: FloatArray = costs[-1].copy()
    for row in costs[-2::-1]:
        result = times(delta, result)
        result += row
    return result


def times(factor: FloatArray, values: FloatArray) -> FloatArray:
    """Their product, where 0 times infinity is 0."""
    if np.isfinite(values).all():
        return np.asarray(factor * values)
    return np.where(factor > 0, factor * np.where(factor > 0, values, 0.0), 0.0)

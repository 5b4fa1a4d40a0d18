"""Arrays of numbers, and how numbers are written for people."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from fedaccord.errors import InvalidInput, Problem

FloatArray: TypeAlias = npt.NDArray[np.float64]
BoolArray: TypeAlias = npt.NDArray[np.bool_]

SUMS_DIFFER = 1e-12
"""Relative: two sums of the same numbers, added in different orders, may differ by this much. A
sum of a million numbers has an error of about 1e-13 at worst, and numbers computed from it little
more."""


def read_only(values: npt.ArrayLike, length: int, field: str) -> FloatArray:
    """A read-only float array of this length; a single number is repeated for all clients."""
    try:
        array = np.array(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidInput(f"must be numbers, got {values!r}", field=field) from None
    if array.ndim == 0:
        array = np.full(length, array)
    if array.shape != (length,):
        raise InvalidInput(f"must have one number for each of {length} clients", field=field)
    array.flags.writeable = False
    return array


def as_profile(values: npt.ArrayLike, samples: FloatArray, field: str = "profile") -> FloatArray:
    """`values` as a read-only profile: one contribution per client, each in [0, samples]."""
    profile = read_only(values, samples.size, field)
    wrong = ~((profile >= 0) & (profile <= samples))
    if wrong.any():
        n = int(np.argmax(wrong))
        message = f"must be from 0 to {as_text(samples[n])}, got {as_text(profile[n])}"
        raise InvalidInput(Problem(field, message, f"{field}[{n}]"))
    return profile


def as_text(value: Any) -> str:
    """A number as a person would write it, for messages."""
    return f"{float(value):.15g}"


_LARGE, _SMALL = 1e15, 1e-9
"""Outside these bounds a number is written with a power of ten."""


def count(number: int, noun: str) -> str:
    """A number of things: "1 client", "6 clients"."""
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


def write(values: Sequence[float] | FloatArray, digits: int = 4) -> list[str]:
    """Numbers of one column or list, with as many decimals as the largest needs for `digits`.

    Whole numbers have none. Very large and very small ones are written with a power of ten.

    >>> write([50396.84, 110814.2]), write([0.0199, 0.00021])
    (['50,397', '110,814'], ['0.01990', '0.00021'])
    >>> write([8.0957e96, 0.0])
    ['8.096e+96', '0']
    """
    array = np.asarray(values, dtype=np.float64)
    largest = float(np.abs(array[np.isfinite(array)]).max(initial=0.0))
    if largest >= _LARGE or 0 < largest < _SMALL:
        return [f"{v:.{digits}g}" if np.isfinite(v) else "–" for v in array]
    whole = largest == 0 or bool((array == np.round(array)).all())
    decimals = 0 if whole else max(0, digits - 1 - int(np.floor(np.log10(largest))))
    # adding 0 turns a negative zero into a positive one
    return [f"{round(v, decimals) + 0.0:,.{decimals}f}" if np.isfinite(v) else "–" for v in array]


_MOST_DIGITS = 6
"""More than any limit is written with."""


def at_most(value: float, written: Callable[[float], str]) -> str:
    """A limit as `written` for people, rounded down so that it is one as it reads.

    >>> at_most(13.96, lambda limit: f"{limit:.2g}"), at_most(21.91, lambda limit: f"{limit:.3g}")
    ('13', '21.9')
    """
    for digits in range(_MOST_DIGITS, 0, -1):
        if value <= 0 or not np.isfinite(value):
            break
        step = 10.0 ** (np.floor(np.log10(value)) - digits + 1)
        text = written(float(np.floor(value / step + SUMS_DIFFER) * step))
        if float(text.replace(",", "")) <= value * (1.0 + SUMS_DIFFER):
            return text
    return written(value)


def patience(value: float) -> str:
    """A discount factor or a threshold; infinity means that none is high enough."""
    return f"{value:.3f}" if np.isfinite(value) else "none is enough"

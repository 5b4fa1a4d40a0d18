"""How numbers are written for people, everywhere the same way."""

from collections.abc import Sequence

import numpy as np

from fedaccord.game.arrays import FloatArray

_LARGE, _SMALL = 1e15, 1e-9
"""Beyond these a number has more zeros than anyone counts."""


def count(number: int, noun: str) -> str:
    """A number of things: "1 client", "6 clients"."""
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


def write(values: Sequence[float] | FloatArray, digits: int = 4) -> list[str]:
    """Numbers that stand together, with as many decimals as the largest needs for `digits`.

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
    # adding 0 turns a negative zero into a plain one
    return [f"{round(v, decimals) + 0.0:,.{decimals}f}" if np.isfinite(v) else "–" for v in array]


def patience(value: float) -> str:
    """A discount factor or a threshold; infinite means that none is enough."""
    return f"{value:.3f}" if np.isfinite(value) else "none is enough"

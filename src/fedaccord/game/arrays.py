"""The array types of the stage game, and the one way in which numbers become arrays."""

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from fedaccord.errors import InvalidInput

FloatArray: TypeAlias = npt.NDArray[np.float64]
BoolArray: TypeAlias = npt.NDArray[np.bool_]


def read_only(values: npt.ArrayLike, length: int, field: str) -> FloatArray:
    """A read-only float array of `length`; one number stands for all clients."""
    try:
        array = np.array(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidInput(f"{field}: must be numbers, got {values!r}") from None
    if array.ndim == 0:
        array = np.full(length, array)
    if array.shape != (length,):
        raise InvalidInput(f"{field}: must have one number for each of {length} clients")
    array.flags.writeable = False
    return array


def as_profile(values: npt.ArrayLike, samples: FloatArray, field: str = "profile") -> FloatArray:
    """`values` as a read-only profile: one contribution a client, each in [0, samples]."""
    profile = read_only(values, samples.size, field)
    wrong = ~((profile >= 0) & (profile <= samples))
    if wrong.any():
        n = int(np.argmax(wrong))
        raise InvalidInput(
            f"{field}[{n}]: must be from 0 to {samples[n]:.15g}, got {plain(profile[n])}"
        )
    return profile


def plain(value: Any) -> str:
    """A number as a person would write it, for messages."""
    return f"{float(value):.15g}"

"""A model's parameters as plain arrays, outside PyTorch: their digest and their distance."""

import hashlib
from collections.abc import Iterable
from math import sqrt
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from fedaccord.errors import FedaccordError

Arrays: TypeAlias = dict[str, npt.NDArray[Any]]
"""Parameters by name."""


def check_names(names: Iterable[str]) -> None:
    """Refuse NUL in a parameter's name: it separates fields in a digest, and ends names in a .npz.

    Otherwise two different models could have the same digest.
    """
    for name in names:
        if "\0" in name:
            raise FedaccordError(f"a parameter is called {name!r}, which has a NUL in it")


def digest(arrays: Arrays) -> str:
    """SHA-256 of names, types, shapes and values."""
    check_names(arrays)
    found = hashlib.sha256()
    for name, array in arrays.items():
        found.update(f"{name}\0{array.dtype.str}\0{array.shape}\0".encode())
        found.update(np.ascontiguousarray(array).tobytes())
    return found.hexdigest()


def distance(one: Arrays, other: Arrays) -> float:
    """The Euclidean norm of the difference of two models; infinite if too large for a float."""
    with np.errstate(over="ignore"):
        squares = [
            float(np.sum(np.square(np.subtract(array, other[name], dtype=np.float64))))
            for name, array in one.items()
        ]
    return sqrt(sum(squares))

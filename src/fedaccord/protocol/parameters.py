"""A model's parameters as they are sent and stored: their bytes, their form, their average."""

import io
from collections.abc import Iterable, Mapping
from functools import lru_cache
from math import prod
from typing import Any, Literal
from zipfile import ZIP_STORED, ZipFile

import numpy as np
import numpy.typing as npt

from fedaccord.errors import FedaccordError
from fedaccord.protocol.reasons import Reason
from fedaccord.training.arrays import Arrays, check_names, digest, distance

__all__ = [
    "Arrays",
    "array_from_bytes",
    "as_type",
    "average",
    "check_names",
    "digest",
    "distance",
    "from_bytes",
    "to_bytes",
    "unlike",
]


def to_bytes(arrays: Arrays) -> bytes:
    """The parameters as an uncompressed .npz; the same arrays always give the same bytes."""
    check_names(arrays)
    file = io.BytesIO()
    np.savez(file, allow_pickle=False, **arrays)
    return file.getvalue()


def from_bytes(content: bytes) -> Arrays:
    """What `to_bytes` wrote; anything that would grow when it is unpacked is refused."""
    try:
        with ZipFile(io.BytesIO(content)) as archive:
            parts = archive.infolist()
            if any(part.compress_type != ZIP_STORED for part in parts):
                raise ValueError("it is compressed")
            if sum(part.file_size for part in parts) > len(content):
                raise ValueError("its size is not the one that it declares")
            check_names(part.orig_filename for part in parts)
            names = [part.filename.removesuffix(".npy") for part in parts]
            if len(set(names)) < len(names):
                raise ValueError("it has two parameters with the same name")
            arrays = [array_from_bytes(archive.read(part)) for part in parts]
            return dict(zip(names, arrays, strict=True))
    except Exception as error:  # zipfile and NumPy raise many kinds of errors
        raise FedaccordError(f"a model cannot be read: {error}") from None


def array_from_bytes(content: bytes) -> npt.NDArray[Any]:
    """An array as NumPy saves it, which must be as large as its header says.

    NumPy would trust the header, and allocate whatever it says. The header is a Python literal, and
    takes longer to read than the numbers of a small array; all updates of a round have the same.
    """
    try:
        version = np.lib.format.read_magic(io.BytesIO(content))
        start = _START[version]
        begin = start + int.from_bytes(content[_MAGIC:start], "little")
        if begin > _LONGEST_HEADER:
            raise ValueError("its header is too long")
        shape, order, dtype = _form(content[:begin])
        if prod(shape) * dtype.itemsize != len(content) - begin:
            raise ValueError("its size is not the one that it declares")
        return np.ndarray(shape, dtype, content, begin, order=order).copy(order="K")
    except Exception as error:  # NumPy raises many kinds of errors
        raise FedaccordError(f"an array cannot be read: {error}") from None


_MAGIC = 8
"""Bytes before the length of the header."""
_START = {(1, 0): _MAGIC + 2, (2, 0): _MAGIC + 4}
"""Where the header starts, by version of NumPy's format."""
_LONGEST_HEADER = 10_000
"""In bytes; NumPy's own limit. Longer ones may be unsafe to read."""


@lru_cache(maxsize=256)
def _form(header: bytes) -> tuple[tuple[int, ...], Literal["C", "F"], np.dtype[Any]]:
    """The shape, the order and the type of numbers that a header declares."""
    file = io.BytesIO(header)
    version = np.lib.format.read_magic(file)
    read = np.lib.format
    of_version = read.read_array_header_1_0 if version == (1, 0) else read.read_array_header_2_0
    shape, fortran, dtype = of_version(file)
    if dtype.hasobject:
        raise ValueError("it has Python objects")
    return shape, "F" if fortran else "C", dtype


def unlike(arrays: Mapping[str, npt.NDArray[Any]], wanted: Arrays) -> str | None:
    """How these parameters differ in form from the wanted ones, or that they are not finite."""
    if arrays.keys() != wanted.keys():
        return Reason.UNLIKE_PARAMETERS
    for name, array in arrays.items():
        if array.shape != wanted[name].shape or array.dtype != wanted[name].dtype:
            return Reason.OTHER_FORM.format(
                name=name,
                type=array.dtype,
                shape=array.shape,
                wanted_type=wanted[name].dtype,
                wanted_shape=wanted[name].shape,
            )
        if not np.isfinite(array).all():
            return Reason.NOT_FINITE_PARAMETERS.format(name=name)
    return None


def average(updates: Iterable[tuple[int, Arrays]]) -> Arrays:
    """FedAvg: the clients' parameters, weighted by samples, added in the order given.

    They stay in float64, for an optimiser that looks at small changes.
    """
    weighted = [(samples, arrays) for samples, arrays in updates if samples > 0]
    total = sum(samples for samples, _ in weighted)
    result: Arrays = {name: np.zeros(array.shape) for name, array in weighted[0][1].items()}
    with np.errstate(over="ignore"):  # rounding, when all are the largest float
        for samples, arrays in weighted:
            weight = samples / total
            for name, array in arrays.items():
                result[name] += np.multiply(array, weight, dtype=np.float64)
    return result


def as_type(array: npt.NDArray[Any], dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    """Numbers in another type, clipped to its range, so that they are finite.

    Integers are rounded to the nearest integer.
    """
    whole = np.issubdtype(dtype, np.integer)
    most = np.iinfo(dtype) if whole else np.finfo(dtype)
    kept: npt.NDArray[Any] = np.clip(np.rint(array) if whole else array, most.min, most.max)
    return kept.astype(dtype)

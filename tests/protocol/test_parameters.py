"""Arrays from bytes that somebody else wrote: as NumPy would read them, or not at all."""

import io
from typing import Any

import numpy as np
import pytest

from fedaccord.errors import FedaccordError
from fedaccord.protocol.parameters import array_from_bytes


def saved(array: Any, **options: Any) -> bytes:
    file = io.BytesIO()
    np.save(file, array, **options)
    return file.getvalue()


@pytest.mark.parametrize(
    "array",
    [
        np.zeros(0),
        np.array(3.5),
        np.arange(6).reshape(2, 3),
        np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        np.zeros((2, 0, 3), np.float32),
        np.array([True, False]),
        np.arange(3, dtype=">i4"),
    ],
)
def test_an_array_is_read_as_numpy_reads_it(array: Any) -> None:
    found, wanted = array_from_bytes(saved(array)), np.load(io.BytesIO(saved(array)))
    np.testing.assert_array_equal(found, wanted, strict=True)
    assert found.flags.writeable
    assert found.flags.f_contiguous == wanted.flags.f_contiguous


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"hello",
        saved(np.array([{}]), allow_pickle=True),
        saved(np.zeros(3))[:-1],
        saved(np.zeros(3)) + b"\0",
        saved(np.zeros(3)).replace(b"(3,)", b"(-3, -1)").replace(b"    \n", b"\n"),
    ],
)
def test_a_value_that_is_not_an_array_is_refused(content: bytes) -> None:
    with pytest.raises(FedaccordError, match="an array cannot be read"):
        array_from_bytes(content)

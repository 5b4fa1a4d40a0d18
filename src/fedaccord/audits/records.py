"""A member's records as bytes, in the one form that is hashed.

>>> import numpy as np
>>> records = Records(np.array([[0.5, 1.0], [0.5, 1.0]]), np.array([1, 0]))
>>> len(records), records[0] == records[1], records[0].hex()
(2, False, '01000000000000000000003f0000803f')
"""

import hmac
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from fedaccord.data.partition import Indices


@dataclass(frozen=True, eq=False)
class Records:
    """Inputs and labels, one of each per record."""

    inputs: npt.NDArray[Any]
    labels: npt.NDArray[Any]

    def __len__(self) -> int:
        """The number of records."""
        return len(self.labels)

    @cached_property
    def rows(self) -> npt.NDArray[np.uint8]:
        """A row of bytes per record: its label as an int64, its inputs as float32, little-endian.

        They are trained on in this precision, whatever they were stored in.
        """
        labels = np.ascontiguousarray(self.labels, "<i8").reshape(-1, 1)
        inputs = np.ascontiguousarray(self.inputs, "<f4").reshape(len(labels), -1)
        return np.hstack([labels.view(np.uint8), inputs.view(np.uint8)])

    def __iter__(self) -> Iterator[bytes]:
        """Each record's bytes."""
        content, width = self.rows.tobytes(), self.rows.shape[1]
        return (content[n : n + width] for n in range(0, len(content), width))

    def __getitem__(self, position: int) -> bytes:
        """One record's bytes."""
        return bytes(self.rows[position].data)

    def only(self, positions: Indices) -> "Records":
        """Some of the records."""
        return Records(self.inputs[positions], self.labels[positions])


def keyed_digests(records: Records, key: bytes) -> list[str]:
    """HMAC-SHA-256 of each record, with an auditor's key.

    An auditor compares the records of two members by these digests, and no record leaves either of
    them. Without the key nobody can find a record by guessing it.
    """
    return [hmac.digest(key, record, "sha256").hex() for record in records]

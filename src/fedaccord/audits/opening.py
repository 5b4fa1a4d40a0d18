"""Level 1: the drawn samples' records are shown to an auditor on the member's premises.

It shows that these records are in the committed data, in their places, and that they are not copies
of other records. It does not show that anyone trained on them, nor that the records are true.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from fedaccord.audits.commitment import Commitment
from fedaccord.audits.merkle import MerkleTree, Opening, leads_to
from fedaccord.audits.records import Records
from fedaccord.data.partition import Indices
from fedaccord.numbers import FloatArray

_COMPARED_AT_ONCE = 4_000_000
"""Numbers held at a time when records are compared with one another."""


@dataclass(frozen=True)
class OpenedRecord:
    """A record as it is shown."""

    record: bytes
    opening: Opening


def open_records(
    tree: MerkleTree, records: Records, positions: Iterable[int]
) -> list[OpenedRecord]:
    """What a member shows of the records at these positions."""
    return [OpenedRecord(records[place], tree.open(place)) for place in positions]


def wrong_openings(
    shown: Sequence[OpenedRecord], wanted: Sequence[int], commitment: Commitment
) -> list[str]:
    """What is wrong with the records that were shown: each must be in the committed data."""
    by_place = {one.opening.position: one for one in shown}
    problems = []
    for place in wanted:
        one = by_place.get(place)
        if one is None:
            problems.append(f"record {place} is not shown")
        elif not leads_to(commitment.root, commitment.records, one.opening, one.record):
            problems.append(f"record {place} is not the one that was committed to")
    return problems


def copies_of(records: Records, positions: Sequence[int], near: float = 0.0) -> Indices:
    """Those of these positions whose record has a copy elsewhere among all records.

    Two records are copies if they have the same label and the root mean square of the differences
    of their inputs, in standard deviations of each input, is at most `near`.

    >>> records = Records(np.array([[0.0], [5.0], [0.0], [5.001]]), np.array([1, 1, 1, 1]))
    >>> copies_of(records, [0, 1, 2, 3]).tolist(), copies_of(records, [1], near=0.01).tolist()
    ([0, 2], [1])
    """
    places = np.asarray(positions, dtype=np.int64)
    if near == 0.0:
        _, which, counts = np.unique(_hashable(records), return_inverse=True, return_counts=True)
        return places[counts[which[places]] > 1]
    inputs = _in_deviations(records)
    found = [place for place in places.tolist() if _has_neighbour(inputs, records, place, near)]
    return np.array(found, dtype=np.int64)


def shared_records(one: Sequence[str], other: Sequence[str]) -> int:
    """How many records of one member another one has, too, by their keyed digests."""
    theirs = set(other)
    return sum(each in theirs for each in one)


def _hashable(records: Records) -> np.ndarray[tuple[int], np.dtype[np.void]]:
    """Each record as one value that can be compared."""
    rows = np.ascontiguousarray(records.rows)
    return rows.view(np.dtype((np.void, rows.shape[1]))).reshape(-1)


def _in_deviations(records: Records) -> FloatArray:
    inputs = np.asarray(records.inputs, np.float64).reshape(len(records), -1)
    spread = inputs.std(axis=0)
    return inputs / np.where(spread > 0, spread, 1.0)


def _has_neighbour(inputs: FloatArray, records: Records, place: int, near: float) -> bool:
    """Compare a record with all others of its label, a part of them at a time."""
    same = np.flatnonzero(records.labels == records.labels[place])
    same = same[same != place]
    step = max(1, _COMPARED_AT_ONCE // max(1, inputs.shape[1]))
    return any(
        bool((np.mean((inputs[part] - inputs[place]) ** 2, axis=1) <= near**2).any())
        for part in (same[n : n + step] for n in range(0, len(same), step))
    )

"""Copies among records, and records that two members share."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from fedaccord.audits.opening import copies_of, shared_records
from fedaccord.audits.records import Records, keyed_digests
from tests.audits.cheats import records_of


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 1)), min_size=1, max_size=20))
def test_copies_are_those_of_a_double_loop(rows: list[tuple[int, int]]) -> None:
    inputs = np.array([[value] for value, _ in rows], np.float32)
    records = Records(inputs, np.array([label for _, label in rows]))
    expected = [n for n, one in enumerate(rows) if rows.count(one) > 1]
    assert copies_of(records, range(len(rows))).tolist() == expected


@given(st.integers(0, 1_000), st.floats(0.05, 1.0))
def test_near_copies_are_those_of_a_double_loop(seed: int, near: float) -> None:
    records = records_of(seed, 30)
    scaled = records.inputs.astype(np.float64) / records.inputs.astype(np.float64).std(axis=0)
    apart = np.sqrt(((scaled[:, None] - scaled[None]) ** 2).mean(axis=2))
    close = (apart <= near) & (records.labels[:, None] == records.labels[None])
    np.fill_diagonal(close, val=False)
    expected = np.flatnonzero(close.any(axis=1)).tolist()
    assert copies_of(records, range(30), near).tolist() == expected


def test_shared_records_are_counted_by_keyed_digests() -> None:
    one, other = records_of(1, 20), records_of(2, 20)
    mixed = Records(
        np.concatenate([one.inputs[:5], other.inputs]),
        np.concatenate([one.labels[:5], other.labels]),
    )
    key = b"key"
    assert shared_records(keyed_digests(one, key), keyed_digests(mixed, key)) == 5
    assert shared_records(keyed_digests(one, key), keyed_digests(mixed, b"other")) == 0


def test_records_are_compared_in_the_precision_that_they_are_trained_in() -> None:
    """Copies are equal to the last bit of a float32, whatever they were stored in."""
    inputs = np.array([[0.1], [0.1 + 1e-12], [0.1 + 1e-6], [0.0]])
    records = Records(inputs, np.array([1, 1, 1, 1]))
    assert copies_of(records, [0, 1, 2, 3]).tolist() == [0, 1]

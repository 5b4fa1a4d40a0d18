"""The tree of records: against a definition of its own, and against everyone who would forge it."""

import hmac
from dataclasses import replace
from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedaccord.audits.merkle import MerkleTree, leads_to

SECRET = bytes(range(32))
records = st.lists(st.binary(max_size=6), min_size=1, max_size=40)


def recursive_root(leaves: list[bytes]) -> bytes:
    """RFC 6962: the left part is the largest power of two below the number of leaves."""
    if len(leaves) == 1:
        return leaves[0]
    half = 1
    while 2 * half < len(leaves):
        half *= 2
    left, right = recursive_root(leaves[:half]), recursive_root(leaves[half:])
    return sha256(b"\x01fedaccord node" + left + right).digest()


def salt(n: int) -> bytes:
    return hmac.digest(SECRET, n.to_bytes(8, "big"), "sha256")


@given(records)
def test_the_root_is_that_of_the_definition(found: list[bytes]) -> None:
    leaves = [
        sha256(b"\x00fedaccord leaf" + salt(n) + record).digest() for n, record in enumerate(found)
    ]
    count = len(found).to_bytes(8, "big")
    root = sha256(b"\x02fedaccord root" + count + recursive_root(leaves)).hexdigest()
    assert MerkleTree(found, SECRET).root == root


@given(records)
def test_every_record_opens_and_no_other_does(found: list[bytes]) -> None:
    tree = MerkleTree(found, SECRET)
    for n, record in enumerate(found):
        opened = tree.open(n)
        assert opened.salt == salt(n)
        assert leads_to(tree.root, len(found), opened, record)
        assert not leads_to(tree.root, len(found), opened, record + b"x")


@given(records, st.data())
def test_what_is_changed_anywhere_does_not_open(found: list[bytes], data: st.DataObject) -> None:
    tree = MerkleTree(found, SECRET)
    n = data.draw(st.integers(0, len(found) - 1))
    opened, count = tree.open(n), len(found)
    shorter, longer = opened.path[:-1], (*opened.path, bytes(32))
    wrong = [
        replace(opened, salt=bytes(32)),
        replace(opened, position=count),
        replace(opened, position=-1),
        replace(opened, path=longer),
        *([replace(opened, path=shorter)] if opened.path else []),
        *([replace(opened, path=(b"", *opened.path[1:]))] if opened.path else []),
        *(replace(opened, position=other) for other in range(count) if other != n),
    ]
    assert not any(leads_to(tree.root, count, one, found[n]) for one in wrong)
    assert not leads_to(tree.root, count + 1, opened, found[n])


def test_a_record_twice_at_the_end_is_another_tree() -> None:
    once, twice = [b"a", b"b", b"c"], [b"a", b"b", b"c", b"c"]
    assert MerkleTree(once, SECRET).root != MerkleTree(twice, SECRET).root


def test_a_node_does_not_pass_for_a_record() -> None:
    tree = MerkleTree([b"a", b"b"], SECRET)
    inside = sha256(b"\x00fedaccord leaf" + salt(0) + b"a").digest() + tree.open(0).path[0]
    opened = replace(tree.open(0), salt=b"", path=())
    assert not leads_to(tree.root, 1, opened, inside)


def test_equal_records_have_different_leaves() -> None:
    tree = MerkleTree([b"same", b"same"], SECRET)
    assert tree.open(0).path != tree.open(1).path


def test_a_position_outside_and_a_short_secret_are_refused() -> None:
    with pytest.raises(IndexError, match="no record 2 among 2"):
        MerkleTree([b"a", b"b"], SECRET).open(2)
    with pytest.raises(ValueError, match="32 bytes"):
        MerkleTree([b"a"], b"short")

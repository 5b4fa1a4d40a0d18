"""A salted Merkle tree: one digest commits to all records of a member, and opens one at a time.

A leaf is SHA-256 of a salt of its own and the record. The salts are HMAC-SHA-256 of one secret and
the record's position, so whoever is shown one record, its salt and its path learns nothing about
the others, not even by guessing them. Leaves, inner nodes and the root begin with different bytes,
so none of them can pass for another. An odd node at the end of a level moves up as it is (as in RFC
6962); none is counted twice. The root contains the number of records.

>>> tree = MerkleTree([b"first", b"second", b"third"], secret=bytes(32))
>>> opened = tree.open(2)
>>> leads_to(tree.root, 3, opened, b"third"), leads_to(tree.root, 3, opened, b"thirst")
(True, False)
"""

from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha256

_LEAF, _NODE, _ROOT = b"\x00fedaccord leaf", b"\x01fedaccord node", b"\x02fedaccord root"
_SIZE = 32
"""Bytes of a digest."""
_BLOCK = 64
"""Bytes of a block of SHA-256, to which HMAC pads its key."""
SECRET_SIZE = 32
"""Bytes of the secret that a member's salts are derived from."""


@dataclass(frozen=True)
class Opening:
    """What shows that a record is in a tree, apart from the record itself."""

    position: int
    salt: bytes
    path: tuple[bytes, ...]
    """The nodes beside the way from the leaf to the root, from below."""


class MerkleTree:
    """All levels of a tree, each as the digests of its nodes one after another."""

    def __init__(self, records: Iterable[bytes], secret: bytes) -> None:
        """Hash all records; `secret` is 32 random bytes that only the member knows."""
        self._salts = _Salts(secret)
        salt = self._salts.at
        leaves = b"".join(
            [sha256(_LEAF + salt(n) + record).digest() for n, record in enumerate(records)]
        )
        self._levels = [leaves]
        while len(self._levels[-1]) > _SIZE:
            self._levels.append(_level_above(self._levels[-1]))

    def __len__(self) -> int:
        """The number of records."""
        return len(self._levels[0]) // _SIZE

    @property
    def root(self) -> str:
        """The digest that commits to all records and to their number."""
        return _root(len(self), self._levels[-1])

    def open(self, position: int) -> Opening:
        """The salt and the path of the record at a position, from 0."""
        if not 0 <= position < len(self):
            raise IndexError(f"there is no record {position} among {len(self)}")
        path, place = [], position
        for level in self._levels[:-1]:
            beside = _SIZE * (place ^ 1)
            if beside < len(level):
                path.append(level[beside : beside + _SIZE])
            place //= 2
        return Opening(position, self._salts.at(position), tuple(path))


def leads_to(root: str, count: int, opening: Opening, record: bytes) -> bool:
    """Whether a tree of so many records with this root has the record at the opening's position."""
    if not 0 <= opening.position < count:
        return False
    node, place, width = sha256(_LEAF + opening.salt + record).digest(), opening.position, count
    path = iter(opening.path)
    while width > 1:
        if (place ^ 1) < width:
            beside = next(path, None)
            if beside is None or len(beside) != _SIZE:
                return False
            node = sha256(_NODE + (beside + node if place % 2 else node + beside)).digest()
        place, width = place // 2, (width + 1) // 2
    return next(path, None) is None and _root(count, node) == root


def _level_above(level: bytes) -> bytes:
    whole = len(level) - len(level) % (2 * _SIZE)
    pairs = [sha256(_NODE + level[n : n + 2 * _SIZE]).digest() for n in range(0, whole, 2 * _SIZE)]
    return b"".join([*pairs, level[whole:]])


def _root(count: int, top: bytes) -> str:
    return sha256(_ROOT + count.to_bytes(8, "big") + top).hexdigest()


class _Salts:
    """HMAC-SHA-256 of each position, with the key's blocks hashed only once (RFC 2104).

    That takes less than half the time of `hmac.digest`, which a test compares it with.
    """

    def __init__(self, secret: bytes) -> None:
        if len(secret) != SECRET_SIZE:
            raise ValueError(f"the secret must have {SECRET_SIZE} bytes, got {len(secret)}")
        padded = secret.ljust(_BLOCK, b"\0")
        self._inner = sha256(bytes(byte ^ 0x36 for byte in padded))
        self._outer = sha256(bytes(byte ^ 0x5C for byte in padded))

    def at(self, position: int) -> bytes:
        """The salt of one record."""
        inner, outer = self._inner.copy(), self._outer.copy()
        inner.update(position.to_bytes(8, "big"))
        outer.update(inner.digest())
        return outer.digest()

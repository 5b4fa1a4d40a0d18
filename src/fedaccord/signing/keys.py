"""Ed25519 keys: a private one in a file of its owner, the public one in the terms.

>>> key = new_key()
>>> signature = key.sign(b"42 samples")
>>> is_signed(key.public, signature, b"42 samples"), is_signed(key.public, signature, b"43 samples")
(True, False)
"""

import hashlib
import re
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from fedaccord.atomic import ABSENT, write_whole
from fedaccord.errors import FedaccordError, InvalidInput

KIND = "ed25519:"
"""What a public key begins with as text; its 32 bytes follow, in hexadecimal digits."""
PUBLIC = rf"^{KIND}[0-9a-f]{{64}}$"
"""The form of a public key."""
SIGNATURE = r"^[0-9a-f]{128}$"
"""The form of a signature: 64 bytes in hexadecimal digits."""
_KNOWN = 10_000
"""How many public keys are kept ready; the limit protects a reader of many ledgers."""


@dataclass(frozen=True)
class Key:
    """A private key, which nobody but its owner has."""

    _key: Ed25519PrivateKey = field(repr=False)
    public: str
    """The public key, as text."""

    def sign(self, content: bytes) -> str:
        """The signature of some bytes, in hexadecimal digits."""
        return self._key.sign(content).hex()

    def secret(self, about: str) -> str:
        """64 hexadecimal digits that only the owner can work out: for one text always the same."""
        return hashlib.sha256(self._key.sign(f"fedaccord secret 1\n{about}".encode())).hexdigest()

    def pem(self) -> bytes:
        """The key as a file has it (PKCS #8, which OpenSSL reads)."""
        return self._key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )


def new_key() -> Key:
    """A new key, from the system's source of randomness."""
    return _of(Ed25519PrivateKey.generate())


def key_from_seed(seed: bytes) -> Key:
    """The key that follows from 32 bytes, for simulations that must come out the same again."""
    return _of(Ed25519PrivateKey.from_private_bytes(seed))


def _of(key: Ed25519PrivateKey) -> Key:
    return Key(key, KIND + key.public_key().public_bytes_raw().hex())


def write_key(path: Path, key: Key) -> None:
    """Write a key to a new file, which nobody else can read."""
    if path.exists() or path.is_symlink():
        raise FedaccordError(f"{path}: exists already; keys are not overwritten")
    try:
        write_whole(path, key.pem(), private=True, seen=ABSENT)
    except OSError as error:
        raise FedaccordError(f"{path}: cannot be written: {error.strerror or error}") from None


def load_key(path: Path) -> Key:
    """The key in a file."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise InvalidInput(f"cannot be read: {error.strerror or error}", str(path)) from None
    try:
        key = serialization.load_pem_private_key(content, password=None)
    except (ValueError, TypeError):
        raise InvalidInput("is not a private key (Ed25519, PEM)", str(path)) from None
    if not isinstance(key, Ed25519PrivateKey):
        raise InvalidInput("is a private key of another kind than Ed25519", str(path))
    return _of(key)


_P = 2**255 - 19
_ORDER_8 = (
    "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
    "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
)
_WEAK = {0, 1, _P - 1} | {int.from_bytes(bytes.fromhex(point), "little") for point in _ORDER_8}
"""The y coordinates of the points whose order divides 8. With one of them as a public key, a
signature is valid for other texts, too, and its owner could deny what it signed."""


def fingerprint(public: str) -> str:
    """What two people compare on the telephone to know that they mean the same key: 80 bits.

    >>> fingerprint(key_from_seed(bytes(32)).public)
    'a478 54ac cb06 d9dd c14a'
    """
    digits = hashlib.sha256(public.encode()).hexdigest()[:20]
    return " ".join(digits[n : n + 4] for n in range(0, 20, 4))


def is_weak(public: str) -> bool:
    """Whether a public key is one for which signatures prove nothing, or not written as it should.

    A y coordinate of p or more is another way to write a smaller one, which not everyone accepts.
    """
    point = bytes.fromhex(public.removeprefix(KIND))
    y = int.from_bytes(point, "little") % 2**255
    return y >= _P or y in _WEAK


def is_signed(public: str, signature: str, content: bytes) -> bool:
    """Whether whoever has the private half of this key signed exactly these bytes."""
    if re.match(SIGNATURE, signature) is None or len(signature) != 128:
        return False
    try:
        _public_key(public).verify(bytes.fromhex(signature), content)
    except InvalidSignature:
        return False
    return True


@lru_cache(_KNOWN)
def _public_key(public: str) -> Ed25519PublicKey:
    try:
        return Ed25519PublicKey.from_public_bytes(bytes.fromhex(public.removeprefix(KIND)))
    except ValueError:
        raise InvalidInput(f"{public!r} is not a public key") from None

"""Keys, their files, and what is no signature; the canonical form of what is signed."""

import hashlib
import json
import stat
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed448 import Ed448PrivateKey

from fedaccord.errors import FedaccordError, InvalidInput
from fedaccord.signing import canonical as canonical_module
from fedaccord.signing.canonical import canonical, digest_of
from fedaccord.signing.keys import (
    KIND,
    fingerprint,
    is_signed,
    is_weak,
    key_from_seed,
    load_key,
    new_key,
    write_key,
)
from fedaccord.signing.statement import NOTHING, Statement, terms_statement

P = 2**255 - 19


def public_of(y: int) -> str:
    """The public key with this y coordinate."""
    return KIND + y.to_bytes(32, "little").hex()


def test_a_key_comes_back_from_its_file_which_only_its_owner_can_read(tmp_path: Path) -> None:
    key, path = new_key(), tmp_path / "key.pem"
    write_key(path, key)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    again = load_key(path)
    assert again.public == key.public
    assert again.pem() == key.pem() == path.read_bytes()
    assert again.sign(b"text") == key.sign(b"text")
    assert new_key().public != key.public


def test_keys_are_not_overwritten(tmp_path: Path) -> None:
    path, link = tmp_path / "key.pem", tmp_path / "link.pem"
    path.write_bytes(b"something")
    link.symlink_to(tmp_path / "nowhere.pem")
    for there in (path, link):
        with pytest.raises(FedaccordError, match="exists already; keys are not overwritten"):
            write_key(there, new_key())
    assert path.read_bytes() == b"something"
    assert link.is_symlink()
    with pytest.raises(FedaccordError, match=r"cannot be written: No such file"):
        write_key(tmp_path / "no" / "key.pem", new_key())


def test_what_is_no_key_is_refused_with_its_place(tmp_path: Path) -> None:
    other = Ed448PrivateKey.generate().private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    encrypted = serialization.load_pem_private_key(new_key().pem(), None).private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(b"secret"),
    )
    path = tmp_path / "key.pem"
    for content, wrong in (
        (b"", "is not a private key"),
        (encrypted, "is not a private key"),
        (other, "is a private key of another kind than Ed25519"),
    ):
        path.write_bytes(content)
        with pytest.raises(InvalidInput, match=f"key.pem: {wrong}"):
            load_key(path)
    with pytest.raises(InvalidInput, match="cannot be read: No such file"):
        load_key(tmp_path / "nowhere.pem")


def test_points_of_small_order_are_weak_and_so_are_other_spellings_of_a_number() -> None:
    """The eight points have five y coordinates: 0, 1, -1, and two of order 8."""
    # y^2 = (-1 +- sqrt(1 + d)) / d for the points of order 8, d = -121665 / 121666
    d = -121665 * pow(121666, -1, P) % P
    root = pow(1 + d, (P + 3) // 8, P)
    if root * root % P != (1 + d) % P:
        root = root * pow(2, (P - 1) // 4, P) % P
    assert root * root % P == (1 + d) % P
    squares = [(-1 + sign * root) * pow(d, -1, P) % P for sign in (1, -1)]
    of_order_8 = []
    for square in squares:
        y = pow(square, (P + 3) // 8, P)
        for candidate in (y, y * pow(2, (P - 1) // 4, P) % P):
            if candidate * candidate % P == square:
                of_order_8 += [candidate, P - candidate]
    assert len(of_order_8) == 2
    sign_bit = 2**255
    for y in (0, 1, P - 1, *of_order_8):
        assert is_weak(public_of(y)), y
        assert is_weak(public_of(y + sign_bit)), y
    for y in (P, P + 1, P + 2, P + 18):  # 0, 1, 2 and 18 written in another way
        assert is_weak(public_of(y))
    for y in (2, 3, P - 2):
        assert not is_weak(public_of(y))
    assert not is_weak(new_key().public)


def test_what_is_no_signature() -> None:
    key = key_from_seed(bytes(range(32)))
    signature = key.sign(b"text")
    assert is_signed(key.public, signature, b"text")
    assert not is_signed(key.public, signature, b"texts")
    assert not is_signed(new_key().public, signature, b"text")
    other_forms = (
        signature.upper(), signature + "\n", signature + "00", signature[:-2], " " + signature, ""
    )  # fmt: skip
    for wrong in other_forms:
        assert not is_signed(key.public, wrong, b"text")
    with pytest.raises(InvalidInput, match="is not a public key"):
        is_signed(KIND + "00" * 31, signature, b"text")


def test_a_fingerprint_has_80_bits() -> None:
    key = new_key()
    words = fingerprint(key.public).split(" ")
    assert [len(word) for word in words] == [4] * 5
    assert hashlib.sha256(key.public.encode()).hexdigest().startswith("".join(words))


@pytest.mark.parametrize("quick", [True, False])
def test_the_canonical_form(monkeypatch: pytest.MonkeyPatch, quick: bool) -> None:
    """With the interpreter's own encoder, and as another interpreter would do it."""
    if not quick:
        monkeypatch.setattr(json.encoder, "c_make_encoder", None)
        monkeypatch.setattr(canonical_module, "_QUICK", canonical_module._quick())
    value = {"é": [1, 1.5, None, True, "ä\n"], "a": {"z": 1, "b": ()}}
    assert canonical(value) == '{"a":{"b":[],"z":1},"é":[1,1.5,null,true,"ä\\n"]}'
    assert digest_of(value) == hashlib.sha256(canonical(value).encode()).hexdigest()
    for wrong in (float("nan"), float("inf"), -float("inf")):
        with pytest.raises(ValueError, match="not JSON compliant"):
            canonical({"x": wrong})
    with pytest.raises(TypeError, match="not JSON serializable"):
        canonical({"x": {1}})
    with pytest.raises(TypeError):
        canonical({1: "x", "2": "y"})


def test_a_statement_is_signed_as_a_line_and_canonical_json() -> None:
    body = {"b": 1.0, "a": ["é"]}
    said = Statement("client", 'S"x', "0" * 64, 3, "offer", 2, "Zoë", (7, "a" * 64), body, "b" * 64)
    fields = said._asdict() | {"head": list(said.head)}
    assert said.content == b"fedaccord statement 1\n" + canonical(fields).encode()
    signature = new_key().sign(said.content)
    both = said.content + bytes.fromhex(signature)
    assert said.digest(signature) == hashlib.sha256(both).hexdigest()


def test_terms_are_signed_before_everything_else() -> None:
    key = new_key()
    said = terms_statement("auditor", "Six", "c" * 64, None, {"x": 1})
    expected = Statement("auditor", "Six", "c" * 64, 0, "terms", 0, None, (0, NOTHING), {"x": 1})
    assert said == expected
    assert said.previous == NOTHING == "0" * 64
    assert said.is_signed(key.public, said.sign(key))
    assert b'"client":null' in said.content


def test_a_private_key_is_not_shown() -> None:
    key = new_key()
    assert repr(key) == f"Key(public={key.public!r})"

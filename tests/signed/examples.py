"""Small agreement files, and keys that are the same in every run."""

import hashlib
import json
from functools import cache
from typing import Any

from fedaccord.flower.public_terms import public_terms
from fedaccord.flower.shared_terms import shared_terms
from fedaccord.game.consortium import Consortium
from fedaccord.protocol.terms import Terms, read_terms
from fedaccord.signed.drafting import draft_agreement
from fedaccord.signed.file import AgreementFile, read_agreement_file
from fedaccord.signed.layout import Parts, digest_of_main, digest_of_text, join
from fedaccord.signed.page import render_main
from fedaccord.signed.signatures import sign_agreement
from fedaccord.signing.canonical import canonical
from fedaccord.signing.keys import Key, key_from_seed

NAMES = ("St. Mary's & Sons", "Zürich", "Nørd \N{GRINNING FACE} > 2")
"""With characters that HTML escapes, and some outside of ASCII and of 16 bits."""


def key_of(number: int) -> Key:
    return key_from_seed(bytes([number]) * 32)


KEYS = [key_of(number) for number in range(1, 5)]
"""Of the three clients and of the server."""
OTHER_KEYS = [key_of(number) for number in range(11, 15)]
"""Of another consortium."""


def consortium(name: str = "Three", names: tuple[str, ...] = NAMES) -> Consortium:
    return Consortium(
        valuation=[35.0, 52.0, 95.0],
        cost_per_sample=0.05,
        samples=[120, 150, 200],
        rounds=3,
        discount_factor=[0.8, 0.75, 0.8],
        names=names,
        name=name,
        currency="EUR",
        slot="1 month",
    )


def terms_of(
    described: Consortium | None = None, keys: list[Key] | None = None, **rules: Any
) -> Terms:
    described = described or consortium()
    parties = keys or KEYS
    roster = {
        "server": parties[-1].public,
        "clients": {name: key.public for name, key in zip(described.names, parties, strict=False)},
    }
    given = shared_terms(described) | {"training": {"shape": [2], "classes": 2}, "keys": roster}
    return read_terms(given | {"margin": 0.01} | rules, "test")


def posted_terms(described: Consortium, keys: list[Key] | None = None) -> Terms:
    return terms_of(described, keys, **public_terms(described, margin=0.01, reveal=True))


@cache
def draft(kind: str = "posted", other: bool = False) -> AgreementFile:
    """An unsigned file: of posted amounts, with ranges, without numbers, or with reversion."""
    keys = OTHER_KEYS if other else KEYS
    exact = consortium("Other three" if other else "Three")
    made = {"made_on": "2026-11-17", "made_with": "fedaccord 0.1.0"}
    if kind == "posted":
        return draft_agreement(posted_terms(exact, keys), exact, **made)
    ranged = exact.within(0.2)
    if kind == "ranges":
        return draft_agreement(posted_terms(ranged, keys), ranged, **made)
    if kind == "without numbers":
        return draft_agreement(posted_terms(ranged, keys), None, **made)
    return draft_agreement(terms_of(exact, keys, punishment="reversion"), exact, **made)


KINDS = ("posted", "ranges", "without numbers", "reversion")


@cache
def signed(kind: str = "posted", other: bool = False) -> AgreementFile:
    """The same, signed by everybody."""
    file = draft(kind, other)
    for key in OTHER_KEYS if other else KEYS:
        file = sign_agreement(file, key)
    return file


def forged(file: AgreementFile, *, main: str | None = None, **changed: Any) -> AgreementFile:
    """The file with other contents, all digests made anew, signed by everybody.

    The text is made anew, too, unless it is given.
    """
    said = json.loads(file.parts.agreement) | changed
    text = render_main(json.loads(file.parts.terms), said) if main is None else main
    said["page"] = said["page"] | {"main": digest_of_main(text)}
    agreement = canonical(said)
    unsigned: dict[str, Any] = {
        "agreement": digest_of_text(agreement),
        "clients": {},
        "server": None,
    }
    parts = Parts(text, file.parts.terms, agreement, canonical(unsigned))
    made = read_agreement_file(join(file.shell, parts))
    for key in KEYS:
        made = sign_agreement(made, key)
    return made


# --- A second valid signature with the same key ----------------------------------------------

_P = 2**255 - 19
_L = 2**252 + 27742317777372353535851937790883648493
_D = -121665 * pow(121666, -1, _P) % _P
_BASE = (
    15112221349535400772501151409588531511454012693041857206046113283949847762202,
    4 * pow(5, -1, _P) % _P,
)


def _times(number: int, point: tuple[int, int]) -> tuple[int, int]:
    """A multiple of a point on the curve of Ed25519 (RFC 8032, 5.1.4, without projection)."""
    total = (0, 1)
    while number:
        if number & 1:
            total = _plus(total, point)
        point, number = _plus(point, point), number >> 1
    return total


def _plus(a: tuple[int, int], b: tuple[int, int]) -> tuple[int, int]:
    product = _D * a[0] * b[0] * a[1] * b[1] % _P
    x = (a[0] * b[1] + b[0] * a[1]) * pow(1 + product, -1, _P) % _P
    return x, (a[1] * b[1] + a[0] * b[0]) * pow(1 - product, -1, _P) % _P


def otherwise_signed(file: AgreementFile, number: int) -> AgreementFile:
    """The file with another signature of a client than `sign_agreement` makes, as valid as that.

    Ed25519 prescribes how the number is chosen that signatures hide; nobody can see if it was not.
    """
    party, key = file.parties[number], KEYS[number]
    half = hashlib.sha512(bytes([number + 1]) * 32).digest()[:32]
    secret = int.from_bytes(half, "little") & ((1 << 254) - 8) | 1 << 254
    x, y = _times(hidden := 12_345, _BASE)
    point = (y | (x & 1) << 255).to_bytes(32, "little")
    public, said = bytes.fromhex(key.public.partition(":")[2]), file.statement_of(party).content
    digest = hashlib.sha512(point + public + said).digest()
    answer = (hidden + int.from_bytes(digest, "little") * secret) % _L
    signature = point.hex() + answer.to_bytes(32, "little").hex()
    clients = file.signatures.clients | {NAMES[number]: signature}
    return file.with_signatures(file.signatures.model_copy(update={"clients": clients}))

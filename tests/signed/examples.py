"""Small agreement files, and keys that are the same in every run."""

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

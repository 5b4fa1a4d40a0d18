"""Evidence from elsewhere, attached to a contribution: a notary's statement, a quote of a TEE.

The ledger keeps the evidence as bytes that it does not interpret. A verifier of its kind says
whether it holds. Another package adds a kind by an entry point in the group
`fedaccord.attestations`: anything that can be called with the `Attested` contribution, the evidence
and the settings in the terms, and that returns what is wrong, or None.

>>> from fedaccord.signing.keys import new_key
>>> notary, what = new_key(), Attested("Six", "St Mary", 3, "ab" * 32)
>>> attestation = Attestation.of("notary", what, notarise(notary, what))
>>> wrong_attestation(attestation, what, {"notary": {"key": notary.public}}) is None
True
>>> wrong_attestation(attestation, what._replace(slot=4), {"notary": {"key": notary.public}})
'the attestation is about another contribution'
"""

import base64
import binascii
import hashlib
from collections.abc import Callable, Mapping
from typing import Annotated, NamedTuple

from pydantic import BaseModel, ConfigDict, Field

from fedaccord.audits.commitment import Digest
from fedaccord.audits.lots import digest_for
from fedaccord.checks import in_brief, unknown
from fedaccord.errors import FedaccordError, InvalidInput
from fedaccord.plugins import find, names_in
from fedaccord.signing.keys import SIGNATURE, Key, is_signed
from fedaccord.signing.statement import NOTHING, Statement

_LONGEST = 1_000_000
"""Characters of the evidence; a quote of a TEE with its certificates has about 20,000."""


class Attested(NamedTuple):
    """What evidence is about."""

    consortium: str
    client: str
    slot: int
    contribution: str
    """The digest of the client's part of the slot: its commitment and its updates."""

    @property
    def digest(self) -> str:
        """What a TEE would include in its quote, and a notary signs."""
        return digest_for("attested contribution", list(self))


Verifier = Callable[[Attested, bytes, Mapping[str, str]], str | None]
"""What is wrong with evidence, given the settings of its kind in the terms; None: nothing."""


class Attestation(BaseModel):
    """Evidence, as the ledger has it."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)
    kind: Annotated[str, Field(min_length=1, max_length=100)]
    about: Digest
    """The digest of the contribution that it is attached to (`Attested.digest`)."""
    evidence: Annotated[str, Field(max_length=_LONGEST)]
    """In base64."""
    digest: Digest
    """Of the evidence."""

    @classmethod
    def of(cls, kind: str, what: Attested, evidence: bytes) -> "Attestation":
        """Attach evidence to a contribution."""
        text = base64.b64encode(evidence).decode()
        if len(text) > _LONGEST:
            raise InvalidInput(f"the evidence must be at most {_LONGEST:,} characters in base64")
        sha256 = hashlib.sha256(evidence).hexdigest()
        return cls(kind=kind, about=what.digest, evidence=text, digest=sha256)


class SignedAttestation(BaseModel):
    """An attestation as a client hands it in, with its signature."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)
    client: str
    slot: Annotated[int, Field(ge=1)]
    attestation: Attestation
    signature: Annotated[str, Field(pattern=SIGNATURE)]

    def statement(self, consortium: str, terms: str) -> Statement:
        """What the client signs; `terms` is the digest of the terms of that slot."""
        body = self.attestation.model_dump(mode="json")
        place = (self.slot, "attestation", 0, self.client)
        return Statement("client", consortium, terms, *place, (0, NOTHING), body)


def sign_attestation(
    attestation: Attestation, what: Attested, terms: str, key: Key
) -> SignedAttestation:
    """The attestation with the signature of the client whose contribution it is about."""
    blank = SignedAttestation(
        client=what.client, slot=what.slot, attestation=attestation, signature="0" * 128
    )
    signature = blank.statement(what.consortium, terms).sign(key)
    return blank.model_copy(update={"signature": signature})


def wrong_attestation(
    attestation: Attestation, what: Attested, accepted: Mapping[str, Mapping[str, str]]
) -> str | None:
    """What is wrong with an attestation; `accepted` has the kinds of the terms."""
    if attestation.about != what.digest:
        return "the attestation is about another contribution"
    try:
        evidence = base64.b64decode(attestation.evidence, validate=True)
    except binascii.Error:
        return "the evidence is not base64"
    if hashlib.sha256(evidence).hexdigest() != attestation.digest:
        return "the evidence has another digest than is noted"
    if attestation.kind not in accepted:
        return f"the terms accept no attestation of the kind {in_brief(attestation.kind)!r}"
    verify, kind = find_verifier(attestation.kind), attestation.kind
    try:
        return verify(what, evidence, accepted[kind])
    except Exception as error:  # a verifier of another package may raise anything
        return in_brief(f"the verifier {kind} failed ({type(error).__name__}: {error})", 300)


def notarise(notary: Key, what: Attested) -> bytes:
    """The evidence of the kind `notary`: a signature over the contribution, in hexadecimal."""
    return notary.sign(_notarised(what)).encode()


def verify_notary(what: Attested, evidence: bytes, settings: Mapping[str, str]) -> str | None:
    """Whether the notary whose public key is in the settings signed this contribution."""
    if "key" not in settings:
        return "the terms do not have the notary's key"
    try:
        signature = evidence.decode("ascii")
    except UnicodeDecodeError:
        return "the evidence is not a signature"
    signed = is_signed(settings["key"], signature, _notarised(what))
    return None if signed else "the notary did not sign this contribution"


def _notarised(what: Attested) -> bytes:
    """The text that a notary signs, which begins with what it is."""
    return f"fedaccord notary 1\n{what.digest}".encode()


VERIFIERS: dict[str, Verifier] = {"notary": verify_notary}
"""The kinds that are built in."""


def find_verifier(kind: str) -> Verifier:
    """The verifier of a kind: a built-in one, or one that another package adds."""
    found = find("attestations", kind, VERIFIERS)
    if found is None:
        known = names_in("attestations", VERIFIERS)
        raise InvalidInput(f"there is no attestation called {kind!r}: {unknown(kind, known)}")
    if not callable(found):
        raise FedaccordError(
            f"{kind}: the entry point must be a function, got {type(found).__name__}"
        )
    return found

"""What a member sends to the coordinator: a card with its public keys, and its signature.

Both are JSON files, signed with the member's own key. The card makes that key known, so it proves
only that whoever made the card has the private half: the coordinator compares the fingerprint with
the member over another channel.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from fedaccord.errors import InvalidInput
from fedaccord.protocol.keys import ClientName, PublicKey, Signature
from fedaccord.protocol.mistakes import mistakes_in
from fedaccord.signing.canonical import canonical
from fedaccord.signing.keys import Key, fingerprint, is_signed
from fedaccord.signing.statement import Statement, terms_statement

_STRICT = ConfigDict(extra="forbid", frozen=True, strict=True)
_LARGEST = 64 * 1024
"""Bytes: a card or a signature takes two thousand."""

Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class Card(BaseModel):
    """The public halves of a member's keys."""

    model_config = _STRICT
    format: Literal["fedaccord card 1"] = "fedaccord card 1"
    consortium: str = Field(min_length=1)
    client: ClientName
    signing_key: PublicKey
    """Of the key with which it signs what it says."""
    node_key: str = Field(pattern=r"^ecdsa-sha2-nistp384 [A-Za-z0-9+/=]+$")
    """Of the key with which its node logs in, as OpenSSH writes it."""
    certificate: str = Field(pattern=r"^-----BEGIN CERTIFICATE-----\n")
    """That it shows to the server's proxy, in PEM."""
    signature: Signature
    """Of everything else, with the signing key."""

    @property
    def content(self) -> bytes:
        """What is signed."""
        return _content(self.model_dump(exclude={"signature"}))

    @property
    def fingerprint(self) -> str:
        """Of the signing key, which has signed the rest: it is the same wherever the key is."""
        return fingerprint(self.signing_key)


class TermsSignature(BaseModel):
    """A member's signature on the terms and on the app that its node will run."""

    model_config = _STRICT
    format: Literal["fedaccord signature 1"] = "fedaccord signature 1"
    consortium: str = Field(min_length=1)
    client: ClientName
    terms: Digest
    app: Digest
    version: int | None = None
    """Of the terms, where a room counts them."""
    signature: Signature

    def is_by(self, public: str) -> bool:
        """Whether the owner of this key signed it."""
        said = _statement(self.consortium, self.client, self.terms, self.app, self.version)
        return said.is_signed(public, self.signature)

    def is_on_the_same(self, other: "TermsSignature") -> bool:
        """Whether two members signed the same terms, app and version."""
        return (self.terms, self.app, self.version) == (other.terms, other.app, other.version)


def sign_card(consortium: str, client: str, key: Key, *, node_key: str, certificate: str) -> Card:
    """A member's card."""
    given = {
        "format": "fedaccord card 1",
        "consortium": consortium,
        "client": client,
        "signing_key": key.public,
        "node_key": node_key,
        "certificate": certificate,
    }
    return Card.model_validate(given | {"signature": key.sign(_content(given))})


def sign_terms(
    consortium: str, client: str, terms: str, app: str, key: Key, *, version: int | None = None
) -> TermsSignature:
    """A member's signature on the terms with this digest, and on the app with that one."""
    said = _statement(consortium, client, terms, app, version)
    return TermsSignature(
        consortium=consortium,
        client=client,
        terms=terms,
        app=app,
        version=version,
        signature=said.sign(key),
    )


def _statement(
    consortium: str, client: str, terms: str, app: str, version: int | None
) -> Statement:
    body: dict[str, str | int] = {"app": app}
    if version is not None:
        body["version"] = version
    return terms_statement("client", consortium, terms, client, body)


def load_sent(path: Path) -> Card | TermsSignature:
    """What a member sent, if it is whole and signed by the key that it names."""
    try:
        with path.open("rb") as file:
            content = file.read(_LARGEST + 1)
    except OSError as error:
        raise InvalidInput(f"cannot be read: {error.strerror or error}", str(path)) from None
    return read_sent(content, str(path))


def read_sent(content: bytes, place: str) -> Card | TermsSignature:
    """The same, for the content of a file; `place` is named in what is wrong with it."""
    if len(content) > _LARGEST:
        raise InvalidInput("is too large for a card or a signature", place)
    kind = TermsSignature if b'"fedaccord signature 1"' in content else Card
    try:
        sent = kind.model_validate_json(content)
    except ValidationError as error:
        if any(mistake["type"] == "json_invalid" for mistake in error.errors()):
            raise InvalidInput("is neither a card nor a signature", place) from None
        raise InvalidInput(mistakes_in(error), place) from None
    if isinstance(sent, Card) and not is_signed(sent.signing_key, sent.signature, sent.content):
        raise InvalidInput("is not signed by its own key, so it was changed", place)
    return sent


def signatures_text(signatures: Iterable[TermsSignature]) -> str:
    """The signatures of several members as one file."""
    return _MANY.dump_json(tuple(signatures), indent=1).decode() + "\n"


def load_signatures(path: Path) -> tuple[TermsSignature, ...]:
    """The signatures in such a file; none if there is no file."""
    if not path.is_file():
        return ()
    try:
        return _MANY.validate_json(path.read_bytes())
    except ValidationError as error:
        raise InvalidInput(mistakes_in(error), str(path)) from None


_MANY = TypeAdapter(tuple[TermsSignature, ...])


def _content(fields: dict[str, str]) -> bytes:
    return f"fedaccord card\n{canonical(fields)}".encode()

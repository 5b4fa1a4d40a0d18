"""An agreement file that was read: its parts, parsed and in canonical form."""

import json
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeVar

from pydantic import BaseModel, ValidationError

from fedaccord.errors import InvalidInput, Problem
from fedaccord.files.reading import MEGABYTE, read_bytes
from fedaccord.protocol.keys import Keys
from fedaccord.protocol.mistakes import mistakes_in
from fedaccord.protocol.terms import Terms, read_terms
from fedaccord.signed.document import Document, Signatures
from fedaccord.signed.layout import Parts, digest_of_text, join, split
from fedaccord.signing.canonical import canonical
from fedaccord.signing.statement import Statement, terms_statement

LIMIT = 64 * MEGABYTE
"""Of a file; a hundred members need about a tenth of a megabyte."""

Model = TypeVar("Model", bound=BaseModel)


class Party(NamedTuple):
    """Somebody who is asked to sign."""

    role: Literal["client", "server"]
    client: str | None
    """Its name; None for the server."""
    key: str

    @property
    def name(self) -> str:
        """What people call it."""
        return self.client or "the server"


@dataclass(frozen=True)
class AgreementFile:
    """An agreement file. Its parts are well formed; `verify` says whether they are true."""

    shell: str
    parts: Parts
    terms: Terms
    document: Document
    signatures: Signatures

    @property
    def content(self) -> bytes:
        """The file."""
        return join(self.shell, self.parts)

    @property
    def digest(self) -> str:
        """The digest of the agreement, which the parties sign."""
        return digest_of_text(self.parts.agreement)

    @property
    def keys(self) -> Keys:
        """Everybody's public key."""
        assert self.terms.keys is not None  # `read` refuses terms without
        return self.terms.keys

    @cached_property
    def parties(self) -> tuple[Party, ...]:
        """All who are asked to sign: the clients in their order, and the server."""
        clients = [Party("client", name, self.keys.clients[name]) for name in self.terms.clients]
        return (*clients, Party("server", None, self.keys.server))

    def statement_of(self, party: Party) -> Statement:
        """What a party signs."""
        return terms_statement(
            party.role,
            self.terms.name,
            self.document.terms,
            party.client,
            {"agreement": self.digest},
        )

    def signature_of(self, party: Party) -> str | None:
        """A party's signature, if there is one."""
        if party.client is None:
            return self.signatures.server
        return self.signatures.clients.get(party.client)

    def with_signatures(self, signatures: Signatures) -> "AgreementFile":
        """The same agreement with these signatures."""
        parts = self.parts._replace(signatures=canonical(signatures.model_dump(mode="json")))
        return replace(self, parts=parts, signatures=signatures)


def load_agreement_file(path: str | Path) -> AgreementFile:
    """The agreement file at a path."""
    content = read_bytes(Path(path), LIMIT)
    try:
        return read_agreement_file(content)
    except InvalidInput as error:
        raise InvalidInput(error.problems, str(path)) from None


def read_agreement_file(content: bytes) -> AgreementFile:
    """The agreement file in these bytes, or what is wrong with its form."""
    shell, parts = split(content)
    try:
        terms = read_terms(_parsed(parts.terms, "terms"), "terms")
    except InvalidInput as error:
        raise InvalidInput([_in_terms(one) for one in error.problems]) from None
    if terms.keys is None:
        raise InvalidInput(Problem("keys", "are missing, so nobody can sign", "terms.keys"))
    return AgreementFile(
        shell=shell,
        parts=parts,
        terms=terms,
        document=_model(Document, parts.agreement, "agreement"),
        signatures=_model(Signatures, parts.signatures, "signatures"),
    )


def _in_terms(problem: Problem) -> Problem:
    return problem if problem.place == "terms" else problem.inside("terms")


def _model(kind: type[Model], text: str, part: str) -> Model:
    """A part of the file as a record."""
    parsed = _parsed(text, part)
    try:
        return kind.model_validate(parsed)
    except ValidationError as error:
        raise InvalidInput([one.inside(part) for one in mistakes_in(error)]) from None


def _parsed(text: str, part: str) -> dict[str, Any]:
    """JSON that must be in canonical form, so that one content has one digest."""
    try:
        value = json.loads(text)
        same = isinstance(value, dict) and canonical(value) == text
        text.encode("utf-8")
    except (ValueError, RecursionError):
        raise InvalidInput(Problem("", "is not JSON", part)) from None
    if not same:
        wrong = "is not in canonical form: sorted keys, each once, no spaces"
        raise InvalidInput(Problem("", wrong, part))
    return dict(value)

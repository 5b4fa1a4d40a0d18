"""Who signs under which terms, and the statements of each party in the one form that is signed.

A client's statement names the one before it, by the digest of that one and its signature. So its
latest signature vouches for everything that it said before, and whoever checks a long ledger needs
to check only the latest one of each client, and the digests of the others.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from fedaccord.protocol.keys import Keys
from fedaccord.protocol.messages import Content
from fedaccord.protocol.terms import Terms
from fedaccord.signing.canonical import digest_of
from fedaccord.signing.keys import Key
from fedaccord.signing.statement import Statement


class At(NamedTuple):
    """When something is said: in which turn of which slot, and at which end of the ledger."""

    slot: int
    stage: str
    turn: int
    head: tuple[int, str]
    """The last entry of the server's ledger: its number and its digest."""


class Roster(NamedTuple):
    """The terms that statements are made under, and the keys in them."""

    consortium: str
    terms: str
    """Their digest."""
    keys: Keys

    @classmethod
    def of(cls, terms: Terms) -> "Roster | None":
        """The roster in the terms; None: nobody signs."""
        return None if terms.keys is None else cls(terms.name, terms.digest, terms.keys)

    def question(self, client: str, at: At, body: Mapping[str, Any]) -> Statement:
        """What the server says to one client."""
        slot, stage, turn, head = at
        return Statement("server", *self[:2], slot, stage, turn, client, head, body)

    def answer(self, client: str, at: At, said: Mapping[str, Any], previous: str) -> Statement:
        """What a client answers, having seen this end of the ledger."""
        slot, stage, turn, head = at
        return Statement("client", *self[:2], slot, stage, turn, client, head, said, previous)

    def seal(self, slot: int, head: tuple[int, str]) -> Statement:
        """What the server says by signing the end of its ledger: all that is in it so far."""
        return Statement("server", *self[:2], slot, "seal", 0, None, head, {})


class Signer(NamedTuple):
    """A party that signs."""

    roster: Roster
    key: Key


def said_to(
    content: Content, answer: Mapping[str, Any], late: Sequence[str] | None = None
) -> dict[str, Any]:
    """What a client says in its answer to a question.

    It names all of the question by its digest, and the model that it was given in it. `late` are
    the digests of earlier answers that the server did not take.
    """
    said: dict[str, Any] = {"question": digest_of(content.body)}
    model = getattr(content, "model", None) if "model" in type(content).model_fields else None
    if model is not None:
        said["model"] = model
    if late:
        said["late"] = list(late)
    return said | {"answer": {key: value for key, value in answer.items() if value is not None}}

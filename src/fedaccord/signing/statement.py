"""A statement: what somebody said, to whom, about what and when, in the one form that is signed.

Every statement names its author's role, the consortium, the terms, its place in the protocol and
the end of the ledger that its author had seen. So it cannot be used in another place, or in
another consortium with the same keys.

>>> from fedaccord.signing.keys import new_key
>>> key = new_key()
>>> said = Statement("client", "Six", "0" * 64, slot=1, stage="offer", turn=1, client="St Mary",
...                  head=(7, "a" * 64), body={"accepts": True})
>>> signature = said.sign(key)
>>> said.is_signed(key.public, signature)
True
>>> said._replace(body={"accepts": False}).is_signed(key.public, signature)
False
"""

import hashlib
from collections.abc import Mapping
from json.encoder import encode_basestring as quoted
from typing import Any, Literal, NamedTuple

from fedaccord.signing.canonical import canonical
from fedaccord.signing.keys import Key, is_signed

Role = Literal["server", "client", "auditor", "witness"]
PREFIX = "fedaccord statement 1\n"
"""What every signed text begins with, so that it is never taken for anything else."""
NOTHING = "0" * 64
"""The digest in the place of a statement or an entry that does not exist."""


class Statement(NamedTuple):
    """What somebody said."""

    role: Role
    """Of its author."""
    consortium: str
    """The name in the terms."""
    terms: str
    """The digest of the terms."""
    slot: int
    stage: str
    """Which question it asks or answers; or what else it is."""
    turn: int
    client: str | None
    """Its author, or to whom the server says it; None: to everyone."""
    head: tuple[int, str]
    """The number and the digest of the last entry of the server's ledger that its author saw."""
    body: Mapping[str, Any]
    """What is said, digests of models and updates included."""
    previous: str = NOTHING
    """The digest of the author's statement before this one, if it is a client's."""

    @property
    def content(self) -> bytes:
        """What is signed: a line that says what it is, and the fields as canonical JSON."""
        return self.content_with(canonical(self.body))

    def content_with(self, body: str) -> bytes:
        """The same, if this is the body as canonical JSON."""
        client = "null" if self.client is None else quoted(self.client)
        number, digest = self.head
        # the keys in their order, by hand for speed
        return (
            f'{PREFIX}{{"body":{body},"client":{client},'
            f'"consortium":{quoted(self.consortium)},"head":[{number},{quoted(digest)}],'
            f'"previous":{quoted(self.previous)},"role":{quoted(self.role)},"slot":{self.slot},'
            f'"stage":{quoted(self.stage)},"terms":{quoted(self.terms)},"turn":{self.turn}}}'
        ).encode()

    def sign(self, key: Key) -> str:
        """The author's signature."""
        return key.sign(self.content)

    def is_signed(self, public: str, signature: str) -> bool:
        """Whether the owner of this key signed it."""
        return is_signed(public, signature, self.content)

    def digest(self, signature: str) -> str:
        """The digest of the statement along with its signature, by which the next one names it."""
        return hashlib.sha256(self.content + bytes.fromhex(signature)).hexdigest()


def terms_statement(
    role: Role, consortium: str, terms: str, client: str | None, body: Mapping[str, Any]
) -> Statement:
    """What a party signs when it signs terms; they contain the public keys of all parties."""
    return Statement(role, consortium, terms, 0, "terms", 0, client, (0, NOTHING), body)

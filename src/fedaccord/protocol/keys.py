"""The roster in the terms: the public key of the server and of every client.

Every statement names the digest of the terms, so whoever signs anything signs the roster with it,
and nobody can be added to it who is not in the terms that all have signed. A key is replaced by new
terms. If they contain a signature of the old key on the new one, the client itself *rotated* its
key; if not, the others *revoked* it, which is what they do when a key was stolen or lost.
"""

from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

from fedaccord.checks import composed
from fedaccord.signing.keys import PUBLIC, SIGNATURE, Key, is_signed, is_weak
from fedaccord.signing.statement import NOTHING, Statement

ClientName = Annotated[str, AfterValidator(composed)]
"""The name of a client, in one spelling (Unicode NFC)."""


def _strong(public: str) -> str:
    if is_weak(public):
        raise PydanticCustomError("key", "is a key for which anybody could sign")
    return public


PublicKey = Annotated[str, Field(pattern=PUBLIC), AfterValidator(_strong)]
Signature = Annotated[str, Field(pattern=SIGNATURE)]


class Keys(BaseModel):
    """Everybody's public key."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)
    server: PublicKey
    clients: dict[ClientName, PublicKey]
    rotations: dict[ClientName, Signature] = Field(default_factory=dict)
    """Of clients that replaced their keys: the old key's signature on the new one."""

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        keys = [self.server, *self.clients.values()]
        if len(set(keys)) < len(keys):
            raise PydanticCustomError("key", "two parties have the same key")
        if not self.rotations.keys() <= self.clients.keys():
            raise PydanticCustomError("key", "rotations: names somebody without a key")
        return self


def rotation(consortium: str, client: str, new: str) -> Statement:
    """What a client signs with its old key, so that others know that the new one is its own."""
    body = {"key": new}
    return Statement("client", consortium, NOTHING, 0, "rotation", 0, client, (0, NOTHING), body)


def sign_rotation(consortium: str, client: str, old: Key, new: str) -> str:
    """The old key's signature on the new one, for the terms."""
    return rotation(consortium, client, new).sign(old)


Change = Literal["kept", "rotated", "revoked"]


def change_of_key(consortium: str, client: str, before: Keys, after: Keys) -> Change:
    """How a client's key in new terms came about."""
    old, new = before.clients[client], after.clients[client]
    if old == new:
        return "kept"
    signature = after.rotations.get(client, "")
    signed = is_signed(old, signature, rotation(consortium, client, new).content)
    return "rotated" if signed else "revoked"

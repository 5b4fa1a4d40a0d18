"""What goes between server and clients, before it becomes a message of Flower's."""

import hmac
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from fedaccord.errors import InvalidInput
from fedaccord.ledger.chain import Head, canonical
from fedaccord.protocol.parameters import Arrays

Stage = Literal["report", "rank", "offer", "train", "settle", "consent"]
STAGES: tuple[Stage, ...] = ("report", "rank", "offer", "train", "settle", "consent")


@dataclass(frozen=True)
class Ask:
    """What the server asks of some clients at once."""

    stage: Stage
    slot: int
    turn: int
    """The attempt of an offer, the round of training, the count of rollbacks; otherwise 0."""
    head: Head
    """The server's ledger when it asked; clients keep it."""
    bodies: Mapping[str, Mapping[str, Any]]
    """What each client is told."""
    parameters: Arrays | None = None
    """The model, when it is trained or handed out."""
    secret: bytes = field(default_factory=lambda: secrets.token_bytes(32), repr=False)
    """Nobody else knows it, so nobody can work out another client's token."""

    def token(self, client: str) -> str:
        """Tells this question to this client from every other: a reply must give it back."""
        content = canonical([self.stage, self.slot, self.turn, *self.head, client])
        return hmac.digest(self.secret, content.encode(), "sha256").hex()[:32]

    def sends_model(self, client: str) -> bool:
        """Whether the model goes to this client: it is told the digest of what it is sent."""
        return self.parameters is not None and self.bodies[client].get("model") is not None

    def body(self, client: str) -> dict[str, Any]:
        """The whole body for one client."""
        about = {
            "stage": self.stage,
            "slot": self.slot,
            "turn": self.turn,
            "token": self.token(client),
            "ledger": [self.head.number, self.head.digest],
        }
        return about | dict(self.bodies[client])


@dataclass(frozen=True)
class Reply:
    """What came back from a node, not looked at yet."""

    node: int
    client: str | None
    """Whose node it is; None: nobody knows."""
    body: Any = None
    parameters: Mapping[str, Any] | None = field(default=None, repr=False)
    problem: str | None = None
    """What is wrong with the message as such, so that there is nothing to look at."""


LONGEST_REASON = 500
"""Characters."""


def check_reason(reason: str) -> str:
    """Why somebody proposes something: a line that people can read."""
    if not reason.strip() or not reason.isprintable() or len(reason) > LONGEST_REASON:
        raise InvalidInput(f"the reason must be one line of 1 to {LONGEST_REASON} characters")
    return reason

"""What goes between server and clients, before it becomes a message of Flower's."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from fedaccord.flower.ledger.chain import Head, canonical
from fedaccord.flower.protocol.parameters import Arrays

Stage = Literal["report", "rank", "offer", "train", "settle"]
STAGES: tuple[Stage, ...] = ("report", "rank", "offer", "train", "settle")


@dataclass(frozen=True)
class Ask:
    """What the server asks of some clients at once."""

    stage: Stage
    slot: int
    turn: int
    """The attempt of an offer, the round of training; otherwise 0."""
    head: Head
    """The server's ledger when it asked; clients keep it."""
    bodies: Mapping[str, Mapping[str, Any]]
    """What each client is told."""
    parameters: Arrays | None = None
    """The model, when it is trained or handed out."""

    @property
    def token(self) -> str:
        """Tells this question from every other: a reply must give it back."""
        content = canonical([self.stage, self.slot, self.turn, *self.head])
        return hashlib.sha256(content.encode()).hexdigest()[:32]

    def body(self, client: str) -> dict[str, Any]:
        """The whole body for one client."""
        about = {
            "stage": self.stage,
            "slot": self.slot,
            "turn": self.turn,
            "token": self.token,
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

"""A client's copy of its own part of what happened, so that it need not trust the server's.

Each of its entries holds the head of the server's ledger at that moment. A server that changed
its past afterwards could not show a chain with all those heads in it.
"""

from collections.abc import Iterable
from typing import Any, Protocol

from fedaccord.flower.ledger.chain import Entry, Fact


class Copy(Protocol):
    """Where a client keeps it: a ledger of its own, or anything that lasts as long as needed."""

    def append(self, facts: list[Fact]) -> object:
        """Write facts down."""
        ...

    def entries(self, *, slot: int, kind: str) -> Iterable[Entry]:
        """What of one kind was written down about a slot."""
        ...

    def last(self) -> Entry | None:
        """What was written down last."""
        ...


def recall(copy: Copy, kind: str, slot: int, turn: int) -> dict[str, Any] | None:
    """What was written down of this kind in this slot and turn."""
    for entry in copy.entries(slot=slot, kind=kind):
        body = entry.body
        if body.get("turn", 0) == turn:
            return body
    return None

"""A client's copy inside Flower's own state of a node, for as long as the run lasts."""

import json
from collections.abc import Iterator
from typing import Any

from flwr.app import ConfigRecord, Context

from fedaccord.flower.ledger.chain import START, Entry, Fact, extend
from fedaccord.flower.ledger.store import wall_clock

_KEY = "fedaccord.copy"


class StateCopy:
    """Entries in the state that Flower keeps for a node between messages."""

    def __init__(self, context: Context) -> None:
        """Go on with what is there."""
        self._record: Any = context.state.setdefault(_KEY, ConfigRecord({"entries": []}))

    def append(self, facts: list[Fact]) -> None:
        """Write facts down."""
        known = self._record["entries"]
        head = Entry(*json.loads(known[-1])).head if known else START
        fresh = [json.dumps(entry) for entry in extend(head, facts, wall_clock())]
        self._record["entries"] = [*known, *fresh]

    def entries(self, *, slot: int | None = None, kind: str | None = None) -> Iterator[Entry]:
        """What was written down: all, or about one slot, or of one kind."""
        for text in self._record["entries"]:
            if kind is not None and f'"{kind}"' not in text:
                continue  # most are of another kind, and reading them takes time
            entry = Entry(*json.loads(text))
            if slot in (None, entry.slot) and kind in (None, entry.kind):
                yield entry

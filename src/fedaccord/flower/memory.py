"""A client's copy inside Flower's own state of a node, for as long as the run lasts."""

import json
from collections.abc import Iterator
from typing import Any

from flwr.app import ConfigRecord, Context

from fedaccord.ledger.chain import START, Entry, Fact, extend
from fedaccord.ledger.store import wall_clock

_KEY = "fedaccord.copy"


class StateCopy:
    """Entries in the state that Flower keeps for a node between messages."""

    def __init__(self, context: Context) -> None:
        """Go on with what is there."""
        self._record: Any = context.state.setdefault(_KEY, ConfigRecord({}))

    def append(self, facts: list[Fact]) -> None:
        """Write facts down."""
        last = self.last()
        head, at = (START, "") if last is None else (last.head, last.at)
        for entry in extend(head, facts, max(wall_clock(), at)):
            self._record[str(entry.number)] = json.dumps(entry)

    def entries(self, *, slot: int | None = None, kind: str | None = None) -> Iterator[Entry]:
        """What was written down: all, or about one slot, or of one kind."""
        for number in range(1, len(self._record) + 1):
            text = self._record[str(number)]
            if kind is not None and f'"{kind}"' not in text:
                continue  # most are of another kind, and reading them takes time
            entry = Entry(*json.loads(text))
            if slot in (None, entry.slot) and kind in (None, entry.kind):
                yield entry

    def last(self) -> Entry | None:
        """What was written down last."""
        last = len(self._record)
        return Entry(*json.loads(self._record[str(last)])) if last else None

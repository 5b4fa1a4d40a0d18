"""Where a client on Flower keeps its copy: in a file of its own, or in the state of its node.

Both last longer than one message, which is all that the protocol asks of a copy: a process may end
with the answer to one question, and the next process must find what was answered.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from flwr.app import ConfigRecord, Context

from fedaccord.ledger.chain import START, Entry, Fact, extend
from fedaccord.ledger.store import open_ledger, wall_clock

_PATIENCE = 30.0
"""Seconds to wait for a file that is being written to for another message."""
_KEY = "fedaccord.copy"


class FileCopy:
    """A ledger of the client's own, open only while it is written or read."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def append(self, facts: list[Fact]) -> None:
        """Write facts down."""
        with open_ledger(self.path, wait=_PATIENCE) as ledger:
            ledger.append(facts)

    def entries(self, *, slot: int, kind: str) -> list[Entry]:
        """What of one kind was written down about a slot."""
        with open_ledger(self.path, wait=_PATIENCE) as ledger:
            return list(ledger.entries(slot=slot, kind=kind))

    def last(self) -> Entry | None:
        """What was written down last."""
        with open_ledger(self.path, wait=_PATIENCE) as ledger:
            return ledger.last()


class StateCopy:
    """Entries in the state that Flower keeps for a node, until the run ends: for simulations."""

    def __init__(self, context: Context) -> None:
        """Continue with what is there."""
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
                continue  # most are of another kind, and parsing them takes time
            entry = Entry(*json.loads(text))
            if slot in (None, entry.slot) and kind in (None, entry.kind):
                yield entry

    def last(self) -> Entry | None:
        """What was written down last."""
        last = len(self._record)
        return Entry(*json.loads(self._record[str(last)])) if last else None

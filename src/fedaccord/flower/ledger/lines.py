"""A ledger as text, one entry a line (JSON), to send around and to verify without a database."""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path

from fedaccord.errors import InvalidInput
from fedaccord.flower.ledger.chain import Entry
from fedaccord.flower.ledger.store import read_ledger

SUFFIX = ".jsonl"
_TYPES = (int, str, str, int, str | None, str, str, str)
"""Of an entry's fields."""


def to_lines(entries: Iterable[Entry]) -> Iterator[str]:
    """Each entry as a line."""
    for entry in entries:
        yield json.dumps(entry._asdict(), ensure_ascii=False)


def load_entries(place: str) -> list[Entry]:
    """All entries of a ledger: a database by its path or URL, or a file of lines."""
    if place.endswith(SUFFIX):
        return _from_lines(Path(place))
    with read_ledger(place) as ledger:
        return list(ledger.entries())


def _from_lines(path: Path) -> list[Entry]:
    try:
        lines = path.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"cannot be read: {error}", str(path)) from None
    entries = []
    for number, line in enumerate(lines, start=1):
        try:
            entry = Entry(**json.loads(line))
            if not all(map(isinstance, entry, _TYPES)):
                raise ValueError("a field is of another type")
            if not isinstance(entry.body, dict):
                raise ValueError("its text is no object")
        except (TypeError, ValueError) as error:
            raise InvalidInput(f"line {number} is no entry: {error}", str(path)) from None
        entries.append(entry)
    return entries

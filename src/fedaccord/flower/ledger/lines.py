"""A ledger as text, one entry a line (JSON), to send around and to verify without a database."""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path

from fedaccord.errors import InvalidInput
from fedaccord.flower.ledger.chain import Checkpoint, Entry, unreadable
from fedaccord.flower.ledger.store import read_ledger

SUFFIX = ".jsonl"


def to_lines(entries: Iterable[Entry]) -> Iterator[str]:
    """Each entry as a line."""
    for entry in entries:
        yield json.dumps(entry._asdict(), ensure_ascii=False)


def load_entries(place: str) -> list[Entry]:
    """All entries of a ledger: a database by its path or URL, or a file of lines."""
    return load_with_models(place)[0]


def load_with_models(place: str) -> tuple[list[Entry], list[Checkpoint]]:
    """All entries of a ledger, and the model beside them if it is a database and has one."""
    if place.endswith(SUFFIX):
        return _from_lines(Path(place)), []
    with read_ledger(place) as ledger:
        entries, stored = list(ledger.entries()), ledger.checkpoints()
        number = stored[-1].number if stored else 0
        if entries and number > entries[-1].number:  # more was written in the meantime
            entries = [entry for entry in ledger.entries() if entry.number <= number]
        return entries, stored


def _from_lines(path: Path) -> list[Entry]:
    try:
        lines = path.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"cannot be read: {error}", str(path)) from None
    entries = []
    for number, line in enumerate(lines, start=1):
        try:
            entry = Entry(**json.loads(line))
        except (TypeError, ValueError, RecursionError):
            raise InvalidInput(f"line {number} is no entry", str(path)) from None
        if (why := unreadable(entry)) is not None:
            raise InvalidInput(f"line {number} is no entry: {why}", str(path))
        entries.append(entry)
    return entries

"""A ledger to read: a database, or a file to send to others, with one entry (JSON) per line."""

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from fedaccord.errors import InvalidInput
from fedaccord.ledger.chain import Checkpoint, Entry, NoEntry, read_body
from fedaccord.ledger.store import Ledger, read_ledger

SUFFIX = ".jsonl"


@dataclass(frozen=True)
class Reading:
    """A ledger as it was at one moment, also while it grows."""

    entries: Callable[[], Iterator[Entry]]
    """Goes through the entries, any number of times, with few of them in memory at a time."""
    models: list[Checkpoint] | None
    """Those stored with it; None: it is a file of lines, which has none."""
    damage: Callable[[], list[str]]
    """What is wrong with the database."""
    length: Callable[[], int]
    """About how many entries there are, to show progress."""
    entries_from: Callable[[int], Iterator[Entry]]
    """The same as `entries`, from the one with this number on."""


@contextmanager
def read(place: str) -> Iterator[Reading]:
    """The ledger in a database, by its path or URL, or in a file of lines."""
    if place.endswith(SUFFIX):
        path = Path(place)
        yield Reading(
            lambda: from_lines(path),
            None,
            list,
            lambda: _lines_in(path),
            lambda first: from_lines(path, first),
        )
        return
    with read_ledger(place) as ledger:
        yield _now(ledger)


def _now(ledger: Ledger) -> Reading:
    end = ledger.head.number
    models = ledger.checkpoints()
    if models:  # one that came after the last entry brought entries with it
        end = max(end, models[-1].number)
    return Reading(
        lambda: ledger.entries(last=end),
        models,
        ledger.damage,
        lambda: end,
        lambda first: ledger.entries(first=first, last=end),
    )


def _lines_in(path: Path) -> int:
    try:
        with path.open("rb") as file:
            return sum(part.count(b"\n") for part in iter(lambda: file.read(1 << 20), b""))
    except OSError:  # whoever reads it says so
        return 0


def load_entries(place: str) -> list[Entry]:
    """All entries of a ledger."""
    with read(place) as ledger:
        return list(ledger.entries())


def clients_in(entries: Iterable[Entry], source: str) -> set[str]:
    """Which clients a ledger is about; an entry that cannot be read is an error."""
    known = set[str]()
    for entry in entries:
        try:
            read_body(entry)
        except NoEntry as why:
            raise InvalidInput(f"entry {entry.number} cannot be read: {why}", source) from None
        if entry.client is not None:
            known.add(entry.client)
    return known


def to_line(entry: Entry) -> str:
    """An entry as a line."""
    return json.dumps(entry._asdict(), ensure_ascii=False)


def to_lines(entries: Iterable[Entry]) -> Iterator[str]:
    """Each entry as a line."""
    return map(to_line, entries)


def from_lines(path: Path, first: int = 1) -> Iterator[Entry]:
    """The entries in a file of lines, from the line `first` on."""
    try:
        with path.open(encoding="utf-8", newline="\n") as file:
            for number, line in enumerate(islice(file, first - 1, None), start=first):
                yield _from_line(line.removesuffix("\n"), number, path)
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"cannot be read: {error}", str(path)) from None


def _from_line(line: str, number: int, path: Path) -> Entry:
    """The entry in a line, which must be as `to_line` writes it: no key is there twice."""
    try:
        entry = Entry(**json.loads(line))
        if to_line(entry) == line:
            return entry
    except (TypeError, ValueError, RecursionError):
        raise InvalidInput(f"line {number} is not an entry", str(path)) from None
    raise InvalidInput(f"line {number} is not as export writes it", str(path))

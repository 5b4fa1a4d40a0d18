"""Copies that somebody uploads to compare: read with care, and deleted at once.

A database from elsewhere is not opened as one of ours. It is read row by row, with limits on time
and memory, into lines as `ledger export` writes them.
"""

import re
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from fedaccord.checks import escaped
from fedaccord.errors import InvalidInput
from fedaccord.ledger.chain import Entry
from fedaccord.ledger.lines import Reading, read, to_line

MOST_FILES = 10
_MAGIC = b"SQLite format 3\x00"
_SECONDS = 20.0
"""To read a database."""
_LONGEST = 4 * 1024 * 1024
"""Bytes of one value in a database."""
_STEPS = 20_000
"""Of SQLite's machine, between two looks at the clock."""


class Upload(NamedTuple):
    """A file from somebody's machine."""

    name: str
    content: bytes


@contextmanager
def uploaded(files: Sequence[Upload]) -> Iterator[dict[str, Reading]]:
    """The ledgers in these files, by the names that they are shown with, until the block ends."""
    if not files:
        raise InvalidInput("choose a file: a copy (ledger.db), or an export (*.jsonl)")
    if len(files) > MOST_FILES:
        raise InvalidInput(f"choose {MOST_FILES} files or fewer")
    with TemporaryDirectory(prefix="fedaccord-copy-") as folder:
        found = dict[str, Reading]()
        for number, file in enumerate(files, start=1):
            name, path = _shown(file.name, number, found), Path(folder, f"{number}.jsonl")
            if file.content.startswith(_MAGIC):
                database = path.with_suffix(".db")
                database.write_bytes(file.content)
                path.write_text("".join(_lines(database, name)), encoding="utf-8")
            else:
                path.write_bytes(file.content)
            with _told_of(path, name), read(str(path)) as reading:
                if not sum(1 for _ in reading.entries()):  # each line is looked at once
                    raise InvalidInput("has no entries")
                found[name] = reading
        yield found


@contextmanager
def _told_of(path: Path, name: str) -> Iterator[None]:
    """Call a file by its name where it came from, if something is wrong with it."""
    try:
        yield
    except InvalidInput as error:
        said = [str(one).removeprefix(f"{path}: ") for one in error.problems]
        raise InvalidInput([f"{name}: {one}" for one in said]) from None


def _shown(name: str, number: int, known: dict[str, Reading]) -> str:
    """The last part of a file's name, if it is one of a kind."""
    last = escaped(re.split(r"[/\\]", name)[-1].strip())[:80]
    return f"copy {number}" if not last or last in known else last


def _lines(path: Path, name: str) -> list[str]:
    """The entries of a database as lines."""
    address = f"file:{path}?mode=ro&immutable=1"
    try:
        with closing(sqlite3.connect(address, uri=True, check_same_thread=False)) as database:
            _limit(database)
            kinds = dict(database.execute("SELECT name, type FROM sqlite_master").fetchall())
            if kinds.get("entries") != "table":
                raise InvalidInput(f"{name}: is not a ledger, it has no table of entries")
            damage = database.execute("PRAGMA integrity_check(1)").fetchone()
            if damage != ("ok",):
                raise InvalidInput(f"{name}: the file is damaged")
            columns = ", ".join(Entry._fields)
            rows = database.execute(f"SELECT {columns} FROM entries ORDER BY number")
            return [f"{to_line(Entry(*row))}\n" for row in rows]
    except (sqlite3.Error, ValueError, TypeError, OverflowError, MemoryError):
        raise InvalidInput(f"{name}: is not a ledger that can be read") from None


def _limit(database: sqlite3.Connection) -> None:
    """A database may contain anything: nothing in it is believed, or may take long."""
    end = time.monotonic() + _SECONDS
    database.set_progress_handler(lambda: int(time.monotonic() > end), _STEPS)
    database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LONGEST)
    database.execute("PRAGMA trusted_schema = OFF")
    database.execute("PRAGMA cell_size_check = ON")

"""Copies that somebody uploads to compare: read with care, and deleted at once.

A file from elsewhere may take hours to read, in one step that nothing in this process can
interrupt. So it is read in a process of its own, with limits on time and memory, into lines as
`ledger export` writes them. A database must have the tables of a ledger and nothing else, and it is
read row by row.
"""

import json
import os
import re
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from fedaccord.checks import escaped
from fedaccord.errors import FedaccordError, InvalidInput
from fedaccord.ledger.access import VARIABLE
from fedaccord.ledger.chain import Entry
from fedaccord.ledger.lines import Reading, from_lines, read, to_line
from fedaccord.ledger.schema import SCHEMA, flaw_in_schema

MOST_FILES = 10
_MAGIC = b"SQLite format 3\x00"
_SECONDS = 20.0
"""To read all files of an upload."""
_MEMORY = 1024 * 1024 * 1024
"""Bytes of the process that reads them, its program included."""
_WRITTEN = 256 * 1024 * 1024
"""Bytes of the lines of one file."""
_LONGEST = 4 * 1024 * 1024
"""Bytes of one value in a database."""
_PAUSE = 0.05
_APART = "from fedaccord.console.room.uploads import read_apart; read_apart()"
"""The program of that process."""


class Upload(NamedTuple):
    """A file from somebody's machine."""

    name: str
    content: bytes


class Stopped(FedaccordError):
    """Nobody waits any more for what was begun."""

    def __init__(self) -> None:
        super().__init__("it was stopped, since the session in which it was begun has ended")


@contextmanager
def uploaded(
    files: Sequence[Upload], is_wanted: Callable[[], bool] = lambda: True
) -> Iterator[dict[str, Reading]]:
    """The ledgers in these files, by the names that they are shown with, until the block ends.

    Reading them ends as soon as it `is_wanted` no more.
    """
    if not files:
        raise InvalidInput("choose a file: a copy (ledger.db), or an export (*.jsonl)")
    if len(files) > MOST_FILES:
        raise InvalidInput(f"choose {MOST_FILES} files or fewer")
    with TemporaryDirectory(prefix="fedaccord-copy-") as folder:
        names = list[str]()
        for number, file in enumerate(files):
            names.append(_shown(file.name, number + 1, names))
            Path(folder, str(number)).write_bytes(file.content)
        _have_read(Path(folder), names, is_wanted)
        found = dict[str, Reading]()
        for number, name in enumerate(names):
            with read(str(Path(folder, f"{number}.jsonl"))) as reading:
                found[name] = reading
        yield found


def _shown(name: str, number: int, known: Sequence[str]) -> str:
    """The last part of a file's name, if it is one of a kind."""
    last = escaped(re.split(r"[/\\]", name)[-1].strip())[:80]
    return f"copy {number}" if not last or last in known else last


def _have_read(folder: Path, names: Sequence[str], is_wanted: Callable[[], bool]) -> None:
    """Have the files in a folder read into lines by another process, which is killed if need be."""
    environment = {key: value for key, value in os.environ.items() if key != VARIABLE}
    end = time.monotonic() + _SECONDS
    with subprocess.Popen(
        [sys.executable, "-P", "-c", _APART, str(folder), *names],
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as process:
        try:
            while True:
                try:
                    said, _ = process.communicate(timeout=_PAUSE)
                    break
                except subprocess.TimeoutExpired:
                    if not is_wanted():
                        raise Stopped from None
                    if time.monotonic() > end:
                        raise InvalidInput(
                            f"{_all_of(names)} took longer than {_SECONDS:g} seconds to read, and "
                            "no copy does"
                        ) from None
        finally:
            process.kill()
    if process.returncode != 0:
        raise InvalidInput(f"{_all_of(names)} could not be read within the limits of this program")
    if problems := json.loads(said):
        raise InvalidInput(problems)


def _all_of(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"the {len(names)} files"


# --- In the process that reads -------------------------------------------------------------


def read_apart() -> None:
    """Read the files in a folder, and print what is wrong with one, as a list."""
    folder, *names = sys.argv[1:]
    _limit_process()
    problems = list[str]()
    for number, name in enumerate(names):
        path = Path(folder, str(number))
        try:
            with path.with_suffix(".jsonl").open("w", encoding="utf-8", newline="\n") as lines:
                lines.writelines(f"{to_line(entry)}\n" for entry in _entries(path))
                if not lines.tell():
                    raise InvalidInput("has no entries")
        except InvalidInput as error:
            said = [str(one).removeprefix(f"{path}: ") for one in error.problems]
            problems = [f"{name}: {one}" for one in said]
            break
    json.dump(problems, sys.stdout)


def _limit_process() -> None:
    """Take what this process may use no more of, before it sees the first byte from elsewhere."""
    try:
        import resource
    except ImportError:  # on Windows; it is killed in time there, too
        return
    limits = {
        resource.RLIMIT_AS: _MEMORY,
        resource.RLIMIT_CPU: int(_SECONDS) + 1,
        resource.RLIMIT_FSIZE: _WRITTEN,
        resource.RLIMIT_CORE: 0,
    }
    for kind, most in limits.items():
        _, hard = resource.getrlimit(kind)
        limit = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(kind, (limit, limit))


def _entries(path: Path) -> Iterator[Entry]:
    """The entries in a file of lines, or in a database."""
    with path.open("rb") as file:
        is_database = file.read(len(_MAGIC)) == _MAGIC
    return _rows(path) if is_database else from_lines(path)


def _rows(path: Path) -> Iterator[Entry]:
    address = f"file:{path}?mode=ro&immutable=1"
    try:
        with closing(sqlite3.connect(address, uri=True)) as database:
            database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LONGEST)
            database.execute("PRAGMA trusted_schema = OFF")
            database.execute("PRAGMA cell_size_check = ON")
            schema = database.execute(SCHEMA).fetchall()
            if (flaw := flaw_in_schema(schema)) is not None:
                raise InvalidInput(flaw)
            if ("table", "entries") not in [(kind, name) for kind, name, _ in schema]:
                raise InvalidInput("is not a ledger, it has no table of entries")
            damage = database.execute("PRAGMA integrity_check(1)").fetchone()
            if damage != ("ok",):
                raise InvalidInput("the file is damaged")
            columns = ", ".join(Entry._fields)
            for row in database.execute(f"SELECT {columns} FROM entries ORDER BY number"):
                yield Entry(*row)
    except (sqlite3.Error, ValueError, TypeError, OverflowError, MemoryError):
        raise InvalidInput("is not a ledger that can be read") from None

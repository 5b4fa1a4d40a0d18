"""Where a ledger is, and who may write to it: one writer at a time.

Every client can read the configuration of a run, and Flower keeps it in a database. So a URL comes
from the server's environment, or from a file that only its owner can read (`*.url`).

One writer at a time. A lock ends with the process that holds it, however the process ends. Why it
is written by hand: docs/decisions/0014.
"""

import os
import stat
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import IO

from sqlalchemy import Connection, text

from fedaccord.atomic import create_private
from fedaccord.errors import FedaccordError, InvalidInput

VARIABLE = "FEDACCORD_LEDGER"
"""An environment variable: a path or a URL that replaces what is configured."""
SUFFIX = ".url"
"""Of a file that contains only a URL."""


def server_place(configured: str) -> str:
    """Where to keep the ledger, given what the configuration of a run says."""
    if "://" in configured:
        raise InvalidInput(
            "ledger: every client can read the configuration of a run, so it must not contain a "
            f"URL; put it into the server's environment ({VARIABLE}), or into a file of mode "
            f"0600 called *{SUFFIX}, and name that file"
        )
    return os.environ.get(VARIABLE) or configured


def resolved(place: str) -> str:
    """A path or a URL; of a file called *.url, the URL in it."""
    if "://" in place or not place.endswith(SUFFIX):
        return place
    path = Path(place)
    try:
        mode = stat.S_IMODE(path.stat().st_mode)
        text = path.read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text"
        raise InvalidInput(f"cannot be read: {reason}", place) from None
    if os.name == "posix" and mode & 0o077:
        raise InvalidInput(
            f"others can read it (mode {mode:04o}), and it may contain a password; "
            f"run chmod 600 {place}",
            place,
        )
    if "://" not in text or len(text.splitlines()) != 1:
        raise InvalidInput("must contain one line, the URL of a database", place)
    return text


_POSTGRESQL_KEY = zlib.crc32(b"fedaccord ledger")


class LedgerInUse(FedaccordError):
    """Another process is writing to this ledger."""


def lock(connection: Connection, name: str) -> Callable[[], None]:
    """Lock a database for this process; the returned function unlocks it."""
    if connection.dialect.name == "sqlite":
        file = _lock_file(Path(str(connection.engine.url.database)), name)
        return file.close
    if connection.dialect.name == "postgresql":
        # Held by the connection that writes: a process that loses it must not write.
        taken = connection.execute(text("SELECT pg_try_advisory_lock(:k)"), {"k": _POSTGRESQL_KEY})
        held = bool(taken.scalar())
        connection.commit()
        if not held:
            raise _in_use(name)
        return lambda: None
    raise FedaccordError(
        f"{name}: a ledger is kept in SQLite or PostgreSQL, not in {connection.dialect.name}"
    )


def _lock_file(database: Path, name: str) -> IO[bytes]:
    """A file beside the database that the operating system locks for this process.

    A database with several names would have several such files. So symbolic links are resolved, and
    a file with a hard link is refused, since nothing tells which of its names is the right one.
    """
    database = database.resolve()
    try:
        if database.is_file() and database.stat().st_nlink > 1:
            raise FedaccordError(f"{name}: has another name, a hard link; a ledger has only one")
        place = database.with_name(f"{database.name}.lock")
        create_private(place)
        file = place.open("ab")
    except OSError as error:
        raise FedaccordError(f"{name}: cannot be opened: {error.strerror or error}") from None
    try:
        _lock_whole(file)
    except OSError:
        file.close()
        raise _in_use(name) from None
    return file


def _lock_whole(file: IO[bytes]) -> None:
    if os.name == "nt":
        import msvcrt

        msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined,unused-ignore]
    else:
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _in_use(name: str) -> LedgerInUse:
    return LedgerInUse(f"{name}: another process is writing to this ledger; only one may")

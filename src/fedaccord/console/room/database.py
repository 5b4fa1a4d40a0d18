"""A room's database: a SQLite file, or PostgreSQL by its URL.

Writers wait for one another, so that each sees what the one before did. What a transaction changed
is on disk when it ends, whole or not at all.
"""

import threading
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event, text
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, SQLAlchemyError

from fedaccord.atomic import create_private
from fedaccord.console.room.schema import upgrade
from fedaccord.errors import FedaccordError
from fedaccord.ledger.access import resolved
from fedaccord.ledger.store import shown

_WRITES = {"writes": True}
_POSTGRESQL_KEY = zlib.crc32(b"fedaccord room")
_AFTER = "fedaccord afterwards"
_CONNECTIONS = 10
_MORE_CONNECTIONS = 40


class DatabaseTrouble(FedaccordError):
    """The database did not do what it was asked for; the message is its driver's own."""


class Database:
    """An open database of a room."""

    def __init__(self, place: str | Path) -> None:
        """Open what is at a path or a URL; it is created if there is nothing."""
        self._engine = _engine(resolved(str(place)))
        self.name = shown(self._engine.url.render_as_string(hide_password=False))
        self._writer = threading.Lock()  # SQLite itself would let them try again and again
        if self._engine.dialect.name == "sqlite":
            self.name = str(self._engine.url.database)
            _make_private(Path(self.name))
        try:
            with _told(self.name), self._engine.connect() as connection:
                upgrade(connection, self.name)
        except BaseException:
            self.close()
            raise

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A connection to read with; everything that is read is of one moment in SQLite."""
        with _told(self.name), self._engine.connect() as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """A transaction, alone; it is on disk at the end of the block, or nothing happened."""
        with self._writer, _told(self.name), self._engine.connect() as plain:
            connection = plain.execution_options(**_WRITES)
            connection.info[_AFTER] = []  # of a transaction before that failed
            with connection.begin():
                if connection.dialect.name == "postgresql":
                    lock = text("SELECT pg_advisory_xact_lock(:key)")
                    connection.execute(lock, {"key": _POSTGRESQL_KEY})
                yield connection
            told = connection.info.pop(_AFTER)
        for tell in told:
            tell()

    @staticmethod
    def afterwards(connection: Connection, tell: Callable[[], None]) -> None:
        """Call something when the transaction is on disk, and not if it failed."""
        connection.info[_AFTER].append(tell)

    def close(self) -> None:
        """Close all connections."""
        self._engine.dispose()


def _engine(place: str) -> Engine:
    try:
        url = make_url(place if "://" in place else f"sqlite:///{place}")
        if url.get_backend_name() not in ("sqlite", "postgresql"):
            raise FedaccordError(
                f"{shown(place)}: a room is kept in a SQLite file, or in PostgreSQL by its URL, "
                "such as postgresql+psycopg://user@host/database"
            )
        engine = create_engine(
            url,
            pool_size=_CONNECTIONS,
            max_overflow=_MORE_CONNECTIONS,
            pool_pre_ping=url.get_backend_name() == "postgresql",
        )
    except ModuleNotFoundError as error:
        raise FedaccordError(
            f"{shown(place)}: its driver {error.name} is not installed; the extra 'postgresql' "
            "installs the one for postgresql+psycopg://"
        ) from None
    except (ArgumentError, SQLAlchemyError, ValueError, TypeError):
        raise FedaccordError(f"{shown(place)}: is not the URL of a database") from None
    if engine.dialect.name == "sqlite":
        if not url.database or url.database == ":memory:" or url.database.startswith("file:"):
            raise FedaccordError(f"{place}: a room needs a file, named by its path")
        event.listen(engine, "connect", _to_the_disk)
        event.listen(engine, "begin", _begin)
    return engine


def _to_the_disk(connection: Any, _: object) -> None:
    """A commit returns only when it is on disk; nobody waits for a reader."""
    connection.isolation_level = None  # sqlite3 would begin transactions in its own way: see _begin
    connection.execute("PRAGMA busy_timeout = 10000")
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA foreign_keys = ON")


def _begin(connection: Connection) -> None:
    writes = connection.get_execution_options().get("writes", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def _make_private(path: Path) -> None:
    try:
        create_private(path)
    except OSError as error:
        raise FedaccordError(f"{path}: cannot be opened: {error.strerror or error}") from None


@contextmanager
def _told(name: str) -> Iterator[None]:
    """Turn an error of the database into one sentence."""
    try:
        yield
    except SQLAlchemyError as error:
        original: object = error.orig if isinstance(error, DBAPIError) else error
        raise DatabaseTrouble(f"{name}: {' '.join(str(original).split())}") from None

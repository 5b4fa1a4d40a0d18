"""A ledger in a database: facts are appended, in order and for good, along with models.

It is a SQLite file, or a PostgreSQL database by its URL. What is appended together is there
together or not at all, and it is on disk when `append` returns.
"""

import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from sqlalchemy import Connection, Engine, create_engine, event, func, select
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, SQLAlchemyError

from fedaccord.atomic import create_private
from fedaccord.errors import LISTED_PROBLEMS, FedaccordError
from fedaccord.ledger.access import LedgerInUse, lock, resolved
from fedaccord.ledger.chain import START, Checkpoint, Entry, Fact, Head, extend
from fedaccord.ledger.schema import CHECKPOINTS, ENTRIES, check_ours, check_revision, upgrade

Clock = Callable[[], str]
Moment = Literal["before", "within", "after"]
"""Of a commit: nothing is written yet, written but not committed, committed."""

_KNOWN = (
    "a ledger is a SQLite file, or a PostgreSQL database by its URL, such as "
    "postgresql+psycopg://user@host/database"
)
_PAUSE = 0.05
_AT_ONCE = 1_000
"""Entries that are read together."""


def wall_clock() -> str:
    """The time, in UTC."""
    return datetime.now(UTC).isoformat(timespec="seconds")


class Ledger:
    """An open ledger. Only its one writer may append; anyone may read."""

    def __init__(self, connection: Connection, name: str, clock: Clock = wall_clock) -> None:
        """Use `open_ledger` or `read_ledger`."""
        self.name = name
        self._connection = connection
        self._clock = clock
        self._unlock: Callable[[], None] | None = None
        self._watch: Callable[[Moment], None] = lambda _: None
        last = self.last()
        self.head = START if last is None else last.head
        self._at = "" if last is None else str(last.at)

    def append(
        self,
        facts: Sequence[Fact],
        model: bytes | None = None,
        *,
        slot: int = 0,
        keep: int = 0,
        moments: bytes | None = None,
        seal: Callable[[Head], Fact] | None = None,
    ) -> list[Entry]:
        """Write facts, with the model that the last of them names; all or nothing.

        The model replaces that of the same slot, and the models of `keep` slots before it are kept.
        `moments` are what the server's optimiser remembers beside it; only the latest are kept.
        `seal` makes a last fact about the chain up to there.
        """
        if self._unlock is None:
            raise FedaccordError(f"{self.name}: is open for reading only")
        if not facts:
            return []
        at = max(self._clock(), self._at)  # if the clock was set back, the last time is used again
        entries = list(extend(self.head, facts, at))
        end = entries[-1].head
        if seal is not None:
            entries += extend(end, [seal(end)], at)
        self._watch("before")
        with _told(self.name), self._connection.begin():
            self._connection.execute(ENTRIES.insert(), [entry._asdict() for entry in entries])
            if model is not None:
                self._replace_model(Checkpoint(end.number, slot, model), keep, moments)
            self._watch("within")
        self.head, self._at = entries[-1].head, at
        self._watch("after")
        return entries

    def _replace_model(self, latest: Checkpoint, keep: int, moments: bytes | None) -> None:
        slots = select(CHECKPOINTS.c.slot).order_by(CHECKPOINTS.c.slot.desc())
        before = [s for s in self._connection.execute(slots).scalars() if s < latest.slot]
        kept = CHECKPOINTS.c.slot.in_(before[:keep])
        self._connection.execute(CHECKPOINTS.delete().where(~kept))
        there = CHECKPOINTS.c.moments.is_not(None)  # other rows need not be written again
        self._connection.execute(CHECKPOINTS.update().where(there).values(moments=None))
        self._connection.execute(CHECKPOINTS.insert(), latest._asdict() | {"moments": moments})

    def watch(self, watcher: Callable[[Moment], None]) -> None:
        """Call `watcher` at every moment of every commit at which a crash could happen."""
        self._watch = watcher

    def entries(
        self,
        *,
        slot: int | None = None,
        client: str | None = None,
        kind: str | None = None,
        first: int | None = None,
        last: int | None = None,
    ) -> Iterator[Entry]:
        """The entries in order: all, or those about one slot or one client, or of one kind.

        With `first` and `last`, none with a lower or a higher number. Only a few are in memory at a
        time.
        """
        query = select(ENTRIES).order_by(ENTRIES.c.number)
        if first is not None:
            query = query.where(ENTRIES.c.number >= first)
        if last is not None:
            query = query.where(ENTRIES.c.number <= last)
        given = {"slot": slot, "client": client, "kind": kind}
        for column, value in given.items():
            if value is not None:
                query = query.where(ENTRIES.c[column] == value)
        further = query  # from the very first, even if someone put one before number 1
        while True:
            with _told(self.name):
                rows = self._connection.execute(further.limit(_AT_ONCE)).all()
                self._connection.rollback()  # a reader must not block anyone
            yield from (Entry(*row) for row in rows)
            if len(rows) < _AT_ONCE:
                return
            further = query.where(ENTRIES.c.number > rows[-1].number)

    def some(
        self,
        most: int,
        *,
        ascending: bool = False,
        before: int | None = None,
        after: int | None = None,
        slot: int | None = None,
        client: str | None = None,
        kind: str | None = None,
    ) -> list[Entry]:
        """A few entries, the latest first, or the first ones first if they are `ascending`.

        Those with numbers below `before` and above `after`, and as with `entries` those about one
        slot or one client, or of one kind. Of a long ledger it reads little.
        """
        columns = ENTRIES.c
        order = columns.number.asc() if ascending else columns.number.desc()
        query = select(ENTRIES).order_by(order).limit(most)
        if before is not None:
            query = query.where(columns.number < before)
        if after is not None:
            query = query.where(columns.number > after)
        for column, value in (("client", client), ("kind", kind)):
            if value is not None:
                query = query.where(columns[column] == value)
        with _told(self.name):
            if slot is not None:  # a range of numbers can be looked up along with anything else
                of_slot = select(func.min(columns.number), func.max(columns.number))
                ends = self._connection.execute(of_slot.where(columns.slot == slot)).one()
                query = query.where(columns.slot == slot).where(columns.number.between(*ends))
            rows = self._connection.execute(query).all()
            self._connection.rollback()
        return [Entry(*row) for row in rows]

    def last(self, kind: str | None = None) -> Entry | None:
        """The latest entry, or the latest of one kind."""
        query = select(ENTRIES).order_by(ENTRIES.c.number.desc()).limit(1)
        if kind is not None:
            query = query.where(ENTRIES.c.kind == kind)
        with _told(self.name):
            row = self._connection.execute(query).first()
            self._connection.rollback()
        return None if row is None else Entry(*row)

    def checkpoints(self) -> list[Checkpoint]:
        """The models that are kept, the latest last; none in a ledger without models."""
        columns = CHECKPOINTS.c
        query = select(columns.number, columns.slot, columns.parameters).order_by(columns.number)
        with _told(self.name):
            try:
                rows = self._connection.execute(query).all()
                return [Checkpoint(row.number, row.slot, bytes(row.parameters)) for row in rows]
            except TypeError:  # SQLite keeps anything in any column
                raise FedaccordError(
                    f"{self.name}: the model stored with it is not a model"
                ) from None
            finally:
                self._connection.rollback()

    def moments(self) -> bytes | None:
        """What the server's optimiser remembers beside the latest model; None: nothing.

        Only a writer needs it, whose tables are of this version.
        """
        query = select(CHECKPOINTS.c.moments).order_by(CHECKPOINTS.c.number.desc()).limit(1)
        with _told(self.name):
            found = self._connection.execute(query).scalar()
            self._connection.rollback()
        return None if found is None else bytes(found)

    def damage(self) -> list[str]:
        """What SQLite itself finds wrong with its file, including indexes.

        PostgreSQL checks its own pages, and is not asked.
        """
        if self._connection.dialect.name != "sqlite":
            return []
        with _told(self.name):
            check = f"PRAGMA integrity_check({LISTED_PROBLEMS})"
            found = self._connection.exec_driver_sql(check)
            lines = [" ".join(str(line).split()) for line in found.scalars()]
            self._connection.rollback()
        return [] if lines == ["ok"] else [f"the file is damaged: {line}" for line in lines]

    def close(self) -> None:
        """Close it, so that others can write."""
        self._connection.close()
        self._connection.engine.dispose()
        if self._unlock is not None:
            self._unlock()
            self._unlock = None

    def __enter__(self) -> "Ledger":
        """Close it at the end."""
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _locked(self, unlock: Callable[[], None]) -> "Ledger":
        self._unlock = unlock
        return self


def open_ledger(place: str | Path, *, wait: float = 0.0, clock: Clock = wall_clock) -> Ledger:
    """The ledger at a path or a URL, to write to; it is created if there is none.

    Only one process at a time may write; `wait` up to this many seconds for another one.
    """
    engine = _engine(place)
    name = _name(engine)
    _make_private(engine, name)
    with _told(name):
        connection = engine.connect()
    try:
        with _told(name):
            check_ours(connection, name)
        unlock = _lock_patiently(connection, name, wait)
        try:
            with _told(name):
                upgrade(connection, name)
            return Ledger(connection, name, clock)._locked(unlock)
        except BaseException:
            unlock()
            raise
    except BaseException:
        connection.close()
        engine.dispose()
        raise


def read_ledger(place: str | Path) -> Ledger:
    """The ledger at a path or a URL, to read, even while another process writes to it."""
    engine = _engine(place)
    name = _name(engine)
    database = engine.url.database
    if engine.dialect.name == "sqlite" and not Path(str(database)).is_file():
        raise FedaccordError(f"{name}: there is no such ledger")
    with _told(name):
        connection = engine.connect()
    try:
        with _told(name):
            check_revision(connection, name)
        return Ledger(connection, name)
    except BaseException:
        connection.close()
        engine.dispose()
        raise


def _make_private(engine: Engine, name: str) -> None:
    """SQLite would let anyone read a new file; its journals get the file's permissions."""
    if engine.dialect.name == "sqlite":
        try:
            create_private(Path(name))
        except OSError as error:
            raise FedaccordError(f"{name}: cannot be opened: {error.strerror or error}") from None


def _lock_patiently(connection: Connection, name: str, wait: float) -> Callable[[], None]:
    end = time.monotonic() + wait
    while True:
        try:
            return lock(connection, name)
        except LedgerInUse:
            if time.monotonic() >= end:
                raise
            time.sleep(_PAUSE)


def _engine(place: str | Path) -> Engine:
    text = resolved(str(place))
    try:
        url = make_url(text if "://" in text else f"sqlite:///{text}")
        if url.get_backend_name() not in ("sqlite", "postgresql"):
            raise FedaccordError(f"{shown(text)}: {_KNOWN}")
        engine = create_engine(url)
    except (ArgumentError, ModuleNotFoundError, SQLAlchemyError) as error:
        raise FedaccordError(f"{shown(text)}: {_reason(error)}") from None
    except ValueError:  # a port that is not a number
        raise FedaccordError(f"{shown(text)}: is not the URL of a database") from None
    if engine.dialect.name == "sqlite":
        if not url.database or url.database == ":memory:":
            raise FedaccordError(f"{text}: a ledger needs a file")
        if url.database.startswith("file:"):  # its lock would be beside another path
            raise FedaccordError(f"{text}: name the ledger's file by its path, without file:")
        event.listen(engine, "connect", _to_the_disk)
        event.listen(engine, "begin", _begin)
    return engine


def _to_the_disk(connection: Any, _: object) -> None:
    """A commit returns only when it is on disk; a reader waits a moment for a writer."""
    connection.isolation_level = None  # sqlite3 would leave tables out of transactions: see _begin
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA busy_timeout = 10000")


def _begin(connection: Connection) -> None:
    connection.exec_driver_sql("BEGIN")


def _name(engine: Engine) -> str:
    if engine.dialect.name == "sqlite":
        return str(engine.url.database)
    return shown(engine.url.render_as_string(hide_password=False))


def shown(place: str) -> str:
    """A path or a URL that may be shown to anyone: without a password, wherever it is.

    >>> shown("postgresql://me:secret@host/consortium"), shown("ledger.db")
    ('postgresql://me:***@host/consortium', 'ledger.db')
    """
    if "://" not in place:
        return place
    without = re.sub(r"(://[^:@/]*:).*@", r"\1***@", place)
    return re.sub(r"(password=)[^&]*", r"\1***", without)


@contextmanager
def _told(name: str) -> Iterator[None]:
    """Turn an error of the database into one sentence, without a traceback."""
    try:
        yield
    except SQLAlchemyError as error:
        raise FedaccordError(f"{name}: {_reason(error)}") from None
    except UnicodeDecodeError:  # what sqlite3 makes of an error that quotes damaged text
        raise FedaccordError(f"{name}: the file is damaged: it has invalid text") from None


def _reason(error: Exception) -> str:
    if isinstance(error, ModuleNotFoundError):
        return (
            f"its driver {error.name} is not installed; the extra 'postgresql' installs "
            "the one for postgresql+psycopg://"
        )
    original: object = error.orig if isinstance(error, DBAPIError) else error
    return " ".join(str(original).split()) or type(original).__name__

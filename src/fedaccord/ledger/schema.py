"""The tables of a ledger, and their versions, which Alembic manages."""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import (
    BigInteger,
    Column,
    Connection,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    inspect,
)

from fedaccord.errors import FedaccordError
from fedaccord.ledger.revisions import migrations_in, revision_in

if TYPE_CHECKING:
    from alembic.config import Config


METADATA = MetaData()

ENTRIES = Table(
    "entries",
    METADATA,
    Column("number", BigInteger().with_variant(Integer, "sqlite"), primary_key=True),
    Column("at", String(40), nullable=False),
    Column("kind", String(40), nullable=False, index=True),
    Column("slot", Integer, nullable=False, index=True),
    Column("client", Text, nullable=True, index=True),
    Column("text", Text, nullable=False),
    Column("previous", String(64), nullable=False),
    Column("digest", String(64), nullable=False),
)

CHECKPOINTS = Table(
    "checkpoints",
    METADATA,
    Column("number", BigInteger().with_variant(Integer, "sqlite"), primary_key=True),
    Column("slot", Integer, nullable=False, server_default="0"),
    Column("parameters", LargeBinary, nullable=False),
    Column("moments", LargeBinary, nullable=True),
)
"""The models of the latest slots, each with the number of the last entry written with it; the
latest one with what the server's optimiser remembers of the rounds before, if it does."""

VERSION_TABLE = "ledger_version"
HEAD = "0005"
"""The revision that this fedaccord writes."""
_READABLE = (HEAD, "0004", "0003", "0002")
"""Those with the same tables, for a reader: it does not look at moments. Whether it knows what the
entries say is another question."""


def upgrade(connection: Connection, name: str) -> None:
    """Bring the tables of a ledger, or an empty database, to this version."""
    if _revision(connection) == HEAD:  # the usual case, without loading Alembic
        return
    from alembic import command
    from alembic.util import CommandError

    try:
        command.upgrade(configuration(connection), HEAD)
    except CommandError:
        raise _unknown(connection, name) from None
    except FedaccordError as error:
        raise FedaccordError(f"{name}: {error}") from None


def check_ours(connection: Connection, name: str) -> None:
    """Refuse a database that belongs to another program, or runs something when it is read."""
    tables = set(inspect(connection).get_table_names())
    connection.rollback()
    if VERSION_TABLE not in tables and tables:
        raise FedaccordError(f"{name}: is not a ledger but a database of another program")
    if connection.dialect.name == "sqlite":
        schema = connection.exec_driver_sql(SCHEMA).all()
        connection.rollback()
        if (flaw := flaw_in_schema(schema)) is not None:
            raise FedaccordError(f"{name}: {flaw}")


SCHEMA = "SELECT type, name, sql FROM sqlite_master"
"""All that a SQLite file defines; to read it runs nothing that is defined there."""
_TABLES = (*METADATA.tables, VERSION_TABLE)
_INDEXES = tuple(str(one.name) for one in ENTRIES.indexes)
_WORDS = {
    *("CREATE", "TABLE", "INDEX", "ON", "NOT", "NULL", "DEFAULT", "CONSTRAINT", "PRIMARY", "KEY"),
    *("INTEGER", "VARCHAR", "TEXT", "BLOB"),
    *(word.upper() for word in (*_TABLES, *_INDEXES, "version_num", f"{VERSION_TABLE}_pkc")),
    *(column.name.upper() for table in METADATA.tables.values() for column in table.columns),
}
"""All words of our tables and indexes: with these nothing can be defined that computes."""
_PARTS = re.compile(r"[A-Za-z_]\w*|'\d+'|\d+|.", re.ASCII)
_PUNCTUATION = re.compile(r"[(), \"]|'?\d+'?", re.ASCII)
_TRIGGERS = {
    f"entries_no_{action}": f"CREATE TRIGGER entries_no_{action} BEFORE {action.upper()} "
    "ON entries BEGIN SELECT RAISE(ABORT, 'a ledger is append-only'); END"
    for action in ("update", "delete")
}
_NOT_HERE = {
    "VIEW": "a view",
    "TRIGGER": "a trigger of its own",
    "GENERATED": "a generated column",
    "AS": "a generated column",
    "VIRTUAL": "a virtual table",
    "CHECK": "a check of its own",
}


def flaw_in_schema(schema: Iterable[tuple[str, str, str | None]]) -> str | None:
    """What a SQLite file defines that no ledger of ours does, given the rows of `SCHEMA`.

    A database may compute whatever it likes while it is read: in a generated column, a view, a
    virtual table, a trigger, a check, or an index of an expression. A single step of such a
    computation may take hours, which nothing in SQLite interrupts.

    >>> flaw_in_schema([("table", "entries", "CREATE TABLE entries (number INTEGER, text AS (1))")])
    'has a generated column, which no ledger has'
    """
    for kind, name, sql in schema:
        if sql is None:  # the index of a primary key
            continue
        text = " ".join(str(sql).split())
        if kind == "trigger" and text == _TRIGGERS.get(name):
            continue
        odd = {one.upper() for one in _PARTS.findall(text)} - _WORDS
        odd = {one for one in odd if one.isidentifier() or _PUNCTUATION.fullmatch(one) is None}
        if odd or name not in (*_TABLES, *_INDEXES):
            what = next((said for word, said in _NOT_HERE.items() if word in odd), None)
            return f"has {what or 'something in its schema'}, which no ledger has"
    return None


def check_revision(connection: Connection, name: str) -> None:
    """Refuse to read what is not a ledger, or has tables of another version."""
    check_ours(connection, name)
    revision = _revision(connection)
    if revision is None:
        raise FedaccordError(f"{name}: is empty, not a ledger")
    if revision not in _READABLE:
        raise _unknown(connection, name)


def configuration(connection: Connection) -> "Config":
    """Alembic's configuration for the migrations in this package."""
    return migrations_in(Path(__file__).with_name("migrations"), connection)


def _revision(connection: Connection) -> str | None:
    return revision_in(VERSION_TABLE, connection)


def _unknown(connection: Connection, name: str) -> FedaccordError:
    connection.rollback()
    return FedaccordError(
        f"{name}: its tables have version {_revision(connection)}, but this fedaccord knows "
        f"version {HEAD}: use the fedaccord that wrote it last"
    )

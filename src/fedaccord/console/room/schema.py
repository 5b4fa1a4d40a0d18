"""The tables of a room, and their versions, which Alembic manages.

The tables have only digests of secrets. What happened is in `events`, to which rows are only added.
"""

from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import (
    Column,
    Connection,
    DateTime,
    ForeignKey,
    Integer,
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


def _moment(name: str, *, needed: bool = True) -> Column[object]:
    return Column(name, DateTime(timezone=False), nullable=not needed)  # always UTC


def _version(*, key: bool = False) -> Column[int]:
    return Column("version", ForeignKey("versions.number"), primary_key=key, nullable=False)


ROOM = Table(
    "room",
    METADATA,
    Column("id", Integer, primary_key=True),
    Column("address", Text, nullable=False),
    Column("name", Text, nullable=True),
)
"""One row; the name is missing until the room is created."""

VERSIONS = Table(
    "versions",
    METADATA,
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("text", Text, nullable=False),
    Column("digest", String(64), nullable=False),
    Column("proposed_by", Text, nullable=False),
    Column("note", Text, nullable=False),
    _moment("at"),
)
"""Of the terms, without keys; the last one is put forward."""

TO_SIGN = Table(
    "to_sign",
    METADATA,
    _version(key=True),
    Column("text", Text, nullable=False),
    Column("terms", String(64), nullable=False),
    Column("app", String(64), nullable=False),
    _moment("at"),
)
"""The file to sign of a version, as soon as every member's key is known."""

SIGNATURES = Table(
    "signatures",
    METADATA,
    _version(key=True),
    Column("client", Text, primary_key=True),
    Column("text", Text, nullable=False),
    _moment("at"),
)
"""One a member and version."""

AGREEMENTS = Table(
    "agreements",
    METADATA,
    _version(key=True),
    Column("digest", String(64), nullable=False),
    Column("content", Text, nullable=False),
    _moment("at"),
)
"""The agreement file of a version, if its terms say how much each member trains on."""

AGREEMENT_SIGNATURES = Table(
    "agreement_signatures",
    METADATA,
    _version(key=True),
    Column("client", Text, primary_key=True),
    Column("signature", String(128), nullable=False),
    _moment("at"),
)

COMMENTS = Table(
    "comments",
    METADATA,
    Column("number", Integer, primary_key=True, autoincrement=True),
    _version(),
    Column("client", Text, nullable=True),
    Column("text", Text, nullable=False),
    _moment("at"),
)
"""The client is missing if it is the coordinator's."""

INVITATIONS = Table(
    "invitations",
    METADATA,
    Column("number", Integer, primary_key=True, autoincrement=True),
    Column("client", Text, nullable=False),
    Column("digest", String(64), nullable=False, unique=True),
    _moment("at"),
    _moment("expires"),
    _moment("used", needed=False),
    _moment("withdrawn", needed=False),
)

CARDS = Table(
    "cards",
    METADATA,
    Column("client", Text, primary_key=True),
    Column("text", Text, nullable=False),
    _moment("at"),
    _moment("compared", needed=False),
    _moment("confirmed", needed=False),
)
"""The latest of each member; when its fingerprint was compared, if it was.

A card whose key replaces one that was in terms to sign counts only when it is confirmed.
"""

CONFIRMATIONS = Table(
    "confirmations",
    METADATA,
    Column("client", Text, primary_key=True),
    Column("key", Text, primary_key=True),
    Column("by", Text, primary_key=True),
    Column("signature", String(128), nullable=False),
    _moment("at"),
)
"""That a member has asked another one, and that this new key is really its own."""

OBSERVERS = Table(
    "observers",
    METADATA,
    Column("number", Integer, primary_key=True, autoincrement=True),
    Column("name", Text, nullable=False),
    Column("digest", String(64), nullable=False, unique=True),
    _moment("at"),
    _moment("expires"),
    _moment("withdrawn", needed=False),
)

SESSIONS = Table(
    "sessions",
    METADATA,
    Column("digest", String(64), primary_key=True),
    Column("role", String(20), nullable=False),
    Column("client", Text, nullable=True),
    Column("observer", ForeignKey("observers.number"), nullable=True),
    _moment("expires"),
)

TICKETS = Table(
    "tickets",
    METADATA,
    Column("digest", String(64), primary_key=True),
    Column("role", String(20), nullable=False),
    Column("client", Text, nullable=True),
    _moment("expires"),
)
"""Each opens one session; it is deleted then."""

CHALLENGES = Table(
    "challenges",
    METADATA,
    Column("digest", String(64), primary_key=True),
    Column("client", Text, nullable=False),
    _moment("expires"),
)
"""Each is signed once; it is deleted then."""

EVENTS = Table(
    "events",
    METADATA,
    Column("number", Integer, primary_key=True, autoincrement=True),
    _moment("at"),
    Column("role", String(20), nullable=False),
    Column("client", Text, nullable=True),
    Column("what", Text, nullable=False),
    sqlite_autoincrement=True,
)
"""What happened, in words; who did it: by role, and a member by its name."""

VERSION_TABLE = "room_version"
HEAD = "0002"
"""The revision that this fedaccord writes."""


def upgrade(connection: Connection, name: str) -> None:
    """Bring the tables of a room, or an empty database, to this version."""
    tables = set(inspect(connection).get_table_names())
    connection.rollback()
    if VERSION_TABLE not in tables and tables:
        raise FedaccordError(f"{name}: is not a room but a database of another program")
    if _revision(connection) == HEAD:
        return
    from alembic import command
    from alembic.util import CommandError

    try:
        command.upgrade(configuration(connection), HEAD)
    except CommandError:
        raise FedaccordError(
            f"{name}: its tables have version {_revision(connection)}, but this fedaccord knows "
            f"version {HEAD}: use the fedaccord that wrote it last"
        ) from None


def configuration(connection: Connection) -> "Config":
    """Alembic's configuration for the migrations in this package."""
    return migrations_in(Path(__file__).with_name("migrations"), connection)


def _revision(connection: Connection) -> str | None:
    return revision_in(VERSION_TABLE, connection)

"""The tables of a ledger, and their versions, which Alembic manages."""

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
    text,
)

from fedaccord.errors import FedaccordError

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
)
"""The models of the latest slots, each with the number of the last entry written with it."""

VERSION_TABLE = "ledger_version"
HEAD = "0004"
"""The revision that this fedaccord writes."""
_READABLE = (HEAD, "0003", "0002")
"""Those with the same tables. Whether it knows what the entries say is another question."""


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
    """Refuse a database that belongs to another program."""
    tables = set(inspect(connection).get_table_names())
    connection.rollback()
    if VERSION_TABLE not in tables and tables:
        raise FedaccordError(f"{name}: is not a ledger but a database of another program")


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
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).with_name("migrations")))
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = connection
    return config


def _revision(connection: Connection) -> str | None:
    found = None
    if inspect(connection).has_table(VERSION_TABLE):
        found = connection.execute(text(f"SELECT version_num FROM {VERSION_TABLE}")).scalar()
    connection.rollback()
    return None if found is None else str(found)


def _unknown(connection: Connection, name: str) -> FedaccordError:
    connection.rollback()
    return FedaccordError(
        f"{name}: its tables have version {_revision(connection)}, but this fedaccord knows "
        f"version {HEAD}: use the fedaccord that wrote it last"
    )

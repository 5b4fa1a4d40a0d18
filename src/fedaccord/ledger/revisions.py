"""Which version a database's tables have, and how Alembic brings them up to date."""

from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import Connection, MetaData, inspect, text

if TYPE_CHECKING:
    from alembic.config import Config


def migrations_in(folder: Path, connection: Connection) -> "Config":
    """Alembic's configuration for the migrations in a folder."""
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(folder))
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = connection
    return config


def run_migrations(metadata: MetaData, table: str) -> None:
    """Run all migrations or none, on the connection of `migrations_in`: what an `env.py` does.

    Args:
        metadata: The tables that the migrations lead to.
        table: Where the version is kept.
    """
    from alembic import context

    connection: Connection = context.config.attributes["connection"]
    context.configure(
        connection=connection,
        target_metadata=metadata,
        version_table=table,
        transactional_ddl=True,  # in SQLite as well
    )
    with context.begin_transaction():
        context.run_migrations()
    connection.commit()


def revision_in(table: str, connection: Connection) -> str | None:
    """The version that a table says; None if there is no such table."""
    found = None
    if inspect(connection).has_table(table):
        found = connection.execute(text(f"SELECT version_num FROM {table}")).scalar()
    connection.rollback()
    return None if found is None else str(found)

"""Which version a database's tables have, and Alembic's configuration to bring them up to date."""

from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import Connection, inspect, text

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


def revision_in(table: str, connection: Connection) -> str | None:
    """The version that a table says; None if there is no such table."""
    found = None
    if inspect(connection).has_table(table):
        found = connection.execute(text(f"SELECT version_num FROM {table}")).scalar()
    connection.rollback()
    return None if found is None else str(found)

"""How Alembic runs the migrations: on the connection that it is given."""

from alembic import context
from sqlalchemy import Connection

from fedaccord.console.room.schema import METADATA, VERSION_TABLE


def run(connection: Connection) -> None:
    """Run all migrations or none."""
    context.configure(
        connection=connection,
        target_metadata=METADATA,
        version_table=VERSION_TABLE,
        transactional_ddl=True,  # in SQLite as well
    )
    with context.begin_transaction():
        context.run_migrations()
    connection.commit()


if hasattr(context, "config"):  # only while Alembic runs this file
    run(context.config.attributes["connection"])

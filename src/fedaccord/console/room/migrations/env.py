"""How Alembic runs the migrations of a room."""

from alembic import context

from fedaccord.console.room.schema import METADATA, VERSION_TABLE
from fedaccord.ledger.revisions import run_migrations

if hasattr(context, "config"):  # only while Alembic runs this file
    run_migrations(METADATA, VERSION_TABLE)

"""How Alembic runs the migrations of a ledger."""

from alembic import context

from fedaccord.ledger.revisions import run_migrations
from fedaccord.ledger.schema import METADATA, VERSION_TABLE

if hasattr(context, "config"):  # only while Alembic runs this file
    run_migrations(METADATA, VERSION_TABLE)

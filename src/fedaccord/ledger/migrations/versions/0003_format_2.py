"""Entries in format 2. The tables and existing entries are unchanged.

Entries are chained by their digests, and clients' copies hold those digests: nobody can rewrite
entries in another format and keep the chain. So only a ledger without entries is brought to this
version. One with entries is left to the fedaccord that wrote it; this one still reads it.
"""

import sqlalchemy as sa
from alembic import op

from fedaccord.errors import FedaccordError

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Reject a ledger with entries."""
    entries = sa.table("entries", sa.column("number"))
    if op.get_bind().execute(sa.select(entries.c.number).limit(1)).first() is not None:
        raise FedaccordError(
            "its entries are in format 1, which this fedaccord can show and export, but not "
            "continue: keep it, and start a new ledger"
        )


def downgrade() -> None:
    """Nothing to do: the tables are unchanged."""

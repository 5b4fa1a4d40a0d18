"""Entries in format 3, which know of suspensions. The tables and existing entries are unchanged.

As with format 2 (see 0003), only a ledger without entries is brought to this version.
"""

import sqlalchemy as sa
from alembic import op

from fedaccord.errors import FedaccordError

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Reject a ledger with entries."""
    entries = sa.table("entries", sa.column("number"))
    if op.get_bind().execute(sa.select(entries.c.number).limit(1)).first() is not None:
        raise FedaccordError(
            "its entries are in format 2, which this fedaccord can show and export, but not "
            "continue: keep it, and start a new ledger"
        )


def downgrade() -> None:
    """Nothing to do: the tables are unchanged."""

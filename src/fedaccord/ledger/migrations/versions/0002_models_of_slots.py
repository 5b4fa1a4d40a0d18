"""The models of several slots, not only the latest one."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Record the slot of each model. An existing model counts as the initial one."""
    op.add_column(
        "checkpoints", sa.Column("slot", sa.Integer(), nullable=False, server_default="0")
    )


def downgrade() -> None:
    """Drop the slots, and all models except the latest."""
    op.execute("DELETE FROM checkpoints WHERE number < (SELECT max(number) FROM checkpoints)")
    op.drop_column("checkpoints", "slot")

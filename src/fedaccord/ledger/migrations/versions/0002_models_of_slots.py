"""The models of several slots, not only the latest one."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Say which slot made a model. The one that is there counts as the model to begin with."""
    op.add_column(
        "checkpoints", sa.Column("slot", sa.Integer(), nullable=False, server_default="0")
    )


def downgrade() -> None:
    """Forget it, and all models but the latest."""
    op.execute("DELETE FROM checkpoints WHERE number < (SELECT max(number) FROM checkpoints)")
    op.drop_column("checkpoints", "slot")

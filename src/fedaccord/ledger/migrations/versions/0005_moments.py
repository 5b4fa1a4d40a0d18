"""What the server's optimiser remembers, beside the latest model. Entries are unchanged."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    """Add a column. Models that are there were averaged by FedAvg, which remembers nothing."""
    op.add_column("checkpoints", sa.Column("moments", sa.LargeBinary(), nullable=True))


def downgrade() -> None:
    """Drop the moments: a slot under way goes on as if its next round were its first."""
    op.drop_column("checkpoints", "moments")

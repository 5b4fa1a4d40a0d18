"""New keys of members count when the others have confirmed them."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Cards that are there count; those that replace one of them are to be confirmed."""
    op.add_column("cards", sa.Column("confirmed", sa.DateTime(), nullable=True))
    op.execute("UPDATE cards SET confirmed = at")
    op.create_table(
        "confirmations",
        sa.Column("client", sa.Text(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("by", sa.Text(), nullable=False),
        sa.Column("signature", sa.String(128), nullable=False),
        sa.Column("at", sa.DateTime(), nullable=False),
        sa.PrimaryKeyConstraint("client", "key", "by"),
    )

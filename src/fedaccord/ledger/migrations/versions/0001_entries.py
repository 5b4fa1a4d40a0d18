"""Entries that can be added but not changed, and the latest model."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

_NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")

_SQLITE = [
    f"""CREATE TRIGGER entries_no_{action.lower()} BEFORE {action} ON entries
    BEGIN SELECT RAISE(ABORT, 'a ledger is append-only'); END"""
    for action in ("UPDATE", "DELETE")
]
_POSTGRESQL = [
    """CREATE FUNCTION entries_append_only() RETURNS trigger AS
    $$ BEGIN RAISE EXCEPTION 'a ledger is append-only'; END $$ LANGUAGE plpgsql""",
    """CREATE TRIGGER entries_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON entries
    FOR EACH STATEMENT EXECUTE FUNCTION entries_append_only()""",
]


def upgrade() -> None:
    """Create the tables, and triggers that protect an honest writer from mistakes."""
    op.create_table(
        "entries",
        sa.Column("number", _NUMBER, primary_key=True),
        sa.Column("at", sa.String(40), nullable=False),
        sa.Column("kind", sa.String(40), nullable=False),
        sa.Column("slot", sa.Integer(), nullable=False),
        sa.Column("client", sa.Text(), nullable=True),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("previous", sa.String(64), nullable=False),
        sa.Column("digest", sa.String(64), nullable=False),
    )
    for column in ("kind", "slot", "client"):
        op.create_index(f"ix_entries_{column}", "entries", [column])
    op.create_table(
        "checkpoints",
        sa.Column("number", _NUMBER, primary_key=True),
        sa.Column("parameters", sa.LargeBinary(), nullable=False),
    )
    for statement in _SQLITE if op.get_bind().dialect.name == "sqlite" else _POSTGRESQL:
        op.execute(statement)


def downgrade() -> None:
    """Remove everything."""
    op.drop_table("checkpoints")
    op.drop_table("entries")
    if op.get_bind().dialect.name == "postgresql":
        op.execute("DROP FUNCTION entries_append_only")

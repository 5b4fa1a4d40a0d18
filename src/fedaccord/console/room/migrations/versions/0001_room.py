"""The tables of a room."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

_SQLITE = [
    f"""CREATE TRIGGER events_no_{action.lower()} BEFORE {action} ON events
    BEGIN SELECT RAISE(ABORT, 'what happened cannot be changed'); END"""
    for action in ("UPDATE", "DELETE")
]
_POSTGRESQL = [
    """CREATE FUNCTION events_append_only() RETURNS trigger AS
    $$ BEGIN RAISE EXCEPTION 'what happened cannot be changed'; END $$ LANGUAGE plpgsql""",
    """CREATE TRIGGER events_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON events
    FOR EACH STATEMENT EXECUTE FUNCTION events_append_only()""",
]


def _moment(name: str, *, needed: bool = True) -> sa.Column[object]:
    return sa.Column(name, sa.DateTime(), nullable=not needed)


def _text(name: str, *, needed: bool = True) -> sa.Column[str]:
    return sa.Column(name, sa.Text(), nullable=not needed)


def _digest(name: str = "digest") -> sa.Column[str]:
    return sa.Column(name, sa.String(64), nullable=False)


def _version() -> sa.Column[int]:
    return sa.Column("version", sa.Integer(), sa.ForeignKey("versions.number"), nullable=False)


def _number() -> sa.Column[int]:
    return sa.Column("number", sa.Integer(), primary_key=True, autoincrement=True)


def upgrade() -> None:
    """Create the tables, and triggers that keep what happened as it was written."""
    op.create_table(
        "room",
        sa.Column("id", sa.Integer(), primary_key=True),
        _text("address"),
        _text("name", needed=False),
    )
    op.create_table(
        "events",
        _number(),
        _moment("at"),
        sa.Column("role", sa.String(20), nullable=False),
        _text("client", needed=False),
        _text("what"),
        sqlite_autoincrement=True,
    )
    _create_terms()
    _create_access()
    for statement in _SQLITE if op.get_bind().dialect.name == "sqlite" else _POSTGRESQL:
        op.execute(statement)


def _create_terms() -> None:
    op.create_table(
        "versions",
        sa.Column("number", sa.Integer(), primary_key=True, autoincrement=False),
        _text("text"),
        _digest(),
        _text("proposed_by"),
        _text("note"),
        _moment("at"),
    )
    one, each = sa.PrimaryKeyConstraint, ("version", "client")
    op.create_table(
        "to_sign",
        _version(),
        _text("text"),
        _digest("terms"),
        _digest("app"),
        _moment("at"),
        one("version"),
    )
    op.create_table(
        "signatures", _version(), _text("client"), _text("text"), _moment("at"), one(*each)
    )
    op.create_table(
        "agreements", _version(), _digest(), _text("content"), _moment("at"), one("version")
    )
    op.create_table(
        "agreement_signatures",
        _version(),
        _text("client"),
        sa.Column("signature", sa.String(128), nullable=False),
        _moment("at"),
        one(*each),
    )
    op.create_table(
        "comments",
        _number(),
        _version(),
        _text("client", needed=False),
        _text("text"),
        _moment("at"),
    )


def _create_access() -> None:
    op.create_table(
        "invitations",
        _number(),
        _text("client"),
        _digest(),
        _moment("at"),
        _moment("expires"),
        _moment("used", needed=False),
        _moment("withdrawn", needed=False),
        sa.UniqueConstraint("digest"),
    )
    op.create_table(
        "cards",
        sa.Column("client", sa.Text(), primary_key=True),
        _text("text"),
        _moment("at"),
        _moment("compared", needed=False),
    )
    op.create_table(
        "observers",
        _number(),
        _text("name"),
        _digest(),
        _moment("at"),
        _moment("expires"),
        _moment("withdrawn", needed=False),
        sa.UniqueConstraint("digest"),
    )
    role = [sa.Column("role", sa.String(20), nullable=False), _text("client", needed=False)]
    op.create_table(
        "sessions",
        sa.Column("digest", sa.String(64), primary_key=True),
        *role,
        sa.Column("observer", sa.Integer(), sa.ForeignKey("observers.number"), nullable=True),
        _moment("expires"),
    )
    op.create_table(
        "tickets",
        sa.Column("digest", sa.String(64), primary_key=True),
        *(column.copy() for column in role),
        _moment("expires"),
    )
    op.create_table(
        "challenges",
        sa.Column("digest", sa.String(64), primary_key=True),
        _text("client"),
        _moment("expires"),
    )


def downgrade() -> None:
    """Remove everything."""
    for table in (
        "challenges",
        "tickets",
        "sessions",
        "observers",
        "cards",
        "invitations",
        "comments",
        "agreement_signatures",
        "agreements",
        "signatures",
        "to_sign",
        "versions",
        "events",
        "room",
    ):
        op.drop_table(table)
    if op.get_bind().dialect.name == "postgresql":
        op.execute("DROP FUNCTION events_append_only")

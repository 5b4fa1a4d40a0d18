"""Who has to confirm a new key is decided when it comes."""

import json
import tomllib

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Keep every replacement for good, with the members who were asked.

    Of keys that are not confirmed yet nobody noted what they replaced: everyone who was ever to
    sign with their owners is asked.
    """
    op.create_table(
        "new_keys",
        sa.Column("number", sa.Integer(), primary_key=True, autoincrement=True),
        sa.Column("client", sa.Text(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("asked", sa.Text(), nullable=False),
        sa.Column("at", sa.DateTime(), nullable=False),
        sa.Column("counted", sa.DateTime(), nullable=True),
        sa.UniqueConstraint("key"),
    )
    connection = op.get_bind()
    files = [_keys_in(text) for text in connection.scalars(sa.text("SELECT text FROM to_sign"))]
    confirmations = _table("confirmations", "client", "key", "by")
    confirmed: dict[tuple[str, str], list[str]] = {}
    for row in connection.execute(sa.select(confirmations).order_by("by")):
        confirmed.setdefault((row.client, row.key), []).append(row.by)
    cards = _table("cards", "client", "text", moments=("at", "confirmed"))
    new = _table("new_keys", "client", "key", "asked", moments=("at", "counted"))
    for card in connection.execute(sa.select(cards)).all():
        key = json.loads(card.text)["signing_key"]
        asked = confirmed.get((card.client, key), [])
        if card.confirmed is None:
            names = [name for keys in files if card.client in keys for name in keys]
            asked = [name for name in dict.fromkeys(names) if name != card.client]
        if asked:
            values = {"client": card.client, "key": key, "asked": json.dumps(asked)}
            connection.execute(new.insert(), values | {"at": card.at, "counted": card.confirmed})
    op.drop_column("cards", "confirmed")


def _table(name: str, *texts: str, moments: tuple[str, ...] = ()) -> sa.TableClause:
    columns = [sa.column(one, sa.Text()) for one in texts]
    return sa.table(name, *columns, *(sa.column(one, sa.DateTime()) for one in moments))


def _keys_in(text: str) -> dict[str, str]:
    found: dict[str, str] = tomllib.loads(text)["keys"]["clients"]
    return found

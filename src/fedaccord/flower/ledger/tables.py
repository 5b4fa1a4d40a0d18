"""The two tables: the entries, and the models of the latest slots."""

from sqlalchemy import BigInteger, Column, Integer, LargeBinary, MetaData, String, Table, Text

METADATA = MetaData()

ENTRIES = Table(
    "entries",
    METADATA,
    Column("number", BigInteger().with_variant(Integer, "sqlite"), primary_key=True),
    Column("at", String(40), nullable=False),
    Column("kind", String(40), nullable=False, index=True),
    Column("slot", Integer, nullable=False, index=True),
    Column("client", Text, nullable=True, index=True),
    Column("text", Text, nullable=False),
    Column("previous", String(64), nullable=False),
    Column("digest", String(64), nullable=False),
)

CHECKPOINTS = Table(
    "checkpoints",
    METADATA,
    Column("number", BigInteger().with_variant(Integer, "sqlite"), primary_key=True),
    Column("slot", Integer, nullable=False, server_default="0"),
    Column("parameters", LargeBinary, nullable=False),
)
"""The models of the latest slots, each with the number of the last entry written with it."""

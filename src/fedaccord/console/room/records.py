"""What a room's database has, as records, and how they are read in a transaction."""

from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache

from sqlalchemy import Connection, func, select

from fedaccord.console.room import schema
from fedaccord.console.room.versions import Version, terms_of
from fedaccord.console.web.rules import posts_amounts
from fedaccord.deployment.cards import Card, TermsSignature


@dataclass(frozen=True)
class ToSignRow:
    """The file to sign."""

    version: int
    text: str
    terms: str
    """The digest of the terms, with keys."""
    app: str
    """The digest of the app."""


@dataclass(frozen=True)
class AgreementRow:
    """The agreement file of a version, and members' signatures on it."""

    version: int
    digest: str
    content: str
    signatures: dict[str, str]


@dataclass(frozen=True)
class Comment:
    """What somebody said about a version."""

    number: int
    version: int
    client: str | None
    """None: the coordinator."""
    text: str
    at: datetime


@dataclass(frozen=True)
class CardRow:
    """A member's card."""

    card: Card
    at: datetime
    compared: datetime | None
    confirmed: datetime | None
    """None: its key replaces an earlier one, and not all other members have confirmed it."""
    confirmations: dict[str, str]
    """Signatures of other members that this key is its owner's, by their names."""


@dataclass(frozen=True)
class Event:
    """Something that happened."""

    number: int
    at: datetime
    role: str
    client: str | None
    what: str


@dataclass
class Snapshot:
    """The room as it is at one moment."""

    name: str | None
    versions: list[Version]
    cards: dict[str, CardRow]
    to_sign: ToSignRow | None
    """Of the version that is put forward."""
    signatures: dict[int, dict[str, TermsSignature]] = field(default_factory=dict)
    """By version and member."""
    signed_agreement: frozenset[str] = frozenset()
    """Who has signed the agreement file of the version that is put forward, if it has one."""

    @property
    def current(self) -> Version | None:
        """The version that is put forward."""
        return self.versions[-1] if self.versions else None

    @property
    def clients(self) -> tuple[str, ...]:
        """The members, as the version that is put forward has them."""
        return self.current.terms.clients if self.current else ()

    @property
    def without_card(self) -> list[str]:
        """Who has sent no card."""
        return [name for name in self.clients if name not in self.cards]

    @property
    def unconfirmed(self) -> dict[str, list[str]]:
        """Whose new keys do not count yet, and which other members have not confirmed them.

        Only members whose own keys count can confirm others', or one person with two new cards
        could confirm each with the other.
        """
        counting = [name for name in self.clients if self._counts(name)]
        return {
            name: [one for one in counting if one not in self.cards[name].confirmations]
            for name in self.clients
            if name in self.cards and not self._counts(name)
        }

    def _counts(self, name: str) -> bool:
        return name in self.cards and self.cards[name].confirmed is not None

    @property
    def signed_terms(self) -> list[str]:
        """Who has signed the terms of the version that is put forward."""
        found = self.signatures.get(self.current.number, {}) if self.current else {}
        return [name for name in self.clients if name in found]

    @property
    def signed(self) -> list[str]:
        """Who has signed all of that version: its terms, and its agreement file if it has one."""
        if self.current is None or not posts_amounts(self.current.terms):
            return self.signed_terms
        return [name for name in self.signed_terms if name in self.signed_agreement]

    @property
    def unsigned(self) -> list[str]:
        """Who has not."""
        signed = set(self.signed)
        return [name for name in self.clients if name not in signed]

    @property
    def complete(self) -> bool:
        """Whether everybody has signed, so that slots may run."""
        return bool(self.versions) and self.to_sign is not None and not self.unsigned

    def last_signed(self, client: str) -> int | None:
        """The latest version that a member signed."""
        found = [number for number, who in self.signatures.items() if client in who]
        return max(found, default=None)


def last_version(connection: Connection) -> int:
    """The number of the version that is put forward; 0: there is none."""
    return int(connection.execute(select(func.max(schema.VERSIONS.c.number))).scalar() or 0)


def clients_in(connection: Connection) -> tuple[str, ...]:
    """The members, as the version that is put forward has them."""
    query = select(schema.VERSIONS.c.text).order_by(schema.VERSIONS.c.number.desc()).limit(1)
    text = connection.execute(query).scalar()
    return () if text is None else terms_of(str(text)).clients


def snapshot_of(connection: Connection) -> Snapshot:
    """The room as a transaction sees it."""
    versions, cards, signed = schema.VERSIONS.c, schema.CARDS, schema.SIGNATURES
    columns = (
        versions.number,
        versions.text,
        versions.proposed_by,
        versions.note,
        versions.at,
    )
    found = Snapshot(
        connection.execute(select(schema.ROOM.c.name)).scalar(),
        [Version(*row) for row in connection.execute(select(*columns).order_by(versions.number))],
        {
            row.client: CardRow(_card(row.text), row.at, row.compared, row.confirmed, {})
            for row in connection.execute(select(cards))
        },
        None,
    )
    for row in connection.execute(select(schema.CONFIRMATIONS)):
        card = found.cards.get(row.client)
        if card is not None and card.card.signing_key == row.key:
            card.confirmations[row.by] = row.signature
    for row in connection.execute(select(signed.c.version, signed.c.client, signed.c.text)):
        signature = _signature(row.text)
        found.signatures.setdefault(row.version, {})[row.client] = signature
    if found.current is not None:
        table = schema.TO_SIGN.c
        query = select(table.version, table.text, table.terms, table.app)
        one = connection.execute(query.where(table.version == found.current.number)).first()
        found.to_sign = None if one is None else ToSignRow(*one)
        by = schema.AGREEMENT_SIGNATURES.c
        query = select(by.client).where(by.version == found.current.number)
        found.signed_agreement = frozenset(map(str, connection.execute(query).scalars()))
    return found


@lru_cache(maxsize=1_000)
def _card(text: str) -> Card:
    """Cards and signatures are read at every look at the room, and hardly ever change."""
    return Card.model_validate_json(text)


@lru_cache(maxsize=1_000)
def _signature(text: str) -> TermsSignature:
    return TermsSignature.model_validate_json(text)


def agreement_of(connection: Connection) -> AgreementRow | None:
    """The agreement file of the version that is put forward."""
    table, signed = schema.AGREEMENTS.c, schema.AGREEMENT_SIGNATURES.c
    version = last_version(connection)
    query = select(table.digest, table.content).where(table.version == version)
    row = connection.execute(query).first()
    if row is None:
        return None
    by = select(signed.client, signed.signature).where(signed.version == version)
    signatures = {str(one.client): str(one.signature) for one in connection.execute(by)}
    return AgreementRow(version, row.digest, row.content, signatures)

"""What a room's database has, as records, and how they are read in a transaction."""

import json
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache

from sqlalchemy import Connection, func, select

from fedaccord.console.room import schema
from fedaccord.console.room.versions import Version, terms_of
from fedaccord.console.web.rules import posts_amounts
from fedaccord.deployment.cards import Card, TermsSignature
from fedaccord.files.reading import parse_toml


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
class NewKey:
    """A key that replaced an earlier one of a member's."""

    key: str
    at: datetime
    asked: tuple[str, ...]
    """The members who have to confirm it before it counts."""
    counted: datetime | None
    """Since when it counts; None: some of them have not confirmed it."""
    confirmations: dict[str, str]
    """Signatures of other members that this key is its owner's, by their names."""

    @property
    def confirmed_by(self) -> list[str]:
        """Which of those who were asked have confirmed it."""
        return [name for name in self.asked if name in self.confirmations]

    @property
    def missing(self) -> list[str]:
        """Which of them have not."""
        return [name for name in self.asked if name not in self.confirmations]


@dataclass(frozen=True)
class CardRow:
    """A member's card."""

    card: Card
    at: datetime
    compared: datetime | None
    new_keys: list[NewKey]
    """All keys with which this member replaced earlier ones, the first first."""

    @property
    def new(self) -> NewKey | None:
        """That of the card, if its key replaced an earlier one."""
        return next((one for one in self.new_keys if one.key == self.card.signing_key), None)

    @property
    def counts(self) -> bool:
        """Whether its owner can sign with it."""
        return self.new is None or self.new.counted is not None


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
        """Whose new keys do not count yet, and who has still to confirm them."""
        new = {name: self.cards[name].new for name in self.clients if name in self.cards}
        return {
            name: one.missing
            for name, one in new.items()
            if one is not None and one.counted is None
        }

    @property
    def unable(self) -> list[str]:
        """Who is asked to confirm new keys but cannot: it left the terms, or its own keys are new.

        No terms release anybody. Otherwise whoever proposes terms could leave out all who know
        better, or replace their keys as well.
        """
        waiting = self.unconfirmed
        asked = dict.fromkeys(name for missing in waiting.values() for name in missing)
        return [name for name in asked if name in waiting or name not in self.clients]

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
    new = _new_keys(connection)
    found = Snapshot(
        connection.execute(select(schema.ROOM.c.name)).scalar(),
        [Version(*row) for row in connection.execute(select(*columns).order_by(versions.number))],
        {
            row.client: CardRow(_card(row.text), row.at, row.compared, new.get(row.client, []))
            for row in connection.execute(select(cards))
        },
        None,
    )
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


def _new_keys(connection: Connection) -> dict[str, list[NewKey]]:
    """All keys that replaced earlier ones, by member, the first first."""
    signatures: dict[tuple[str, str], dict[str, str]] = {}
    for row in connection.execute(select(schema.CONFIRMATIONS)):
        signatures.setdefault((row.client, row.key), {})[row.by] = row.signature
    found: dict[str, list[NewKey]] = {}
    for row in connection.execute(select(schema.NEW_KEYS).order_by(schema.NEW_KEYS.c.number)):
        given = signatures.get((row.client, row.key), {})
        one = NewKey(row.key, row.at, tuple(json.loads(row.asked)), row.counted, given)
        found.setdefault(row.client, []).append(one)
    return found


@dataclass(frozen=True)
class KeysToSign:
    """The members' keys in a file to sign."""

    version: int
    keys: dict[str, str]
    """By name."""


def keys_to_sign(connection: Connection) -> list[KeysToSign]:
    """The keys that were ever put before members to sign, by version."""
    table = schema.TO_SIGN.c
    rows = connection.execute(select(table.version, table.text).order_by(table.version))
    return [KeysToSign(row.version, _keys_in(row.text)) for row in rows]


@lru_cache(maxsize=64)
def _keys_in(text: str) -> dict[str, str]:
    return dict(parse_toml(text, "the file to sign")["keys"]["clients"])


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

"""How somebody gets into the room: invitations, links of observers, challenges, tickets, sessions.

Each is a secret that only its owner has; the room keeps its digest, and when it ends.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal

from sqlalchemy import ColumnElement, Connection, Table, delete, select
from sqlalchemy.sql.dml import ReturningDelete
from starlette.exceptions import HTTPException

from fedaccord.console.room import moments, schema
from fedaccord.console.room.access import Role, Viewer
from fedaccord.console.room.moments import digest_of, new_secret
from fedaccord.console.room.records import CardRow, Snapshot, clients_in, keys_to_sign, snapshot_of
from fedaccord.console.room.store import COORDINATOR, Store
from fedaccord.console.room.wire import ConfirmationSent, confirmation_content
from fedaccord.deployment.cards import Card
from fedaccord.deployment.certificates import read_client_certificate
from fedaccord.errors import InvalidInput
from fedaccord.signing.keys import is_signed

_GONE = 410
_CHALLENGES = 10_000
"""That are open at once."""


@dataclass(frozen=True)
class Link:
    """An invitation, or the link of an observer."""

    number: int
    name: str
    at: datetime
    expires: datetime
    used: datetime | None
    withdrawn: datetime | None

    def state(self, now: datetime) -> str:
        """Whether it still works, in a word."""
        if self.withdrawn is not None:
            return "withdrawn"
        if self.used is not None:
            return "used"
        return "expired" if self.expires <= now else "open"


class Doors:
    """All ways into a room, in its database."""

    def __init__(self, store: Store) -> None:
        """`store` is the room's."""
        self._store, self._database, self._clock = store, store.database, store.clock
        self.ended: Callable[[], None] = lambda: None
        """Is called when sessions were ended before their time."""

    # --- Invitations and cards -------------------------------------------------------------

    def invite(self, client: str, lasts: timedelta = moments.INVITATION) -> str:
        """A new invitation of a member, which replaces one that is open; returns its code."""
        code, now, table = new_secret(), self._clock(), schema.INVITATIONS
        with self._database.writing() as connection:
            if client not in snapshot_of(connection).clients:
                raise HTTPException(404, f"there is no member {client!r} in the terms")
            _withdraw(connection, table, table.c.client == client, now)
            values = {"client": client, "digest": digest_of(code), "at": now}
            connection.execute(table.insert(), values | {"expires": now + lasts})
            self._store.note(connection, COORDINATOR, f"made a link to invite {client}")
        return code

    def withdraw_invitation(self, number: int) -> None:
        """Make an invitation useless."""
        table = schema.INVITATIONS
        with self._database.writing() as connection:
            if (
                client := _withdraw(connection, table, table.c.number == number, self._clock())
            ) is None:
                raise HTTPException(_GONE, "this invitation does not work any more as it is")
            self._store.note(connection, COORDINATOR, f"withdrew the invitation of {client}")

    def invitations(self) -> dict[str, Link]:
        """The latest invitation of each member."""
        columns = schema.INVITATIONS.c
        query = select(
            columns.number,
            columns.client,
            columns.at,
            columns.expires,
            columns.used,
            columns.withdrawn,
        ).order_by(columns.number)
        with self._database.reading() as connection:
            return {row.client: Link(*row) for row in connection.execute(query)}

    def invited(self, code: str) -> str:
        """Who is invited with this code."""
        with self._database.reading() as connection:
            return _invited(connection, code, self._clock())

    def take_card(self, code: str, card: Card, server_key: str) -> None:
        """Take a member's card; its invitation is used up."""
        table = schema.CARDS
        with self._database.writing() as connection:
            now = self._clock()
            client = _invited(connection, code, now)
            known = snapshot_of(connection)
            keys = {one: row.card.signing_key for one, row in known.cards.items() if one != client}
            _check_card(card, client, known.name or "", keys | {"the server": server_key})
            before = known.cards.get(client)
            change = _change(connection, card, before)
            same = before if change == "same key" else None
            connection.execute(delete(table).where(table.c.client == client))
            values = {
                "client": client,
                "text": card.model_dump_json(indent=1),
                "at": now,
                "compared": same.compared if same else None,
            }
            connection.execute(table.insert(), values)
            if change == "new key" and before is not None:
                asked = json.dumps(_asked(connection, known, client, before))
                new = {"client": client, "key": card.signing_key, "asked": asked, "at": now}
                connection.execute(schema.NEW_KEYS.insert(), new)
            used = schema.INVITATIONS.update().values(used=now)
            connection.execute(used.where(schema.INVITATIONS.c.digest == digest_of(code)))
            self._end_sessions(connection, client)
            who = Viewer("member", client)
            what = "sent a card with a new key, which the others have to confirm"
            self._store.note(
                connection,
                who,
                f"{what if change == 'new key' else 'sent its card'}, {card.fingerprint}",
            )
            if known.to_sign is not None and change != "same key":
                self._store.propose_again_in(connection, f"{client} has a new key")

    def compare(self, client: str, fingerprint: str) -> None:
        """Note that a fingerprint was compared over another channel."""
        with self._database.writing() as connection:
            row = snapshot_of(connection).cards.get(client)
            if row is None or row.card.fingerprint != fingerprint:
                raise HTTPException(409, f"{client} has another card by now; look at it again")
            table = schema.CARDS
            changed = table.update().where(table.c.client == client)
            connection.execute(changed.values(compared=self._clock()))
            self._store.note(connection, COORDINATOR, f"compared the fingerprint of {client}")

    def confirm(self, by: str, sent: ConfirmationSent) -> Snapshot:
        """Take a member's word that a new key is another member's own."""
        client, table = sent.client, schema.CONFIRMATIONS
        with self._database.writing() as connection:
            known = snapshot_of(connection)
            row = known.cards.get(client)
            if row is None or client not in known.clients or row.card.signing_key != sent.key:
                raise HTTPException(409, f"{client} has another card by now; look at it again")
            if by == client or by in known.unconfirmed:
                raise HTTPException(403, "new keys are confirmed by members whose keys count")
            content = confirmation_content(room=known.name or "", client=client, key=sent.key)
            if not is_signed(known.cards[by].card.signing_key, sent.signature, content):
                raise HTTPException(422, f"this is not a signature with the key of {by}")
            if row.new is None or by not in row.new.confirmations:
                values = {"client": client, "key": sent.key, "by": by, "at": self._clock()}
                connection.execute(table.insert(), values | {"signature": sent.signature})
                what = f"confirmed that {client} has a new key, {row.card.fingerprint}"
                self._store.note(connection, Viewer("member", by), what)
            return self._counted(connection, client)

    def _counted(self, connection: Connection, client: str) -> Snapshot:
        """The room, in which a new key counts from now on if everyone has confirmed it."""
        now, table = snapshot_of(connection), schema.NEW_KEYS
        new = now.cards[client].new
        if new is None or new.counted is not None or not new.asked or new.missing:
            return now
        changed = table.update().where(table.c.key == new.key)
        connection.execute(changed.values(counted=self._clock()))
        by = ", ".join(new.asked)
        self._store.note(connection, None, f"counts the new keys of {client}, confirmed by {by}")
        return snapshot_of(connection)

    # --- Observers -------------------------------------------------------------------------

    def invite_observer(self, name: str, lasts: timedelta = moments.OBSERVER) -> str:
        """A new link for an observer; returns its code."""
        code, now = new_secret(), self._clock()
        with self._database.writing() as connection:
            values = {"name": name, "digest": digest_of(code), "at": now, "expires": now + lasts}
            connection.execute(schema.OBSERVERS.insert(), values)
            self._store.note(connection, COORDINATOR, "made a link for an observer")
        return code

    def observers(self) -> list[Link]:
        """All observers' links, the latest first."""
        columns = schema.OBSERVERS.c
        query = select(columns.number, columns.name, columns.at, columns.expires, columns.withdrawn)
        with self._database.reading() as connection:
            rows = connection.execute(query.order_by(columns.number.desc())).all()
        return [Link(*row[:4], None, row[4]) for row in rows]

    def withdraw_observer(self, number: int) -> None:
        """Make an observer's link useless, and end the sessions that it opened."""
        table = schema.OBSERVERS
        with self._database.writing() as connection:
            if _withdraw(connection, table, table.c.number == number, self._clock()) is None:
                raise HTTPException(_GONE, "this link was withdrawn already")
            opened = schema.SESSIONS.c.observer == number
            connection.execute(delete(schema.SESSIONS).where(opened))
            self._database.afterwards(connection, self.ended)
            self._store.note(connection, COORDINATOR, "withdrew the link of an observer")

    def observe(self, code: str) -> str:
        """Open a session with an observer's link, until the link ends at most."""
        table = schema.OBSERVERS
        with self._database.writing() as connection:
            now = self._clock()
            row = connection.execute(select(table).where(table.c.digest == digest_of(code))).first()
            if row is None or row.withdrawn is not None or row.expires <= now:
                raise _no_longer("link")
            ends = min(now + moments.SESSION, row.expires)
            return _open(connection, Viewer("observer"), ends, observer=row.number)

    # --- Logging in ------------------------------------------------------------------------

    def challenge(self, client: str) -> str:
        """Something to sign; for a name that is not known it leads nowhere.

        Anyone may ask, so what expired is deleted, and the oldest where there are very many.
        """
        challenge, now = new_secret(), self._clock()
        table = schema.CHALLENGES
        oldest = select(table.c.expires).order_by(table.c.expires.desc()).offset(_CHALLENGES - 1)
        with self._database.writing() as connection:
            ended = connection.execute(oldest.limit(1)).scalar() or now
            connection.execute(delete(table).where(table.c.expires <= max(ended, now)))
            values = {"digest": digest_of(challenge), "client": client}
            connection.execute(table.insert(), values | {"expires": now + moments.CHALLENGE})
        return challenge

    def log_in(
        self, client: str, challenge: str, signature: str, content: bytes
    ) -> tuple[str, datetime]:
        """Open a session with a signed challenge, which is used up, right or wrong."""
        used = _take(schema.CHALLENGES, challenge)
        with self._database.writing() as connection:
            now = self._clock()
            row = connection.execute(used).first()
            known = snapshot_of(connection)
            fits = row is not None and row.expires > now and row.client == client
            card = known.cards.get(client)
            if (
                fits
                and card is not None
                and client in known.clients
                and is_signed(card.card.signing_key, signature, content)
            ):
                ends = now + moments.SESSION
                return _open(connection, Viewer("member", client), ends), ends
        raise HTTPException(401, "this is not a signed challenge of a member's")

    def ticket(self, viewer: Viewer, lasts: timedelta = moments.TICKET) -> str:
        """What opens one session for the same person."""
        ticket, now, table = new_secret(), self._clock(), schema.TICKETS
        with self._database.writing() as connection:
            connection.execute(delete(table).where(table.c.expires <= now))
            values = {"digest": digest_of(ticket), "role": viewer.role, "client": viewer.client}
            connection.execute(table.insert(), values | {"expires": now + lasts})
        return ticket

    def enter(self, ticket: str) -> str:
        """Open a session with a ticket, which is used up."""
        with self._database.writing() as connection:
            now = self._clock()
            row = connection.execute(_take(schema.TICKETS, ticket)).first()
            if row is not None and row.expires > now:
                viewer = Viewer(_role(row.role), row.client)
                return _open(connection, viewer, now + moments.SESSION)
        raise _no_longer("link")

    # --- Sessions --------------------------------------------------------------------------

    def session(self, token: str) -> Viewer | None:
        """Whose session a token is, if it has not ended."""
        return self._session(digest_of(token))

    def is_open(self, viewer: Viewer) -> bool:
        """Whether a session that was there before is still there."""
        return self._session(viewer.session) is not None

    def _session(self, digest: str) -> Viewer | None:
        columns = schema.SESSIONS.c
        query = select(columns.role, columns.client, columns.expires, columns.observer)
        with self._database.reading() as connection:
            row = connection.execute(query.where(columns.digest == digest)).first()
            if row is None or row.expires <= self._clock():
                return None
            if row.role == "member" and row.client not in clients_in(connection):
                return None
        return Viewer(_role(row.role), row.client, digest, row.observer)

    def leave(self, viewer: Viewer) -> None:
        """End a session."""
        table = schema.SESSIONS
        with self._database.writing() as connection:
            connection.execute(delete(table).where(table.c.digest == viewer.session))
            self._database.afterwards(connection, self.ended)

    def _end_sessions(self, connection: Connection, client: str) -> None:
        """Whoever had the old key is no longer in the room."""
        for table in (schema.SESSIONS, schema.TICKETS, schema.CHALLENGES):
            connection.execute(delete(table).where(table.c.client == client))
        self._database.afterwards(connection, self.ended)


def _role(word: str) -> Role:
    roles: dict[str, Role] = {
        "observer": "observer",
        "member": "member",
        "coordinator": "coordinator",
    }
    return roles[word]


def _open(
    connection: Connection, viewer: Viewer, ends: datetime, observer: int | None = None
) -> str:
    """A new session; returns its token. Those that ended are deleted."""
    token, table = new_secret(), schema.SESSIONS
    connection.execute(delete(table).where(table.c.expires <= ends - moments.SESSION))
    values = {
        "digest": digest_of(token),
        "role": viewer.role,
        "client": viewer.client,
        "observer": observer,
        "expires": ends,
    }
    connection.execute(table.insert(), values)
    return token


def _take(table: Table, secret: str) -> ReturningDelete[Any]:
    """Deletes a row that is good for once, and returns it."""
    return delete(table).where(table.c.digest == digest_of(secret)).returning(*table.c)


def _withdraw(
    connection: Connection, table: Table, which: ColumnElement[bool], now: datetime
) -> str | None:
    """Withdraw links that are open; returns the name in one of them, or None."""
    name = table.c.client if "client" in table.c else table.c.name
    open_ = which & table.c.withdrawn.is_(None)
    if "used" in table.c:
        open_ &= table.c.used.is_(None)
    found = connection.execute(select(name).where(open_)).scalar()
    connection.execute(table.update().where(open_).values(withdrawn=now))
    return None if found is None else str(found)


def _invited(connection: Connection, code: str, now: datetime) -> str:
    table = schema.INVITATIONS
    row = connection.execute(select(table).where(table.c.digest == digest_of(code))).first()
    if row is None or row.used is not None or row.withdrawn is not None or row.expires <= now:
        raise _no_longer("invitation")
    return str(row.client)


def _no_longer(what: str) -> HTTPException:
    """One answer for all reasons, so that guessing tells nothing."""
    return HTTPException(
        _GONE,
        f"This {what} is not known, or was used, withdrawn, or has expired: ask for a new one.",
    )


def _change(
    connection: Connection, card: Card, before: CardRow | None
) -> Literal["first", "same key", "new key"]:
    """What a card changes: a key that was in terms to sign is replaced with others' word only.

    A key that was replaced does not come back, or old signatures would fit what is put forward.
    """
    if before is None:
        known = set[str]()
    elif before.card.signing_key == card.signing_key:
        return "same key"  # such as with a new certificate, which that key has signed
    else:
        known = {one.key for one in before.new_keys}
    known |= {key for file in keys_to_sign(connection) for key in file.keys.values()}
    if card.signing_key in known:
        raise InvalidInput("the card has a key that was replaced before: make new keys")
    return "new key" if before is not None and before.card.signing_key in known else "first"


def _asked(connection: Connection, known: Snapshot, client: str, before: CardRow) -> list[str]:
    """Who has to confirm a new key: everyone else who knew the one before.

    They are the members in the files to sign that had that key, from the last one on that its owner
    signed: by that the owner said with whom it is. What is proposed after the key was replaced
    changes nothing, and a key that never counted makes nobody known.
    """
    if before.new is not None and before.new.counted is None:
        return list(before.new.asked)
    key = before.card.signing_key
    files = [file for file in keys_to_sign(connection) if file.keys.get(client) == key]
    signed = [file.version for file in files if client in known.signatures.get(file.version, {})]
    names = [name for file in files if file.version >= max(signed, default=0) for name in file.keys]
    if before.new is not None and not signed:
        names += before.new.asked
    return [name for name in dict.fromkeys(names) if name != client]


def _check_card(card: Card, client: str, consortium: str, keys: dict[str, str]) -> None:
    """Refuse a card that is not this member's, or not whole."""
    problems = []
    if card.client != client:
        problems.append(f"the invitation is for {client}, but the card is of {card.client}")
    if card.consortium != consortium:
        problems.append(f"the card is for {card.consortium!r}, not for {consortium!r}")
    if not is_signed(card.signing_key, card.signature, card.content):
        problems.append("the card is not signed by its own key, so it was changed")
    problems += [
        f"the card has the key of {who}" for who, key in keys.items() if key == card.signing_key
    ]
    try:
        read_client_certificate(card.certificate.encode("ascii"))
    except (InvalidInput, UnicodeEncodeError) as error:
        said = error.problems[0] if isinstance(error, InvalidInput) else "is not a certificate"
        problems.append(f"its certificate {said}")
    if problems:
        raise InvalidInput(problems)

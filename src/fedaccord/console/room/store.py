"""What a room keeps: its terms, comments, cards and signatures, and what happened.

Every method is one transaction. Whether somebody may do something is decided where it is done, in
the same transaction: an invitation that was used up, or a version that is no longer put forward,
cannot slip through between a look and a change.
"""

from collections.abc import Callable

from sqlalchemy import Connection, func, select
from starlette.exceptions import HTTPException

from fedaccord.console.room import schema
from fedaccord.console.room.access import Viewer
from fedaccord.console.room.database import Database
from fedaccord.console.room.moments import Clock, wall_clock
from fedaccord.console.room.records import (
    AgreementRow,
    Comment,
    Event,
    Snapshot,
    ToSignRow,
    agreement_of,
    last_version,
    snapshot_of,
)
from fedaccord.console.room.versions import terms_of
from fedaccord.deployment.cards import TermsSignature

_TAKEN = 409
COORDINATOR = Viewer("coordinator")


def check_latest(known: int, after: int) -> None:
    """Refuse a change to another version than the latest."""
    if known != after:
        raise HTTPException(_TAKEN, f"version {known} was put forward meanwhile; look at it first")


class Store:
    """A room's database."""

    def __init__(self, database: Database, clock: Clock = wall_clock) -> None:
        """`clock` tells the time."""
        self.database, self.clock = database, clock
        self._name: str | None = None
        self.told: Callable[[int], None] = lambda _: None
        """Is called with the number of the last event when there is a new one."""

    # --- The room --------------------------------------------------------------------------

    def set_address(self, address: str) -> None:
        """Note where the room is reached."""
        with self.database.writing() as connection:
            if connection.execute(select(schema.ROOM.c.id)).first() is None:
                connection.execute(schema.ROOM.insert(), {"id": 1, "address": address})
            else:
                connection.execute(schema.ROOM.update().values(address=address))

    def address(self) -> str | None:
        """Where the room is reached, if it ever was."""
        with self.database.reading() as connection:
            found = connection.execute(select(schema.ROOM.c.address)).scalar()
        return None if found is None else str(found)

    def name(self) -> str | None:
        """What the consortium is called, if the room is created."""
        if self._name is None:
            with self.database.reading() as connection:
                self._name = connection.execute(select(schema.ROOM.c.name)).scalar()
        return self._name

    def create(self, name: str, text: str, write: Callable[[], None]) -> None:
        """Give the room its name and its first terms; `write` writes the server's directory.

        If it cannot, nothing happened.
        """
        with self.database.writing() as connection:
            if connection.execute(select(schema.ROOM.c.name)).scalar() is not None:
                raise HTTPException(_TAKEN, "the room exists already")
            connection.execute(schema.ROOM.update().values(name=name))
            self._propose(connection, text, COORDINATOR, "")
            self.note(
                connection, COORDINATOR, "created the room and proposed version 1 of the terms"
            )
            write()

    def snapshot(self) -> Snapshot:
        """The room as it is."""
        with self.database.reading() as connection:
            return snapshot_of(connection)

    # --- Terms -----------------------------------------------------------------------------

    def propose(self, text: str, by: Viewer, note: str, after: int) -> int:
        """Put a new version forward; refused if `after` is not the version that it changes."""
        with self.database.writing() as connection:
            check_latest(last_version(connection), after)
            number = self._propose(connection, text, by, note)
            self.note(connection, by, f"proposed version {number} of the terms")
        return number

    def propose_again(self, after: int, reason: str) -> None:
        """Put the same terms forward once more, since what is to be signed has changed."""
        with self.database.writing() as connection:
            if last_version(connection) == after:
                self.propose_again_in(connection, reason)

    def propose_again_in(self, connection: Connection, reason: str) -> None:
        """The same, as a part of a transaction."""
        query = select(schema.VERSIONS.c.text).order_by(schema.VERSIONS.c.number.desc()).limit(1)
        text = str(connection.execute(query).scalar_one())
        number = self._propose(connection, text, Viewer("coordinator"), reason)
        self.note(connection, None, f"puts version {number} forward: {reason}")

    def _propose(self, connection: Connection, text: str, by: Viewer, note: str) -> int:
        number = last_version(connection) + 1
        row = {
            "number": number,
            "text": text,
            "digest": terms_of(text).digest,
            "proposed_by": by.name,
            "note": note,
            "at": self.clock(),
        }
        connection.execute(schema.VERSIONS.insert(), row)
        return number

    def put_to_sign(self, row: ToSignRow) -> None:
        """Keep the file to sign of a version, unless there is one."""
        with self.database.writing() as connection:
            known = select(schema.TO_SIGN.c.version).where(schema.TO_SIGN.c.version == row.version)
            if connection.execute(known).first() is not None:
                return
            values = {
                "version": row.version,
                "text": row.text,
                "terms": row.terms,
                "app": row.app,
                "at": self.clock(),
            }
            connection.execute(schema.TO_SIGN.insert(), values)
            self.note(connection, None, f"offers version {row.version} to be signed")

    def comment(self, by: Viewer, version: int, text: str) -> Comment:
        """Add what somebody says about a version."""
        with self.database.writing() as connection:
            if not 1 <= version <= last_version(connection):
                raise HTTPException(404, f"there is no version {version} of the terms")
            at = self.clock()
            values = {"version": version, "client": by.client, "text": text, "at": at}
            insert = schema.COMMENTS.insert().returning(schema.COMMENTS.c.number)
            number = int(connection.execute(insert, values).scalar_one())
            self.note(connection, by, f"commented on version {version}")
        return Comment(number, version, by.client, text, at)

    def comments(self) -> list[Comment]:
        """All comments, in order."""
        columns = schema.COMMENTS.c
        query = select(
            columns.number, columns.version, columns.client, columns.text, columns.at
        ).order_by(columns.number)
        with self.database.reading() as connection:
            return [Comment(*row) for row in connection.execute(query)]

    # --- Signatures ------------------------------------------------------------------------

    def sign(self, client: str, signature: TermsSignature, by: Viewer | None = None) -> Snapshot:
        """Take a member's signature on the version that is put forward.

        Without `by` the member sent it itself. The same signature again changes nothing; another
        one for the same version is refused.
        """
        with self.database.writing() as connection:
            now = snapshot_of(connection)
            _check_signature(now, client, signature)
            assert now.current is not None  # `_check_signature` refuses without
            version = now.current.number
            known = now.signatures.get(version, {}).get(client)
            if known is not None:
                if known != signature:
                    raise HTTPException(_TAKEN, f"{client} has signed version {version} already")
                return now
            values = {
                "version": version,
                "client": client,
                "text": signature.model_dump_json(indent=1),
                "at": self.clock(),
            }
            connection.execute(schema.SIGNATURES.insert(), values)
            if by is None:
                self.note(connection, Viewer("member", client), f"signed version {version}")
            else:
                what = f"handed in the signature of {client} on version {version}"
                self.note(connection, by, what)
            now.signatures.setdefault(version, {})[client] = signature
            self._note_if_complete(connection, now)
        return now

    def _note_if_complete(self, connection: Connection, now: Snapshot) -> None:
        if now.complete and now.current is not None:
            self.note(connection, None, f"has everyone's signature on version {now.current.number}")

    def put_agreement(self, version: int, digest: str, content: str) -> None:
        """Keep the agreement file of a version, unless there is one."""
        table = schema.AGREEMENTS
        with self.database.writing() as connection:
            known = select(table.c.version).where(table.c.version == version)
            if connection.execute(known).first() is None:
                values = {
                    "version": version,
                    "digest": digest,
                    "content": content,
                    "at": self.clock(),
                }
                connection.execute(table.insert(), values)

    def agreement(self) -> AgreementRow | None:
        """The agreement file of the version that is put forward."""
        with self.database.reading() as connection:
            return agreement_of(connection)

    def sign_agreement(
        self, client: str, digest: str, signature: str, check: Callable[[AgreementRow], bool]
    ) -> AgreementRow:
        """Take a member's signature on the agreement file, if `check` finds that it is its own."""
        table = schema.AGREEMENT_SIGNATURES
        with self.database.writing() as connection:
            found = agreement_of(connection)
            if found is None or found.digest != digest:
                raise HTTPException(_TAKEN, "another agreement is put forward by now")
            _check_confirmed(snapshot_of(connection), client)
            if not check(found):
                raise HTTPException(422, f"this is not a signature with the key of {client}")
            known = found.signatures.get(client)
            if known is not None:
                if known != signature:
                    raise HTTPException(_TAKEN, f"{client} has signed this agreement already")
                return found
            values = {
                "version": found.version,
                "client": client,
                "signature": signature,
                "at": self.clock(),
            }
            connection.execute(table.insert(), values)
            what = f"signed the agreement of version {found.version}"
            self.note(connection, Viewer("member", client), what)
            found.signatures[client] = signature
            self._note_if_complete(connection, snapshot_of(connection))
        return found

    # --- What happened ---------------------------------------------------------------------

    def tell(self, by: Viewer, what: str) -> None:
        """Note that somebody did something."""
        with self.database.writing() as connection:
            self.note(connection, by, what)

    def note(self, connection: Connection, by: Viewer | None, what: str) -> None:
        """The same, as a part of a transaction; without a viewer the room did it by itself."""
        role, client = ("room", None) if by is None else (by.role, by.client)
        values = {"at": self.clock(), "role": role, "client": client, "what": what}
        insert = schema.EVENTS.insert().returning(schema.EVENTS.c.number)
        number = int(connection.execute(insert, values).scalar_one())
        self.database.afterwards(connection, lambda: self.told(number))

    def events(self, count: int = 50) -> list[Event]:
        """What happened, the latest first."""
        columns = schema.EVENTS.c
        query = select(columns.number, columns.at, columns.role, columns.client, columns.what)
        with self.database.reading() as connection:
            found = connection.execute(query.order_by(columns.number.desc()).limit(count))
            return [Event(*row) for row in found]

    def last_event(self) -> int:
        """The number of the latest event; 0: there is none."""
        with self.database.reading() as connection:
            return int(connection.execute(select(func.max(schema.EVENTS.c.number))).scalar() or 0)


def _check_signature(now: Snapshot, client: str, signature: TermsSignature) -> None:
    """Refuse a signature that is not this member's own, or not on what is to be signed."""
    if signature.client != client:
        raise HTTPException(403, f"{client} cannot sign for {signature.client}")
    if now.current is None or now.to_sign is None:
        raise HTTPException(_TAKEN, "there is nothing to sign yet: cards are missing")
    if client not in now.clients:
        raise HTTPException(403, f"{client} is not in the terms that are put forward")
    _check_confirmed(now, client)
    if not signature.is_by(now.cards[client].card.signing_key):
        raise HTTPException(422, f"this is not a signature with the key of {client}")
    wanted = (now.to_sign.terms, now.to_sign.app, now.to_sign.version)
    if (signature.terms, signature.app, signature.version) != wanted:
        raise HTTPException(
            _TAKEN,
            f"{client} signed something else than version {now.current.number}, which is put "
            "forward; read that one",
        )


def _check_confirmed(now: Snapshot, client: str) -> None:
    """Refuse what is signed with a new key that somebody else may have made."""
    missing = now.unconfirmed.get(client)
    if missing is not None:
        raise HTTPException(
            _TAKEN,
            f"the new keys of {client} count when every other member that knew the old ones has "
            f"confirmed them; the room waits for {', '.join(missing)}",
        )

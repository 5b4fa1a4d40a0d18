"""The store's contract, on SQLite and on a real PostgreSQL."""

import threading
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import Connection, create_engine, text
from starlette.exceptions import HTTPException

from fedaccord.console.room.access import Viewer
from fedaccord.console.room.database import Database
from fedaccord.console.room.doors import Doors
from fedaccord.console.room.records import ToSignRow
from fedaccord.console.room.schema import METADATA, VERSION_TABLE, configuration
from fedaccord.console.room.store import Store
from fedaccord.deployment.cards import TermsSignature, sign_terms
from fedaccord.errors import FedaccordError
from fedaccord.signing.keys import new_key
from tests.console.room_story import Someone
from tests.ledger.conftest import new_postgresql_database  # noqa: F401
from tests.ledger.postgresql import Databases

TERMS = """
name = "Three clinics"
clients = ["North", "South", "West"]
rounds = 5
discount_factor = 0.9
[training]
shape = [4]
classes = 2
"""
COORDINATOR, NORTH = Viewer("coordinator"), Viewer("member", "North")
TERMS_DIGEST, APP_DIGEST = "1" * 64, "2" * 64


class Moving:
    """A clock that tests set."""

    def __init__(self) -> None:
        self.now = datetime(2026, 1, 1)

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture(
    params=["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)],
)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return str(tmp_path / "room.db")
    databases: Databases = request.getfixturevalue("new_postgresql_database")
    return databases()


@pytest.fixture
def clock() -> Moving:
    return Moving()


@pytest.fixture
def opened(place: str, clock: Moving) -> Iterator[Store]:
    """A room that is not created yet."""
    made = Store(Database(place), clock)
    made.set_address("http://127.0.0.1:1")
    yield made
    made.database.close()


@pytest.fixture
def store(opened: Store) -> Store:
    opened.create("Three clinics", TERMS, lambda: None)
    return opened


@pytest.fixture
def doors(store: Store) -> Doors:
    return Doors(store)


def signatures(someone: Someone) -> TermsSignature:
    return sign_terms(
        "Three clinics", someone.name, TERMS_DIGEST, APP_DIGEST, someone.key, version=1
    )


def admitted(store: Store, doors: Doors, folder: Path) -> list[Someone]:
    """All members with their cards, and something to sign."""
    members = [Someone(name, folder / name) for name in ("North", "South", "West")]
    for one in members:
        doors.take_card(doors.invite(one.name), one.card(), new_key().public)
    store.put_to_sign(ToSignRow(1, to_sign(members), TERMS_DIGEST, APP_DIGEST))
    return members


def to_sign(members: list[Someone]) -> str:
    """As much of a file to sign as the room reads."""
    keys = "".join(f"{one.name} = '{one.key.public}'\n" for one in members)
    return f"[keys.clients]\n{keys}"


def refused(status: int, action: Callable[[], object]) -> None:
    with pytest.raises(HTTPException) as error:
        action()
    assert error.value.status_code == status


def test_migrations_lead_to_the_tables(store: Store) -> None:
    with store.database.reading() as connection:
        context = MigrationContext.configure(connection, opts={"version_table": VERSION_TABLE})
        found = [
            one for one in compare_metadata(context, METADATA) if VERSION_TABLE not in str(one)
        ]
    assert found == []


def test_keys_that_were_replaced_before_it_was_noted_who_confirms(
    place: str, tmp_path: Path
) -> None:
    """A room of version 0002: North's new key waits for everyone, South's was confirmed."""
    members = [Someone(name, tmp_path / name) for name in ("North", "South", "West")]
    north, south, west = members
    engine = create_engine(place if "://" in place else f"sqlite:///{place}")
    with engine.connect() as connection:
        command.upgrade(configuration(connection), "0002")
        rows: dict[str, dict[str, object]] = {
            "room": {"id": 1, "address": "http://127.0.0.1:1", "name": "Three clinics"},
            "versions": {"number": 1, "text": TERMS, "digest": TERMS_DIGEST, "note": ""}
            | {"proposed_by": "the coordinator", "at": "2026-01-01"},
            "to_sign": {"version": 1, "text": to_sign(members), "at": "2026-01-01"}
            | {"terms": TERMS_DIGEST, "app": APP_DIGEST},
        }
        rows["confirmations"] = {"client": "South", "key": south.key.public, "by": "West"}
        rows["confirmations"] |= {"signature": "0" * 128, "at": "2026-01-02"}
        for table, row in rows.items():
            _insert(connection, table, row)
        for one, confirmed in ((north, None), (south, "2026-01-02"), (west, "2026-01-01")):
            card = {"client": one.name, "text": one.card().model_dump_json(), "at": "2026-01-01"}
            _insert(connection, "cards", card | {"compared": None, "confirmed": confirmed})
        connection.commit()
    engine.dispose()
    store = Store(Database(place))
    now = store.snapshot()
    assert now.unconfirmed == {"North": ["South", "West"]}
    (known,) = now.cards["South"].new_keys
    assert (known.confirmed_by, known.missing) == (["West"], [])
    assert now.cards["South"].counts
    assert now.cards["West"].new_keys == []
    store.database.close()


def _insert(connection: Connection, table: str, row: dict[str, object]) -> None:
    names = ", ".join(f'"{name}"' for name in row)
    values = ", ".join(f":{name}" for name in row)
    connection.execute(text(f"INSERT INTO {table} ({names}) VALUES ({values})"), row)


def test_a_database_of_another_program_is_refused(place: str) -> None:
    url = place if "://" in place else f"sqlite:///{place}"
    engine = create_engine(url)
    with engine.begin() as connection:
        connection.execute(text("CREATE TABLE other (a INTEGER)"))
    engine.dispose()
    with pytest.raises(FedaccordError, match="of another program"):
        Database(place)


def test_it_is_there_after_closing(store: Store, place: str) -> None:
    store.comment(NORTH, 1, "a comment")
    store.database.close()
    again = Store(Database(place))
    assert again.snapshot().clients == ("North", "South", "West")
    assert [one.text for one in again.comments()] == ["a comment"]
    assert again.name() == "Three clinics"
    again.database.close()


def test_what_happened_cannot_be_changed(store: Store) -> None:
    for statement in ("UPDATE events SET what = 'x'", "DELETE FROM events"):
        with (
            pytest.raises(FedaccordError, match="cannot be changed"),
            store.database.writing() as c,
        ):
            c.execute(text(statement))
    assert store.events()[0].what.startswith("created the room")


def test_a_transaction_that_fails_changes_nothing(store: Store) -> None:
    before = store.last_event()

    def fail() -> None:
        with store.database.writing() as connection:
            store.note(connection, COORDINATOR, "something")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert store.last_event() == before


def test_a_room_is_created_once(store: Store) -> None:
    refused(409, lambda: store.create("Another", TERMS, lambda: None))


def test_a_room_that_cannot_be_written_is_not_created(opened: Store) -> None:
    def fail() -> None:
        raise FedaccordError("the disk is full")

    with pytest.raises(FedaccordError):
        opened.create("Three clinics", TERMS, fail)
    assert opened.name() is None
    assert opened.snapshot().versions == []


def test_a_signature_is_one_row(store: Store, doors: Doors, tmp_path: Path) -> None:
    north, *_ = admitted(store, doors, tmp_path)
    for _ in range(3):
        assert store.sign("North", signatures(north)).signed == ["North"]
    events = [one for one in store.events() if one.what == "signed version 1"]
    assert len(events) == 1


def test_a_second_signature_is_refused(store: Store, doors: Doors, tmp_path: Path) -> None:
    north, *_ = admitted(store, doors, tmp_path)
    store.sign("North", signatures(north))
    with store.database.writing() as connection:  # as if another valid signature were there
        connection.execute(
            text("UPDATE signatures SET text = replace(text, :old, :new)"),
            {"old": signatures(north).signature, "new": "a" * 128},
        )
    refused(409, lambda: store.sign("North", signatures(north)))


def test_signatures_at_the_same_time(store: Store, doors: Doors, tmp_path: Path) -> None:
    members = admitted(store, doors, tmp_path)
    threads = [
        threading.Thread(target=store.sign, args=(one.name, signatures(one)))
        for one in members
        for _ in range(5)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    now = store.snapshot()
    assert now.complete
    told = [one.what for one in store.events(100)]
    assert told.count("signed version 1") == 3
    assert told.count("has everyone's signature on version 1") == 1


def test_an_invitation_is_used_once_even_at_the_same_time(
    store: Store, doors: Doors, tmp_path: Path
) -> None:
    code = doors.invite("North")
    cards = [Someone("North", tmp_path / str(n)).card() for n in range(4)]
    outcomes: list[str] = []

    def join(n: int) -> None:
        try:
            doors.take_card(code, cards[n], new_key().public)
            outcomes.append(cards[n].fingerprint)
        except HTTPException:
            pass

    threads = [threading.Thread(target=join, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert outcomes == [store.snapshot().cards["North"].card.fingerprint]


def test_versions_are_not_overtaken(store: Store) -> None:
    assert store.propose(TERMS.replace("= 5", "= 6"), COORDINATOR, "", after=1) == 2
    refused(409, lambda: store.propose(TERMS, COORDINATOR, "", after=1))


def test_only_digests_of_secrets_are_kept(doors: Doors, store: Store) -> None:
    secrets = [
        doors.invite("North"),
        doors.invite_observer("x"),
        doors.challenge("North"),
        doors.ticket(COORDINATOR),
        doors.enter(doors.ticket(COORDINATOR)),
    ]
    with store.database.reading() as connection:
        rows = [
            str(tuple(row))
            for table in METADATA.tables.values()
            for row in connection.execute(table.select())
        ]
    for secret in secrets:
        assert not any(secret in row for row in rows)


def test_everything_expires(doors: Doors, clock: Moving) -> None:
    ticket, observer = doors.ticket(COORDINATOR), doors.invite_observer("x", timedelta(hours=1))
    token, watching = doors.enter(doors.ticket(COORDINATOR)), doors.observe(observer)
    clock.now += timedelta(minutes=1)
    refused(410, lambda: doors.enter(ticket))
    assert doors.session(watching) is not None
    clock.now += timedelta(minutes=59)
    assert doors.session(watching) is None
    refused(410, lambda: doors.observe(observer))
    found = doors.session(token)
    assert found is not None
    assert doors.is_open(found)
    clock.now += timedelta(hours=12)
    assert doors.session(token) is None
    assert not doors.is_open(found)


def test_a_withdrawn_observer_is_out(doors: Doors) -> None:
    token = doors.observe(doors.invite_observer("x"))
    doors.withdraw_observer(doors.observers()[0].number)
    assert doors.session(token) is None
    refused(410, lambda: doors.withdraw_observer(1))


def test_changes_are_told_after_they_are_there(store: Store) -> None:
    told: list[int] = []
    store.told = told.append
    store.comment(NORTH, 1, "x")
    assert told == [store.last_event()]

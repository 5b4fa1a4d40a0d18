"""The ledger in a database: what is appended is there, in order, for good, for one writer."""

import json
import os
import sqlite3
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import Connection, create_engine, text
from sqlalchemy.exc import DBAPIError
from typer.testing import CliRunner

from fedaccord.cli import app
from fedaccord.console.room.database import Database
from fedaccord.errors import FedaccordError
from fedaccord.ledger.access import LedgerInUse
from fedaccord.ledger.chain import START, Checkpoint, Fact, broken_links
from fedaccord.ledger.lines import load_entries, read, to_line, to_lines
from fedaccord.ledger.schema import METADATA, VERSION_TABLE, configuration
from fedaccord.ledger.store import Ledger, open_ledger, read_ledger, shown
from tests.ledger.postgresql import Databases

FACTS = [Fact("report", 1, name, {"ratio": 2.5}) for name in ("a", "b")]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger.db"


@pytest.fixture(params=["sqlite", "postgresql"])
def place(request: pytest.FixtureRequest, path: Path) -> str:
    """Where a new ledger may be, in each of the two databases."""
    if request.param == "sqlite":
        return str(path)
    new_database: Databases = request.getfixturevalue("new_postgresql_database")
    return new_database()


@contextmanager
def connected(place: str) -> Iterator[Connection]:
    """Past the ledger, to the database itself."""
    engine = create_engine(place if "://" in place else f"sqlite:///{place}")
    try:
        with engine.connect() as connection:
            yield connection
    finally:
        engine.dispose()


@pytest.mark.slow
def test_appends_and_reads_back(place: str) -> None:
    with open_ledger(place) as ledger:
        assert ledger.head == START
        entries = ledger.append(FACTS, b"model")
        assert ledger.head == entries[-1].head
    with open_ledger(place) as ledger:
        assert ledger.head == entries[-1].head
        ledger.append([Fact("slot", 2, None, {})])
        assert [e.number for e in ledger.entries()] == [1, 2, 3]
        assert [e.client for e in ledger.entries(slot=1)] == ["a", "b"]
        assert [e.number for e in ledger.entries(client="b")] == [2]
        assert [e.number for e in ledger.entries(kind="slot")] == [3]
        assert ledger.checkpoints() == [(2, 0, b"model")]
        assert broken_links(ledger.entries()) == []
        assert ledger.append([]) == []


def test_many_entries_are_read_in_parts(place: str) -> None:
    with open_ledger(place) as ledger:
        ledger.append([Fact("slot", n, None, {}) for n in range(2_345)])
        assert [entry.slot for entry in ledger.entries()] == list(range(2_345))


@pytest.mark.parametrize("number", [0, -5])
def test_an_entry_before_the_first_is_seen(number: int, place: str) -> None:
    with open_ledger(place) as ledger:
        (entry, *_) = ledger.append(FACTS)
    forged = ", ".join(f":{field}" for field in entry._fields)
    with connected(place) as connection:
        row = entry._asdict() | {"number": number}
        connection.execute(text(f"INSERT INTO entries VALUES ({forged})"), row)
        connection.commit()
    with read_ledger(place) as ledger:
        assert [entry.number for entry in ledger.entries()] == [number, 1, 2]
        assert broken_links(ledger.entries())


def test_a_model_that_comes_while_the_entries_are_read_is_that_of_the_last(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever reads a ledger that grows gets entries and a model that belong together."""
    with open_ledger(path) as ledger:
        ledger.append(FACTS, b"old")
        checkpoints, appended = Ledger.checkpoints, list[int]()

        def later(reader: Ledger) -> list[Checkpoint]:
            if not appended:
                appended.append(ledger.append(FACTS, b"new")[-1].number)
            found = checkpoints(reader)
            ledger.append(FACTS)  # and goes on
            return found

        monkeypatch.setattr(Ledger, "checkpoints", later)
        with read(str(path)) as found:
            assert (len(list(found.entries())), found.models) == (4, [(4, 0, b"new")])
            assert len(list(found.entries())) == 4  # once more


@pytest.mark.parametrize("value", ["'x'", "1.5"])
def test_a_value_that_is_not_a_model_is_refused(value: str, path: Path) -> None:
    with open_ledger(path) as ledger:
        ledger.append(FACTS, b"model")
    with connected(str(path)) as connection:
        connection.execute(text(f"UPDATE checkpoints SET parameters = {value}"))
        connection.commit()
    with read_ledger(path) as ledger, pytest.raises(FedaccordError, match="is not a model"):
        ledger.checkpoints()


def test_a_model_takes_the_place_of_one_of_its_slot(place: str) -> None:
    with open_ledger(place) as ledger:
        ledger.append(FACTS[:1], b"old")
        ledger.append(FACTS[1:], b"new")
        assert ledger.checkpoints() == [(2, 0, b"new")]


def test_the_models_of_the_latest_slots_are_kept(place: str) -> None:
    with open_ledger(place) as ledger:
        for slot in (0, 1, 1, 4, 5):  # nothing was trained in slots 2 and 3
            ledger.append(FACTS[:1], f"{slot}".encode(), slot=slot, keep=2)
        assert ledger.checkpoints() == [(3, 1, b"1"), (4, 4, b"4"), (5, 5, b"5")]


def test_the_moments_of_the_latest_model_are_kept(place: str) -> None:
    with open_ledger(place) as ledger:
        assert ledger.moments() is None
        for slot in (1, 1, 2):
            ledger.append(FACTS[:1], b"model", slot=slot, keep=2, moments=f"{slot}".encode())
            ledger.append(FACTS[:1])  # without a model nothing changes
            assert ledger.moments() == f"{slot}".encode()
    with connected(place) as connection:
        kept = connection.execute(text("SELECT moments FROM checkpoints ORDER BY number")).scalars()
        assert [None if one is None else bytes(one) for one in kept] == [None, b"2"]
    with open_ledger(place) as ledger:
        ledger.append(FACTS[:1], b"model", slot=3, keep=2)
        assert ledger.moments() is None


def test_the_second_writer_is_refused_and_a_reader_is_not(place: str) -> None:
    with open_ledger(place) as ledger:
        ledger.append(FACTS)
        with pytest.raises(LedgerInUse, match="another process is writing to this ledger"):
            open_ledger(place)
        with read_ledger(place) as other:
            assert len(list(other.entries())) == 2
            with pytest.raises(FedaccordError, match="open for reading only"):
                other.append(FACTS)
    open_ledger(place).close()


@pytest.mark.parametrize("other", ["link.db", "folder/ledger.db"])
def test_a_second_writer_by_another_name_is_refused(other: str, path: Path) -> None:
    (path.parent / "link.db").symlink_to(path.name)
    (path.parent / "folder").symlink_to(".")
    for first, second in ((path, path.parent / other), (path.parent / other, path)):
        with open_ledger(first), pytest.raises(LedgerInUse):
            open_ledger(second)


def test_a_ledger_with_a_hard_link_is_not_written(path: Path) -> None:
    """No path leads from one such name to the other: neither is written."""
    open_ledger(path).close()
    other = path.with_name("other.db")
    other.hardlink_to(path)
    for name in (path, other):
        with pytest.raises(FedaccordError, match="a hard link; a ledger has only one"):
            open_ledger(name)
    other.unlink()
    open_ledger(path).close()


def test_a_second_writer_may_wait(place: str) -> None:
    first = open_ledger(place)
    started = time.monotonic()
    with pytest.raises(LedgerInUse):
        open_ledger(place, wait=0.2)
    assert time.monotonic() - started >= 0.2
    first.close()
    open_ledger(place, wait=5.0).close()


@pytest.mark.slow
def test_the_lock_ends_with_a_killed_process(place: str) -> None:
    code = (
        "import os, signal; from fedaccord.ledger.store import open_ledger;"
        f"ledger = open_ledger({place!r}); print('open', flush=True); signal.pause()"
    )
    child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    try:
        assert child.stdout is not None
        assert child.stdout.readline() == b"open\n"
        with pytest.raises(LedgerInUse):
            open_ledger(place)
    finally:
        child.kill()
        child.communicate()
    open_ledger(place, wait=10.0).close()  # a server may take a moment to notice


def test_a_row_can_neither_be_changed_nor_removed(place: str) -> None:
    with open_ledger(place) as ledger:
        ledger.append(FACTS)
    with connected(place) as connection:
        for statement in ("UPDATE entries SET slot = 2", "DELETE FROM entries"):
            with pytest.raises(DBAPIError, match="append-only"):
                connection.execute(text(statement))
            connection.rollback()


def test_nothing_of_a_failed_append_is_kept(place: str) -> None:
    def fail(moment: str) -> None:
        if moment == "within":
            raise RuntimeError

    with open_ledger(place) as ledger:
        ledger.append(FACTS[:1], b"old")
        ledger.watch(fail)
        with pytest.raises(RuntimeError):
            ledger.append(FACTS[1:], b"new")
    with open_ledger(place) as ledger:
        assert len(list(ledger.entries())) == 1
        assert ledger.checkpoints() == [(1, 0, b"old")]


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ("nowhere/ledger.db", "cannot be opened: No such file or directory"),
        ("text.db", "file is not a database"),
        ("other.db", "is not a ledger but a database of another program"),
        ("", "a ledger needs a file"),
        ("sqlite://", "a ledger needs a file"),
        ("sqlite:///file:ledger.db?uri=true", "name the ledger's file by its path"),
        (
            "postgresql://me:secret@host:port/x",
            r"me:\*\*\*@host:port/x: is not the URL",
        ),
        ("nosuch://x", "a ledger is a SQLite file, or a PostgreSQL database by its URL"),
        ("mysql://me:secret@host/x", r"mysql://me:\*\*\*@host/x: a ledger is a SQLite file"),
        ("postgresql+nosuch://me:secret@host/x", r"me:\*\*\*@host"),
    ],
)
def test_places_that_are_refused(
    place: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("text.db").write_text("hello " * 100)
    raw = sqlite3.connect("other.db")
    raw.execute("CREATE TABLE mine (a)")
    raw.close()
    before = set(tmp_path.iterdir())
    with pytest.raises(FedaccordError, match=message):
        open_ledger(place)
    assert set(tmp_path.iterdir()) == before


@pytest.mark.parametrize(
    "place",
    [
        "postgresql://me:secret@host/x",
        "postgresql+psycopg://me:se@cret@host:5432/x",
        "postgresql://me:/secret@host/x",
        "postgresql://host/x?user=me&password=secret&port=1",
    ],
)
def test_a_place_is_shown_without_its_password(place: str) -> None:
    assert "cret" not in shown(place)
    assert "me" in shown(place)


def test_no_command_shows_a_password(new_postgresql_database: Databases, tmp_path: Path) -> None:
    place = new_postgresql_database().replace("me@", "me:secret@")
    file = str(tmp_path / "ledger.jsonl")
    with open_ledger(place) as ledger:
        ledger.append(FACTS)
    told = [_command("verify", place, "--against", place), _command("export", place, file)]
    told += [_command("verify", f"{place}x"), _command("show", place.replace("ledger", "none"))]
    with connected(place) as connection:
        connection.execute(text("ALTER TABLE entries DISABLE TRIGGER ALL"))
        connection.execute(text("UPDATE entries SET text = '{'"))
        connection.commit()
    told += [_command("show", place), _command("verify", file, "--against", place)]
    assert all("secret" not in output for output in told)
    assert sum("me:***@" in output for output in told) == 5  # all but the export's


def _command(*words: str) -> str:
    return CliRunner().invoke(app, ["ledger", *words]).output


def test_reading_does_not_create_a_ledger(tmp_path: Path) -> None:
    with pytest.raises(FedaccordError, match="there is no such ledger"):
        read_ledger(tmp_path / "none.db")
    (tmp_path / "empty.db").touch()
    with pytest.raises(FedaccordError, match="is empty, not a ledger"):
        read_ledger(tmp_path / "empty.db")


def test_lines_are_the_same_entries(path: Path) -> None:
    with open_ledger(path) as ledger:
        ledger.append(FACTS)
        lines = path.with_suffix(".jsonl")
        lines.write_text("\n".join(to_lines(ledger.entries())) + "\n")
    assert load_entries(str(lines)) == load_entries(str(path))
    (entry, *_) = load_entries(str(path))
    surrogate = json.dumps(entry._replace(client="\ud800")._asdict())
    twice = to_line(entry)[:-1] + f', "digest": "{entry.digest}"}}'
    for line, message in [
        ("{}", "line 1 is not an entry"),
        ("[]", "line 1 is not an entry"),
        ("[" * 99_999, "line 1 is not an entry"),
        (to_line(entry)[:-1] + ', "more": 1}', "line 1 is not an entry"),
        (surrogate, "line 1 is not as export writes it"),
        (twice, "line 1 is not as export writes it"),
        (" " + to_line(entry), "line 1 is not as export writes it"),
    ]:
        lines.write_text(f"{line}\n")
        with pytest.raises(FedaccordError, match=message):
            load_entries(str(lines))


# --- Migrations ----------------------------------------------------------------------------


def test_the_migrations_make_the_tables(place: str) -> None:
    open_ledger(place).close()
    with connected(place) as connection:
        context = MigrationContext.configure(connection, opts={"version_table": VERSION_TABLE})
        assert compare_metadata(context, METADATA) == []


def test_down_and_up_again(place: str) -> None:
    with open_ledger(place) as ledger:
        ledger.append(FACTS)
    with connected(place) as connection:
        command.downgrade(configuration(connection), "base")
    with open_ledger(place) as ledger:
        assert ledger.head == START


def test_a_ledger_of_a_later_version_is_refused(place: str) -> None:
    open_ledger(place).close()
    with connected(place) as connection:
        connection.execute(text(f"UPDATE {VERSION_TABLE} SET version_num = '9999'"))
        connection.commit()
    for opening in (open_ledger, read_ledger):
        with pytest.raises(FedaccordError, match="version 9999, but this fedaccord knows"):
            opening(place)


def _of_version(place: str, revision: str) -> None:
    """A ledger as an earlier fedaccord left it."""
    with connected(place) as connection:
        command.downgrade(configuration(connection), revision)


def test_a_ledger_of_format_1_is_shown_and_exported_but_not_continued(
    place: str, tmp_path: Path
) -> None:
    terms = Fact("terms", 0, None, {"terms": {"name": "old"}})
    with open_ledger(place) as ledger:
        written = ledger.append([terms])
    _of_version(place, "0002")
    for _ in range(2):  # what is refused is left as it is
        with pytest.raises(FedaccordError, match="its entries are in format 1"):
            open_ledger(place)
    with read_ledger(place) as ledger:
        assert list(ledger.entries()) == written
    assert _command("export", place, str(tmp_path / "old.jsonl")).startswith("Wrote 1 entries")
    for ledger_or_lines in (place, str(tmp_path / "old.jsonl")):
        verified = _command("verify", ledger_or_lines)
        assert "Wrong: entry 1 (terms of slot 0) is not in format 3" in verified


def test_a_ledger_of_an_earlier_version_without_entries_is_upgraded(place: str) -> None:
    open_ledger(place).close()
    _of_version(place, "0002")
    with open_ledger(place) as ledger:
        assert ledger.append(FACTS)
    open_ledger(place).close()


def test_a_ledger_without_moments_is_read_and_continued(place: str) -> None:
    """Its entries are those of today."""
    with open_ledger(place) as ledger:
        written = ledger.append(FACTS, b"model")
    _of_version(place, "0004")
    with read_ledger(place) as ledger:
        assert (list(ledger.entries()), ledger.checkpoints()) == (written, [(2, 0, b"model")])
    with open_ledger(place) as ledger:
        assert (ledger.checkpoints(), ledger.moments()) == ([(2, 0, b"model")], None)
        ledger.append(FACTS, b"next", moments=b"moments")
        assert ledger.moments() == b"moments"


HOURS = "instr(zeroblob(4000000), zeroblob(2000000) || x'01')"
"""A single function of SQLite's, which nothing can interrupt: reading it would end no test."""


@pytest.mark.parametrize(
    ("edit", "what"),
    [
        (("text TEXT NOT NULL", f"text TEXT AS ({HOURS})"), "a generated column"),
        (("text TEXT NOT NULL", f"text TEXT CHECK ({HOURS})"), "a check of its own"),
        (("(kind)", f"({HOURS})"), "something in its schema"),
        (("(kind)", "(kind) WHERE kind"), "something in its schema"),
        (("'a ledger is append-only'", "'x'"), "a trigger of its own"),
        ("CREATE VIRTUAL TABLE other USING fts5(text)", "a virtual table"),
        (f"CREATE VIEW other AS SELECT {HOURS}", "a view"),
        ("CREATE TABLE other (text)", "something in its schema"),
    ],
)
def test_nothing_that_a_file_defines_is_run(
    edit: str | tuple[str, str], what: str, path: Path
) -> None:
    """Somebody else's copy is read on the command line, too, where nobody would end it."""
    with open_ledger(path) as ledger:
        ledger.append(FACTS)
    with sqlite3.connect(path) as database:
        if isinstance(edit, str):
            database.execute(edit)
        else:
            database.execute("PRAGMA writable_schema = ON")
            database.execute("UPDATE sqlite_master SET sql = replace(sql, ?, ?)", edit)
    database.close()
    with pytest.raises(FedaccordError, match=f"ledger.db: has {what}, which no ledger has"):
        read_ledger(path)
    with pytest.raises(FedaccordError, match=f"has {what}"):
        open_ledger(path)
    for words in (["verify", str(path)], ["verify", "x.jsonl", "--against", str(path)]):
        result = CliRunner().invoke(app, ["ledger", *words])
        assert result.exit_code == 2
        assert result.stderr.strip().endswith(f"has {what}, which no ledger has")


def test_tables_written_another_way_are_ours(path: Path) -> None:
    """Another version of a library may space or quote them otherwise."""
    with open_ledger(path) as ledger:
        ledger.append(FACTS)
    with sqlite3.connect(path) as database:
        database.execute("PRAGMA writable_schema = ON")
        database.execute("UPDATE sqlite_master SET sql = replace(sql, ' at ', ' \"at\"  ')")
    database.close()
    assert len(load_entries(str(path))) == 2


def test_a_few_entries_of_a_long_ledger(path: Path) -> None:
    facts = [
        Fact(kind, slot, client, {})
        for slot in (1, 2, 3)
        for kind, client in (("slot", None), ("report", "a"), ("report", "b"))
    ]

    def numbers(most: int, **which: Any) -> list[int]:
        return [entry.number for entry in ledger.some(most, **which)]

    with open_ledger(str(path)) as ledger:
        ledger.append(facts)
        assert numbers(2) == [9, 8]
        assert numbers(2, ascending=True) == [1, 2]
        assert numbers(9, before=3) == [2, 1]
        assert numbers(9, after=7) == [9, 8]
        assert numbers(9, before=7, after=5) == [6]
        assert numbers(9, slot=2) == [6, 5, 4]
        assert numbers(9, slot=4) == []
        assert numbers(9, client="b") == [9, 6, 3]
        assert numbers(9, kind="slot") == [7, 4, 1]
        assert numbers(9, slot=2, kind="report", client="a") == [5]
        assert numbers(1, slot=2, kind="report", ascending=True) == [5]
        last = ledger.last(), ledger.last("slot")
        assert [entry.number for entry in last if entry is not None] == [9, 7]
        assert ledger.last("settlement") is None


def test_a_commit_returns_when_it_is_on_disk(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also with a SQLite that was built to leave that to the system."""
    connect = sqlite3.dbapi2.connect

    def built_otherwise(*args: Any, **kwargs: Any) -> sqlite3.Connection:
        connection: sqlite3.Connection = connect(*args, **kwargs)
        connection.execute("PRAGMA synchronous = OFF")
        return connection

    monkeypatch.setattr(sqlite3.dbapi2, "connect", built_otherwise)
    full = 2
    with open_ledger(path) as ledger:
        ledger.append(FACTS)
        found = ledger._connection.exec_driver_sql("PRAGMA synchronous").scalar()
        assert found == full
        ledger._connection.rollback()
    database = Database(path.with_name("room.db"))
    with database.reading() as connection:
        assert connection.exec_driver_sql("PRAGMA synchronous").scalar() == full
    database.close()


def test_only_the_owner_reads_a_ledger(path: Path) -> None:
    """And its lock; journals get the permissions of the file."""
    before = os.umask(0o022)
    try:
        with open_ledger(path) as ledger:
            ledger.append(FACTS)
    finally:
        os.umask(before)
    modes = {one.name: stat.S_IMODE(one.stat().st_mode) for one in path.parent.iterdir()}
    assert modes == {"ledger.db": 0o600, "ledger.db.lock": 0o600}

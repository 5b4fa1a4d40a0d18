"""The pages about the ledger: what is read by whom, and what verifying and comparing say."""

import json
import re
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from playwright.sync_api import Browser

from fedaccord.console.room import ledger_pages, uploads
from fedaccord.console.room.uploads import Stopped, Upload, uploaded
from fedaccord.console.room.verifying import Job, _stoppable
from fedaccord.errors import InvalidInput
from fedaccord.ledger.chain import START, Entry, Fact, extend
from fedaccord.ledger.lines import load_entries, read, to_line, to_lines
from fedaccord.ledger.store import open_ledger
from fedaccord.protocol.verification import verify
from fedaccord.signed.signatures import sign_agreement
from tests.audits.consortium import Consortium as Audited
from tests.console.browser import check_page, served, visitor
from tests.console.ledgers import HERE, NAMES, logged_in, play, room_at, signed_terms
from tests.console.test_watch_pages import change, enter
from tests.flower.consortia import Clients
from tests.lies import lie
from tests.signed.examples import KEYS, draft

Told = tuple[FastAPI, Path, Clients]


@pytest.fixture
def told(tmp_path: Path) -> Iterator[Told]:
    """A room after three slots; b slips in the first."""
    app, ledger = room_at(tmp_path)
    clients = play(ledger, signed_terms(), 3, {"b": {1: 0}})
    yield app, ledger, clients
    app.state.follower.close()
    app.state.room.close()


def copy_of(clients: Clients, name: str) -> str:
    return "".join(f"{line}\n" for line in to_lines(clients.copies[name].written))


def database_of(entries: list[Entry], path: Path) -> bytes:
    """A copy as a member has it, in a database."""
    with open_ledger(path, clock=lambda: entries[0].at) as ledger:
        for entry in entries:
            ledger.append([entry.fact])
    return path.read_bytes()


def compared(client: TestClient, *files: tuple[str, str | bytes]) -> dict[str, Any]:
    sent = [("copies", file) for file in files]
    found: dict[str, Any] = client.post("/api/ledger/compare", files=sent).json()
    return found


# --- Reading -------------------------------------------------------------------------------


@pytest.mark.slow
def test_entries_are_filtered_and_paged(told: Told) -> None:
    client = logged_in(told[0])
    total = len(load_entries(str(told[1])))
    page = client.get("/ledger").text
    assert page.count("<details>") == 50
    assert f'<span class="number">{total}</span>' in page
    assert f'href="/ledger?before={total - 49}"' in page
    assert client.get(f"/ledger?before={total - 49}").text.count("<details>") == min(50, total - 50)
    assert client.get("/ledger?kind=settlement").text.count("<details>") == 3
    assert client.get("/ledger?kind=settlement&slot=2").text.count("<details>") == 1
    assert client.get("/ledger?member=b&kind=verdict&order=first").text.count("<details>") == 3
    assert "No entries like this" in client.get("/ledger?slot=99").text
    first = client.get("/ledger?order=first").text
    assert 'href="/ledger?order=first&amp;after=50"' in first


@pytest.mark.slow
def test_a_mistake_in_the_form_comes_back_beside_the_field(told: Told) -> None:
    answer = logged_in(told[0]).get("/ledger", params={"slot": "<x>", "kind": "nothing"})
    assert answer.status_code == 422
    assert 'value="&lt;x&gt;"' in answer.text
    assert "must be a whole number" in answer.text
    assert "is not a kind of entry" in answer.text


@lie(
    "an observer",
    "read what a member reported, on a page, in a download or as a program; or a client what "
    "another one reported",
    "these entries are for their owner and the server",
)
@pytest.mark.slow
def test_nobody_reads_another_members_numbers(told: Told) -> None:
    """Not on a page, not in a download, not as a program."""
    app, ledger, _ = told
    entries = load_entries(str(ledger))
    ratios = {
        str(entry.client): f'"ratio\\":{entry.body["ratio"]}'
        for entry in entries
        if entry.kind == "report"
    }
    whole = logged_in(app).get("/ledger/lines").text
    assert all(ratio in whole for ratio in ratios.values())
    assert whole == "".join(f"{line}\n" for line in to_lines(entries))
    for role, name in (("member", "a"), ("observer", None)):
        client = logged_in(app, role, name)
        lines = client.get("/ledger/lines").text
        program = json.dumps(client.get("/api/ledger").json()["lines"])
        page = client.get("/ledger?kind=report").text + client.get("/ledger?kind=rank").text
        for owner, ratio in ratios.items():
            assert (ratio in lines) == (owner == name)
            assert (ratio.replace('"', '\\"') in program.replace("\\\\", "\\")) == (owner == name)
        assert page.count("<dt><bdi>ratio</bdi></dt>") == (3 if name == "a" else 0)
        assert "is for <bdi>b</bdi> and the server" in page


NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?(?:e[+-]?\d+)?")
READ = (
    *("/ledger?order=first", "/ledger?order=first&after=50", "/ledger/lines", "/api/ledger"),
    *("/ledger?kind=agreement", "/ledger/verify", "/watch", "/watch/1", "/watch/2", "/api/watch"),
    *("/evidence", "/terms", "/api/terms", "/agreement"),
)


def ratios_from(client: TestClient, ledger: Path) -> set[str]:
    """Whose reported ratio follows from a number that somebody reads, by the law of the loss.

    At the equilibrium total X a member that trains on a part of its samples has
    valuation x slope(X) = cost, so its ratio is 1 / slope(X).
    """
    client.post("/api/ledger/verify")
    read = "".join(client.get(path).text for path in READ)
    numbers = {float(text.replace(",", "")) for text in NUMBER.findall(read)}
    law = signed_terms().law_of_loss
    found = [1 / float(law.slope(number)) for number in numbers if 0 < number < 1e12]
    reports = [one for one in load_entries(str(ledger)) if one.kind == "report"]
    return {
        str(report.client)
        for report in reports
        if any(abs(ratio / report.body["ratio"] - 1) < 1e-6 for ratio in found)
    }


@lie(
    "an observer",
    "work out what a member reported from the numbers that it reads, by the law of the loss",
    "the total from which a ratio follows is not among them; members are told it with their offers",
)
@pytest.mark.slow
def test_no_observer_works_out_a_report(told: Told) -> None:
    """Members can, by the total that every offer names; the pages say so."""
    app, ledger, _ = told
    assert ratios_from(logged_in(app), ledger) == {"b"}
    assert ratios_from(logged_in(app, "member", "a"), ledger) == {"b"}
    observer = logged_in(app, "observer")
    assert ratios_from(observer, ledger) == set()
    assert "is for members and the server" in observer.get("/ledger?kind=agreement").text
    assert "so is the total that follows from it" in observer.get("/ledger").text


@pytest.mark.slow
def test_programs_read_it_in_parts(told: Told) -> None:
    client = logged_in(told[0])
    entries = load_entries(str(told[1]))
    lines, first, more = list[str](), 1, True
    while more:
        part = client.get("/api/ledger", params={"first": first, "most": 20}).json()
        lines, first, more = lines + part["lines"], part["next"], part["more"]
    assert lines == list(to_lines(entries))


PATHS = (
    ("GET", "/ledger"),
    ("GET", "/ledger/lines"),
    ("GET", "/ledger/verify"),
    ("GET", "/ledger/verify/part"),
    ("POST", "/ledger/verify"),
    ("POST", "/ledger/compare"),
    ("GET", "/api/ledger"),
    ("POST", "/api/ledger/verify"),
    ("POST", "/api/ledger/compare"),
    ("GET", "/api/ledger/compare"),
    ("GET", "/evidence"),
    ("GET", "/evidence/proofs"),
    ("GET", "/agreement"),
    ("POST", "/agreement"),
    ("GET", "/agreement/file"),
    ("POST", "/api/agreement/verify"),
)


@pytest.mark.slow
@pytest.mark.parametrize(("method", "path"), PATHS)
def test_nobody_gets_in_without_a_session(told: Told, method: str, path: str) -> None:
    client = TestClient(told[0], base_url=HERE)
    files = {"copies": b"x", "file": b"x"} if method == "POST" else None
    assert client.request(method, path, files=files).status_code == 401


def test_without_a_ledger_pages_say_so(tmp_path: Path) -> None:
    app, _ = room_at(tmp_path)
    client = logged_in(app)
    assert "There is no ledger yet" in client.get("/ledger").text
    assert "There is no ledger yet" in client.get("/ledger/verify").text
    assert "There is no ledger yet" in client.get("/evidence").text
    assert client.get("/ledger/lines").status_code == 404
    assert client.get("/api/ledger").json() == {"lines": [], "next": 1, "more": False}
    assert client.post("/api/ledger/verify").json()["problem"] == "there is no ledger yet"


# --- Verifying -----------------------------------------------------------------------------


@pytest.mark.slow
def test_it_says_what_the_command_line_says(told: Told) -> None:
    client = logged_in(told[0], "observer")
    found = client.post("/api/ledger/verify").json()
    assert found["finished"]
    assert found["result"]["holds"]
    page = client.get("/ledger/verify").text
    assert "Nothing in it was changed: the chain of digests is intact." in page
    assert "Every offer, rank, verdict and phase follows" in page
    assert "statements are signed by their authors." in page
    assert "Verified with the whole ledger" in client.get("/ledger").text


@pytest.mark.slow
def test_a_changed_ledger_fails(told: Told) -> None:
    app, ledger, _ = told
    where = "kind = 'verdict' AND client = 'b' AND slot = 1"
    change(ledger, f"UPDATE entries SET text = replace(text, 'deviation', 'kept') WHERE {where}")
    client = logged_in(app)
    page = client.post("/ledger/verify").text
    assert "Something is wrong." in page
    assert "is not what was written: its digest differs." in page
    assert "its digest differs" in client.get("/ledger?kind=verdict&slot=1").text


@pytest.mark.slow
def test_copies_agree(told: Told, tmp_path: Path) -> None:
    app, _, clients = told
    own = compared(logged_in(app, "member", "b"), ("b.jsonl", copy_of(clients, "b")))
    assert own["result"]["holds"], own
    client = logged_in(app)
    database = database_of(clients.copies["c"].written, tmp_path / "copy.db")
    found = compared(client, ("b.jsonl", copy_of(clients, "b")), ("ledger.db", database))
    assert found["result"]["holds"], found
    page = client.get("/ledger/verify").text
    assert "b.jsonl agrees with it." in page
    assert "ledger.db agrees with it." in page
    assert "The copies tell the same story." in page
    assert (
        "The ledger and your copies" not in logged_in(app, "member", "a").get("/ledger/verify").text
    )


def guesses_at(ledger: Path, owner: str, *, first: str | None) -> bytes:
    """A file that tries 21 reports of a member's, one of which is the one in the ledger.

    Its first entry is about `first`: a copy begins with an entry of its owner's, an export with
    one of nobody's.
    """
    entries = load_entries(str(ledger))
    report = next(one for one in entries if one.kind == "report" and one.client == owner)
    bodies = [report.body | {"samples": report.body["samples"] + n} for n in range(-10, 11)]
    facts = [Fact("report", report.slot, owner, body) for body in bodies]
    if first != owner:
        facts = [Fact(entries[0].kind, entries[0].slot, first, entries[0].body), *facts]
    return "".join(f"{to_line(one)}\n" for one in extend(START, facts, at=report.at)).encode()


@lie(
    "an observer",
    "try numbers with an invented copy of the ledger until one fits; or a client another's numbers",
    "copies of others, and exports with entries that one does not read, are refused whole",
)
@pytest.mark.slow
@pytest.mark.parametrize(("role", "name"), [("observer", None), ("member", "a")])
@pytest.mark.parametrize("first", ["b", "a", None])
def test_nobody_finds_out_anothers_numbers_by_guessing(
    told: Told, role: str, name: str | None, first: str | None
) -> None:
    """An invented copy or export is refused whole, so no answer depends on which guess fits."""
    app, ledger, clients = told
    client = logged_in(app, role, name)
    guesses = guesses_at(ledger, "b", first=first)
    found = compared(client, ("own.jsonl", copy_of(clients, "a")), ("x.jsonl", guesses))
    assert found["result"] is None
    assert "which" in found["problem"]
    alone = compared(client, ("x.jsonl", guesses))
    assert alone["result"] is None
    assert alone["problem"].startswith("x.jsonl: ")
    page = client.post("/ledger/compare", files={"copies": ("x.jsonl", guesses)}).text
    assert "It could not be verified: x.jsonl: " in page
    assert "entry" not in page.split("It could not be verified", 1)[1].split("</div>", 1)[0]
    assert client.get("/evidence/proofs").status_code == 404


@pytest.mark.slow
def test_anyone_compares_what_it_downloaded(told: Told) -> None:
    for role, name in (("observer", None), ("member", "a")):
        client = logged_in(told[0], role, name)
        found = compared(client, ("then.jsonl", client.get("/ledger/lines").text))
        assert found["result"]["holds"], found


@pytest.mark.slow
def test_a_ledger_that_was_rewritten_contradicts_copies_and_exports(told: Told) -> None:
    app, ledger, clients = told
    client = logged_in(app)
    export = client.get("/ledger/lines").text
    assert compared(client, ("then.jsonl", export))["result"]["holds"]
    ledger.unlink()
    play(ledger, signed_terms(), 3)  # a world in which nobody slipped
    found = compared(client, ("then.jsonl", export), ("b.jsonl", copy_of(clients, "b")))
    problems = found["result"]["problems"]
    assert any(one.startswith("then.jsonl: entry ") and "another one" in one for one in problems)
    assert any(one.startswith("b.jsonl: b's entry ") for one in problems)
    (proof,) = found["result"]["proofs"]  # b signed one count then, and another one now
    assert proof["holds"]
    assert "Your last comparison found 1 pair of signed statements" in client.get("/evidence").text
    assert client.get("/evidence/proofs").json() == {"proofs": [proof]}
    assert logged_in(app).get("/evidence/proofs").status_code == 404


@pytest.mark.slow
def test_the_same_as_verify_against(told: Told, tmp_path: Path) -> None:
    app, ledger, clients = told
    path = tmp_path / "b.jsonl"
    path.write_text(copy_of(clients, "b"))
    with read(str(ledger)) as reading, read(str(path)) as copy:
        wanted = verify(reading, {"b.jsonl": copy})
    found = compared(logged_in(app), ("b.jsonl", path.read_text()))["result"]
    assert found["problems"] == wanted.problems
    assert found["signatures"] == wanted.signatures.counts


@pytest.mark.slow
@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "has no entries"),
        (b"hello\n", "line 1 is not an entry"),
        (b'{"number": 1}\n', "line 1 is not an entry"),
        (b"\xff\xfe", "cannot be read"),
        (b"SQLite format 3\x00" + b"x" * 2000, "is not a ledger that can be read"),
    ],
)
def test_what_is_no_copy_is_said(told: Told, content: bytes, said: str) -> None:
    found = compared(logged_in(told[0]), ("mine.db", content))
    assert found["finished"]
    assert found["problem"].startswith("mine.db: ")
    assert said in found["problem"]


COLUMNS = ", ".join(Entry._fields)
HOURS = "instr(zeroblob(4000000), zeroblob(2000000) || x'01')"
"""A single function of SQLite's, which nothing can interrupt."""
ENDLESS = "WITH RECURSIVE n(number) AS (VALUES(1) UNION ALL SELECT number + 1 FROM n)"
FILLED = ", ".join("number" if name == "number" else "''" for name in Entry._fields)
PLAIN = f"CREATE TABLE entries ({COLUMNS})"


def hostile_database(path: Path, *schema: str) -> Upload:
    """A small database with one row, whose schema was then replaced."""
    values = ", ".join(str(n) for n in range(1, len(Entry._fields) + 1))
    with closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA page_size = 512")
        database.execute(PLAIN)
        database.execute(f"INSERT INTO entries VALUES ({values})")
        database.execute("PRAGMA writable_schema = ON")
        changed = "UPDATE sqlite_master SET type = ?, sql = ?, rootpage = CASE ? WHEN 'view' "
        kind = schema[0].split()[1].lower()
        kind = "table" if kind == "virtual" else kind
        database.execute(f"{changed} THEN 0 ELSE rootpage END", (kind, schema[0], kind))
        for statement in schema[1:]:
            database.execute(
                "INSERT INTO sqlite_master VALUES (?, 'another', 'entries', 0, ?)",
                (statement.split()[1].lower(), statement),
            )
        database.commit()
    assert path.stat().st_size < 20_000
    return Upload("x.db", path.read_bytes())


HOSTILE_SCHEMAS = {
    "a generated column": [PLAIN.replace(" text,", f" text AS ({HOURS}),")],
    "a view": [f"CREATE VIEW entries({COLUMNS}) AS {ENDLESS} SELECT {FILLED} FROM n"],
    "a virtual table": [f"CREATE VIRTUAL TABLE entries USING fts5({COLUMNS})"],
    "a trigger of its own": [
        PLAIN,
        f"CREATE TRIGGER another BEFORE INSERT ON entries BEGIN SELECT {HOURS}; END",
    ],
    "a check of its own": [PLAIN.replace(" text,", f" text CHECK ({HOURS}),")],
    "something in its schema": [PLAIN, f"CREATE INDEX another ON entries ({HOURS})"],
}


@lie(
    "an observer",
    "stop the comparison of copies for everybody by a small file that takes hours to read",
    "files with anything but a ledger's tables are refused; another process reads them, and is "
    "killed in time",
)
@pytest.mark.slow
@pytest.mark.parametrize("what", HOSTILE_SCHEMAS)
def test_hostile_schemas_are_refused(tmp_path: Path, what: str) -> None:
    """On a page and on the command line: nothing that a stranger's file defines is ever run."""
    upload = hostile_database(tmp_path / "x.db", *HOSTILE_SCHEMAS[what])
    with pytest.raises(InvalidInput) as refused, uploaded([upload]):
        pass
    assert str(refused.value) == f"x.db: has {what}, which no ledger has"


@pytest.mark.slow
def test_what_is_no_ledger_is_refused(tmp_path: Path) -> None:
    for number, (statement, said) in enumerate(
        {
            "CREATE TABLE other (x)": "x.db: has something in its schema, which no ledger has",
            "CREATE TABLE checkpoints (slot)": "x.db: is not a ledger, it has no table of entries",
        }.items()
    ):
        path = tmp_path / f"{number}.db"
        with closing(sqlite3.connect(path)) as database:
            database.execute(statement)
        with (
            pytest.raises(InvalidInput, match=f"^{said}$"),
            uploaded([Upload("x.db", path.read_bytes())]),
        ):
            pass


LOOPS = f"import sqlite3; sqlite3.connect(':memory:').execute(\"SELECT {HOURS}\")"
"""What reads nothing, and cannot be interrupted from within."""


def processes() -> set[int]:
    """The processes that this one has started."""
    tasks = Path("/proc/self/task").glob("*/children")
    return {int(pid) for task in tasks for pid in task.read_text().split()}


@pytest.mark.slow
def test_a_file_that_takes_too_long_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever makes it slow, also within one step of SQLite's."""
    monkeypatch.setattr(uploads, "_SECONDS", 0.5)
    monkeypatch.setattr(uploads, "_APART", LOOPS)
    before = processes()
    with (
        pytest.raises(InvalidInput, match=r"^x\.db took longer than 0\.5 seconds to read"),
        uploaded([Upload("x.db", b"x")]),
    ):
        pass
    assert processes() <= before


@pytest.mark.slow
@pytest.mark.parametrize("does", ["bytearray(2 * 1024**3)", "open('x', 'wb').truncate(2**29)"])
def test_a_file_that_takes_too_much_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, does: str
) -> None:
    monkeypatch.chdir(tmp_path)
    limited = "from fedaccord.console.room import uploads; uploads._limit_process(); "
    monkeypatch.setattr(uploads, "_APART", limited + does)
    with (
        pytest.raises(InvalidInput, match=r"^x\.db could not be read within the limits"),
        uploaded([Upload("x.db", b"x")]),
    ):
        pass


def observer_of(app: FastAPI, code: str) -> TestClient:
    browser = TestClient(app, base_url=HERE)
    browser.cookies.set("fedaccord-8321", app.state.room.doors.observe(code))
    return browser


@lie(
    "an observer",
    "take all the comparisons that the room makes at once, with many sessions of one link",
    "one at a time for each link, and members have their own",
)
@pytest.mark.slow
def test_observers_leave_room_for_members(told: Told, monkeypatch: pytest.MonkeyPatch) -> None:
    app, _, clients = told
    doors = app.state.room.doors
    links = [doors.invite_observer(f"observer {n}") for n in range(3)]
    file = {"copies": ("x.jsonl", copy_of(clients, "a"))}
    with monkeypatch.context() as patched:
        patched.setattr(ledger_pages, "_PATIENCE", 0.0)
        patched.setattr(uploads, "_APART", "import time; time.sleep(600)")
        first = observer_of(app, links[0])
        assert first.post("/api/ledger/compare", files=file).status_code == 200
        again = observer_of(app, links[0]).post("/api/ledger/compare", files=file)
        assert (again.status_code, again.json()["problems"]) == (
            429,
            ["your comparison before this is not finished; wait for it"],
        )
        second = observer_of(app, links[1])
        assert second.post("/api/ledger/compare", files=file).status_code == 200
        assert observer_of(app, links[2]).post("/api/ledger/compare", files=file).status_code == 429
    member = logged_in(app, "member", "a")
    found = compared(member, ("a.jsonl", copy_of(clients, "a")))
    while not found["finished"]:
        time.sleep(0.05)
        found = member.get("/api/ledger/compare").json()
    assert found["result"]["holds"]
    for number in (1, 2):
        doors.withdraw_observer(number)


@lie(
    "an observer",
    "keep the room busy with a comparison that goes on when the link was withdrawn",
    "the comparison ends with the link, and so does its process",
)
@pytest.mark.slow
def test_a_withdrawn_link_ends_what_it_began(told: Told, monkeypatch: pytest.MonkeyPatch) -> None:
    app, _, clients = told
    monkeypatch.setattr(ledger_pages, "_PATIENCE", 0.0)
    monkeypatch.setattr(uploads, "_APART", LOOPS)
    monkeypatch.setattr(uploads, "_SECONDS", 600.0)
    observer = observer_of(app, app.state.room.doors.invite_observer("a director"))
    before = processes()
    observer.post("/api/ledger/compare", files={"copies": ("x.jsonl", copy_of(clients, "a"))})
    (job,) = app.state.verifying._against.values()
    while not processes() - before:
        time.sleep(0.05)
    app.state.room.doors.withdraw_observer(1)
    while job.state == "running":
        time.sleep(0.05)
    assert job.problem == "it was stopped, since the session in which it was begun has ended"
    assert processes() <= before


@pytest.mark.slow
def test_a_comparison_that_nobody_waits_for_ends_in_the_ledger(told: Told) -> None:
    """Also when the files are read, and the ledger is long."""
    entries = load_entries(str(told[1]))
    with read(str(told[1])) as reading:
        job = Job()
        counted = _stoppable(reading, job)
        found = counted.entries()
        assert next(found) == entries[0]
        job.stopped = True
        with pytest.raises(Stopped):
            next(found)
        with pytest.raises(Stopped):
            next(counted.entries_from(3))


@pytest.mark.slow
def test_nothing_of_an_upload_is_kept(told: Told, tmp_path: Path) -> None:
    with uploaded([Upload("b.jsonl", copy_of(told[2], "b").encode())]) as found:
        (reading,) = found.values()
        assert next(reading.entries()).client == "b"
    with pytest.raises(InvalidInput):
        next(reading.entries())


@pytest.mark.slow
def test_too_many_files(told: Told) -> None:
    files = [(f"{n}.jsonl", "x") for n in range(11)]
    assert compared(logged_in(told[0]), *files)["problem"] == "choose 10 files or fewer"


# --- Evidence and the agreement ------------------------------------------------------------


@pytest.mark.slow
def test_evidence_in_words(tmp_path: Path) -> None:
    app, ledger = room_at(tmp_path)
    play(ledger, signed_terms(), 3, {"b": {1: 0}}, away={2: {"c"}})
    page = logged_in(app, "observer").get("/evidence").text
    assert "By these terms training is not audited" in page
    assert "c did not report." in page
    assert '<strong><bdi>b</bdi></strong> in <a href="/watch/1">slot 1</a>' in page


@pytest.mark.slow
def test_audits_are_shown(tmp_path: Path) -> None:
    audited = Audited(tmp_path / "consortium", per_slot=2)
    audited.play(3)
    app, ledger = room_at(tmp_path, ("North", "South", "West"))
    ledger.write_bytes(audited.ledger.read_bytes())
    page = logged_in(app).get("/evidence").text
    assert page.count('<span class="tag plain">open</span>') == 2
    assert page.count('<span class="tag doubtful">not carried out</span>') == 4
    assert "Verdicts count until slot 4 is settled." in page


@pytest.mark.slow
def test_an_agreement_file_is_verified(tmp_path: Path) -> None:
    app, _ = room_at(tmp_path)
    client = logged_in(app, "observer")
    signed = draft()
    for key in KEYS:
        signed = sign_agreement(signed, key)
    cases = ((draft().content, "Signed by 0 of 4."), (signed.content, "all 4 parties have signed"))
    for content, said in cases:
        answer = client.post("/agreement", files={"file": ("agreement.html", content)})
        assert answer.status_code == 200
        assert said in answer.text
    api = client.post("/api/agreement/verify", files={"file": ("a.html", signed.content)}).json()
    assert (api["holds"], api["complete"], api["problems"]) == (True, True, [])
    other = signed.content.replace(b"1 month", b"9 month")
    answer = client.post("/agreement", files={"file": ("agreement.html", other)})
    assert answer.status_code == 422
    assert "Wrong: " in answer.text
    assert client.get("/agreement/file").status_code == 404


def test_the_agreement_of_the_room(tmp_path: Path) -> None:
    app, _ = room_at(tmp_path)
    file = draft()
    app.state.room.store.put_agreement(1, file.digest, file.content.decode())
    client = logged_in(app)
    page = client.get("/agreement").text
    assert "Signed by 0 of 4" in page
    assert "verifies itself when you open it" in page
    answer = client.get("/agreement/file")
    assert answer.headers["content-disposition"].startswith("attachment")
    assert answer.content == file.content
    sent = client.post("/agreement", files={"file": ("agreement.html", answer.content)})
    assert "It is the agreement of this room." in sent.text


# --- In a browser --------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("phone", [False, True])
def test_in_a_browser(told: Told, browser: Browser, tmp_path: Path, phone: bool) -> None:
    app, _, clients = told
    copy = tmp_path / "b.jsonl"
    copy.write_text(copy_of(clients, "b"))
    with served(app) as address, visitor(browser, phone=phone) as page:
        enter(page, app, address, "coordinator")
        page.goto(f"{address}/ledger")
        page.get_by_label("Kind").select_option("settlement")
        page.get_by_label("Slot").fill("1")
        page.get_by_role("button", name="Show").press("Enter")
        page.wait_for_url("**kind=settlement**")
        page.locator("summary").first.click()
        page.get_by_text("slipped in").wait_for()
        check_page(page)
        with page.expect_download() as found:
            page.get_by_role("link", name="Download as lines").click()
        assert Path(found.value.path()).read_text().startswith('{"number": 1, ')
        page.get_by_role("link", name="Verify", exact=True).click()
        page.get_by_role("button", name="Verify all of it").click()
        page.get_by_text("Everything is in order.").wait_for()
        page.get_by_label("Files").set_input_files(copy)
        page.get_by_role("button", name="Compare").click()
        page.get_by_text("b.jsonl agrees with it.").wait_for()
        check_page(page)
        for path in ("/evidence", "/agreement"):
            page.goto(address + path)
            check_page(page)


@pytest.mark.slow
def test_a_file_is_verified_in_a_browser(tmp_path: Path, browser: Browser) -> None:
    app, _ = room_at(tmp_path, NAMES)
    file = tmp_path / "agreement.html"
    file.write_bytes(draft().content)
    with served(app) as address, visitor(browser) as page:
        enter(page, app, address)
        page.goto(f"{address}/agreement")
        page.get_by_label("Agreement file").set_input_files(file)
        page.get_by_role("button", name="Verify").click()
        page.get_by_text("Nothing was changed, and the proof holds.").wait_for()
        check_page(page)

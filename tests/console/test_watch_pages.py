"""The pages about slots: the latest one live, earlier ones, and what they say when it breaks."""

import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from playwright.sync_api import Browser, Page

from fedaccord.console.room.access import Viewer
from fedaccord.console.room.following import Follower, Look
from fedaccord.protocol.envelopes import Ask
from fedaccord.protocol.facts import Scored
from tests.console.browser import check_page, served, visitor
from tests.console.ledgers import HOSTILE, NAMES, logged_in, play, room_at, signed_terms

LONG = ("St Mary", "Northgate", HOSTILE)


@pytest.fixture
def room(tmp_path: Path) -> Iterator[tuple[FastAPI, Path]]:
    app, ledger = room_at(tmp_path)
    yield app, ledger
    app.state.follower.close()
    app.state.room.close()


@pytest.fixture
def told(room: tuple[FastAPI, Path]) -> TestClient:
    """A room after four slots; b slips in the first, c is away in the third."""
    app, ledger = room
    play(ledger, signed_terms(), 4, {"b": {1: 0}}, away={3: {"c"}})
    return logged_in(app)


@pytest.mark.slow
def test_before_the_first_slot(room: tuple[FastAPI, Path]) -> None:
    client = logged_in(room[0])
    assert "No slot has begun yet" in client.get("/watch").text
    assert client.get("/api/watch").json()["slot"] is None
    assert client.get("/watch/1").status_code == 404


@pytest.mark.parametrize(
    "path", ["/watch", "/watch/part", "/watch/1", "/watch/stream", "/api/watch"]
)
def test_nobody_sees_it_without_a_session(room: tuple[FastAPI, Path], path: str) -> None:
    client = TestClient(room[0], base_url="http://127.0.0.1:8321")
    assert client.get(path).status_code == 401


@pytest.mark.parametrize(("role", "name"), [("observer", None), ("member", "a")])
def test_members_and_observers_see_it(
    room: tuple[FastAPI, Path], role: str, name: str | None
) -> None:
    play(room[1], signed_terms(), 1)
    client = logged_in(room[0], role, name)
    assert "Slot 1 is settled" in client.get("/watch").text


@pytest.mark.slow
def test_the_latest_slot_and_those_before(told: TestClient) -> None:
    latest = told.get("/watch").text
    assert "<h1>Slot 4</h1>" in latest
    assert 'href="/watch/1"' in latest
    first = told.get("/watch/1").text
    assert "takes no part until the end of slot 3" in first
    assert "Rounds 1 to 2 of 2: a and c trained on" in first
    third = told.get("/watch/3").text
    assert "Slot 3 is void, nothing was trained: 1 of 2 members took part" in third
    assert "absent: no answer came in time" in third
    assert told.get("/watch/5").status_code == 404
    assert told.get("/watch/0").status_code == 422
    assert "slot: must be a whole number, got &#39;abc&#39;" in told.get("/watch/abc").text


@pytest.mark.slow
def test_programs_get_the_same(told: TestClient) -> None:
    latest = told.get("/api/watch").json()
    assert (latest["slot"]["slot"], latest["slot"]["stage"]) == (4, "over")
    first = told.get("/api/watch?slot=1").json()["slot"]
    assert [one["verdict"] for one in first["members"]] == ["kept", "deviation", "kept"]
    assert told.get("/api/watch?slot=9").status_code == 404


@pytest.mark.slow
def test_no_number_of_a_member_is_on_it(told: TestClient) -> None:
    """Reports are in the ledger, and not on these pages."""
    text = told.get("/api/watch?slot=1").text + told.get("/watch/1").text
    assert "ratio" not in text
    assert "valuation" not in text


@pytest.mark.slow
def test_without_test_examples_the_page_shows_how_far_the_model_moved(told: TestClient) -> None:
    page = told.get("/watch/1").text
    assert "How far the updates moved the model in each round: " in page
    assert "The server has no test examples" in page
    assert told.get("/api/watch?slot=1").json()["slot"]["rounds"][0]["accuracy"] is None


@pytest.mark.slow
@pytest.mark.parametrize(
    ("measure", "first", "last"),
    [("accuracy", "50.0 %", "75.0 %"), ("concordance", "0.500", "0.750")],
)
def test_what_the_server_measured(
    room: tuple[FastAPI, Path], measure: str, first: str, last: str
) -> None:
    app, ledger = room
    found = iter([Scored(1.5, 0.5, measure), Scored(0.625, 0.75, measure)])
    play(ledger, signed_terms(), 1, evaluate=lambda _: next(found))
    client = logged_in(app)
    page = client.get("/watch").text
    assert f"aria-label=\"The model's {measure} after each round: " in page
    assert f"{first} at first, {last} in the latest round" in page
    assert f"now loss 0.625, {measure} {last}. It is the server's word" in page
    assert f"the server then measured loss 0.625, {measure} {last}." in page
    assert f"<td>1.5</td><td>{first}</td>" in page
    assert "moved the model" not in page
    one, two = client.get("/api/watch").json()["slot"]["rounds"]
    assert (one["loss"], two["accuracy"], two["measure"]) == (1.5, 0.75, measure)
    entries = client.get("/ledger?kind=round").text
    assert "the server&#39;s word alone" in entries


def test_a_measure_with_a_hostile_name_is_text(room: tuple[FastAPI, Path]) -> None:
    app, ledger = room
    play(ledger, signed_terms(), 1, evaluate=lambda _: Scored(-1e300, 1e300, HOSTILE))
    page = logged_in(app).get("/watch").text
    assert "<b onclick" not in page
    assert "&lt;b onclick" in page


@pytest.mark.slow
def test_hostile_names_are_text(tmp_path: Path) -> None:
    app, ledger = room_at(tmp_path, LONG)
    play(ledger, signed_terms(LONG), 2, {HOSTILE: {1: 0}})
    client = logged_in(app)
    for path in ("/watch", "/watch/1"):
        page = client.get(path).text
        assert "<b onclick" not in page
        assert "&lt;b onclick" in page


def change(path: Path, statement: str) -> None:
    """Change a ledger behind everyone's back."""
    with closing(sqlite3.connect(path)) as database:
        triggers = database.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'")
        for (name,) in triggers.fetchall():
            database.execute(f"DROP TRIGGER {name}")
        database.execute(statement)
        database.commit()


def test_a_changed_entry_is_said_in_one_sentence(room: tuple[FastAPI, Path]) -> None:
    app, ledger = room
    play(ledger, signed_terms(), 1)
    where = "kind = 'verdict' AND client = 'b'"
    change(ledger, f"UPDATE entries SET text = replace(text, 'kept', 'deviation') WHERE {where}")
    page = logged_in(app).get("/watch").text
    assert "The ledger was changed: entry " in page
    assert "is not what was written: its digest differs. What follows it is not shown." in page


@pytest.mark.slow
@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE entries SET text = '{' WHERE kind = 'terms'",
        "DELETE FROM entries WHERE kind = 'terms'",
        "UPDATE entries SET slot = 'x' WHERE kind = 'slot'",
        "UPDATE entries SET number = -5 WHERE kind = 'settlement' AND slot = 1",
        "UPDATE entries SET text = x'ff' WHERE kind = 'settlement'",
        "DROP TABLE entries",
    ],
)
def test_whatever_is_broken_there_is_a_page(room: tuple[FastAPI, Path], statement: str) -> None:
    app, ledger = room
    play(ledger, signed_terms(), 2)
    change(ledger, statement)
    client = logged_in(app)
    paths = ("/watch", "/watch/1", "/ledger", "/ledger?slot=1", "/evidence", "/api/watch")
    for path in (*paths, "/ledger/lines", "/api/ledger"):
        assert client.get(path).status_code < 500, path
    found = client.post("/api/ledger/verify").json()
    assert found["problem"] or not found["result"]["holds"]


def test_a_ledger_that_is_no_database(room: tuple[FastAPI, Path]) -> None:
    app, ledger = room
    ledger.write_bytes(b"no database at all, but something else that is long enough" * 50)
    page = logged_in(app).get("/watch").text
    assert "The ledger cannot be read" in page
    assert str(ledger) not in page


@pytest.mark.slow
def test_all_watchers_share_one_look(
    room: tuple[FastAPI, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    app, ledger = room
    play(ledger, signed_terms(), 1)
    follower: Follower = app.state.follower
    looks, rendered = list[int](), list[str]()
    see, text = follower._see, app.state.pages.text

    def counted_see() -> Look:
        looks.append(1)
        return see()

    def counted_text(template: str, **values: object) -> str:
        rendered.append(template)
        return str(text(template, **values))

    monkeypatch.setattr(follower, "_see", counted_see)
    monkeypatch.setattr(app.state.pages, "text", counted_text)
    client = logged_in(app)
    began = time.monotonic()
    for _ in range(50):
        assert client.get("/watch/part").status_code == 200
    took = time.monotonic() - began
    assert len(looks) <= 2 + took / 0.4
    assert len(rendered) == 1


@pytest.mark.slow
def test_it_grows_with_the_ledger(room: tuple[FastAPI, Path]) -> None:
    """The follower takes what is new, entry by entry, and ends with the same as from scratch."""
    app, ledger = room
    follower = Follower(lambda: app.state.room.ledger_place, lambda: "")
    seen = []

    def look(_: Ask) -> None:
        follower._looked = 0.0
        found = follower.now().slot
        if found is not None:
            seen.append((found.slot, found.stage, len(found.rounds)))

    play(ledger, signed_terms(), 2, between=look)
    assert (1, "training", 1) in seen
    assert (2, "training", 1) in seen
    follower._looked = 0.0
    grown = follower.now().slot
    fresh = Follower(lambda: app.state.room.ledger_place, lambda: "")
    assert grown == fresh.now().slot
    follower.close()
    fresh.close()


# --- In a browser --------------------------------------------------------------------------


def enter(page: Page, app: FastAPI, address: str, role: str = "observer") -> None:
    """Log a browser in."""
    doors = app.state.room.doors
    token = doors.enter(doors.ticket(Viewer(role)))  # type: ignore[arg-type]
    port = address.rsplit(":", 1)[1]
    page.context.add_cookies([{"name": f"fedaccord-{port}", "value": token, "url": address}])


@pytest.mark.slow
@pytest.mark.parametrize("phone", [False, True])
def test_a_page_that_is_open_follows_the_slot(
    tmp_path: Path, browser: Browser, phone: bool
) -> None:
    app, ledger = room_at(tmp_path)
    go_on = {name: threading.Event() for name in ("report", "train", "settle")}

    def wait(ask: Ask) -> None:
        if ask.stage in go_on:
            assert go_on[ask.stage].wait(60)

    thread = threading.Thread(
        target=play, args=(ledger, signed_terms(), 1, {"b": {1: 0}}), kwargs={"between": wait}
    )
    with served(app) as address, visitor(browser, phone=phone) as page:
        enter(page, app, address)
        page.goto(f"{address}/watch")
        page.get_by_text("No slot has begun yet").wait_for()
        thread.start()
        page.get_by_text("a, b and c are asked to report.").wait_for()
        go_on["report"].set()
        page.get_by_text("a, b and c are asked to train in round 1 of 2.").wait_for()
        check_page(page)
        go_on["train"].set()
        page.get_by_text("Slot 1 is settled").first.wait_for()
        page.get_by_text("trained on less", exact=True).wait_for()
        go_on["settle"].set()
        page.get_by_text("received the settlement").wait_for()
        check_page(page)
        thread.join(60)


@pytest.mark.slow
@pytest.mark.parametrize("phone", [False, True])
def test_long_names_fit(tmp_path: Path, browser: Browser, phone: bool) -> None:
    app, ledger = room_at(tmp_path, LONG)
    play(ledger, signed_terms(LONG), 2, {HOSTILE: {1: 0}})
    with served(app) as address, visitor(browser, phone=phone) as page:
        enter(page, app, address)
        for path in ("/watch", "/watch/1", "/ledger", "/evidence"):
            page.goto(address + path)
            check_page(page)


@pytest.mark.slow
def test_it_can_be_read_without_scripts(tmp_path: Path, browser: Browser) -> None:
    app, ledger = room_at(tmp_path, NAMES)
    play(ledger, signed_terms(), 1)
    with served(app) as address, visitor(browser, scripts=False) as page:
        enter(page, app, address)
        page.goto(f"{address}/watch")
        assert page.get_by_text("Slot 1 is settled").first.is_visible()
        page.get_by_role("link", name="look again").click()
        page.get_by_role("link", name="entries about slot 1").click()
        assert page.locator(".entries").get_by_text("A slot begins").is_visible()


@pytest.mark.slow
@pytest.mark.parametrize("phone", [False, True])
def test_what_the_server_measured_fits(tmp_path: Path, browser: Browser, phone: bool) -> None:
    app, ledger = room_at(tmp_path)
    found = (Scored(2 / n, 1 - 0.8 / n) for n in range(1, 13))
    play(ledger, signed_terms(rounds=12), 1, evaluate=lambda _: next(found))
    with served(app) as address, visitor(browser, phone=phone) as page:
        enter(page, app, address)
        page.goto(f"{address}/watch")
        page.get_by_text("Loss and accuracy round by round").click()
        assert page.get_by_role("cell", name="93.3 %").is_visible()
        check_page(page)

"""Every page of all applications, with names that a careless page would break on.

Each route that is asked with GET has a row: addresses to visit, or a reason why not. A route
without a row fails, and so does a row without a route.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from unicodedata import bidirectional
from urllib.parse import urlencode, urljoin

import pytest
from fastapi import FastAPI
from fastapi.routing import APIRoute, _IncludedRouter
from fastapi.testclient import TestClient
from playwright.sync_api import Browser, Page

from fedaccord.console.member.app import create_member_page
from fedaccord.console.room.access import Viewer
from fedaccord.console.workshop.app import create_workshop
from fedaccord.console.workshop.draft import Draft
from tests.console.browser import check_page, served, visitor
from tests.console.drafts import some
from tests.console.ledgers import play, signed_terms
from tests.console.members import Everyone, enter, open_room, posted_terms, terms_of
from tests.console.room_story import FORM, Story, browser_of, close_rooms, coordinator_of, signed

HERE = "http://127.0.0.1:8321"
NAMES = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "בית חולים 12 (צפון)",
    "n" * 200,
    '=HYPERLINK("http://evil")',
    "{{7*7}} ${7*7} {% raw %}",
    "🏥 Clinic & 'Sons' 👩🏽‍⚕️".replace("\u200d", ""),
)
TURNED = "\N{RIGHT-TO-LEFT OVERRIDE}evil\N{HEBREW LETTER ALEF}"
CONSORTIUM = '<b onclick="alert(1)">' + "W" * 120
ISOLATED = ("bdi", "title", "textarea", "option", "script", "style", "text")
"""Elements whose text is by itself; `text` is a label of a picture."""
Rows = Mapping[str, list[str] | str]
"""Addresses to visit, or why there is nothing to visit."""


class Seen(HTMLParser):
    """What is on a page: whatever a browser would run, and where one gets from it."""

    def __init__(self, text: str) -> None:
        """Read it."""
        super().__init__()
        self.links: set[str] = set()
        self.ids: set[str] = set()
        self.bad: list[str] = []
        self.inside: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Take in an element."""
        given = dict(attrs)
        self.inside += [tag] if tag in ISOLATED else []
        self.bad += [f"{tag} {name}" for name in given if name.startswith("on")]
        if tag == "script" and not (given.get("src") or "").startswith("/static/"):
            self.bad.append(f"script {given}")
        if tag == "img" and given.get("src") == "x":
            self.bad.append("img")
        if given.get("id"):
            self.ids.add(str(given["id"]))
        for name in ("href", "hx-get"):
            if tag in ("a", "link") or name == "hx-get":
                self.links.add(given.get(name) or "")

    def handle_endtag(self, tag: str) -> None:
        """Leave an element."""
        if self.inside and tag == self.inside[-1]:
            self.inside.pop()

    def handle_data(self, data: str) -> None:
        """Take in text: what is written from right to left must not turn its neighbours around."""
        if not self.inside and any(bidirectional(letter) in ("R", "AL") for letter in data):
            self.bad.append(f"not isolated: {data!r}")


def get_routes(app: FastAPI) -> set[str]:
    """The paths of all routes that are asked with GET."""
    return {
        str(route.path)
        for included in app.routes
        if isinstance(included, _IncludedRouter)
        for route in included.effective_route_contexts()
        if "GET" in (route.methods or set())
    } | {r.path for r in app.routes if isinstance(r, APIRoute) and "GET" in (r.methods or set())}


@dataclass
class Walk:
    """Pages of an application as somebody sees them."""

    client: TestClient
    asked: dict[str, int] = field(default_factory=dict)

    def look(self, address: str, answer: Any = None) -> None:
        """Visit a page, and wherever its links lead."""
        answer = answer or self.client.get(address)
        assert answer.status_code == 200, f"{address}: {answer.text[-1500:]}"
        assert answer.headers["content-type"].startswith("text/html")
        seen = Seen(answer.text)
        assert seen.bad == [], address
        assert "49 $49" not in answer.text
        for link in seen.links - {""}:
            self.follow(address, link, seen)

    def follow(self, address: str, link: str, seen: Seen) -> None:
        """What a link leads to is there."""
        path, _, part = link.partition("#")
        if not path:
            assert part in seen.ids, f"{address} has no #{part}"
            return
        there = urljoin(address, path)
        if "://" in there or "/stream" in there or "/events" in there:
            return
        place = there.partition("?")[0]  # one link to each place is enough
        if place not in self.asked:
            self.asked[place] = self.client.get(there).status_code
        assert self.asked[place] < 400, f"{address} leads to {there}: {self.asked[place]}"


def check_rows(app: FastAPI, rows: Rows) -> None:
    """Every route has a row, and every row a route."""
    assert get_routes(app) == rows.keys()


def addresses(rows: Rows) -> list[str]:
    """All that is to be visited."""
    return [each for row in rows.values() if not isinstance(row, str) for each in row]


def walk_all(walk: Walk, rows: Rows) -> None:
    """Look at all of them."""
    for address in addresses(rows):
        walk.look(address)


def check_all(browser: Browser, base: str, rows: Rows, enter: Callable[[Page], Any]) -> None:
    """Every page at both widths: accessible, not too wide, and without complaints."""
    wrong = []
    for phone in (False, True):
        with visitor(browser, phone=phone) as page:
            enter(page)
            for address in addresses(rows):
                page.goto(base + address)
                try:
                    check_page(page)
                except AssertionError as error:
                    wrong.append(f"{'phone' if phone else 'desktop'} {address[-40:]}: {error}")
    assert not wrong, "\n".join(wrong)


# --- The workshop --------------------------------------------------------------------------

FILE = "a file to download"
DRAFT = some(list(NAMES))
DRAFT = Draft(DRAFT.text.replace('"Some"', f"'{CONSORTIUM}'"))
STATES = (
    "",
    "?discount_factor=0",
    "?kind=uniform&punishment=reversion&within=10",
    "?without=1&doubles=2&impatient=4",
    "?" + urlencode({"joins": 3, "joins_name": NAMES[1] + "!"}),
)


def workshop_rows(job: str) -> Rows:
    """What there is to visit, with a training."""
    place = f"/w/{DRAFT.packed}"
    states = {
        name: [f"{place}/{name}{state}" for state in STATES] for name in ("design", "more", "print")
    }
    return {
        "/": ["/"],
        "/w/{packed}/members": [f"{place}/members", f"{place}/members?more=yes"],
        "/w/{packed}/interview": [f"{place}/interview", f"{place}/interview?who=2"],
        "/w/{packed}/design": states["design"],
        "/w/{packed}/more": states["more"][::3],
        "/w/{packed}/member/{number}": [f"{place}/member/{n}{STATES[n % 3]}" for n in (1, 2, 3, 4)],
        "/w/{packed}/compare": [f"{place}/compare", f"{place}/compare{STATES[3]}"],
        "/w/{packed}/print": states["print"][::3],
        "/w/{packed}/ways-out": [f"{place}/ways-out{state}" for state in STATES[:2]],
        "/w/{packed}/member/{number}/sheet.html": FILE,
        "/w/{packed}/report.html": FILE,
        "/w/{packed}/profile.csv": FILE,
        "/w/{packed}/consortium.toml": FILE,
        "/w/{packed}/members.csv": FILE,
        "/w/{packed}/train": [f"{place}/train", f"{place}/train{STATES[4]}"],
        "/w/{packed}/train/{job}": [f"{place}/train/{job}"],
        "/w/{packed}/train/{job}/events": "a stream",
        "/w/{packed}/train/{job}/training.json": FILE,
        "/api/trainings/{job}": "for programs",
    }


@contextmanager
def workshop() -> Iterator[tuple[TestClient, Rows]]:
    """The workshop, with a training that was cancelled."""
    with TestClient(create_workshop(), base_url=HERE) as client:
        data = {"dataset": "digits", "profile": ["equilibrium"], "seeds": "1", "rounds": "1"}
        started = client.post(
            f"/w/{DRAFT.packed}/train", data=data, follow_redirects=False
        ).headers["location"]
        client.post(f"{started.partition('?')[0]}/cancel")
        yield client, workshop_rows(started.rpartition("/")[2].partition("?")[0])


@pytest.mark.slow
def test_the_workshop() -> None:
    with workshop() as (client, rows):
        check_rows(client.app, rows)  # type: ignore[arg-type]
        walk_all(Walk(client), rows)


def test_the_workshop_says_what_is_wrong_with_a_name() -> None:
    with TestClient(create_workshop(), base_url=HERE) as client:
        turned = Draft(DRAFT.text.replace("n" * 200, TURNED))
        page = client.get(f"/w/{turned.packed}/members").text
        assert "must be one line of printable text" in page
        answer = client.get(f"/w/{DRAFT.packed}/design", params={"joins": 1, "joins_name": TURNED})
        assert answer.status_code == 422
        assert TURNED not in re.sub(r'value="[^"]*"', "", answer.text)
        for address in ("/w/<script>/members", "/w/x/member/1", f"/w/{DRAFT.packed}/member/99"):
            assert client.get(address).status_code == 404
            assert Seen(client.get(address).text).bad == []


@pytest.mark.slow
def test_the_workshop_in_a_browser(browser: Browser) -> None:
    with workshop() as (client, rows), served(client.app) as base:  # type: ignore[arg-type]
        check_all(browser, base, rows, lambda _: None)


# --- The room ------------------------------------------------------------------------------

INSIDE = tuple(name.replace("/", "|") for name in NAMES)
"""Names of members of a room, who have files that are called after them."""
ROOM_FORM = FORM | {"name": "<i>Three</i> & קליניקות " + "x" * 60, "members": "\n".join(INSIDE)}
ROOM: Rows = {
    "/": ["/"],
    "/now": ["/now"],
    "/live": "a stream",
    "/join": ["/join"],
    "/enter": ["/enter"],
    "/observe": ["/observe"],
    "/terms": ["/terms", "/terms?version=1", "/terms?version=2"],
    "/terms/to-sign.toml": FILE,
    "/terms/propose": ["/terms/propose"],
    "/members": ["/members"],
    "/observers": ["/observers"],
    "/run": ["/run", "/run?check=yes"],
    "/run/output": ["/run/output"],
    "/run/stream": "a stream",
    "/watch": ["/watch"],
    "/watch/part": ["/watch/part"],
    "/watch/stream": "a stream",
    "/watch/{slot}": ["/watch/1", "/watch/2"],
    "/ledger": [
        "/ledger",
        "/ledger?order=first&slot=1",
        "/ledger?" + urlencode({"member": INSIDE[0], "slot": "2"}),
        "/ledger?" + urlencode({"member": TURNED, "kind": "", "slot": ""}),
    ],
    "/ledger/lines": FILE,
    "/ledger/verify": ["/ledger/verify"],
    "/ledger/verify/part": ["/ledger/verify/part"],
    "/evidence": ["/evidence"],
    "/evidence/proofs": FILE,
    "/agreement": ["/agreement"],
    "/agreement/file": FILE,
    "/api/watch": "for programs",
    "/api/ledger": "for programs",
    "/api/ledger/compare": "for programs",
    "/api/room": "for programs",
    "/api/terms": "for programs",
    "/api/to-sign": "for programs",
    "/api/agreement": "for programs",
    "/api/new-keys": "for programs",
    "/api/signatures": "for programs",
}
PARTS = {"/now", "/run/output", "/watch/part", "/ledger/verify/part"}
"""Without a title of their own, so that no browser visits them."""
COORDINATORS = {"/terms/propose", "/observers", "/run", "/run?check=yes", "/run/output"}


@pytest.fixture(scope="module")
def room(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    """A room in which much has happened."""
    story = signed(tmp_path_factory.mktemp("room"), ROOM_FORM)
    coordinator, north = story.coordinator, story.members[INSIDE[0]]
    play(
        story.room.app / "ledger.db",
        signed_terms(INSIDE),
        2,
        {INSIDE[1]: {1: 0}},
        away={2: {INSIDE[2]}},
    )
    text = f"{INSIDE[1]} {TURNED} {'m' * 300}"
    sent = {"version": 1, "text": text}
    assert story.http.post("/api/comments", json=sent, headers=north.headers).status_code == 200
    assert coordinator.post("/observers", data={"name": INSIDE[0] + TURNED}).status_code < 500
    assert coordinator.post("/observers", data={"name": INSIDE[3]}).status_code == 200
    now = coordinator.get("/terms/propose").text
    change = fields_of(now, "/terms/propose") | {"rounds": "7", "note": INSIDE[0] + "y" * 150}
    answer = coordinator.post("/terms/propose", data=change)
    assert answer.status_code == 303, answer.text
    assert coordinator.post("/ledger/verify").status_code == 303
    yield story
    story.app.state.follower.close()
    close_rooms()


def fields_of(page: str, action: str) -> dict[str, str]:
    """What a form sends if nobody changes anything."""
    form = page.split(f'action="{action}"', 1)[1].split("</form>", 1)[0]
    inputs = re.findall(r'<input[^>]* name="([^"]*)"[^>]* value="([^"]*)"', form)
    areas = re.findall(r'<textarea[^>]* name="([^"]*)"[^>]*>\n?(.*?)</textarea>', form, re.DOTALL)
    chosen = {
        name: re.findall(r'<option value="([^"]*)" selected', options)[0]
        for name, options in re.findall(
            r'<select[^>]* name="([^"]*)"[^>]*>(.*?)</select>', form, re.DOTALL
        )
    }
    return {name: unescape(value) for name, value in [*inputs, *areas, *chosen.items()]}


@pytest.mark.slow
def test_every_route_of_the_room_has_a_row(room: Story) -> None:
    check_rows(room.app, ROOM)


@pytest.mark.slow
@pytest.mark.parametrize("role", ["coordinator", "member", "observer"])
def test_the_room(room: Story, role: str) -> None:
    client = coordinator_of(room.app)
    if role == "member":
        client = browser_of(room.app, **room.members[INSIDE[0]].headers)
    elif role == "observer":
        doors = room.room.doors
        client = browser_of(
            room.app, Authorization=f"Bearer {doors.observe(doors.invite_observer('x'))}"
        )
    walk = Walk(client)
    for address in addresses(ROOM):
        if role == "coordinator" or address not in COORDINATORS:
            walk.look(address)


@pytest.mark.slow
def test_pages_of_the_room_that_follow_a_change(room: Story) -> None:
    coordinator = coordinator_of(room.app)
    walk = Walk(coordinator)
    for name in INSIDE:
        walk.look("/members", coordinator.post("/members/invite", data={"client": name}))
    walk.look("/observers", coordinator.post("/observers", data={"name": INSIDE[1]}))
    change = {"after": "2", "rounds": INSIDE[1], "members": INSIDE[0], "note": INSIDE[0]}
    answer = coordinator.post("/terms/propose", data=change)
    assert answer.status_code == 422
    assert Seen(answer.text).bad == []
    files = {"file": (INSIDE[1], INSIDE[0].encode())}
    answer = coordinator.post("/agreement", files=files)
    assert answer.status_code == 422
    assert Seen(answer.text).bad == []


@pytest.mark.slow
@pytest.mark.parametrize("role", ["coordinator", "member", "observer"])
def test_the_room_in_a_browser(room: Story, browser: Browser, role: str) -> None:
    rows = {name: row for name, row in ROOM.items() if name not in PARTS}
    if role != "coordinator":  # once each: what differs is what may be changed
        rows = {
            name: row[:1]
            for name, row in rows.items()
            if name not in COORDINATORS and not isinstance(row, str)
        }
    with served(room.app) as base:
        doors = room.room.doors
        code = doors.invite_observer("x")

        def enter_room(page: Page) -> None:
            viewer = Viewer("member", INSIDE[0]) if role == "member" else Viewer("coordinator")
            link = f"observe#{code}" if role == "observer" else f"enter#{doors.ticket(viewer)}"
            page.goto(f"{base}/{link}")
            page.wait_for_url(f"{base}/")

        check_all(browser, base, rows, enter_room)


# --- A member's page -----------------------------------------------------------------------

MEMBER: Rows = {
    "/": ["/"],
    "/join": ["/join"],
    "/terms": ["/terms"],
    "/agreement.html": FILE,
    "/numbers": ["/numbers"],
    "/interview": ["/interview"],
    "/data": ["/data"],
    "/copy": ["/copy"],
    "/node": ["/node"],
    "/node/log": ["/node/log"],
    "/node/stream": "a stream",
    "/room": ["/room"],
}


def test_every_route_of_a_members_page_has_a_row(tmp_path: Path) -> None:
    check_rows(create_member_page(tmp_path / "member"), MEMBER)


@contextmanager
def member_page(folder: Path) -> Iterator[TestClient]:
    """The page of a member with a long name, who has joined with two others."""
    names = (INSIDE[3], INSIDE[0], INSIDE[2])
    with open_room(folder, terms_of(names)) as room:
        everyone = Everyone(room, folder)
        everyone.join_all()
        everyone.sign(INSIDE[2])
        page = everyone.pages[INSIDE[3]]
        page.post("/terms/comment", data={"version": "1", "text": f"{INSIDE[1]} {TURNED}"})
        yield page


@pytest.mark.slow
def test_a_members_page(tmp_path: Path) -> None:
    with member_page(tmp_path) as page:
        walk_all(Walk(page), MEMBER)


@pytest.mark.slow
def test_an_invitation(tmp_path: Path) -> None:
    with open_room(tmp_path, posted_terms(INSIDE)) as room:
        page = enter(tmp_path / "new")
        Walk(page).look("/")
        for name in INSIDE:
            Walk(page).look("/join", page.post("/join", data={"link": room.invite(name)}))


@pytest.mark.slow
def test_a_members_page_in_a_browser(tmp_path: Path, browser: Browser) -> None:
    rows = {name: row for name, row in MEMBER.items() if name != "/node/log"}
    with member_page(tmp_path) as page:
        app: FastAPI = page.app  # type: ignore[assignment]
        with served(app) as base:

            def enter_page(opened: Page) -> None:
                opened.goto(f"{base}/#{app.state.access.code}")
                opened.wait_for_url(f"{base}/")

            check_all(browser, base, rows, enter_page)

"""Who may do what in the room: one table of every route and every role.

A route without a row fails, and so does a row without a route. The table says who gets an answer,
not what is in it. The ledger has what members report, and several routes read it: that they tell
nobody another member's numbers is tested in `test_ledger_pages`.
"""

from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from fastapi.routing import APIRoute, _IncludedRouter

from fedaccord.console.room.access import Viewer
from tests.console.browser import served
from tests.console.ledgers import play, room_at, signed_terms
from tests.console.room_story import (
    Story,
    browser_of,
    close_rooms,
    code_of,
    coordinator_of,
    entered,
    joined,
    link_in,
)
from tests.lies import lie

ROLES = ("nobody", "observer", "member", "other member", "coordinator")
OK, SEE, IN, NO, GONE, WRONG, EMPTY = 200, 303, 401, 403, 410, 422, 204
TAKEN, MISSING = 409, 404

PUBLIC = (OK, OK, OK, OK, OK)
READERS = (IN, OK, OK, OK, OK)
COORDINATOR = (IN, NO, NO, NO, OK)


def changes(status: int) -> tuple[int, ...]:
    """What only the coordinator may change, and how that ends."""
    return (IN, NO, NO, NO, status)


JSON, FORM, FILES = "json", "data", "files"
CODE = "no-such-code"

TABLE: dict[tuple[str, str], tuple[tuple[int, ...], dict[str, Any]]] = {
    # pages that anyone may see, and ways in
    ("GET", "/"): (PUBLIC, {}),
    ("GET", "/join"): (PUBLIC, {}),
    ("GET", "/enter"): (PUBLIC, {}),
    ("POST", "/enter"): ((GONE,) * 5, {FORM: {"code": CODE}}),
    ("GET", "/observe"): (PUBLIC, {}),
    ("POST", "/observe"): ((GONE, OK, OK, OK, OK), {FORM: {"code": CODE}}),  # they are asked first
    ("GET", "/api/room"): (PUBLIC, {}),
    ("POST", "/api/invitation"): ((GONE,) * 5, {JSON: {"code": CODE}}),
    ("POST", "/api/cards"): ((WRONG,) * 5, {JSON: {"code": CODE, "card": {}}}),
    ("POST", "/api/challenge"): (PUBLIC, {JSON: {"client": "North"}}),
    ("POST", "/api/login"): (
        (IN,) * 5,
        {JSON: {"client": "North", "challenge": CODE, "signature": "0" * 128}},
    ),
    # what everyone inside may read
    ("GET", "/now"): (READERS, {}),
    ("GET", "/terms"): (READERS, {}),
    ("GET", "/terms/to-sign.toml"): (READERS, {}),
    ("GET", "/members"): (READERS, {}),
    ("GET", "/api/terms"): (READERS, {}),
    ("GET", "/api/to-sign"): (READERS, {}),
    ("GET", "/api/signatures"): (READERS, {}),
    ("GET", "/api/agreement"): (READERS, {}),
    ("GET", "/api/new-keys"): (READERS, {}),
    ("GET", "/api/ledger"): (READERS, {}),
    # the ledger, slots, evidence: what is in the ledger of one member's own numbers is left out
    ("GET", "/watch"): (READERS, {}),
    ("GET", "/watch/part"): (READERS, {}),
    ("GET", "/watch/{slot}"): (READERS, {}),
    ("GET", "/api/watch"): (READERS, {}),
    ("GET", "/ledger"): (READERS, {}),
    ("GET", "/ledger/lines"): (READERS, {}),
    ("GET", "/ledger/verify"): (READERS, {}),
    ("GET", "/ledger/verify/part"): (READERS, {}),
    ("POST", "/ledger/verify"): ((IN, SEE, SEE, SEE, SEE), {}),
    ("POST", "/ledger/compare"): ((IN, SEE, SEE, SEE, SEE), {FILES: {"copies": b"x"}}),
    ("POST", "/api/ledger/verify"): (READERS, {}),
    ("POST", "/api/ledger/compare"): (READERS, {FILES: {"copies": b"x"}}),
    ("GET", "/api/ledger/compare"): (READERS, {}),
    ("GET", "/evidence"): (READERS, {}),
    ("GET", "/evidence/proofs"): ((IN, *(MISSING,) * 4), {}),  # nobody signed two answers
    ("GET", "/agreement"): (READERS, {}),
    ("POST", "/agreement"): ((IN, *(WRONG,) * 4), {FILES: {"file": b"x"}}),
    ("GET", "/agreement/file"): ((IN, *(MISSING,) * 4), {}),  # these terms post no amounts
    ("POST", "/api/agreement/verify"): ((IN, *(WRONG,) * 4), {FILES: {"file": b"x"}}),
    # what members and the coordinator do
    ("POST", "/terms/comments"): ((IN, NO, SEE, SEE, SEE), {FORM: {"version": 1, "text": "x"}}),
    ("POST", "/api/comments"): ((IN, NO, OK, OK, OK), {JSON: {"version": 1, "text": "x"}}),
    # what a member does for itself: here the signatures are North's
    ("POST", "/api/tickets"): ((IN, NO, OK, OK, NO), {}),
    ("POST", "/api/new-keys"): (
        (IN, NO, TAKEN, TAKEN, NO),
        {JSON: {"client": "West", "key": f"ed25519:{'1' * 64}", "signature": "0" * 128}},
    ),
    ("POST", "/api/signatures"): ((IN, NO, OK, NO, NO), {JSON: "signature of North"}),
    ("POST", "/api/agreement/signatures"): (
        (IN, NO, TAKEN, TAKEN, NO),
        {JSON: {"agreement": "0" * 64, "signature": "0" * 128}},
    ),
    # what the coordinator does
    ("POST", "/room"): (changes(WRONG), {FORM: {"name": ""}}),
    ("GET", "/terms/propose"): (COORDINATOR, {}),
    ("POST", "/terms/propose"): (changes(WRONG), {FORM: {"after": 1, "rounds": "x"}}),
    ("POST", "/terms/text"): (changes(WRONG), {FORM: {"after": 1, "text": "="}}),
    ("POST", "/terms/signature"): (changes(WRONG), {FILES: {"file": b"x"}}),
    ("POST", "/members/invite"): (COORDINATOR, {FORM: {"client": "North"}}),
    ("POST", "/members/withdraw"): (changes(GONE), {FORM: {"number": 999}}),
    ("POST", "/members/compare"): (
        changes(TAKEN),
        {FORM: {"client": "North", "fingerprint": "0000"}},
    ),
    ("GET", "/observers"): (COORDINATOR, {}),
    ("POST", "/observers"): (COORDINATOR, {FORM: {"name": "x"}}),
    ("POST", "/observers/withdraw"): (changes(GONE), {FORM: {"number": 999}}),
    ("GET", "/run"): (COORDINATOR, {}),
    ("GET", "/run/output"): (COORDINATOR, {}),
    ("POST", "/run/server"): (changes(TAKEN), {}),
    ("POST", "/run/slots"): (changes(TAKEN), {FORM: {"last": 1}}),
    ("POST", "/run/stop"): (changes(SEE), {FORM: {"job": "server"}}),
    # ways out, last since they end sessions
    ("POST", "/leave"): ((IN, SEE, SEE, SEE, SEE), {}),
    ("POST", "/api/logout"): ((IN, EMPTY, EMPTY, EMPTY, EMPTY), {}),
}
"""The outcome for each role, in the order of `ROLES`, and what is sent."""

FIRST = {("GET", "/api/ledger/compare"): ("POST", "/api/ledger/compare")}
"""What is done before in the same session, so that there is something to see."""

STREAMS = {
    ("GET", "/live"): READERS,
    ("GET", "/watch/stream"): READERS,
    ("GET", "/run/stream"): COORDINATOR,
}
"""Routes that do not end by themselves."""


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    """A room whose members have joined, with the ledger of a slot."""
    story = joined(tmp_path_factory.mktemp("room"))
    play(story.room.app / "ledger.db", signed_terms(tuple(story.members)), 1)
    yield story
    story.app.state.follower.close()
    close_rooms()


def as_role(story: Story, role: str) -> Any:
    """A browser or a program with a session of this role."""
    if role == "nobody":
        return browser_of(story.app)
    if role == "coordinator":
        return coordinator_of(story.app)
    if role == "observer":
        page = story.coordinator.post("/observers", data={"name": "x"}).text
        return entered(story.app, "/observe", code_of(link_in(page)))
    member = story.members["North" if role == "member" else "South"]
    member.log_in(story.http)
    return browser_of(story.app, Authorization=f"Bearer {member.token}")


def routes(story: Story) -> set[tuple[str, str]]:
    return {
        (method, str(route.path))
        for included in story.app.routes
        if isinstance(included, _IncludedRouter)
        for route in included.effective_route_contexts()
        for method in route.methods or set()
    } | {
        (method, route.path)
        for route in story.app.routes
        if isinstance(route, APIRoute)
        for method in route.methods or set()
    }


@pytest.mark.slow
def test_every_route_has_a_row(story: Story) -> None:
    assert routes(story) == TABLE.keys() | STREAMS.keys()


@lie(
    "an observer",
    "use any route of the room that is for others",
    "there is one table of all routes and roles, and each of its cells is tried",
)
@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize(("method", "path"), TABLE)
def test_the_table(story: Story, role: str, method: str, path: str) -> None:
    expected, sent = TABLE[method, path]
    if sent.get(JSON) == "signature of North":
        north = story.members["North"]
        north.log_in(story.http)
        sent = {JSON: north.signature(north.to_sign(story.http)["text"]).model_dump()}
    client = as_role(story, role)
    if first := FIRST.get((method, path)):
        client.request(*first, **TABLE[first][1])
    answer = client.request(method, path.format(slot=1), **sent)
    assert answer.status_code == expected[ROLES.index(role)], answer.text[-2000:]


@pytest.fixture(scope="module")
def open_room(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, dict[str, str]]]:
    """The address of a room that is served, and a token for each role."""
    app, ledger = room_at(tmp_path_factory.mktemp("served"), ("North", "South"))
    play(ledger, signed_terms(("North", "South")), 1)
    doors = app.state.room.doors
    people = (Viewer("member", "North"), Viewer("member", "South"), Viewer("coordinator"))
    inside = [doors.enter(doors.ticket(one)) for one in people]
    tokens = ["guessed", doors.observe(doors.invite_observer("x")), *inside]
    with served(app) as address:
        yield address, dict(zip(ROLES, tokens, strict=True))


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize(("method", "path"), STREAMS)
def test_streams(open_room: tuple[str, dict[str, str]], role: str, method: str, path: str) -> None:
    """Whom they are for is told something at once, and everybody else that they are not."""
    address, tokens = open_room
    headers = {"Authorization": f"Bearer {tokens[role]}"}
    with httpx.stream(method, address + path, headers=headers, timeout=60) as answer:
        assert answer.status_code == STREAMS[method, path][ROLES.index(role)]
        if answer.status_code == OK:
            assert next(answer.iter_lines()) == "event: changed"


@lie(
    "another web page",
    "change something in the room with the session of whoever looks at both (CSRF)",
    "browsers say where a request comes from, and what does not come from the room's own "
    "pages is refused",
)
@pytest.mark.parametrize(("method", "path"), [key for key in TABLE if key[0] == "POST"])
def test_no_page_elsewhere_changes_anything(story: Story, method: str, path: str) -> None:
    headers = {"Origin": "https://evil.example", "Sec-Fetch-Site": "cross-site"}
    coordinator = as_role(story, "coordinator")
    assert coordinator.request(method, path, headers=headers).status_code == NO


def test_members_names_are_for_those_inside(story: Story) -> None:
    assert browser_of(story.app).get("/api/room").json()["members"] == []
    page = browser_of(story.app).get("/").text
    assert all(name not in page for name in story.members)
    assert as_role(story, "observer").get("/api/room").json()["members"] == list(story.members)


def test_the_server_has_nobodys_private_keys(story: Story) -> None:
    stored = b"".join(p.read_bytes() for p in story.room.directory.rglob("*") if p.is_file())
    for member in story.members.values():
        assert member.key.pem() not in stored
        for file in ("node.key", "tls.key"):
            assert (member.folder / file).read_bytes() not in stored

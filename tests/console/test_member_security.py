"""A member's page is for its owner alone, sends nothing private, and is not misled by a room."""

import asyncio
import json
import re
import socket
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI, Request
from fastapi.routing import APIRoute
from fastapi.testclient import TestClient
from starlette.responses import RedirectResponse, Response, StreamingResponse
from starlette.types import Message, Receive, Scope, Send

from fedaccord.console.member import room_client
from fedaccord.console.member.app import PARTS, create_member_page
from fedaccord.console.member.links import RoomPlace, load_place, save_place
from fedaccord.console.room.access import Viewer
from fedaccord.console.web.opening import opening_file
from fedaccord.errors import InvalidInput
from fedaccord.protocol.terms import Terms
from tests.console.browser import served
from tests.console.members import (
    HERE,
    NUMBERS,
    Everyone,
    OpenRoom,
    enter,
    hidden,
    home_of,
    join,
    open_room,
    posted_terms,
    terms_of,
)
from tests.lies import lie

# --- Only its owner ------------------------------------------------------------------------


def all_routes() -> list[tuple[str, str]]:
    found = [
        (method, route.path)
        for part in PARTS
        for route in part.router.routes
        if isinstance(route, APIRoute)
        for method in route.methods or ()
    ]
    return [*found, ("GET", "/api/openapi.json"), ("GET", "/nothing"), ("PUT", "/join")]


@lie(
    "whoever reaches the machine",
    "use a member's page as another user or program of its machine",
    "nothing answers without the cookie, for which one needs the code of this start",
)
def test_no_route_answers_without_the_cookie(tmp_path: Path) -> None:
    app = create_member_page(tmp_path / "mary")
    page = TestClient(app, base_url=HERE, raise_server_exceptions=False, follow_redirects=False)
    tried = [one for one in all_routes() if one != ("POST", "/enter")]
    assert len(tried) > 20
    for cookie in ("", "fedaccord-member-8322=wrong", "fedaccord-member-8322="):
        for method, path in tried:
            answer = page.request(method, path, headers={"cookie": cookie} if cookie else None)
            assert answer.status_code == 401, (method, path)
            assert str(tmp_path) not in answer.text
            assert "default-src 'none'" in answer.headers["content-security-policy"]


def test_the_code_opens_the_page_and_others_do_not(tmp_path: Path) -> None:
    app = create_member_page(tmp_path / "mary")
    page = TestClient(app, base_url=HERE, follow_redirects=False)
    for wrong in ("", "x", app.state.access.code[:-1], "\udcff"):
        body = f"code={wrong}".encode("utf-8", "surrogatepass")
        kind = {"content-type": "application/x-www-form-urlencoded"}
        assert page.post("/enter", content=body, headers=kind).status_code == 403
    answer = page.post("/enter", data={"code": app.state.access.code})
    cookie = answer.headers["set-cookie"]
    assert answer.status_code == 303
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    assert app.state.access.code not in cookie
    assert page.get("/").status_code == 200


def test_codes_cannot_be_tried_quickly(tmp_path: Path) -> None:
    app = create_member_page(tmp_path / "mary")
    page = TestClient(app, base_url=HERE)
    tried = [page.post("/enter", data={"code": "x"}).status_code for _ in range(30)]
    assert tried[-1] == 429


@lie(
    "another web page",
    "sign, or change anything, on a member's own page, which listens on that member's "
    "machine (CSRF)",
    "refused, as in the room",
)
def test_another_page_changes_nothing(tmp_path: Path) -> None:
    page = enter(tmp_path / "mary")
    for headers in ({"origin": "https://evil.example"}, {"sec-fetch-site": "cross-site"}):
        for path in ("/join", "/terms/sign", "/node/start", "/numbers"):
            assert page.post(path, headers=headers).status_code == 403


@pytest.mark.parametrize("port", ["99999", "x", "-1"])
def test_a_port_that_is_none_is_refused(tmp_path: Path, port: str) -> None:
    page = enter(tmp_path / "mary")
    assert page.get("/", headers={"host": f"127.0.0.1:{port}"}).status_code == 400


def test_two_pages_on_one_machine_have_cookies_of_their_own(tmp_path: Path) -> None:
    one, other = enter(tmp_path / "a", "http://127.0.0.1:1111"), enter(tmp_path / "b")
    other.cookies.update(one.cookies)
    assert other.get("/").status_code == 200


def test_the_browser_is_started_without_the_code(tmp_path: Path) -> None:
    app = create_member_page(tmp_path / "mary")
    address = f"http://127.0.0.1:1/#{app.state.access.code}"
    with opening_file(app.state.pages, address) as file:
        assert app.state.access.code not in file.as_uri()
        assert address in file.read_text("utf-8")
        assert file.stat().st_mode & 0o077 == 0
        assert file.parent.stat().st_mode & 0o077 == 0
    assert not file.exists()


# --- Nothing private leaves ----------------------------------------------------------------


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """Everything that is sent: first lines, headers and bodies."""
    recorded: list[bytes] = []
    really = httpx.AsyncHTTPTransport.handle_async_request

    async def record(self: Any, request: httpx.Request) -> httpx.Response:
        body = await request.aread()
        head = f"{request.method} {request.url} {request.headers.raw!r}"
        recorded.append(head.encode() + b"\n" + body)
        return await really(self, request)

    monkeypatch.setattr(httpx.AsyncHTTPTransport, "handle_async_request", record)
    return recorded


@lie(
    "the room",
    "learn a member's private numbers or keys from its page",
    "nothing that the page sends has any of them",
)
@pytest.mark.slow
@pytest.mark.parametrize("terms", [terms_of(), posted_terms()], ids=["reported", "posted"])
def test_no_private_number_and_no_private_key_leaves(
    tmp_path: Path, sent: list[bytes], terms: Terms
) -> None:
    with open_room(tmp_path, terms) as room:
        everyone = Everyone(room, tmp_path)
        everyone.join_all()
        page, home = everyone.pages["St Mary"], home_of(everyone.pages["St Mary"])
        page.post("/terms/comment", data={"version": "1", "text": "Good."})
        everyone.sign("St Mary")
        page.post("/data/examples")
        for path in ("/", "/join", "/numbers", "/terms", "/data", "/node", "/copy", "/room"):
            assert page.get(path).status_code == 200
        page.post("/copy/compare")
        page.post("/room/open")
        page.post("/node/check")
        page.post("/numbers", data=NUMBERS | {"samples": "118"})
        private = home.file.private
        secrets = [text.encode() for text in NUMBERS.values() if text != "119"]
        secrets += [b"%.4f" % private.ratio, b"754.9", b'"samples"', b"ratio"]
        for name in ("signing.key", "node.key", "tls.key"):
            lines = (home.directory / name).read_bytes().splitlines()
            secrets += [line for line in lines if b"-----" not in line and len(line) > 20]
        secrets.append(home.key._key.private_bytes_raw().hex().encode())
    everything = b"\n".join(sent)
    assert len(sent) > 10
    assert b"/api/cards" in everything
    assert b"/api/signatures" in everything
    for secret in secrets:
        assert secret not in everything, secret


@pytest.mark.slow
def test_no_secret_is_in_an_address(tmp_path: Path, sent: list[bytes]) -> None:
    with open_room(tmp_path, terms_of()) as room:
        page = enter(tmp_path / "mary")
        link = room.invite("St Mary")
        join(page, link)
        page.get("/terms")
        page.post("/room/open")
    code = link.partition("#")[2].encode()
    assert any(code in one for one in sent)
    for one in sent:
        address = one.split(b"[", maxsplit=1)[0]
        assert code not in address
        assert b"?" not in address
        assert b"Cookie" not in one


# --- What a room says is text --------------------------------------------------------------

HOSTILE = (
    "<script>alert(1)</script>",
    "\u202eevil " + "x" * 180,
    "=cmd|' /C calc'!A1",
)


def names_that_can_be() -> tuple[str, ...]:
    """Names of files cannot have a slash, and names must be printable."""
    return ("<b onclick=alert(1)>Mary</b>".replace("/", ""), "N" * 120, "=1+1")


@pytest.mark.slow
def test_hostile_texts_are_shown_as_text(tmp_path: Path) -> None:
    names = names_that_can_be()
    with open_room(tmp_path, terms_of(names, name="<img src=x onerror=alert(1)>")) as room:
        everyone = Everyone(room, tmp_path)
        everyone.join_all()
        for text in HOSTILE:
            room.room.store.comment(Viewer("member", names[1]), 1, text)
        page = everyone.pages[names[0]]
        for path in ("/", "/join", "/numbers", "/terms", "/data", "/node", "/copy", "/room"):
            text = page.get(path).text
            assert "<img" not in text
            assert "<b onclick" not in text
            assert "<script>alert" not in text
        everyone.sign(names[0])
        assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page.get("/terms").text


# --- A room that lies ----------------------------------------------------------------------

Change = Callable[[dict[str, Any]], dict[str, Any]]


class Lies:
    """Between a room and whoever asks it; changes what it answers."""

    def __init__(self, app: Any) -> None:
        self.app = app
        self.about: dict[str, Change] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        change = self.about.get(scope.get("path", ""))
        if scope["type"] != "http" or change is None:
            await self.app(scope, receive, send)
            return
        body = bytearray()
        start: dict[str, Any] = {}

        async def collect(message: Message) -> None:
            if message["type"] == "http.response.start":
                start.update(message)
            else:
                body.extend(message.get("body", b""))

        await self.app(scope, receive, collect)
        told = body if start["status"] != 200 else json.dumps(change(json.loads(body))).encode()
        headers = [pair for pair in start["headers"] if pair[0] != b"content-length"]
        await send({**start, "headers": headers})
        await send({"type": "http.response.body", "body": bytes(told)})


@contextmanager
def lying_room(folder: Path, terms: Terms) -> Iterator[tuple[OpenRoom, Lies]]:
    with open_room(folder, terms) as honest:
        lies = Lies(honest.app)
        with served(lies) as address:  # type: ignore[arg-type]
            honest.room.address = address
            yield OpenRoom(honest.app, address), lies


@pytest.mark.slow
def test_an_invitation_for_somebody_else(tmp_path: Path) -> None:
    with lying_room(tmp_path, terms_of()) as (room, lies):
        page = enter(tmp_path / "mary")
        lies.about["/api/invitation"] = lambda told: told | {"client": "Somebody"}
        answer = page.post("/join", data={"link": room.invite("St Mary")})
        assert answer.status_code == 422
        assert "contradicts itself" in answer.text
        lies.about["/api/invitation"] = lambda told: told | {"invitation": "rounds = ["}
        answer = page.post("/join", data={"link": room.invite("St Mary")})
        assert answer.status_code == 422
        assert not (tmp_path / "mary").exists()


@lie(
    "the room",
    "pretend to be at another address than the one at which the member finds it",
    "the member's page refuses to join it",
)
def test_a_room_at_another_address(tmp_path: Path) -> None:
    with lying_room(tmp_path, terms_of()) as (room, lies):
        lies.about["/api/room"] = lambda told: told | {"address": "https://elsewhere.example"}
        answer = enter(tmp_path / "mary").post("/join", data={"link": room.invite("St Mary")})
        assert answer.status_code == 422
        assert "says that it is at https://elsewhere.example" in answer.text


@pytest.mark.slow
def test_a_room_that_confirms_another_card(tmp_path: Path) -> None:
    with lying_room(tmp_path, terms_of()) as (room, lies):
        page = enter(tmp_path / "mary")
        page.post("/join", data={"link": room.invite("St Mary")})
        lies.about["/api/cards"] = lambda told: told | {"fingerprint": "0000 0000 0000 0000 0000"}
        answer = page.post("/join/make", data=NUMBERS)
        assert answer.status_code == 422
        assert "confirmed another card" in answer.text


def _with(old: str, new: str) -> Change:
    def change(told: dict[str, Any]) -> dict[str, Any]:
        assert old in told["text"]
        return told | {"text": told["text"].replace(old, new, 1)}

    return change


@lie(
    "the room",
    "show a member one text and have it sign another",
    "what is signed is what the member's page read and showed; anything else signs nothing",
)
@pytest.mark.slow
def test_terms_that_change_between_reading_and_signing(tmp_path: Path) -> None:
    with lying_room(tmp_path, terms_of()) as (room, lies):
        everyone = Everyone(room, tmp_path)
        everyone.join_all()
        page, home = everyone.pages["St Mary"], home_of(everyone.pages["St Mary"])
        shown = hidden(page.get("/terms").text)
        before = (home.directory / "terms.toml").read_bytes()
        for change in (
            _with("server_fee = 0.0", "server_fee = 9.0"),
            _with("localhost:18443", "evil.example:18443"),
            lambda told: told | {"text": re.sub('app = "[0-9a-f]', 'app = "', told["text"])},
            lambda told: told | {"text": re.sub('app = "[0-9a-f]{4}', 'app = "abcd', told["text"])},
        ):
            lies.about["/api/to-sign"] = change
            answer = page.post("/terms/sign", data=shown)
            assert answer.status_code in (409, 422, 502)
            assert not (home.directory / "signature.json").exists()
            assert (home.directory / "terms.toml").read_bytes() == before
        lies.about.clear()
        everyone.sign("St Mary")


@lie(
    "the room",
    "offer terms to be signed with another key under the member's own name",
    "the member's page says not to sign, and why",
)
@pytest.mark.slow
def test_terms_with_another_key_for_oneself(tmp_path: Path) -> None:
    with lying_room(tmp_path, terms_of()) as (room, lies):
        everyone = Everyone(room, tmp_path)
        everyone.join_all()
        page, home = everyone.pages["St Mary"], home_of(everyone.pages["St Mary"])
        own, other = home.key.public, home_of(everyone.pages["Northgate"]).key.public
        stolen = own[:-4] + ("0000" if own[-4:] != "0000" else "1111")
        assert other
        lies.about["/api/to-sign"] = _with(own, stolen)
        shown = page.get("/terms").text
        assert "Do not sign." in shown
        assert 'action="/terms/sign"' not in shown


@pytest.mark.slow
def test_terms_of_another_consortium(tmp_path: Path) -> None:
    with lying_room(tmp_path, terms_of()) as (room, lies):
        everyone = Everyone(room, tmp_path)
        everyone.join_all()
        lies.about["/api/to-sign"] = _with('"Three hospitals"', '"Three banks"')
        shown = everyone.pages["St Mary"].get("/terms").text
        assert "Do not sign." in shown
        assert 'action="/terms/sign"' not in shown


@lie(
    "the room",
    "offer an agreement file whose amounts or proof were changed",
    "the member's page verifies it first, and does not sign it",
)
@pytest.mark.slow
def test_a_changed_agreement_file_is_not_signed(tmp_path: Path) -> None:
    with lying_room(tmp_path, posted_terms()) as (room, lies):
        everyone = Everyone(room, tmp_path)
        everyone.join_all()
        page = everyone.pages["St Mary"]
        digests = hidden(page.get("/terms").text)
        lies.about["/api/agreement"] = lambda told: (
            told | {"file": told["file"].replace("30", "31", 3)}
        )
        shown = page.get("/terms").text
        assert 'action="/terms/sign"' not in shown
        answer = page.post("/terms/sign", data=digests)
        assert answer.status_code >= 400
        lies.about["/api/agreement"] = lambda told: told | {"file": None, "why": "none"}
        assert "its agreement file is missing" in page.get("/terms").text
        answer = page.post("/terms/sign", data={"shown": digests["shown"]})
        assert answer.status_code == 422
        assert room.room.store.snapshot().signed_terms == []


# --- A room that is not one ----------------------------------------------------------------


@contextmanager
def odd_room(answer: Callable[[Request], Any]) -> Iterator[str]:
    app = FastAPI()
    app.add_api_route("/api/room", answer, methods=["GET"], response_class=Response)
    with served(app) as address:
        yield f"{address}/join#abcdefghijkl"


@lie(
    "the room",
    "send a member's page elsewhere on its machine or in its network",
    "redirects are not followed",
)
def test_redirects_are_not_followed(tmp_path: Path) -> None:
    visited = []

    def elsewhere(request: Request) -> Response:
        visited.append(request.url.path)
        return RedirectResponse("/api/room?again")

    with odd_room(elsewhere) as link:
        answer = enter(tmp_path / "mary").post("/join", data={"link": link})
    assert answer.status_code == 422
    assert "which is not followed" in answer.text
    assert len(visited) == 1


@contextmanager
def listener() -> Iterator[tuple[int, list[bytes]]]:
    """Something else on this machine, and what it was asked."""
    heard, ended = list[bytes](), threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.05)

        def listen() -> None:
            while not ended.is_set():
                with suppress(TimeoutError):
                    connection, _ = server.accept()
                    with connection:
                        connection.settimeout(5)
                        heard.append(connection.recv(65536))
                        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")

        thread = threading.Thread(target=listen)
        thread.start()
        try:
            yield server.getsockname()[1], heard
        finally:
            ended.set()
            thread.join()


ELSEWHERE = (
    *("/shutdown", "/a/b?c=d", "/%2e%2e/x", "//x", "/x;y", "/..", "/x%23", "/x%3f"),
    *("\\@other.example", "/.", "?x=/y", "/join"),
)


@lie(
    "whoever has a link",
    "have a member's page fetch any path on its own machine, by a pasted link with that path",
    "a link with a path is refused; whatever else is there is asked once whether it is a room",
)
def test_a_link_leads_to_no_other_path(tmp_path: Path) -> None:
    page = enter(tmp_path / "mary")
    with listener() as (port, heard):
        for path in ELSEWHERE:
            link = f"http://127.0.0.1:{port}{path}/join#abcdefghijkl"
            assert page.post("/join", data={"link": link}).status_code == 422, path
        assert heard == []
        link = f"http://127.0.0.1:{port}/join#abcdefghijkl"
        assert page.post("/join", data={"link": link}).status_code == 422
    assert [one.split(b" HTTP", 1)[0] for one in heard] == [b"GET /api/room"]


def test_a_place_with_a_path_is_not_asked(tmp_path: Path) -> None:
    """The address that was kept is as much somebody else's word as the link."""
    save_place(tmp_path, RoomPlace(address="http://127.0.0.1:1/shutdown"))
    with pytest.raises(InvalidInput, match="nothing after it"):
        load_place(tmp_path)


@lie(
    "the room",
    "fill the memory of a member's page by an endless answer",
    "it is cut off",
)
def test_huge_answers_are_cut_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room_client, "LARGEST", 100_000)

    def endless(_: Request) -> Response:
        async def parts() -> AsyncIterator[bytes]:
            for _ in range(10_000):
                yield b"x" * 10_000

        return StreamingResponse(parts())

    with odd_room(endless) as link:
        answer = enter(tmp_path / "mary").post("/join", data={"link": link})
    assert answer.status_code == 422
    assert "sent more than it should" in answer.text


def test_slow_answers_are_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room_client, "SECONDS", 0.5)

    def slow(_: Request) -> Response:
        async def drops() -> AsyncIterator[bytes]:
            for _ in range(3_000):
                yield b" "
                await asyncio.sleep(0.1)

        return StreamingResponse(drops())

    with odd_room(slow) as link:
        answer = enter(tmp_path / "mary").post("/join", data={"link": link})
    assert answer.status_code == 422
    assert "did not answer in time" in answer.text


@pytest.mark.parametrize("text", ["", "[]", "<html>", '{"name": 3}', "\xff", '{"name": "x"}'])
def test_nonsense_is_an_answer_that_no_room_gives(tmp_path: Path, text: str) -> None:
    with odd_room(lambda: Response(text.encode("latin-1"))) as link:  # type: ignore[arg-type, misc]
        answer = enter(tmp_path / "mary").post("/join", data={"link": link})
    assert answer.status_code == 422
    assert "gave an answer that no room gives" in answer.text


def test_what_a_room_says_when_it_refuses_is_short(tmp_path: Path) -> None:
    def refuse() -> Response:
        problems = ["<b>" + "long " * 1000] * 100
        return Response(json.dumps({"problems": problems}), 410)

    with odd_room(refuse) as link:  # type: ignore[arg-type]
        answer = enter(tmp_path / "mary").post("/join", data={"link": link})
    assert answer.status_code == 422
    assert "<b>long" not in answer.text
    assert len(answer.text) < 10_000

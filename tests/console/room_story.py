"""A room with members for tests: their keys, what they send, and the coordinator's browser."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from fastapi import FastAPI
from fastapi.testclient import TestClient

from fedaccord.console.room.access import Viewer
from fedaccord.console.room.app import create_room
from fedaccord.console.room.room import Rates, Room
from fedaccord.console.room.wire import confirmation_content, login_content
from fedaccord.console.web.rates import Rate
from fedaccord.deployment.cards import Card, TermsSignature, sign_card, sign_terms
from fedaccord.deployment.certificates import make_client_certificate, make_node_key
from fedaccord.deployment.invitation import Invitation, Reach
from fedaccord.files.reading import parse_toml
from fedaccord.protocol.terms import read_terms
from fedaccord.signing.keys import Key, new_key

HERE = "http://127.0.0.1:8321"
NAMES = ("North", "South", "West")
FORM = {
    "name": "Three clinics",
    "members": "\n".join(NAMES),
    "address": "localhost:8443",
    "dataset": "own",
    "shape": "4",
    "classes": "2",
    "rounds": "5",
}


def generous() -> Rates:
    """Limits that no test reaches by accident."""
    return Rates(Rate(100_000, 1.0), Rate(100_000, 1.0))


def new_room(directory: Path, **options: Any) -> FastAPI:
    """A room that is not created yet."""
    app = create_room(directory, **({"rates": generous()} | options))
    _OPENED.append(app)
    return app


_OPENED: list[FastAPI] = []


def close_rooms() -> None:
    """Close the rooms that were opened so far."""
    while _OPENED:
        _OPENED.pop().state.room.close()


def browser_of(app: FastAPI, **headers: str) -> Any:
    """A browser without a session; it does not follow redirects."""
    return TestClient(
        app,
        base_url=HERE,
        raise_server_exceptions=False,
        follow_redirects=False,
        headers=headers or None,
    )


def coordinator_of(app: FastAPI) -> Any:
    """The coordinator's browser, logged in with a link."""
    room: Room = app.state.room
    ticket = room.doors.ticket(Viewer("coordinator"))
    return entered(app, "/enter", ticket)


def entered(app: FastAPI, path: str, code: str) -> Any:
    """A browser that got in with a code."""
    client = browser_of(app)
    answer = client.post(path, data={"code": code})
    assert answer.status_code == 303, answer.text
    return client


def link_in(page: str) -> str:
    """The link that a page shows once."""
    return page.split('readonly value="', 1)[1].split('"', 1)[0]


def code_of(link: str) -> str:
    """What follows # in a link."""
    return urlsplit(link).fragment


@dataclass
class Someone:
    """A member, with a key of its own."""

    name: str
    folder: Path
    consortium: str = FORM["name"]
    key: Key = field(default_factory=new_key)
    token: str = ""

    def card(self) -> Card:
        """Its card."""
        self.folder.mkdir(parents=True, exist_ok=True)
        for old in self.folder.iterdir():
            old.unlink()
        make_node_key(self.folder / "node.key")
        make_client_certificate(self.folder, self.name, 30)
        return sign_card(
            self.consortium,
            self.name,
            self.key,
            node_key=(self.folder / "node.pub").read_text("ascii").strip(),
            certificate=(self.folder / "tls.pem").read_text("ascii"),
        )

    def join(self, http: Any, code: str) -> Any:
        """Send the card."""
        body = {"code": code, "card": self.card().model_dump()}
        return http.post("/api/cards", json=body)

    def log_in(self, http: Any) -> Any:
        """Log in with a signed challenge."""
        asked = http.post("/api/challenge", json={"client": self.name})
        challenge = asked.json()["challenge"]
        room = http.get("/api/room").json()
        content = login_content(
            address=room["address"], room=room["name"], client=self.name, challenge=challenge
        )
        sent = {"client": self.name, "challenge": challenge, "signature": self.key.sign(content)}
        answer = http.post("/api/login", json=sent)
        self.token = answer.json().get("token", "")
        return answer

    @property
    def headers(self) -> Mapping[str, str]:
        """Of its requests."""
        return {"Authorization": f"Bearer {self.token}"}

    def to_sign(self, http: Any) -> dict[str, Any]:
        """What the room wants to be signed."""
        found: dict[str, Any] = http.get("/api/to-sign", headers=self.headers).json()
        return found

    def signature(self, text: str) -> TermsSignature:
        """Its signature on a file to sign."""
        offered = read_to_sign(text)
        return sign_terms(
            offered.terms.name,
            self.name,
            offered.terms.digest,
            str(offered.server.app),
            self.key,
            version=offered.server.version,
        )

    def confirm(self, http: Any, other: "Someone") -> Any:
        """Give its word for another member's key."""
        content = confirmation_content(
            room=self.consortium, client=other.name, key=other.key.public
        )
        sent = {"client": other.name, "key": other.key.public, "signature": self.key.sign(content)}
        return http.post("/api/new-keys", json=sent, headers=self.headers)

    def sign(self, http: Any) -> Any:
        """Sign what is put forward."""
        signature = self.signature(self.to_sign(http)["text"])
        return http.post("/api/signatures", json=signature.model_dump(), headers=self.headers)


def read_to_sign(text: str) -> Invitation:
    """A file to sign that came as text."""
    given = parse_toml(text, "to-sign.toml")
    server = Reach.model_validate(given.pop("server"))
    return Invitation(read_terms(given, "to-sign.toml"), server)


@dataclass
class Story:
    """A room that was created, with its coordinator, and members who joined."""

    app: FastAPI
    coordinator: Any
    members: dict[str, Someone]
    http: Any
    """Of members' local pages."""

    @property
    def room(self) -> Room:
        """The room."""
        room: Room = self.app.state.room
        return room


def created(directory: Path, form: Mapping[str, str] = FORM, **options: Any) -> Story:
    """A room that the coordinator created; nobody has joined."""
    app = new_room(directory / "room", **options)
    coordinator = coordinator_of(app)
    answer = coordinator.post("/room", data=dict(form))
    assert answer.status_code == 303, answer.text
    names = form["members"].splitlines()
    members = {
        name: Someone(name, directory / f"member{n}", form["name"]) for n, name in enumerate(names)
    }
    return Story(app, coordinator, members, browser_of(app))


def joined(directory: Path, form: Mapping[str, str] = FORM, **options: Any) -> Story:
    """The same, with all members logged in."""
    story = created(directory, form, **options)
    for name, member in story.members.items():
        page = story.coordinator.post("/members/invite", data={"client": name}).text
        answer = member.join(story.http, code_of(link_in(page)))
        assert answer.status_code == 200, answer.text
        assert member.log_in(story.http).status_code == 200
    return story


def signed(directory: Path, form: Mapping[str, str] = FORM, **options: Any) -> Story:
    """The same, with everybody's signature."""
    story = joined(directory, form, **options)
    for member in story.members.values():
        answer = member.sign(story.http)
        assert answer.status_code == 200, answer.text
    return story

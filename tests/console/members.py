"""A real room that members' pages can ask, and their pages, for tests."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from fastapi.testclient import TestClient

from fedaccord.console.member.app import create_member_page
from fedaccord.console.member.home import Home
from fedaccord.console.room.app import create_room
from fedaccord.console.room.room import Rates, Room
from fedaccord.console.web.rates import Rate
from fedaccord.deployment.app_directory import write_app
from fedaccord.protocol.terms import Terms
from fedaccord.protocol.terms_text import terms_text
from tests.console.browser import served

NAMES = ("St Mary", "Northgate", "Lakeside")
NUMBERS = {
    "valuation": "35.71",
    "cost_per_sample": "0.0473",
    "samples": "119",
    "discount_factor": "0.9137",
    "communication_cost": "0.0219",
}
"""Numbers that occur nowhere else, so that they can be searched for."""
HERE = "http://127.0.0.1:8322"


def terms_of(names: tuple[str, ...] = NAMES, **rules: Any) -> Terms:
    """Terms for pictures of digits, unless other rules are given."""
    usual: dict[str, Any] = {
        "name": "Three hospitals",
        "clients": names,
        "rounds": 3,
        "discount_factor": 0.9,
        "margin": 0.01,
        "punishment": "suspension",
        "training": {"shape": (8, 8), "classes": 10},
    }
    return Terms.model_validate(usual | rules)


def posted_terms(names: tuple[str, ...] = NAMES) -> Terms:
    """Terms in which amounts are posted that everyone keeps to."""
    public = {
        "samples": 119,
        "contribution": 30,
        "lowest_ratio": 600.0,
        "lowest_discount_factor": 0.9,
    }
    return terms_of(names, reports="none", public=dict.fromkeys(names, public))


@dataclass
class OpenRoom:
    """A room that is served, and what a coordinator does in it."""

    app: FastAPI
    address: str

    @property
    def room(self) -> Room:
        """Behind its pages."""
        room: Room = self.app.state.room
        return room

    def invite(self, client: str) -> str:
        """The link for a member."""
        return f"{self.address}/join#{self.room.doors.invite(client)}"


def many() -> Rates:
    """Rates that no test reaches."""
    return Rates(Rate(10_000, 1.0), Rate(10_000, 1.0))


@contextmanager
def open_room(folder: Path, terms: Terms, rates: Rates | None = None) -> Iterator[OpenRoom]:
    """A room with these terms."""
    app = create_room(folder / "room", rates=rates or many())
    room: Room = app.state.room
    room.store.create(
        terms.name,
        terms_text(terms),
        lambda: write_app(room.app, terms, ["localhost"], port=18_443, superlink=18_000),
    )
    with served(app) as address:
        room.address = address
        yield OpenRoom(app, address)


def enter(directory: Path, here: str = HERE, authority: Path | None = None) -> TestClient:
    """A browser that opened the page of a directory with its code."""
    app = create_member_page(directory, authority)
    client = TestClient(app, base_url=here, raise_server_exceptions=False)
    code = app.state.access.code
    assert client.post("/enter", data={"code": code}, follow_redirects=False).status_code == 303
    return client


def join(page: TestClient, link: str, **numbers: str) -> None:
    """Join with a link, with all steps."""
    assert page.post("/join", data={"link": link}).status_code == 200
    answer = page.post("/join/make", data=NUMBERS | numbers)
    assert "has your card" in answer.text, answer.text


def hidden(text: str, action: str = "/terms/sign") -> dict[str, str]:
    """The digests in the form of a page that posts to an action."""
    form = re.search(rf'action="{re.escape(action)}".*?</form>', text, re.DOTALL)
    assert form is not None, action
    found = dict(re.findall(r'name="(\w+)" value="([0-9a-f]{64})"', form[0]))
    assert "shown" in found
    return found


@dataclass
class Everyone:
    """All members' pages, by name."""

    room: OpenRoom
    folder: Path
    pages: dict[str, TestClient] = field(default_factory=dict)

    def join(self, name: str) -> TestClient:
        """Open a member's page, and join."""
        page = enter(
            self.folder / f"member-{len(self.pages)}", f"http://127.0.0.1:{9_000 + len(self.pages)}"
        )
        join(page, self.room.invite(name))
        self.pages[name] = page
        return page

    def join_all(self) -> None:
        """All members of the terms."""
        for name in self.room.room.store.snapshot().clients:
            if name not in self.pages:
                self.join(name)

    def sign(self, name: str) -> None:
        """What a member does on its page of terms."""
        page = self.pages[name]
        answer = page.post("/terms/sign", data=hidden(page.get("/terms").text))
        assert "You have signed version" in answer.text, answer.text


def home_of(page: TestClient) -> Home:
    """The directory behind a page."""
    home: Home = page.app.state.home  # type: ignore[attr-defined]
    return home

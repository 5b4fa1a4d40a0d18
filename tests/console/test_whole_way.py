"""The whole way: from a new room to a settled slot on real Flower, in browsers alone.

The coordinator, three members, and an observer on a phone each have a browser context of their
own, and each member a page of its own. Whatever is typed is typed into pages, and the result is
read from the room's page.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from fedaccord.checks import is_installed
from fedaccord.console.member.app import create_member_page
from fedaccord.console.room.access import Viewer
from fedaccord.console.room.app import create_room
from fedaccord.deployment.processes import free_ports
from fedaccord.deployment.server import find_nginx
from fedaccord.ledger.lines import load_entries
from fedaccord.protocol.copies import contradictions
from fedaccord.protocol.verification import wrong_in
from tests.console.browser import check_page, served, visitor
from tests.console.members import many

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(find_nginx() is None, reason="nginx is not installed"),
    pytest.mark.skipif(not is_installed("flwr", "torch"), reason="Flower is not installed"),
]
MEMBERS = {
    "St Mary": ("35", "0,05", "120"),
    "Northgate": ("52", "0.05", "150"),
    "Lakeside": ("95,0 €", "0.05", "200"),
}
"""Valuation, cost per sample and samples of each, as its people write them."""
_SETTLED = 300_000
"""Milliseconds that a slot may take on a busy machine."""


@dataclass
class Member:
    """A member at its own page."""

    name: str
    page: Page
    address: str
    directory: Path

    def goes_to(self, path: str) -> Page:
        """One of its pages."""
        self.page.goto(self.address + path)
        return self.page

    def presses(self, button: str) -> None:
        """A button; whatever is asked then is confirmed."""
        self.page.get_by_role("button", name=button, exact=True).click()


@contextmanager
def member_at(browser: Browser, name: str, directory: Path) -> Iterator[Member]:
    """A member that opened its page."""
    app = create_member_page(directory)
    with served(app) as address, visitor(browser) as page:
        page.on("dialog", lambda dialog: dialog.accept())
        page.goto(f"{address}/#{app.state.access.code}")
        page.wait_for_url(f"{address}/")
        yield Member(name, page, address, directory)


def create(page: Page, address: str) -> None:
    """The coordinator creates the room from names alone."""
    port, superlink = free_ports(2)
    page.goto(address)
    page.get_by_label("What the consortium is called").fill("Three hospitals")
    page.locator("#members").fill("\n".join(MEMBERS))
    page.locator("#address").fill(f"localhost:{port}")
    page.locator("#dataset").select_option("digits")
    page.locator("#rounds").fill("3")
    page.locator("#superlink").fill(str(superlink))
    page.get_by_role("button", name="Create the room").click()
    page.wait_for_url(f"{address}/members")


def invite(page: Page, address: str, name: str) -> str:
    """The coordinator makes a link."""
    page.goto(f"{address}/members")
    card = page.locator("section.member", has=page.get_by_role("heading", name=name))
    card.get_by_role("button", name="Make the link").click()
    return page.get_by_label("Link", exact=True).input_value()


def compare(page: Page, address: str, name: str, fingerprint: str) -> None:
    """The coordinator hears a fingerprint on the telephone."""
    page.goto(f"{address}/members")
    card = page.locator("section.member", has=page.get_by_role("heading", name=name))
    expect(card.locator(".fingerprint")).to_have_text(fingerprint)
    card.get_by_role("button", name="It is the same").click()


def join(member: Member, link: str) -> str:
    """A member joins; returns its fingerprint."""
    page = member.goes_to("/join")
    page.get_by_label("The link of your invitation").fill(link)
    member.presses("Look at the invitation")
    expect(page.get_by_role("heading", level=1)).to_have_text(
        f"Three hospitals invites {member.name}"
    )
    for field, text in zip(
        ("valuation", "cost_per_sample", "samples"), MEMBERS[member.name], strict=True
    ):
        page.locator(f"#{field}").fill(text)
    member.presses("Make my keys and send my card")
    expect(page.locator(".verdict")).to_contain_text("has your card")
    return page.locator("#digits").inner_text()


def discuss(member: Member, page: Page, address: str) -> None:
    """A member asks for something, and the coordinator proposes it."""
    asked = "Two rounds are enough for a rehearsal."
    member.goes_to("/terms").get_by_label("Your comment on version 1").fill(asked)
    member.presses("Send the comment")
    page.goto(f"{address}/terms")
    expect(page.locator(".said")).to_have_text(asked)
    page.get_by_role("link", name="Change the terms").click()
    page.locator("#rounds").fill("2")
    page.locator("#note").fill("As a member asked")
    page.get_by_role("button", name="Propose version 2").click()
    change = page.get_by_role("region", name="Differences").locator("tbody tr")
    expect(change).to_contain_text("Rounds in each slot")
    expect(change.locator("td")).to_have_text(["3", "2"])


def invite_observer(page: Page, address: str) -> str:
    """The coordinator makes a link that only reads."""
    page.goto(f"{address}/observers")
    page.get_by_label("For whom").fill("The director")
    page.get_by_role("button", name="Make the link").click()
    return page.get_by_label("Link", exact=True).input_value()


def prepare(member: Member) -> None:
    """A member reads what is different, signs, takes examples, and starts its node."""
    page = member.goes_to("/terms")
    change = page.get_by_role("region", name="What is different").locator("tbody tr")
    expect(change).to_contain_text("Rounds in each slot")
    expect(change.locator("td")).to_have_text(["3", "2"])
    member.presses(f"Sign as {member.name}")
    expect(page.locator(".verdict").first).to_contain_text("You have signed version 2")
    page = member.goes_to("/data")
    member.presses("Use examples of digits")
    expect(page.locator(".verdict")).to_contain_text("examples to train on")
    page = member.goes_to("/node")
    member.presses("Start the node")
    expect(page.get_by_role("status")).to_contain_text("Your node is running")


def test_from_names_to_a_settled_slot(
    browser: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "1")  # all members are on one machine
    app = create_room(tmp_path / "room", rates=many())
    room = app.state.room
    with ExitStack() as stack:
        address = stack.enter_context(served(app))
        room.address = address
        desk = stack.enter_context(visitor(browser))
        desk.on("dialog", lambda dialog: dialog.accept())
        desk.goto(f"{address}/enter#{room.doors.ticket(Viewer('coordinator'))}")
        desk.wait_for_url(f"{address}/")
        create(desk, address)
        members = [
            stack.enter_context(member_at(browser, name, tmp_path / f"member-{n}"))
            for n, name in enumerate(MEMBERS)
        ]
        for member in members:
            fingerprint = join(member, invite(desk, address, member.name))
            compare(desk, address, member.name, fingerprint)
        discuss(members[1], desk, address)
        director = stack.enter_context(visitor(browser, phone=True))
        director.goto(invite_observer(desk, address))
        director.wait_for_url(f"{address}/")
        desk.goto(f"{address}/run")
        expect(desk.get_by_role("button", name="Start the server")).to_be_disabled()
        for member in members:
            prepare(member)
        desk.goto(f"{address}/run")
        desk.get_by_role("button", name="Start the server").click()
        expect(desk.locator("#output")).to_contain_text("the server runs", timeout=_SETTLED)
        desk.get_by_role("button", name="Run", exact=True).click()
        watch(members[0], address, desk, director)
        look_back(members, room.app)


def watch(member: Member, address: str, *others: Page) -> None:
    """A member opens the room in its browser, and sees the slot happen, as all others do."""
    page = member.goes_to("/room")
    member.presses("Open the room")
    page.wait_for_url(f"{address}/")
    page.goto(f"{address}/watch")
    for watching in (page, *others):
        if watching is not page:
            watching.goto(f"{address}/watch")
        expect(watching.get_by_role("heading", level=1)).to_have_text("Slot 1", timeout=_SETTLED)
        rows = watching.get_by_role("table", name="Trained on").locator("tbody tr")
        expect(rows).to_have_count(len(MEMBERS))
        for row in range(len(MEMBERS)):
            expect(rows.nth(row)).to_contain_text("kept to it", timeout=_SETTLED)
        told = watching.locator(".timeline").first  # it comes after the verdicts
        expect(told).to_contain_text("received the settlement", timeout=_SETTLED)
        curve = watching.locator("figure.curve")  # a rehearsal's server has test examples
        expect(curve).to_contain_text("The model's accuracy after each round")
        check_page(watching)


def look_back(members: list[Member], server: Path) -> None:
    """Each member's copy and the room's ledger tell the same story."""
    for member in members:
        page = member.goes_to("/copy")
        expect(page.locator(".verdict")).to_contain_text("nothing in it was changed")
        expect(page.locator(".verdict")).to_contain_text("Slot 1 is settled: verdict kept")
        member.presses("Compare with the room's ledger")
        expect(page.locator(".verdict")).to_contain_text("tell the same story")
        check_page(page)
        page = member.goes_to("/node")
        expect(page.get_by_role("log")).to_contain_text("slot 1 is settled: verdict kept")
    entries = load_entries(str(server / "ledger.db"))
    assert wrong_in(entries) == []
    assert all(entry.body["accuracy"] > 0 for entry in entries if entry.kind == "round")
    for member in members:
        copy = load_entries(str(member.directory / "ledger.db"))
        assert contradictions(entries, copy) == []

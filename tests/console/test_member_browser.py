"""A member's page in a real browser: both widths, by keyboard alone, and with scripts off."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from fedaccord.console.member.app import create_member_page
from tests.console.browser import check_page, served, tab_to, visitor
from tests.console.members import NUMBERS, Everyone, OpenRoom, open_room, posted_terms, terms_of

pytestmark = pytest.mark.slow
PAGES = ("/", "/join", "/numbers", "/interview", "/terms", "/data", "/node", "/copy", "/room")


@contextmanager
def opened(
    browser: Browser, directory: Path, *, phone: bool = False, scripts: bool = True
) -> Iterator[tuple[Page, str]]:
    """A member's page, opened with the address that is printed."""
    app = create_member_page(directory)
    with served(app) as address, visitor(browser, phone=phone, scripts=scripts) as page:
        page.goto(f"{address}/#{app.state.access.code}")
        if not scripts:
            page.get_by_label("Code").fill(app.state.access.code)
            page.get_by_role("button", name="Open").click()
        page.wait_for_url(f"{address}/")
        yield page, address


def join_in_browser(page: Page, address: str, room: OpenRoom, name: str) -> None:
    page.goto(f"{address}/join")
    page.get_by_label("The link of your invitation").fill(room.invite(name))
    page.get_by_role("button", name="Look at the invitation").click()
    check_page(page)
    for field, text in NUMBERS.items():
        page.locator(f"#{field}").fill(text)
    page.get_by_role("button", name="Make my keys and send my card").click()
    expect(page.locator(".verdict")).to_contain_text("has your card")
    check_page(page)


@pytest.mark.parametrize("phone", [False, True], ids=["desktop", "phone"])
def test_every_page(browser: Browser, tmp_path: Path, phone: bool) -> None:
    with open_room(tmp_path, posted_terms()) as room:
        everyone = Everyone(room, tmp_path)
        everyone.join("Northgate")
        everyone.join("Lakeside")
        with opened(browser, tmp_path / "mary", phone=phone) as (page, address):
            check_page(page)
            page.goto(f"{address}/join")
            page.get_by_label("The link").fill("https://room.example")
            page.get_by_role("button", name="Look at the invitation").click()
            expect(page.get_by_role("alert")).to_contain_text("not the link of an invitation")
            check_page(page)
            join_in_browser(page, address, room, "St Mary")
            for path in PAGES:
                page.goto(address + path)
                check_page(page)
            page.goto(f"{address}/terms")
            for heading in page.locator("h2").all():
                assert (heading.bounding_box() or {"width": 0.0})["width"] > 50, heading
            page.once("dialog", lambda dialog: dialog.dismiss())
            page.get_by_role("button", name="Sign as St Mary").click()
            assert room.room.store.snapshot().signed == []
            page.once("dialog", lambda dialog: dialog.accept())
            page.get_by_role("button", name="Sign as St Mary").click()
            expect(page.locator(".verdict").first).to_contain_text("You have signed version 1")
            check_page(page)
            page.goto(f"{address}/node")
            page.get_by_role("button", name="Check everything").click()
            page.get_by_role("heading", name="Checks").wait_for()
            check_page(page)
            page.goto(f"{address}/data")
            page.once("dialog", lambda dialog: dialog.accept())
            page.get_by_role("button", name="Use examples of digits").click()
            expect(page.locator(".verdict")).to_contain_text("119 examples")
            check_page(page)


def test_hostile_names_fit(browser: Browser, tmp_path: Path) -> None:
    names = ("N" * 120, "<b onclick=alert(1)>M", "=1+1 \u05d0\u05d1\u05d2")
    with open_room(tmp_path, terms_of(names, name="W" * 200)) as room:
        everyone = Everyone(room, tmp_path)
        everyone.join(names[1])
        everyone.join(names[2])
        with opened(browser, tmp_path / "n", phone=True) as (page, address):
            join_in_browser(page, address, room, names[0])
            for path in PAGES:
                page.goto(address + path)
                check_page(page)


def test_by_keyboard_alone(browser: Browser, tmp_path: Path) -> None:
    with open_room(tmp_path, terms_of()) as room:
        everyone = Everyone(room, tmp_path)
        everyone.join("Northgate")
        everyone.join("Lakeside")
        with opened(browser, tmp_path / "mary") as (page, _):
            tab_to(page, "Paste the link")
            page.keyboard.press("Enter")
            expect(page.get_by_label("The link of your invitation")).to_be_focused()
            page.keyboard.type(room.invite("St Mary"))
            page.keyboard.press("Enter")
            page.wait_for_selector("#valuation")
            for field, text in NUMBERS.items():
                tab_to(page, f"#{field}")
                page.keyboard.press("Control+A")
                page.keyboard.type(text)
            page.keyboard.press("Enter")
            expect(page.locator(".verdict")).to_contain_text("has your card")
            tab_to(page, "Terms")
            page.keyboard.press("Enter")
            page.wait_for_url("**/terms")
            page.on("dialog", lambda dialog: dialog.accept())
            tab_to(page, "Sign as St Mary")
            page.keyboard.press("Enter")
            expect(page.locator(".verdict").first).to_contain_text("You have signed version 1")


def test_without_scripts(browser: Browser, tmp_path: Path) -> None:
    with open_room(tmp_path, terms_of()) as room:
        everyone = Everyone(room, tmp_path)
        everyone.join("Northgate")
        everyone.join("Lakeside")
        with opened(browser, tmp_path / "mary", scripts=False) as (page, address):
            join_in_browser(page, address, room, "St Mary")
            page.goto(f"{address}/terms")
            page.get_by_role("button", name="Sign as St Mary").click()
            expect(page.locator(".verdict").first).to_contain_text("You have signed version 1")
            page.goto(f"{address}/room")
            page.get_by_role("button", name="Open the room").click()
            link = page.get_by_role("link", name="Go to the room").get_attribute("href")
            assert link is not None
            assert link.startswith(f"{room.address}/enter#")


def test_the_address_is_opened_in_a_tab_that_was_open_before(
    browser: Browser, tmp_path: Path
) -> None:
    """After another start there is another code; here only the cookie is lost."""
    app = create_member_page(tmp_path / "mary")
    with served(app) as address, visitor(browser) as page:
        for _ in range(2):
            page.context.clear_cookies()
            page.goto(f"{address}/#{app.state.access.code}")
            page.wait_for_url(f"{address}/")
            page.get_by_role("heading", name="Your place in a consortium").wait_for()


def test_the_room_opens_in_the_browser(browser: Browser, tmp_path: Path) -> None:
    with (
        open_room(tmp_path, terms_of()) as room,
        opened(browser, tmp_path / "mary") as (page, address),
    ):
        join_in_browser(page, address, room, "St Mary")
        page.goto(f"{address}/room")
        page.get_by_role("button", name="Open the room").click()
        page.wait_for_url(f"{room.address}/")
        expect(page.locator("body")).to_contain_text("St Mary")
        assert "#" not in page.url


def test_the_node_is_started_and_its_log_grows(browser: Browser, tmp_path: Path) -> None:
    with open_room(tmp_path, terms_of()) as room:
        everyone = Everyone(room, tmp_path)
        everyone.join_all()
        everyone.sign("St Mary")
        directory = tmp_path / "member-0"
        with opened(browser, directory) as (page, address):
            page.goto(f"{address}/node")
            page.get_by_role("button", name="Start the node").click()
            expect(page.get_by_role("status")).to_contain_text("Your node is running")
            with (directory / "node.log").open("a") as log:
                log.write("something <b>new</b>\n")
            expect(page.get_by_role("log")).to_contain_text("something <b>new</b>")
            check_page(page)
            page.once("dialog", lambda dialog: dialog.accept())
            page.get_by_role("button", name="Stop the node").click()
            expect(page.get_by_role("status")).to_contain_text("is not running")

"""The room's pages in a real browser, on a desktop and on a phone, with hostile names."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Browser, Page

from fedaccord.console.room.access import Viewer
from tests.console.browser import check_page, served, tab_to, visitor
from tests.console.ledgers import play, signed_terms
from tests.console.room_story import (
    FORM,
    Someone,
    Story,
    close_rooms,
    code_of,
    joined,
    new_room,
    signed,
)

pytestmark = pytest.mark.slow

HOSTILE = '<script>alert("x")</script> & \u05d0\u05d1\u05d2 =1+1 '
NAMES = (
    f"{HOSTILE}{'n' * (200 - len(HOSTILE))}".replace("/", "|"),
    "=HYPERLINK(0)",
    "\u05d0\u05d1 South",
)
FORM_WITH_NAMES = FORM | {"name": f"{HOSTILE} clinics", "members": "\n".join(NAMES)}
PAGES = (
    "/",
    "/terms",
    "/members",
    "/observers",
    "/run",
    "/terms/propose",
    "/join",
    "/enter",
    "/observe",
)


@pytest.fixture(params=[False, True], ids=["desktop", "phone"])
def phone(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    yield
    close_rooms()


@contextmanager
def entered(browser: Browser, story: Story, viewer: Viewer, *, phone: bool) -> Iterator[Page]:
    """A browser in the room, by a link with a ticket."""
    with served(story.app) as address, visitor(browser, phone=phone) as page:
        story.room.address = address
        page.goto(f"{address}/enter#{story.room.doors.ticket(viewer)}")
        page.wait_for_url(f"{address}/")
        yield page


def test_every_page_with_hostile_names(browser: Browser, tmp_path: Path, phone: bool) -> None:
    story = signed(tmp_path, FORM_WITH_NAMES)
    for member in story.members.values():
        sent = {"version": 1, "text": HOSTILE * 10}
        story.http.post("/api/comments", json=sent, headers=member.headers)
    with entered(browser, story, Viewer("coordinator"), phone=phone) as page:
        for path in PAGES:
            page.goto(f"{story.room.address}{path}")
            check_page(page)
        page.goto(f"{story.room.address}/terms")
        assert HOSTILE.strip() in page.locator(".said").first.inner_text()


def test_a_part_that_is_being_fetched_stays_readable(
    browser: Browser, tmp_path: Path, phone: bool
) -> None:
    story = signed(tmp_path)
    with entered(browser, story, Viewer("coordinator"), phone=phone) as page:
        page.route("**/now", lambda route: None)  # no answer
        page.goto(f"{story.room.address}/")
        page.locator(".htmx-request").wait_for()
        page.wait_for_timeout(500)  # transitions are over
        check_page(page)


def test_the_coordinators_way(browser: Browser, tmp_path: Path, phone: bool) -> None:
    app = new_room(tmp_path / "room")
    with served(app) as address, visitor(browser, phone=phone) as page:
        room = app.state.room
        room.address = address
        page.goto(address)
        check_page(page)
        page.goto(f"{address}/enter#{room.doors.ticket(Viewer('coordinator'))}")
        page.get_by_role("heading", name="A new room").wait_for()
        assert "#" not in page.url
        check_page(page)
        page.get_by_role("button", name="Create the room").click()
        page.get_by_text("are needed, one on each line").wait_for()
        check_page(page)
        page.get_by_label("What the consortium is called").fill("Three clinics")
        page.locator("#members").fill("North\nSouth\nWest")
        page.get_by_role("button", name="Create the room").click()
        page.get_by_role("heading", name="Members", exact=True).wait_for()
        member = Someone("North", tmp_path / "north")
        page.get_by_role("button", name="Make the link").first.click()
        page.get_by_role("heading", name="Send this link to North").wait_for()
        check_page(page)
        link = page.get_by_label("Link").input_value()
        page.goto(f"{address}/")
        with httpx.Client(base_url=address) as http:
            assert member.join(http, code_of(link)).status_code == 200
        page.get_by_text("sent its card").wait_for()  # by itself
        check_page(page)
        page.goto(f"{address}/members")
        page.get_by_role("button", name="It is the same").click()
        page.get_by_text("compared", exact=True).wait_for()
        page.goto(f"{address}/terms")
        page.get_by_role("link", name="Change the terms").click()
        page.locator("#rounds").fill("60")
        page.locator("#note").fill("A better model")
        page.get_by_role("button", name="Propose version 2").click()
        page.get_by_role("heading", name="What is different from version 1").wait_for()
        check_page(page)
        page.get_by_label("Your comment").fill("Is this enough?")
        page.get_by_role("button", name="Comment").click()
        page.get_by_text("Is this enough?").wait_for()
        page.get_by_role("link", name="Observers").click()
        page.get_by_label("For whom").fill("The director")
        page.get_by_role("button", name="Make the link").click()
        page.get_by_role("heading", name="Send this link to The director").wait_for()
        check_page(page)
        page.goto(f"{address}/run?check=yes")
        check_page(page)
        page.get_by_role("button", name="Log out").click()
        page.get_by_role("heading", name="How to get in").wait_for()


def types(page: Page, where: str, text: str) -> None:
    """Fill in a field that the Tab key finds."""
    tab_to(page, where)
    page.keyboard.press("Control+A")
    page.keyboard.type(text)


def presses(page: Page, what: str) -> None:
    """Go to a button or a link with the Tab key, and use it."""
    tab_to(page, what)
    enters(page)


def enters(page: Page) -> None:
    """Press the key that leads to another page."""
    with page.expect_navigation():
        page.keyboard.press("Enter")


def test_the_coordinators_way_by_keyboard_alone(browser: Browser, tmp_path: Path) -> None:
    app = new_room(tmp_path / "room")
    with served(app) as address, visitor(browser) as page:
        room = app.state.room
        room.address = address
        page.goto(f"{address}/enter#{room.doors.ticket(Viewer('coordinator'))}")
        page.get_by_role("heading", name="A new room").wait_for()
        types(page, "#name", "Three clinics")
        types(page, "#members", "North\nSouth\nWest")
        presses(page, "Create the room")
        page.get_by_role("heading", name="Members", exact=True).wait_for()
        presses(page, "Make the link")
        page.get_by_role("heading", name="Send this link to North").wait_for()
        tab_to(page, "#link")
        link = page.get_by_label("Link").input_value()
        with httpx.Client(base_url=address) as http:
            joined_now = Someone("North", tmp_path / "north").join(http, code_of(link))
        assert joined_now.status_code == 200
        presses(page, "Overview")
        presses(page, "Members")
        presses(page, "It is the same")
        page.get_by_text("compared", exact=True).wait_for()
        presses(page, "Terms")
        presses(page, "Change the terms")
        types(page, "#rounds", "60")
        types(page, "#note", "A better model")
        enters(page)
        page.get_by_role("heading", name="What is different from version 1").wait_for()
        presses(page, "Observers")
        types(page, "#name", "The director")
        enters(page)
        page.get_by_role("heading", name="Send this link to The director").wait_for()
        presses(page, "Run")
        presses(page, "Check everything now")
        page.wait_for_url("**/run?check=yes")
        presses(page, "Log out")
        page.get_by_role("heading", name="How to get in").wait_for()


def test_a_members_way_by_keyboard_alone(browser: Browser, tmp_path: Path) -> None:
    story = signed(tmp_path)
    play(story.room.app / "ledger.db", signed_terms(tuple(story.members)), 2)
    with entered(browser, story, Viewer("member", "North"), phone=False) as page:
        page.keyboard.press("Tab")
        page.keyboard.press("Enter")  # "Skip to the content"
        assert page.evaluate("document.activeElement.id") == "main"
        presses(page, "Terms")
        types(page, "#text", "Is this enough?")
        presses(page, "Comment")
        page.get_by_text("Is this enough?").wait_for()
        presses(page, "Watch")
        page.get_by_role("heading", name="Slot 2").wait_for()
        presses(page, "Slot 1")
        page.wait_for_url("**/watch/1")
        presses(page, "Ledger")
        types(page, "#slot", "1")
        enters(page)
        page.wait_for_url("**/ledger?slot=1*")
        presses(page, "Verify")
        presses(page, "Verify all of it")
        page.get_by_role("heading", name="The ledger by itself").wait_for()
        presses(page, "Evidence")
        page.wait_for_url("**/evidence")
        presses(page, "Agreement")
        page.wait_for_url("**/agreement")
        presses(page, "Log out")
        page.get_by_role("heading", name="How to get in").wait_for()
    story.app.state.follower.close()


def test_an_observer_reads_and_is_put_out(browser: Browser, tmp_path: Path, phone: bool) -> None:
    story = joined(tmp_path)
    code = story.room.doors.invite_observer("The director")
    with served(story.app) as address, visitor(browser, phone=phone) as page:
        story.room.address = address
        page.goto(f"{address}/observe#{code}")
        page.wait_for_url(f"{address}/")
        check_page(page)
        page.goto(f"{address}/terms")
        check_page(page)
        assert page.get_by_role("button", name="Comment").count() == 0
        story.room.doors.withdraw_observer(1)
        page.goto(f"{address}/terms")
        page.get_by_role("heading", name="Please log in").wait_for()
        check_page(page)


def test_a_new_link_is_opened_where_an_old_one_was_refused(
    browser: Browser, tmp_path: Path
) -> None:
    story = joined(tmp_path)
    old, new = (story.room.doors.invite_observer("The director") for _ in range(2))
    story.room.doors.withdraw_observer(1)
    with served(story.app) as address, visitor(browser) as page:
        story.room.address = address
        page.goto(f"{address}/observe")
        page.evaluate(f"location.hash = '{old}'")  # the form is there: it is sent
        page.get_by_role("heading", name="This link does not work any more").wait_for()
        page.evaluate("location.hash = 'main'")  # the link to the content
        page.goto(f"{address}/observe#{new}")
        page.wait_for_url(f"{address}/")
        page.get_by_role("heading", name="Where it stands").wait_for()


def test_the_pages_without_scripts(browser: Browser, tmp_path: Path) -> None:
    story = joined(tmp_path)
    with served(story.app) as address, visitor(browser, scripts=False) as page:
        story.room.address = address
        page.goto(f"{address}/enter")
        page.get_by_label("Code").fill(story.room.doors.ticket(Viewer("coordinator")))
        page.get_by_role("button", name="Continue").click()
        page.get_by_role("heading", name="Three clinics").wait_for()
        check_page(page)
        page.get_by_role("link", name="Members", exact=True).click()
        page.get_by_role("button", name="It is the same").first.click()
        page.get_by_text("compared", exact=True).first.wait_for()


def test_a_page_says_that_its_session_has_ended(browser: Browser, tmp_path: Path) -> None:
    """At once if it is withdrawn, and without a page inside the page."""
    story = joined(tmp_path)
    doors = story.room.doors
    code = doors.invite_observer("Auditor")
    with served(story.app) as address, visitor(browser) as page:
        page.goto(f"{address}/observe#{code}")
        page.get_by_role("heading", name="What happened").wait_for()
        doors.withdraw_observer(doors.observers()[0].number)
        page.get_by_role("heading", name="How to get in").wait_for()
        assert page.locator("main").count() == 1

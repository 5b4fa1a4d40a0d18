"""The workshop's agreement in a real browser: live, by keyboard alone, without scripts, printed."""

import re
import time
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from fedaccord.console.workshop.app import create_workshop
from tests.console.browser import check_page, served, visitor
from tests.console.drafts import HOSTILE, example, many, some

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with served(create_workshop()) as found:
        yield found


def settled(page: Page) -> None:
    """Until all that is loaded later is there."""
    expect(page.locator("#more a", has_text="What else")).to_have_count(0)
    expect(page.locator(".htmx-request")).to_have_count(0)


@pytest.mark.parametrize("phone", [False, True], ids=["desktop", "phone"])
@pytest.mark.parametrize(
    "query", ["", "?without=1", "?discount_factor=0.005", "?kind=uniform&within=10", "?margin=x"]
)
def test_the_page_is_good(browser: Browser, address: str, phone: bool, query: str) -> None:
    with visitor(browser, phone=phone) as page:
        page.goto(f"{address}/w/{example().packed}/design{query}")
        settled(page)
        check_page(page)


@pytest.mark.parametrize("phone", [False, True], ids=["desktop", "phone"])
@pytest.mark.parametrize("path", ["member/2", "member/5?punishment=reversion", "compare", "more"])
def test_the_other_pages_are_good(browser: Browser, address: str, phone: bool, path: str) -> None:
    with visitor(browser, phone=phone) as page:
        page.goto(f"{address}/w/{example().packed}/{path}")
        check_page(page)


@pytest.mark.parametrize("phone", [False, True], ids=["desktop", "phone"])
def test_hostile_names(browser: Browser, address: str, phone: bool) -> None:
    packed = some(HOSTILE).packed
    with visitor(browser, phone=phone) as page:
        page.on("dialog", lambda dialog: pytest.fail(dialog.message))
        for path in ("design?without=4", "member/1", "member/4", "compare"):
            page.goto(f"{address}/w/{packed}/{path}")
            if path.startswith("design"):
                settled(page)
            check_page(page)


def test_a_slider_moves_the_result(browser: Browser, address: str) -> None:
    with visitor(browser) as page:
        page.goto(f"{address}/w/{example().packed}/design")
        expect(page.locator("#result h2").first).to_have_text(
            "An agreement that holds, with 2.30 times the data"
        )
        page.locator("#within").fill("30")
        expect(page).to_have_url(re.compile(r"/design\?within=30$"))
        settled(page)
        page.locator("#discount_factor").fill("0.1")
        expect(page.locator("#said")).not_to_contain_text("2.30")
        expect(page.locator("#own_patience")).not_to_be_checked()
        expect(page).to_have_url(re.compile(r"within=30&discount_factor=0.1$"))
        expect(page.locator("output[data-of=discount_factor]")).to_have_text("0.1")
        links = page.locator("#places a", has_text="Compare")
        expect(links).to_have_attribute("href", re.compile(r"discount_factor=0.1$"))
        settled(page)
        check_page(page)


def test_an_address_brings_the_state_back(browser: Browser, address: str) -> None:
    with visitor(browser) as page:
        page.goto(f"{address}/w/{example().packed}/design")
        page.get_by_label("Reversion").check()
        expect(page).to_have_url(re.compile("punishment=reversion"))
        page.get_by_text("What if …").click()
        page.get_by_label("… one leaves?").select_option("Riverside")
        heading = page.get_by_role("heading", name="What if Riverside leaves?")
        expect(heading).to_be_visible()
        expect(page).to_have_url(re.compile("without=4"))  # after what it shows
        sent = page.url
    with visitor(browser) as page:
        page.goto(sent)
        expect(page.get_by_role("heading", name="What if Riverside leaves?")).to_be_visible()
        expect(page.get_by_label("Reversion")).to_be_checked()
        expect(page.get_by_label("… one leaves?")).to_have_value("4")


def test_the_back_button_undoes(browser: Browser, address: str) -> None:
    with visitor(browser) as page:
        page.goto(f"{address}/w/{example().packed}/design")
        page.get_by_label("One level for many").check()
        expect(page).to_have_url(re.compile("kind=uniform$"))
        time.sleep(1)
        page.get_by_label("Reversion").check()
        expect(page).to_have_url(re.compile("kind=uniform&punishment=reversion$"))
        page.go_back()
        expect(page).to_have_url(re.compile("kind=uniform$"))
        expect(page.get_by_label("Suspension")).to_be_checked()
        expect(page.get_by_label("One level for many")).to_be_checked()
        page.go_back()
        expect(page).to_have_url(re.compile("/design$"))
        expect(page.get_by_label("One for each member")).to_be_checked()


def test_wrong_numbers_are_said_beside_them(browser: Browser, address: str) -> None:
    with visitor(browser) as page:
        page.goto(f"{address}/w/{example().packed}/design?joins=1&joins_samples=-3")
        expect(page.locator("#joins_samples-problem")).to_contain_text("more than 0")
        expect(page.locator("#result")).to_contain_text("taken as usual instead")
        page.locator("#joins_samples").fill("12.500")
        expect(page.locator("#result")).to_contain_text(
            "samples of the one that joins: could mean 12.5 or 12500"
        )
        page.locator("#joins_samples").fill("12 500")
        expect(page).to_have_url(re.compile("joins_samples=12500$"))
        expect(page.locator("#result")).not_to_contain_text("not right")


def test_what_cannot_be_supposed_is_said_beside_its_field_at_once(
    browser: Browser, address: str
) -> None:
    with visitor(browser) as page:
        page.goto(f"{address}/w/{example().packed}/design")
        page.get_by_text("What if …").click()
        page.get_by_label("… one joins, like").select_option("Riverside")
        page.get_by_label("Its samples").fill("1500.5")
        expect(page.locator("#joins_samples-problem")).to_contain_text("whole number")
        expect(page.locator("#result")).to_contain_text("without any what-if")
        settled(page)
        check_page(page)
        page.get_by_label("Its samples").fill("1500")
        expect(page.locator("#joins_samples-problem")).to_be_empty()
        expect(page.get_by_role("heading", name="What if New member joins")).to_be_visible()


def test_the_keyboard_does_everything(browser: Browser, address: str) -> None:
    with visitor(browser) as page:
        page.goto(f"{address}/w/{example().packed}/design")
        page.locator("#margin").focus()
        page.keyboard.press("End")
        expect(page).to_have_url(re.compile("margin=0.2$"))
        page.keyboard.press("ArrowLeft")
        expect(page).to_have_url(re.compile("margin=0.195$"))
        seen = set()
        for _ in range(60):
            page.keyboard.press("Tab")
            seen.add(page.evaluate("document.activeElement.id || document.activeElement.innerText"))
        assert {"within", "audit_rate", "punishment-suspension", "objective"} <= seen
        assert {"University Hospital", "The amounts (CSV)", "Copy this address"} <= seen


@pytest.mark.parametrize("phone", [False, True], ids=["desktop", "phone"])
def test_without_scripts(browser: Browser, address: str, phone: bool) -> None:
    with visitor(browser, phone=phone, scripts=False) as page:
        page.goto(f"{address}/w/{example().packed}/design")
        page.get_by_label("Reversion").check()
        page.get_by_text("What if …").click()
        page.get_by_label("… one is half as patient?").select_option("St Mary")
        page.get_by_role("button", name="Show").click()
        expect(
            page.get_by_role("heading", name="What if St Mary is half as patient?")
        ).to_be_visible()
        expect(page.get_by_label("As each of them stated")).to_be_checked()
        page.get_by_label("All alike", exact=True).check()
        page.get_by_label("If all are alike").fill("0.55")
        page.get_by_role("button", name="Show").click()
        expect(page).to_have_url(re.compile("discount_factor=0.55"))
        expect(page.get_by_label("All alike", exact=True)).to_be_checked()
        expect(page.get_by_label("If all are alike")).to_have_value("0.55")
        page.get_by_role("link", name="What else could be agreed on").click()
        expect(page.get_by_role("heading", name="If somebody leaves")).to_be_visible()
        page.get_by_role("link", name="Back to the agreement").click()
        page.locator("table a", has_text="Lakeside Clinic").click()
        expect(page.get_by_role("heading", name="Lakeside Clinic")).to_be_visible()
        expect(page.get_by_role("button", name="Print")).to_be_hidden()


@pytest.mark.parametrize("phone", [False, True], ids=["desktop", "phone"])
def test_fifty_members(browser: Browser, address: str, phone: bool) -> None:
    with visitor(browser, phone=phone) as page:
        page.goto(f"{address}/w/{many().packed}/design")
        settled(page)
        check_page(page)
        assert page.locator("svg.bars").first.locator("g").count() == 50
        wide = page.locator("svg.bars").first.bounding_box()
        assert wide
        assert wide["height"] == 50 * 24
        page.locator("#margin").fill("0.05")
        expect(page).to_have_url(re.compile("margin=0.05$"))


def test_what_takes_longer_is_fetched_into_the_page_when_asked_for(
    browser: Browser, address: str
) -> None:
    with visitor(browser) as page:
        page.goto(f"{address}/w/{many(101).packed}/design")
        link = page.get_by_role("link", name="What else could be agreed on")
        page.wait_for_timeout(1_000)  # longer than few members wait
        link.click()
        missed = page.get_by_role("heading", name="If somebody leaves")
        expect(missed).to_be_visible()
        expect(page).to_have_url(re.compile("/design$"))
        page.locator("#more th a", has_text="Hospital 7").first.click()
        expect(page.get_by_role("heading", name="What if Hospital 7")).to_be_visible()


def test_a_member_is_printed_on_one_sheet(browser: Browser, address: str) -> None:
    packed = some(HOSTILE).packed
    for path in (
        f"{example().packed}/member/5?within=10",
        f"{packed}/member/4?punishment=reversion",
    ):
        with visitor(browser) as page:
            page.goto(f"{address}/w/{path}")
            printed = page.pdf(format="A4", prefer_css_page_size=True)
            assert len(re.findall(rb"/Type\s*/Page\b", printed)) == 1


def test_the_report_is_printed_whole(browser: Browser, address: str) -> None:
    with visitor(browser) as page:
        page.goto(f"{address}/w/{example().packed}/print")
        expect(page.get_by_role("heading", name="Signatures")).to_be_visible()
        page.emulate_media(media="print")
        page.set_viewport_size({"width": 681, "height": 1000})  # A4 without its margins
        assert page.locator("html").evaluate("e => e.scrollWidth") == 681
        assert page.locator(".signatures > div").count() == 6
        assert page.pdf(format="A4", prefer_css_page_size=True).startswith(b"%PDF")


def test_downloads(browser: Browser, address: str) -> None:
    with visitor(browser) as page:
        page.goto(f"{address}/w/{example().packed}/design?kind=uniform")
        for link, name in (("The page, to send", "agreement.html"), ("The amounts", "profile.csv")):
            with page.expect_download() as download:
                page.get_by_role("link", name=link).click()
            assert download.value.suggested_filename == name


@pytest.mark.parametrize("path", ["design", "compare"])
def test_notes_below_wide_tables_are_read_whole_on_a_phone(
    browser: Browser, address: str, path: str
) -> None:
    with visitor(browser, phone=True) as page:
        page.goto(f"{address}/w/{example().packed}/{path}")
        for note in page.locator(".wide caption").all():
            note.evaluate("e => { e.closest('.wide').scrollLeft = 60; }")
            box = note.bounding_box()
            assert box
            assert box["x"] >= 0
            assert box["x"] + box["width"] <= 375


@pytest.mark.parametrize("phone", [True, False])
def test_names_beside_bars_are_read_whole(browser: Browser, address: str, phone: bool) -> None:
    with visitor(browser, phone=phone) as page:
        page.goto(f"{address}/w/{example().packed}/design")
        names = page.locator("svg.bars svg").evaluate_all(
            "all => all.map(e => [...e.querySelectorAll('text')]"
            ".map(t => [t.textContent, t.getBoundingClientRect().width])"
            ".filter(([_, width]) => width > 0)"
            ".map(([text, width]) => [text, width <= e.width.baseVal.value]))"
        )
        assert all(fits for name in names for _, fits in name)
        lines = [["University", "Hospital"] if phone else ["University Hospital"], ["Riverside"]]
        shown = [[text for text, _ in name] for name in names]
        assert all(name in shown for name in lines)

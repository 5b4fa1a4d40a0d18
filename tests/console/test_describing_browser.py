"""Describing a consortium in a real browser: by mouse, by keyboard alone, and without scripts."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Dialog, Page, expect

from fedaccord.console.workshop.app import create_workshop
from fedaccord.console.workshop.draft import Draft, unpack
from fedaccord.files.consortium import example_text
from tests.console.browser import check_page, served, visitor
from tests.console.test_describing import DOUBT, HOSTILE

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with served(create_workshop()) as found:
        yield found


def draft_of(page: Page) -> Draft:
    return unpack(page.url.split("/w/")[1].split("/")[0])


def copied(page: Page, text: str) -> None:
    """Put a text into the clipboard, as if it had been copied in a spreadsheet."""
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.evaluate("text => navigator.clipboard.writeText(text)", text)


def tab_to(page: Page, name: str) -> None:
    """Press Tab until the element with this name has the focus."""
    for _ in range(150):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.name || document.activeElement.id") == name:
            return
    raise AssertionError(f"Tab does not reach {name}")


@pytest.mark.parametrize("scripts", [True, False])
@pytest.mark.parametrize("phone", [False, True])
def test_a_table_from_paste_to_a_saved_draft(
    browser: Browser, address: str, phone: bool, scripts: bool
) -> None:
    with visitor(browser, phone=phone, scripts=scripts) as page:
        page.goto(address)
        check_page(page)
        page.get_by_label("From Excel").fill(DOUBT)
        page.get_by_role("button", name="Read the table").click()
        expect(page.get_by_role("group", name="What does '42.000'")).to_be_visible()
        check_page(page)
        page.get_by_label("42000: the dot separates thousands").check()
        page.get_by_role("button", name="Go on").click()
        expect(page.get_by_role("status")).to_contain_text("Saved")
        check_page(page)
        page.get_by_label("Samples, row 2").fill("many")
        page.get_by_role("button", name="Save", exact=True).first.click()
        expect(page.locator(".problem")).to_have_text("must be a number, got 'many'")
        check_page(page)
        page.get_by_label("Samples, row 2").fill("9 000")
        page.get_by_role("button", name="Add a member").click()
        page.get_by_label("Member, row 3").fill("East")
        page.get_by_role("button", name="Remove row 1").click()
        page.get_by_role("button", name="Save", exact=True).first.click()
        expect(page.get_by_role("status").first).to_contain_text("Saved")
        clients = draft_of(page).data["clients"]
        assert [client["name"] for client in clients] == ["South", "East"]
        assert clients[0]["samples"] == 9_000


@pytest.mark.parametrize("phone", [False, True])
def test_a_rectangle_is_pasted_into_the_table(browser: Browser, address: str, phone: bool) -> None:
    with visitor(browser, phone=phone) as page:
        page.goto(address)
        page.get_by_role("button", name="Open an empty table").click()
        copied(page, 'North\t20.000\t700000\n"South ""B"""\t30.000\t0,5\nEast\t1\t2\nWest\t3\t4\n')
        page.get_by_label("Member, row 1").click()
        page.keyboard.press("Control+V")
        expect(page.get_by_label("Member, row 2")).to_have_value('South "B"')
        expect(page.get_by_label("Samples, row 4")).to_have_value("3")
        page.get_by_role("button", name="Save", exact=True).first.click()
        clients = draft_of(page).data["clients"]
        assert [client["samples"] for client in clients] == [20_000, 30_000, 1, 3]
        expect(page.get_by_text("was read as 20000")).to_be_visible()
        check_page(page)


def test_a_table_with_headings_is_pasted_into_the_table(browser: Browser, address: str) -> None:
    with visitor(browser) as page:
        page.goto(address)
        page.get_by_role("button", name="Open an empty table").click()
        copied(page, "Kosten pro Fall\tKlinik\n0,5\tNord\n")
        page.get_by_label("Member, row 1").click()
        page.keyboard.press("Control+V")
        expect(page.get_by_label("Cost per sample, row 1")).to_have_value("0.5")
        expect(page.get_by_label("Member, row 1")).to_have_value("Nord")


def test_the_keyboard_alone(browser: Browser, address: str) -> None:
    with visitor(browser) as page:
        page.goto(address)
        tab_to(page, "text")
        page.keyboard.type("name;samples\nNorth;42.000")
        page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        expect(page.get_by_role("button", name="Go on")).to_be_visible()
        tab_to(page, "answer-dot")
        page.keyboard.press("Space")
        page.keyboard.press("Enter")
        expect(page.get_by_role("status").first).to_contain_text("Saved")
        assert draft_of(page).data["clients"][0]["samples"] == 42_000
        tab_to(page, "more")
        page.keyboard.press("Space")
        tab_to(page, "r0-valuation")
        page.keyboard.type("7")
        tab_to(page, "r0-quality")
        page.keyboard.type("2")
        page.keyboard.press("Tab")
        page.keyboard.press("Tab")
        page.keyboard.press("Enter")  # add a member
        page.keyboard.type("South")
        copied(page, "5\t6\n")
        page.keyboard.press("Tab")
        page.keyboard.press("Control+V")
        with page.expect_navigation():
            page.keyboard.press("Enter")  # save
        expect(page.get_by_label("Valuation, row 2")).to_have_value("6")
        assert draft_of(page).data["clients"] == [
            {"name": "North", "samples": 42_000, "valuation": 7, "quality": 2},
            {"name": "South", "samples": 5, "valuation": 6},
        ]


def test_columns_are_chosen(browser: Browser, address: str) -> None:
    with visitor(browser, phone=True) as page:
        page.goto(address)
        page.get_by_label("From Excel").fill("North\t1\nSouth\t2\n")
        page.get_by_role("button", name="Read the table").click()
        check_page(page)
        page.get_by_label("Column 1").select_option("name")
        page.get_by_label("Column 2").select_option("samples")
        page.get_by_role("button", name="Read the table").click()
        expect(page.get_by_label("Samples, row 2")).to_have_value("2")


def test_files_in_and_out(browser: Browser, address: str, tmp_path: Path) -> None:
    with visitor(browser) as page:
        page.goto(address)
        page.get_by_role("button", name="Open the example").click()
        for name in ("consortium.toml", "members.csv"):
            with page.expect_download() as download:
                page.get_by_role("link", name=name).click()
            file = tmp_path / name
            download.value.save_as(file)
            assert download.value.suggested_filename.startswith("Breast imaging, six hospitals.")
            with visitor(browser) as other:
                other.goto(address)
                other.get_by_label("A consortium file").set_input_files(file)
                other.get_by_role("button", name="Read the file").click()
                expect(other.get_by_label("Member, row 6")).to_have_value("Children's Hospital")


@pytest.mark.parametrize("phone", [False, True])
def test_hostile_names_and_a_hundred_members(browser: Browser, address: str, phone: bool) -> None:
    names = [*HOSTILE, *(f"Clinic {n}" for n in range(100 - len(HOSTILE)))]
    with visitor(browser, phone=phone) as page:
        page.goto(address)
        rows = "\n".join(f"{name}\t{n + 1}\t5\t6" for n, name in enumerate(names))
        page.get_by_label("From Excel").fill(f"name\tsamples\tvaluation\tcost per sample\n{rows}\n")
        page.get_by_role("button", name="Read the table").click()
        expect(page.get_by_label("Member, row 100")).to_have_value("Clinic 91")
        check_page(page)
        page.get_by_label("Samples, row 100").fill("7")
        page.get_by_role("button", name="Save", exact=True).first.click()
        assert list(draft_of(page).consortium.names) == names
        check_page(page)


def test_what_is_typed_is_saved_by_going_on(browser: Browser, address: str) -> None:
    packed = Draft(example_text()).packed
    with visitor(browser) as page:
        page.goto(f"{address}/w/{packed}/members?margin=0.05")
        page.get_by_label("Samples, row 1").fill("17 000")
        page.get_by_role("link", name="Agreement").click()
        expect(page).to_have_url(re.compile(r"/design\?margin=0.05$"))
        assert draft_of(page).data["clients"][0]["samples"] == 17_000
        page.get_by_role("link", name="Members", exact=True).click()
        page.get_by_label("Samples, row 1").fill("many")
        page.get_by_role("link", name="Compare").click()
        expect(page.locator(".problem")).to_have_text("must be a number, got 'many'")
        expect(page.get_by_label("Samples, row 1")).to_have_value("many")
        page.get_by_label("Samples, row 1").fill("18 000")
        with page.expect_download() as file:
            page.get_by_role("link", name="consortium.toml").click()
        assert Draft(file.value.path().read_text("utf-8")).data["clients"][0]["samples"] == 18_000


def test_the_browser_asks_before_what_is_typed_is_lost(browser: Browser, address: str) -> None:
    asked: list[str] = []

    def stay(dialog: Dialog) -> None:
        asked.append(dialog.type)
        dialog.dismiss()

    with visitor(browser) as page:
        page.on("dialog", stay)
        page.goto(f"{address}/w/{Draft(example_text()).packed}/members")
        page.get_by_label("Member, row 1").click()
        page.get_by_label("More columns").check()
        page.get_by_role("link", name="Agreement").click()
        expect(page).to_have_url(re.compile("/design$"))
        page.get_by_role("link", name="Members", exact=True).click()
        page.get_by_label("Member, row 1").fill("Another")
        page.get_by_role("link", name="fedaccord", exact=True).click()
        expect(page.get_by_label("Member, row 1")).to_have_value("Another")
        assert asked == ["beforeunload"]

"""The interview in the workshop: which questions are asked, what follows, what the file gets."""

import re
import tomllib
from typing import Any
from urllib.parse import urlencode

import pytest
from fastapi.testclient import TestClient
from playwright.sync_api import Browser, Page, expect

from fedaccord.console.workshop.app import create_workshop
from fedaccord.console.workshop.draft import Draft, unpack
from fedaccord.files.consortium import example_text
from fedaccord.interviews.interview import interview
from tests.console.browser import check_page, served, visitor

HERE = "http://127.0.0.1:8321"
HOSTILE = '<script>alert("x")</script>\u202egpj.exe =SUM(A1) ' + "x" * 150
FULL = {
    "name": "St. Anna",
    "cases_per_month": "500 to 700",
    "years_used": "2",
    "annotation_cost": "4",
    "gpu_price": "2.5",
    "samples_per_second": "10",
    "cases_per_year": "8 000",
    "missed_cost": "900 to 2000",
    "false_cost": "150",
    "prevalence": "1 %",
}


@pytest.fixture
def client() -> TestClient:
    return TestClient(create_workshop(), base_url=HERE, follow_redirects=False)


def place(text: str | None = None) -> str:
    return f"/w/{Draft(example_text() if text is None else text).packed}/interview"


def draft_at(address: str) -> dict[str, Any]:
    packed = re.fullmatch(r"/w/([^/]+)/members(\?.*)?", address)
    assert packed is not None
    return tomllib.loads(unpack(packed[1]).text)


def test_only_what_is_needed_is_asked(client: TestClient) -> None:
    first = client.get(place()).text
    assert 'id="cases_per_month"' in first
    assert 'id="samples"' in first  # the same in another way
    assert 'id="missed_cost"' not in first
    assert 'id="hourly_wage"' not in first
    assert 'id="currency"' not in first  # the file says it
    then = client.get(place() + "?cases_per_year=8000&samples=900&staff_hours=4").text
    assert 'id="missed_cost"' in then
    assert 'id="hourly_wage"' in then
    assert 'id="cases_per_month"' not in then


def test_numbers_follow_as_soon_as_they_can(client: TestClient) -> None:
    page = client.get(place() + "?cases_per_month=about+600&years_used=2").text
    assert "14,400" in page
    assert "11,520 to 17,280" in page
    assert "600 cases a month, each used for 24 months" in page
    assert "number-valuation" not in page
    assert "Read as 600, from 480 to 720" in page


def test_a_mistake_is_beside_its_question(client: TestClient) -> None:
    page = client.get(place() + "?cases_per_month=many&prevalence=3&cases_per_year=100").text
    assert "got &#39;many&#39;" in page
    assert "write 3 % if that is meant." in page
    assert page.count('aria-invalid="true"') == 2


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        ("0,004", "Read as 0.004"),
        ("2,50 €", "Read as 2.5"),
        ("1.250,50", "Read as 1250.5"),
        ("12 000", "Read as 12000"),
        ("12,000", "&#39;12,000&#39; is either 12 or 12000; write the one that is meant."),
        ("2.50 USD", "Is in USD, and all amounts are in EUR; give all amounts in one currency."),
        ("5%", "Must be a number, not a percentage"),
    ],
)
def test_what_a_number_was_read_as(client: TestClient, typed: str, words: str) -> None:
    page = client.get(f"{place()}?{urlencode({'gpu_price': typed})}").text
    assert words in page
    assert "Read as" not in client.get(f"{place()}?gpu_price=2.50").text


def test_a_slot_that_is_given_as_an_adverb(client: TestClient) -> None:
    answers = FULL | {"slot": "monthly"}
    page = client.get(place('name = "New"\n') + "?" + urlencode(answers)).text
    assert "in a slot (1 month), annotation" in page
    after = draft_at(client.post(place('name = "New"\n'), data=answers).headers["location"])
    assert after["slot"] == "1 month"


def test_pages_for_directors_speak_of_members(client: TestClient) -> None:
    page = client.get(place('name = "New"\n')).text
    assert "All members of a consortium must use the same." in page
    assert "`" not in page


def test_a_new_member_is_put_in_with_its_notes(client: TestClient) -> None:
    answer = client.post(place() + "?margin=0.02", data=FULL | {"who": "new"})
    assert answer.status_code == 303
    assert answer.headers["location"].endswith("/members?margin=0.02&put_in=7")
    before = tomllib.loads(example_text())
    after = draft_at(answer.headers["location"])
    assert after["clients"][:-1] == before["clients"]
    assert {key: after[key] for key in before if key != "clients"} == {
        key: before[key] for key in before if key != "clients"
    }
    assert after["clients"][-1]["name"] == "St. Anna"
    assert after["clients"][-1]["samples"] == 14_400
    packed = answer.headers["location"].split("/")[2]
    assert "# interview, 12,000 to 16,800: 600 cases a month" in unpack(packed).text


def test_an_existing_member_is_replaced_and_ranges_are_written(client: TestClient) -> None:
    answer = client.post(place(), data=FULL | {"who": "2", "ranges": "yes", "name": ""})
    before, after = tomllib.loads(example_text()), draft_at(answer.headers["location"])
    assert len(after["clients"]) == len(before["clients"])
    assert after["clients"][1]["name"] == before["clients"][1]["name"]
    assert after["clients"][1]["samples"] == {"low": 12_000, "likely": 14_400, "high": 16_800}
    assert after["clients"][0] == before["clients"][0]


def test_a_file_that_lacks_numbers_can_be_filled_by_interviews(client: TestClient) -> None:
    text = '# ours\n[[clients]]\nname = "North"\n\n[[clients]]\nname = "South"\n'
    answer = client.post(place(text), data=FULL | {"who": "2"})
    after = draft_at(answer.headers["location"])
    assert [row["name"] for row in after["clients"]] == ["North", "South"]
    assert after["clients"][1]["samples"] == 14_400
    assert (after["slot"], after["currency"]) == ("3 months", "EUR")


def test_the_first_member_of_an_empty_file(client: TestClient) -> None:
    after = draft_at(client.post(place('name = "New"\n'), data=FULL).headers["location"])
    assert after["name"] == "New"
    assert [row["name"] for row in after["clients"]] == ["St. Anna"]


def test_what_is_missing_is_said_and_nothing_is_lost(client: TestClient) -> None:
    answer = client.post(place(), data={"name": "St. Anna", "gpu_price": "2.5"})
    assert answer.status_code == 422
    assert "This one needs an answer." in answer.text
    assert 'value="2.5"' in answer.text


def test_the_name_of_a_member_is_taken(client: TestClient) -> None:
    name = tomllib.loads(example_text())["clients"][0]["name"]
    answer = client.post(place(), data=FULL | {"name": f" {name} "})
    assert answer.status_code == 422
    assert "choose it at the top" in answer.text


def test_answers_that_do_not_go_together(client: TestClient) -> None:
    answer = client.post(place(), data=FULL | {"missed_cost": "0", "false_cost": "0"})
    assert answer.status_code == 422
    assert "a better model would be worth nothing" in answer.text


def test_clients_in_brackets_cannot_be_added_to(client: TestClient) -> None:
    text = 'clients = [{name = "A", valuation = 1, cost_per_sample = 1, samples = 1}]\n'
    answer = client.post(place(text), data=FULL)
    assert answer.status_code == 422
    assert "lists its clients in brackets" in answer.text


def test_a_hostile_name_is_text(client: TestClient) -> None:
    escaped = HOSTILE.replace("\u202e", "\\u202E").replace('"', '\\"')
    text = example_text() + f'\n[[clients]]\nname = "{escaped}"\n'
    page = client.get(place(text) + "?" + urlencode({"name": HOSTILE, "gpu_price": "<b>"})).text
    assert "<script>alert" not in page
    assert "<b>&#39;" not in page
    assert client.post(place(text), data=FULL | {"name": HOSTILE}).status_code == 422


def test_the_api_gives_what_the_command_prints(client: TestClient) -> None:
    answer = client.post("/api/interview", json={"answers": FULL | {"gpu_price": 2.5}})
    assert answer.status_code == 200
    assert answer.json() == interview(FULL | {"gpu_price": 2.5}).to_dict()


def test_the_api_says_everything_that_is_wrong(client: TestClient) -> None:
    answer = client.post("/api/interview", json={"answers": {"gpu_price": "x", "price": 1}})
    assert answer.status_code == 422
    first, second, *_ = answer.json()["problems"]
    assert first.startswith("gpu_price: must be a number")
    assert "there is no such question" in second


@pytest.mark.parametrize(
    "body",
    [
        b'{"answers": {"\\ud800": 1}}',
        b'{"answers": {"name": "\\ud800"}}',
        b'{"answers": {"gpu_price": NaN}}',
        b'{"answers": {"gpu_price": 1e999}}',
        b'{"answers": {"gpu_price": {"low": "a", "high": 3}}}',
        b'{"answers": [',
        b"",
    ],
)
def test_the_api_refuses_what_it_cannot_read(client: TestClient, body: bytes) -> None:
    headers = {"content-type": "application/json"}
    answer = client.post("/api/interview", content=body, headers=headers)
    assert answer.status_code == 422
    assert answer.json()["problems"]


@pytest.mark.slow
@pytest.mark.parametrize("phone", [False, True])
def test_an_interview_in_a_browser(browser: Browser, phone: bool) -> None:
    with served(create_workshop()) as address, visitor(browser, phone=phone) as page:
        page.goto(address + place())
        check_page(page)
        page.fill("#cases_per_year", "8000")
        page.wait_for_selector("#missed_cost")
        assert page.evaluate("document.activeElement.id") == "cases_per_year"
        for key, value in FULL.items():
            page.fill(f"#{key}", value)
            page.wait_for_load_state("networkidle")
        page.wait_for_selector("#number-valuation")
        page.wait_for_selector("#file")
        check_page(page)
        page.reload()
        page.wait_for_selector("#number-valuation")
        page.get_by_role("link", name="Agreement").click()
        page.go_back()
        page.wait_for_selector("#number-valuation")
        page.get_by_role("button", name="Put it into the consortium").click()
        expect(page.get_by_role("status")).to_contain_text("interview of St. Anna")
        expect(page.locator("#sources")).to_contain_text("600 cases a month")
        check_page(page)


@pytest.mark.slow
def test_an_interview_without_scripts(browser: Browser) -> None:
    with served(create_workshop()) as address, visitor(browser, scripts=False) as page:
        page.goto(address + place())
        page.fill("#cases_per_year", "8000")
        page.get_by_role("button", name="Show what follows").click()
        for key, value in FULL.items():
            page.fill(f"#{key}", value)
        page.get_by_role("button", name="Show what follows").click()
        assert "108,667" in page.inner_text("#number-valuation")
        page.get_by_role("button", name="Put it into the consortium").click()
        page.wait_for_url("**/members?put_in=7")


@pytest.mark.slow
def test_an_interview_by_keyboard_alone(browser: Browser) -> None:
    with served(create_workshop()) as address, visitor(browser) as page:
        page.goto(address + place())
        page.focus("#who")
        answered = set[str]()
        for _ in range(60):
            page.keyboard.press("Tab")
            key = str(page.evaluate("document.activeElement.id"))
            if key in FULL and key not in answered:
                answered.add(key)
                page.keyboard.type(FULL[key])
                _settled(page)
            if page.evaluate("document.activeElement.textContent").startswith("Put it"):
                break
        assert answered == set(FULL)
        page.keyboard.press("Enter")
        page.wait_for_url("**/members?put_in=7")


def _settled(page: Page) -> None:
    """Wait until the page has answered what was typed."""
    page.wait_for_timeout(600)
    page.wait_for_load_state("networkidle")

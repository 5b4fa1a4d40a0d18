"""A member's own page: its own figures, in words, and no other member's."""

import re
from html import unescape

import pytest
from fastapi.testclient import TestClient

import fedaccord as fa
from fedaccord.agreement.punishment import Suspension
from fedaccord.console.workshop.app import create_workshop
from fedaccord.game.money import amounts
from fedaccord.numbers import write
from tests.console.drafts import example, many, some

HERE = "http://127.0.0.1:8321"


@pytest.fixture(scope="module")
def client() -> TestClient:
    return TestClient(create_workshop(), base_url=HERE)


def sheet(client: TestClient, path: str) -> str:
    answer = client.get(path)
    assert answer.status_code == 200, answer.text
    found = re.search(r"<article.*?</article>", answer.text, re.DOTALL)
    assert found
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", found[0])).split())


@pytest.mark.parametrize("punishment", ["suspension", "reversion"])
def test_own_figures_and_no_others(client: TestClient, punishment: str) -> None:
    draft = example()
    names = draft.consortium.names
    agreement = fa.solve_agreement(
        draft.consortium,
        margin=0.01,
        punishment=Suspension() if punishment == "suspension" else "reversion",
    )
    for n, name in enumerate(names):
        said = sheet(client, f"/w/{draft.packed}/member/{n + 1}?punishment={punishment}")
        assert name in said
        assert write([agreement.profile[n]])[0] in said
        assert not any(other in said for other in names if other != name)
        mine = numbers_of(agreement, n)
        others = set().union(*(numbers_of(agreement, m) for m in range(len(names)) if m != n))
        shown = {word.strip(".,;:") for word in said.split()}
        assert mine & shown
        assert not (others - mine) & shown


def numbers_of(agreement: fa.Agreement, n: int) -> set[str]:
    """What tells one member from the others."""
    consortium = agreement.consortium
    samples = (agreement.profile, consortium.samples, consortium.valuation)
    costs = (agreement.cost, agreement.alone_cost, agreement.equilibrium.cost)
    paid = amounts([float(column[n]) for column in costs], consortium.currency)
    saved = amounts([float(agreement.saving[n])], consortium.currency)
    return {write([float(column[n])])[0] for column in samples} | {*paid, *saved}


def test_no_number_of_another_member_is_on_it(client: TestClient) -> None:
    """A member's page is the same whatever numbers another one has, if the totals are."""
    draft = example()
    before = sheet(client, f"/w/{draft.packed}/member/1")
    other = example("valuation = 360_000", "valuation = 365_000")  # Lakeside Clinic's
    assert sheet(client, f"/w/{other.packed}/member/1") == before
    assert sheet(client, f"/w/{other.packed}/member/5") != sheet(
        client, f"/w/{draft.packed}/member/5"
    )


@pytest.mark.parametrize("kind", ["individual", "uniform"])
def test_no_amount_of_money_can_be_read_as_thousands(client: TestClient, kind: str) -> None:
    """With three decimals, as 6.047 has, it could be where a point separates thousands."""
    said = sheet(client, f"/w/{example().packed}/member/5?kind={kind}")

    assert " EUR a year" in said
    assert not re.findall(r"[0-9]\.[0-9]{3}(?![0-9]) EUR", said)


def test_words_for_each_case(client: TestClient) -> None:
    base = f"/w/{example().packed}/member/"
    good = sheet(client, f"{base}1")
    assert "Worth signing: University Hospital saves 184.67 EUR in a slot, 2,216 EUR a year" in good
    assert "it gets no model for 1 slot and trains alone" in good
    assert "one audit in" in good
    assert "is assumed, not measured" in good
    reverted = sheet(client, f"{base}5?punishment=reversion")
    assert "everyone goes back to acting selfishly for ever" in reverted
    worse = sheet(client, f"{base}5?kind=uniform&discount_factor=0.3&within=10")
    assert "more in a slot than no agreement" in worse
    assert "within the ranges" in worse
    none = sheet(client, f"{base}5?discount_factor=0.005")
    assert "No individual agreement exists" in none
    assert "What it saves" not in none


def test_two_members_are_told_what_totals_reveal(client: TestClient) -> None:
    told = "work out some of the other’s"
    assert told in client.get(f"/w/{some(['North', 'South']).packed}/member/1").text
    assert told not in client.get(f"/w/{example().packed}/member/1").text


def test_what_if_and_numbers(client: TestClient) -> None:
    base = f"/w/{example().packed}/member"
    assert client.get(f"{base}/2?without=2").status_code == 404
    assert "Northern General" in sheet(client, f"{base}/2?without=1")
    assert "Elsewhere" in sheet(client, f"{base}/7?joins=1&joins_name=Elsewhere")
    for wrong in ("0", "8", "-1", "99999999999999999999"):
        assert client.get(f"{base}/{wrong}").status_code == 404
    assert client.get(f"{base}/x").status_code == 422


def test_every_member_of_many_has_a_page(client: TestClient) -> None:
    draft = many()
    for n in range(1, 51):
        assert f"Hospital {n}" in sheet(client, f"/w/{draft.packed}/member/{n}")


def test_the_sheet_as_a_file_has_nothing_else_in_it(client: TestClient) -> None:
    draft = example()
    names = draft.consortium.names
    place = f"/w/{draft.packed}/member/1"
    page = client.get(f"{place}?punishment=reversion").text
    assert "the address contains all members’ numbers" in page
    assert f'href="{place}/sheet.html?punishment=reversion"' in page
    answer = client.get(f"{place}/sheet.html?punishment=reversion")
    assert answer.headers["content-disposition"] == 'attachment; filename="member-1.html"'
    assert sheet(client, f"{place}/sheet.html?punishment=reversion") in " ".join(
        unescape(re.sub(r"<[^>]+>", " ", page)).split()
    )
    assert not re.search(r"href|src=|<script|hx-|/w/", answer.text)
    assert draft.packed not in answer.text
    assert not any(name in answer.text for name in names[1:])
    assert client.get(f"/w/{draft.packed}/member/99/sheet.html").status_code == 404

"""The agreement, live: the same numbers as the command line, for any settings and any names."""

import json
import re
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

import pytest
from fastapi.testclient import TestClient

from fedaccord.console.workshop import designing
from fedaccord.console.workshop.answers import Answer
from fedaccord.console.workshop.app import create_workshop
from fedaccord.console.workshop.draft import Draft
from fedaccord.console.workshop.turns import Turns
from fedaccord.files.consortium import demo_text
from fedaccord.game.money import amounts
from fedaccord.numbers import write
from tests.cli.conftest import Run, run  # noqa: F401  (a fixture)
from tests.console.drafts import HOSTILE, example, many, some

HERE = "http://127.0.0.1:8321"


@pytest.fixture(scope="module")
def client() -> TestClient:
    return TestClient(create_workshop(), base_url=HERE, follow_redirects=False)


def page(client: TestClient, draft: Draft, query: str = "", path: str = "design") -> str:
    answer = client.get(f"/w/{draft.packed}/{path}{query}")
    assert answer.status_code == 200, answer.text
    return answer.text


def text_of(html: str) -> str:
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", html)).split())


# --- The same as `solve` --------------------------------------------------------------------------

SAME = {
    "": [],
    "?kind=uniform": ["--agreement", "uniform"],
    "?objective=most-data": ["--objective", "most-data"],
    "?objective=fair-share&nobody_worse=yes": ["--objective", "fair-share", "--nobody-worse"],
    "?punishment=reversion": ["--punishment", "reversion"],
    "?punishment=reversion&punishment_slots=4": [
        *("--punishment", "reversion", "--punishment-slots", "4"),
    ],
    "?punishment_slots=for-ever": ["--for-ever"],
    "?punishment_slots=3&margin=0.05": ["--punishment-slots", "3", "--margin", "0.05"],
    "?margin=0": ["--margin", "0"],
    "?within=20": ["--within", "20%"],
    "?within=45&punishment=reversion": ["--within", "45%", "--punishment", "reversion"],
    "?audit_rate=0.4": ["--audit-rate", "0.4"],
    "?audit_rate=0.01": ["--audit-rate", "0.01"],
    "?whole_samples=yes": ["--whole-samples"],
    "?kind=uniform&punishment=reversion&whole_samples=on": [
        *("--agreement", "uniform", "--punishment", "reversion", "--whole-samples"),
    ],
    "?margin=0.9": ["--margin", "0.9"],
}


def solved(run: Run, draft: Draft, *flags: str) -> dict[str, Any]:  # noqa: F811
    Path("consortium.toml").write_text(draft.text, "utf-8")
    result = run("solve", "consortium.toml", *flags, "--format", "json")
    assert result.exit_code == 0, result.output
    return dict(json.loads(result.stdout))


@pytest.mark.parametrize("query", SAME)
def test_the_page_has_the_numbers_of_solve(client: TestClient, run: Run, query: str) -> None:  # noqa: F811
    draft = example()
    record = solved(run, draft, *SAME[query])
    shown = page(client, draft, query)
    agreement = record["agreement"]
    rows = re.findall(
        r'<tr[^>]*><th scope="row"><a href="[^"]*/member/[^>]*>(.*?)</tr>', shown, re.S
    )
    cells = [re.findall(r"<td>(.*?)</td>", row) for row in rows]
    column = write([each["contribution"] for each in agreement["clients"]])
    assert [row[2 if agreement["exists"] else 1] for row in cells] == column
    if agreement["exists"]:
        savings = [one["saving"] for one in agreement["clients"]]
        assert [row[3] for row in cells] == amounts(savings, draft.consortium.currency)
        assert [row[4] for row in cells] == [
            f"{one['threshold']:.3f}" for one in agreement["clients"]
        ]
    assert write([record["equilibrium"]["total"], agreement["total"]])[1] in shown
    if record["worth"]["verdict"]:
        assert record["worth"]["verdict"].capitalize() in shown
    else:
        assert agreement["reason"].replace("the clients", "the members") in text_of(shown)


def typed(text: str) -> Any:
    """What an address says, as a program says it: JSON has numbers and truth values of its own."""
    try:
        return text in ("yes", "on") or json.loads(text)
    except ValueError:
        return text


@pytest.mark.parametrize("query", SAME)
def test_json_is_that_of_solve(client: TestClient, run: Run, query: str) -> None:  # noqa: F811
    draft = example()
    said = dict(part.split("=") for part in query[1:].split("&") if part)
    settings = {key: typed(value) for key, value in said.items()}
    asked = {"consortium": draft.text, "settings": settings}
    answer = client.post("/api/solve", json=asked)
    assert answer.status_code == 200, answer.text
    assert answer.json() == solved(run, draft, *SAME[query])


@pytest.mark.parametrize("draft", [Draft(demo_text()), many(9)], ids=["demo", "nine"])
def test_other_consortia_are_the_same_too(client: TestClient, run: Run, draft: Draft) -> None:  # noqa: F811
    answer = client.post("/api/solve", json={"consortium": draft.text})
    assert answer.json() == solved(run, draft)


def test_other_patience_is_another_file(client: TestClient, run: Run) -> None:  # noqa: F811
    patient = re.sub(r"(?m)^discount_factor = 0.*$", "", example().text)
    patient = patient.replace("server_fee", "discount_factor = 0.6\nserver_fee", 1)
    asked = {"consortium": example().text, "settings": {"discount_factor": 0.6}}
    assert client.post("/api/solve", json=asked).json() == solved(run, Draft(patient))


# --- What is wrong --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("?margin=x", "margin: must be from 0 to less than 1, got 'x'; taken as usual instead"),
        ("?without=9", "who leaves: there are 6 members, and no number 9"),
        ("?within=10&margin=2", "margin: must be"),
        (
            "?joins=1&joins_samples=1500.5",
            "samples of the one that joins: must be a whole number, got 1500.5.",
        ),
        (
            "?joins=1&joins_name=St+Mary",
            "name of the one that joins: 'St Mary' is the name of another member already.",
        ),
    ],
)
def test_wrong_settings_are_sentences(client: TestClient, query: str, said: str) -> None:
    for headers in ({}, {"HX-Request": "true"}):
        answer = client.get(f"/w/{example().packed}/design{query}", headers=headers)
        assert answer.status_code == 422
        assert said in text_of(answer.text)
        assert "Traceback" not in answer.text


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("joins=1&joins_samples=1500.5", "joins_samples"),
        ("joins=1&joins_samples=1500.5&without=3", "joins_samples"),
        ("joins=1&joins_name=St+Mary", "joins_name"),
        ("joins=1&joins_valuation=x", "joins_valuation"),
        ("joins=9", "joins"),
    ],
)
def test_what_cannot_be_supposed_is_said_beside_its_field(
    client: TestClient, query: str, field: str
) -> None:
    usual = text_of(client.get(f"/w/{example().packed}/design").text)
    for headers in ({}, {"HX-Request": "true"}):
        page = client.get(f"/w/{example().packed}/design?{query}", headers=headers).text
        beside = re.search(rf'id="{field}-problem"[^>]*>([^<]+)<', page)
        assert beside is not None
        assert "clients[" not in page
        assert "Samples in a slot" in text_of(page)
        assert ("What follows is without any what-if." in page) == ("=x" not in query)
    assert "without any what-if" not in usual


@pytest.mark.parametrize("path", ["compare", "more", "member/1", "report.html"])
def test_other_pages_call_settings_what_the_page_calls_them(client: TestClient, path: str) -> None:
    answer = client.get(f"/w/{example().packed}/{path}?without=99")
    assert answer.status_code == 422
    assert "who leaves: there are 6 members, and no number 99" in answer.text


def test_programs_get_the_names_of_settings(client: TestClient) -> None:
    settings = {"joins": 1, "joins_samples": 1500.5}
    asked = {"consortium": example().text, "settings": settings}
    said = client.post("/api/solve", json=asked).json()["problems"]
    assert said == ["joins_samples: must be a whole number, got 1500.5"]


def test_a_draft_with_mistakes_is_shown_where_they_are_mended(client: TestClient) -> None:
    draft = example("samples = 28_000", "samples = -1")
    answer = client.get(f"/w/{draft.packed}/design")
    assert (answer.status_code, answer.headers["location"]) == (303, f"/w/{draft.packed}/members")


def test_what_mechanisms_mean_comes_first_and_money_has_its_currency(client: TestClient) -> None:
    shown = page(client, example(), "", "compare")
    said = text_of(shown)
    assert said.index("whoever says stop gets the model as it is by then") < said.index(
        "Free riders"
    )
    assert "before payments, in EUR." in said
    for heading in ("Total<br>cost, EUR", "Paid to<br>members, EUR", "Smallest<br>saving, EUR"):
        assert heading in shown


def test_a_loss_has_a_link_to_where_accuracy_comes_from(client: TestClient) -> None:
    draft = example()
    form = f"/w/{draft.packed}/members?margin=0.02&law=yes"
    for path in ("design", "member/5"):
        shown = unescape(page(client, draft, "?margin=0.02", path))
        links = re.findall('href="([^"]*law=yes#law)"', shown)
        assert [urljoin(f"/w/{draft.packed}/{path}", link) for link in links] == [f"{form}#law"]
    opened = re.compile(r'id="law".*?<details open><summary>Take the results', re.S)
    assert opened.search(client.get(form).text)
    assert not opened.search(client.get(f"/w/{draft.packed}/members").text)
    accurate = Draft(
        f'{draft.text}\n[law]\nkind = "power"\nmeasure = "error"\nscale = 2.0\nexponent = 0.5\n'
    )
    assert "law=yes" not in page(client, accurate)


@pytest.mark.parametrize("path", ["more", "compare", "member/1", "print", "report.html"])
def test_other_pages_refuse_wrong_settings(client: TestClient, path: str) -> None:
    answer = client.get(f"/w/{example().packed}/{path}?margin=7")
    assert answer.status_code == 422
    assert "must be from 0 to less than 1" in answer.text


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"consortium": "rounds ="},
        {"consortium": example().text, "settings": {"margin": 3}},
        {"consortium": example().text, "settings": {"flavour": "mint"}},
        {"consortium": example().text, "settings": {"within": 5, "without": 7}},
        {"consortium": 'clients = "/etc/passwd"\nrounds = 3'},
    ],
)
def test_programs_get_problems(client: TestClient, body: dict[str, object]) -> None:
    answer = client.post("/api/solve", json=body)
    assert answer.status_code == 422
    assert answer.json()["problems"]
    assert all(isinstance(one, str) for one in answer.json()["problems"])


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"{", "the request is not JSON: Expecting property name enclosed in double quotes"),
        (b"", "the request: is missing"),
    ],
)
def test_what_is_no_json_is_said_in_a_sentence(client: TestClient, body: bytes, said: str) -> None:
    headers = {"Content-Type": "application/json"}
    [problem] = client.post("/api/solve", content=body, headers=headers).json()["problems"]
    assert problem.startswith(said)


def test_the_api_is_described(client: TestClient) -> None:
    described = client.get("/api/openapi.json").json()
    assert set(described["paths"]["/api/solve"]["post"]["responses"]) >= {"200", "422"}
    assert "/w/{packed}/design" not in described["paths"]


# --- What is said ---------------------------------------------------------------------------------


@pytest.mark.slow
def test_no_agreement_says_why_and_what_would_help(client: TestClient) -> None:
    shown = page(client, example(), "?discount_factor=0.005")
    assert "No individual agreement exists" in shown
    assert "not patient enough" in shown
    assert "What would help" in text_of(shown)
    later = client.get(f"/w/{example().packed}/ways-out?discount_factor=0.005").text
    assert "there would be one above" in text_of(later)
    helped = re.findall(r'<li><a href="([^"]+)">', later)
    assert helped
    for address in helped:
        assert "An agreement that holds" in client.get(unescape(address)).text


def test_ranges_that_are_too_wide(client: TestClient) -> None:
    shown = text_of(page(client, example(), "?discount_factor=0.2&within=55&punishment=reversion"))
    assert "No individual agreement exists" in shown


def test_what_if_shows_the_difference(client: TestClient) -> None:
    shown = text_of(page(client, example(), "?without=1"))
    assert "What if University Hospital leaves?" in shown
    assert "samples in a slot instead of 116,000: 28,000 fewer" in shown
    shown = text_of(page(client, example(), "?doubles=2&joins=3&joins_name=Elsewhere"))
    assert "What if Elsewhere joins, like St Mary and Northern General has twice the data?" in shown
    assert "38,000 more" in shown
    shown = text_of(page(client, example(), "?impatient=5&punishment=reversion"))
    assert "Lakeside Clinic is half as patient?" in shown


def test_hardly_worth_signing_is_said(client: TestClient) -> None:
    shown = page(client, some(HOSTILE), "?without=2")
    assert "<p>Hardly worth signing: all members together save" in shown
    assert 'class="verdict holds doubtful"' in shown


def test_a_result_alone_for_htmx(client: TestClient) -> None:
    answer = client.get(
        f"/w/{example().packed}/design?margin=0.02&kind=individual", headers={"HX-Request": "true"}
    )
    assert "<html" not in answer.text
    assert f'data-address="/w/{example().packed}/design?margin=0.02"' in answer.text
    assert 'hx-swap-oob="true"' in answer.text


@pytest.mark.slow
def test_what_takes_longer(client: TestClient) -> None:
    shown = text_of(page(client, example(), "", "more"))
    assert "The others would miss University Hospital most" in shown
    assert "With reversion, the paper's punishment" in shown
    assert "What would break it" in shown
    assert "If somebody leaves" not in page(client, example(), "?kind=uniform", "more")
    joined = page(client, example(), "?joins=1&joins_name=Elsewhere", "more")
    for address in re.findall(r'<th scope="row"><a href="([^"]+)"', joined):
        assert address.startswith("design?")
        page(client, example(), unescape(address).removeprefix("design"))


def test_the_page_on_departures_does_not_contradict_itself(client: TestClient) -> None:
    """One member's departure saves the others money, and the amounts hold whoever leaves."""
    draft = Draft(
        'rounds = 50\ndiscount_factor = 0.9\ncurrency = "EUR"\n'
        + "".join(
            f'[[clients]]\nname = "{name}"\nvaluation = {worth}\ncost_per_sample = 0.01\n'
            f"samples = {samples}\n"
            for name, worth, samples in (
                ("CHU Nord", 1_000_000, 30_000),
                ("CHU Sud", 950_000, 30_000),
                ("CHU Ouest", 900_000, 30_000),
                ("CHU Est", 3_000_000, 300),
            )
        )
    )
    shown = text_of(page(client, draft, "?punishment=suspension", "more"))
    assert "Whoever leaves, the others' amounts still hold" in shown
    assert "They would not miss CHU Est: its departure saves them " in shown
    assert "A member that joins, or whose numbers change: nothing was proved for that" in shown
    assert "-" not in shown.split("They would not miss CHU Est")[1].split(".")[0]
    assert "no longer" not in shown


def test_links_for_each_member_do_not_repeat_the_consortium(client: TestClient) -> None:
    draft = many(101)
    shown = page(client, draft)
    assert 'href="./member/101"' in shown
    assert shown.count(draft.packed) < 20
    alone = client.get(f"/w/{draft.packed}/design?margin=0.02", headers={"HX-Request": "true"}).text
    assert 'href="./member/101?margin=0.02"' in alone
    assert alone.count(draft.packed) == 1


def test_with_many_members_what_takes_longer_is_asked_for(client: TestClient) -> None:
    few, more = page(client, many(100)), page(client, many(101))
    assert 'hx-get="./more" hx-trigger="load' in few
    assert 'hx-get="./more" hx-trigger="load' not in more
    assert 'hx-get="./more" hx-target="#more"' in more


def test_only_the_last_state_is_looked_into_further(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked, may_end, turns = [], threading.Event(), Turns()

    look = designing._slow

    def slow(answer: Answer, stated: int) -> dict[str, Any]:
        looked.append(answer.settings.margin)
        may_end.wait(30)
        return look(answer, stated)

    monkeypatch.setattr(designing, "_slow", slow)
    monkeypatch.setattr(designing, "_turns", turns)
    headers = {"HX-Request": "true"}

    def ask(margin: float) -> Future[Any]:
        before = turns.came
        address = f"/w/{example().packed}/more?margin={margin}"
        asked = workers.submit(client.get, address, headers=headers)
        while turns.came == before:
            time.sleep(0.01)
        return asked

    with ThreadPoolExecutor() as workers:
        first, second, third = map(ask, (0.01, 0.02, 0.03))
        may_end.set()
        texts = [each.result().text for each in (first, second, third)]
    assert looked == [0.01, 0.03]
    assert ["./more" in each for each in texts] == [False, True, False]


def test_states_are_left_out_and_that_is_said(client: TestClient) -> None:
    draft = Draft(example().text + '\n[[states]]\nname = "always"\n')
    assert "The file has states" in page(client, draft)
    answer = client.post("/api/solve", json={"consortium": draft.text})
    assert answer.json() == {"problems": ["states: are not solved here; leave them out"]}


ALONE = """\
rounds = 50
discount_factor = 0.9
[[clients]]
name = "Only"
valuation = 500_000
cost_per_sample = 0.5
samples = 20_000
"""


def test_members_are_members_in_reasons(client: TestClient) -> None:
    found = text_of(page(client, Draft(ALONE), "", "more"))
    assert "there would be none: it takes at least two members" in found
    assert "client" not in found


@pytest.mark.slow
def test_a_web_page_names_no_command(client: TestClient) -> None:
    assert "fedaccord misreport" not in page(client, example(), "", "compare")


def test_one_member_alone(client: TestClient) -> None:
    draft = some(["Only"])
    assert "nothing to agree on" in page(client, draft) or "exists" in page(client, draft)
    page(client, draft, "", "more")
    page(client, draft, "", "member/1")
    assert client.get(f"/w/{draft.packed}/design?without=1").status_code == 422
    for query in ("?margin=0.1", "?kind=uniform"):
        found = text_of(page(client, Draft(ALONE), query))
        assert "exists: it takes at least two members to agree on something." in found
        assert "Another member: add it" in page(client, Draft(ALONE), query, "ways-out")


@pytest.mark.slow
def test_a_large_consortium_works_here_only(client: TestClient) -> None:
    draft = many(1_500)
    assert not draft.travels
    assert "works on this machine only" in page(client, draft)


PAGES = ["design", "design?without=1", "more", "member/1", "member/3", "compare", "print"]


@pytest.mark.parametrize("path", PAGES)
def test_hostile_names_are_only_names(client: TestClient, path: str) -> None:
    draft = some(HOSTILE)
    shown = client.get(f"/w/{draft.packed}/{path}")
    assert shown.status_code == 200
    assert "<script>alert" not in shown.text
    assert "<img src=x" not in shown.text
    assert "49" not in re.findall(r"'so' (\S+)", unescape(shown.text))


@pytest.mark.slow
def test_nothing_inline(client: TestClient) -> None:
    for path in PAGES[:-1]:
        shown = page(client, example(), "", path)
        assert " style=" not in shown
        assert "<style" not in shown
        assert not re.search(r"<script(?! src=)", shown)
        assert not re.search(r"\son\w+=", shown)

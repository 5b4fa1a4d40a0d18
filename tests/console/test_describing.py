"""Describing a consortium in the workshop: what is read, asked, refused, kept and downloaded."""

import base64
import csv
import io
import json
import re
import zipfile
from dataclasses import replace
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import openpyxl
import pytest
from fastapi.testclient import TestClient
from hypothesis import given, settings
from hypothesis import strategies as st

from fedaccord.console.workshop.answered_form import answered
from fedaccord.console.workshop.app import create_workshop
from fedaccord.console.workshop.draft import Draft, unpack
from fedaccord.console.workshop.filled_form import read_form
from fedaccord.console.workshop.members_form import (
    COLUMNS,
    SHARED,
    Form,
    FormRow,
    Place,
    as_cell,
    form_of,
)
from fedaccord.files.clients import read_clients
from fedaccord.files.consortium import example_text

HERE = "http://127.0.0.1:8321"
HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "=cmd|' /C calc'!A0",
    "@SUM(A1)",
    "عيادة الشمال",
    "N" * 200,
    "{{ 7 * 7 }}",
    "O'Brien & Söhne",
]


@pytest.fixture
def client() -> TestClient:
    return TestClient(create_workshop(), base_url=HERE)


class _Inputs(HTMLParser):
    """The fields that a browser would send with the form of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.fields: dict[str, str] = {}
        self._template = False
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag == "template":
            self._template = True
        name, kind = given.get("name"), given.get("type")
        chosen = kind not in ("checkbox", "radio") or "checked" in given
        if tag == "input" and name and chosen and not self._template:
            self.fields[name] = given.get("value") or ""

    def handle_endtag(self, tag: str) -> None:
        if tag == "template":
            self._template = False


def fields(page: str) -> dict[str, str]:
    return _Inputs(page).fields


def problems(page: str) -> list[str]:
    return [unescape(found) for found in re.findall(r'<p class="problem"[^>]*>(.*?)</p>', page)]


def questions(page: str) -> list[str]:
    return [unescape(found) for found in re.findall("<legend>(.*?)</legend>", page)]


def paste(client: TestClient, text: str) -> Any:
    return client.post("/new", data={"way": "paste", "text": text})


def upload(client: TestClient, name: str, content: bytes) -> Any:
    return client.post("/new", data={"way": "upload"}, files={"file": (name, content)})


def draft_of(answer: Any) -> Draft:
    return unpack(str(answer.url.path).split("/")[2])


def edit(client: TestClient, page: Any, **changes: str) -> Any:
    found = re.search(r'action="(/w/[^"]+/members)"', page.text)
    assert found is not None
    sent = fields(page.text) | {key.replace("__", "-"): each for key, each in changes.items()}
    return client.post(found[1], data={"action": "save"} | sent)


def numbers(answer: Any, field: str) -> list[float]:
    return [row[field] for row in draft_of(answer).data["clients"]]


# --- Where to begin ------------------------------------------------------------------------


def test_the_start_says_what_it_is(client: TestClient) -> None:
    page = client.get("/").text
    assert "Nothing leaves this machine" in page
    for way in ("paste", "upload", "empty", "example"):
        assert f'value="{way}"' in page


def test_the_example_is_the_file_that_init_writes(client: TestClient) -> None:
    page = client.post("/new", data={"way": "example"})
    assert page.status_code == 200
    assert draft_of(page).text == example_text()
    assert fields(page.text)["r2-name"] == "St Mary"
    assert fields(page.text)["r0-valuation"] == "860 000"


def test_an_empty_table(client: TestClient) -> None:
    page = client.post("/new", data={"way": "empty"})
    assert problems(page.text) == []
    saved = edit(client, page, r0__name="North", r0__samples="20 000")
    assert saved.url.query == b"saved=yes"
    assert "2 cells are still empty" in saved.text
    whole = edit(client, saved, r0__valuation="7", r0__cost_per_sample="0.5", action="save")
    assert "still empty" not in whole.text
    assert draft_of(whole).consortium.names == ("North",)


def test_names_alone(client: TestClient) -> None:
    page = paste(client, "Hospital\nNorth\nSouth, and more\n")
    assert [row["name"] for row in draft_of(page).data["clients"]] == ["North", "South, and more"]
    assert "6 cells are still empty" in page.text


# --- Tables as people have them ------------------------------------------------------------

TABLES = {
    "German Excel": "Klinik\tFälle\tWert\tKosten pro Fall\nNord\t20.000\t700.000 €\t0,0042 €\n",
    "French": "Nom;Cas;Valeur;Coût par cas\nNord;20\u202f000;700\u202f000 €;0,0042\n",
    "English": 'Hospital,Cases,Value,Cost per case\nNord,"20,000","£700,000.00",0.0042\n',
    "Swiss": "Name;Cases;Value;Cost per case\nNord;20'000;CHF 700'000.-;0.0042\n".replace(".-", ""),
    "titles": "Our data 2026;;;\n;;;\nName;Cases;Value;Cost per case\nNord;20 000;700 000;0,0042\n",
    "pipes": "Name|Cases|Value|Cost per case\nNord|20000|700000|0.0042\n",
    "empty columns": "Name;Cases;Value;Cost per case;;\nNord;20000;700000;0,0042;;\n;;;;;\n",
}


@pytest.mark.parametrize("text", TABLES.values(), ids=TABLES)
def test_a_table_is_understood(client: TestClient, text: str) -> None:
    page = paste(client, text)
    assert page.status_code == 200
    assert numbers(page, "samples") == [20_000]
    assert numbers(page, "valuation") == [700_000]
    assert numbers(page, "cost_per_sample") == [0.0042]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
def test_encodings_of_files(client: TestClient, encoding: str) -> None:
    page = upload(client, "k.csv", TABLES["German Excel"].replace("\t", ";").encode(encoding))
    assert numbers(page, "samples") == [20_000]
    assert ("read as Windows-1252" in page.text) == (encoding == "cp1252")
    toml = example_text().replace("St Mary", "Zürich").encode(encoding)
    assert fields(upload(client, "c.toml", toml).text)["r2-name"] == "Zürich"


def test_a_note_says_how_it_was_read(client: TestClient) -> None:
    page = paste(client, TABLES["German Excel"])
    assert "was read as 20000" in unescape(page.text)
    assert draft_of(page).data["currency"] == "EUR"


DOUBT = "name;samples;valuation;cost per sample\nNorth;42.000;12.500;3\nSouth;7;8;9\n"


@pytest.mark.parametrize(
    ("answer", "samples", "valuation"), [("thousands", 42_000, 12_500), ("decimal", 42, 12.5)]
)
def test_a_number_with_two_readings_is_asked_about(
    client: TestClient, answer: str, samples: float, valuation: float
) -> None:
    page = paste(client, DOUBT)
    assert page.status_code == 422
    assert questions(page.text) == ["What does '42.000' (and 1 more like it) mean?"]
    assert fields(page.text)["r0-samples"] == "42.000"
    again = edit(client, page)
    assert again.status_code == 422
    assert questions(again.text) == questions(page.text)
    right = edit(client, page, **{"answer__dot": answer})
    assert right.status_code == 200
    assert numbers(right, "samples") == [samples, 7]
    assert numbers(right, "valuation") == [valuation, 8]


def test_numbers_of_the_page_do_not_decide_what_somebody_types(client: TestClient) -> None:
    page = client.post("/new", data={"way": "example"})
    asked = edit(client, page, r0__valuation="900.000")  # beside 0.0042, which the page wrote
    assert asked.status_code == 422
    assert questions(asked.text) == ["What does '900.000' mean?"]
    right = edit(client, asked, answer__dot="thousands")
    assert numbers(right, "valuation")[0] == 900_000


def test_a_percentage_is_asked_about(client: TestClient) -> None:
    page = paste(client, "name;samples;value;cost per sample;delta\nA;7;8;9;97\nB;7;8;9;0,9\n")
    assert questions(page.text) == ["Is the discount factor 97 a percentage?"]
    right = edit(client, page, answer__percent="yes")
    assert numbers(right, "discount_factor") == [0.97, 0.9]
    shared = edit(client, right, discount_factor="95", action="save")
    assert problems(shared.text) == ["must be less than 1, got 95; did you mean 0.95?"]
    assert draft_of(edit(client, shared, answer__percent="yes")).data["discount_factor"] == 0.95


def test_a_row_of_sums_is_asked_about(client: TestClient) -> None:
    page = paste(client, "name;samples;value;cost per sample\nA;7;8;9\nSumme;7;8;9\n")
    assert questions(page.text) == ["Is the row 'Summe' the sum of the others?"]
    assert numbers(edit(client, page, answer__sums="yes"), "samples") == [7]


def test_columns_without_headings_are_asked_about(client: TestClient) -> None:
    page = paste(client, "North\t20.000\t0,0042\t700\nSouth\t30.000\t0,004\t600\n")
    assert "Which column is which?" in page.text
    sent = fields(page.text)
    chosen = {"column-0": "name", "column-1": "samples", "column-2": "cost_per_sample"}
    read = client.post("/new", data=sent | chosen | {"column-3": "valuation"})
    assert numbers(read, "samples") == [20_000, 30_000]
    assert numbers(read, "valuation") == [700, 600]
    refused = client.post("/new", data=sent | {"column-0": ""})
    assert refused.status_code == 422
    assert "Choose the column" in refused.text


def test_columns_with_numbers_that_no_heading_explains_are_asked_about(client: TestClient) -> None:
    page = paste(client, "Hospital\tVolume\tValue\tAufwand\tCity\nA\t500\t6\t0,5\tUlm\n")
    assert "Which column is which?" in page.text
    assert "There is no column for samples." in page.text
    assert "There is no column for cost per sample." in page.text
    sent = {"way": "columns", "table": fields(page.text)["table"], "headings": "yes"}
    chosen = {"name": 0, "samples": 1, "valuation": 2, "cost_per_sample": 3}
    columns = {f"column-{k}": name for name, k in chosen.items()}
    [row] = draft_of(client.post("/new", data=sent | columns)).data["clients"]
    assert row == {"name": "A", "samples": 500, "valuation": 6, "cost_per_sample": 0.5}
    for text in ("Hospital\tCases\tCity\nA\t500\tUlm\n", "Hospital\tCases\nA\t500\n"):
        assert draft_of(paste(client, text)).data["clients"] == [{"name": "A", "samples": 500}]


def test_a_discount_that_may_be_a_rate_is_asked_about(client: TestClient) -> None:
    head = "Hospital\tCases\tValue\tCost per case\tDiscount"
    page = paste(client, f"{head}\nA\t500\t6\t0,5\t3 %\n")
    assert "Which column is which?" in page.text
    assert "that of a rate is 1 / (1 + rate)" in page.text
    page = paste(client, "Hospital\tCases\tValue\tCost per case\tDiscount rate\nA\t5\t6\t1\t3\n")
    assert "<li>Unknown column &#39;Discount rate&#39;; give the discount factor" in page.text


def test_unknown_units_are_refused_not_scaled(client: TestClient) -> None:
    page = paste(client, "name;samples;value (kEUR);cost per sample\nA;7;8;9\n")
    assert page.status_code == 422
    assert "unknown unit" in page.text


def test_ranges(client: TestClient) -> None:
    page = paste(client, "name;samples;value;cost per sample\nA;7 000-9 000;600 000 ± 30 %;0,5\n")
    assert fields(page.text)["r0-valuation"] == "420 000 to 780 000"
    assert draft_of(page).data["clients"][0]["samples"] == {
        "low": 7000,
        "likely": 8000,
        "high": 9000,
    }
    changed = edit(client, page, r0__samples="10 to 20")
    ranges = draft_of(changed).consortium.ranges
    assert ranges is not None
    assert ranges.samples[:, 0].tolist() == [10, 20]


def test_a_computed_range_is_shown_without_noise(client: TestClient) -> None:
    page = paste(client, "name\tcost per sample\nA\t~0.004\nB\t5\n")
    assert fields(page.text)["r0-cost_per_sample"] == "0.0032 to 0.0048"
    stated = '[[clients]]\nname = "A"\ncost_per_sample = { about = 0.004, within = "20 %" }\n'
    assert form_of(Draft(stated)).rows[0].text("cost_per_sample") == "0.0032 to 0.0048"


def test_a_workbook(client: TestClient) -> None:
    book = openpyxl.Workbook()
    for row in (["Site", "Cases", "Value", "Cost per case"], ["North", 20_000, "700.000", 0.0042]):
        book.active.append(row)
    saved = io.BytesIO()
    book.save(saved)
    page = upload(client, "k.xlsx", saved.getvalue())
    assert questions(page.text) == ["What does '700.000' mean?"]  # numbers in cells are no evidence
    right = edit(client, page, answer__dot="thousands")
    assert numbers(right, "valuation") == [700_000]
    assert numbers(right, "cost_per_sample") == [0.0042]


# --- What is refused -----------------------------------------------------------------------


def bomb() -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/worksheets/sheet1.xml", b"0" * 50_000_000)
    return packed.getvalue()


ROW = "A;1;1;1\n"
WRONG_FILES = {
    "PDF": (b"%PDF-1.7\n", "is a PDF"),
    "picture": (b"\x89PNG\r\n\x1a\n\x00", "is a picture"),
    "empty": (b"", "is empty"),
    "blank": (b" \n \n", "is empty"),
    "binary": (bytes(range(256)), "is neither UTF-8 nor"),
    "word": (b"PK\x03\x04nothing", "damaged"),
    "bomb": (bomb(), "unpacks to more than"),
    "rows": (b"name;samples;value;cost per sample\n" + 2000 * ROW.encode(), "too many rows"),
    "one column": (b"name samples value\nA 12 13\nB 14 15\n", "between the cells"),
    "TOML": (b"rounds = \n", "is not TOML"),
    "headings alone": (b"name;samples\n", "no member"),
}


@pytest.mark.parametrize(("content", "why"), WRONG_FILES.values(), ids=WRONG_FILES)
def test_a_wrong_file_is_refused_in_a_sentence(
    client: TestClient, content: bytes, why: str
) -> None:
    page = upload(client, "file.dat", content)
    assert page.status_code == 422
    assert why in unescape(page.text)
    assert page.text.count('role="alert"') == 1


def test_no_file_and_a_large_one(client: TestClient) -> None:
    assert "Choose a file first" in client.post("/new", data={"way": "upload"}).text
    page = upload(client, "big.csv", b"x" * 5_000_000)
    assert page.status_code == 422
    assert "<p>big.csv is too large: at most 4 MB.</p>" in page.text


@pytest.mark.parametrize(
    "text",
    [
        'rounds = 5\ndiscount_factor = 0.5\nclients = "{secret}"\n',
        'rounds = 5\n[law]\nkind = "measured"\nmeasure = "error"\ncurve = "{secret}"\n',
        'rounds = 5\n[[clients]]\nname = "A"\ncurve = "{secret}"\n',
        'rounds = 5\n[[clients]]\nname = "A"\nlaw = {{kind = "measured", curve = "{secret}"}}\n',
    ],
)
def test_no_other_file_of_this_machine_is_read(
    client: TestClient, tmp_path: Path, text: str
) -> None:
    secret = tmp_path / "secret.csv"
    secret.write_text("name,samples,valuation,cost_per_sample\nHidden,1,1,1\n")
    draft = Draft(text.format(secret=secret))
    for page in (client.get(f"/w/{draft.packed}/members"), paste(client, draft.text)):
        assert page.status_code == 422
        assert "which the page does not open" in page.text
        assert "Hidden" not in page.text
    for file in ("consortium.toml", "members.csv"):
        assert client.get(f"/w/{draft.packed}/{file}").status_code == 422


def test_addresses_that_are_not_whole(client: TestClient) -> None:
    for packed in ("x", "~" + "0" * 32, Draft(example_text()).packed[:-9]):
        assert client.get(f"/w/{packed}/members").status_code == 404


def test_a_form_that_no_page_made(client: TestClient) -> None:
    packed = Draft(example_text()).packed
    sent = {"r0-was": "99", "r0-name": "A", "r1-was": "0", "r2-was": "0", "r2-name": "B"}
    page = client.post(f"/w/{packed}/members", data=sent | {"rounds": "5"})
    assert page.status_code in (200, 422)
    assert client.post(f"/w/{packed}/members", data={"action": "save"}).status_code == 422
    for table in ("", "[", "[1]", '[["a"], 3]', json.dumps([["a", [1, 2, 3]]])):
        way = {"way": "columns", "table": table, "column-0": "name"}
        assert client.post("/new", data=way).status_code in (200, 422)


# --- Editing -------------------------------------------------------------------------------


def test_only_what_was_changed_changes(client: TestClient) -> None:
    page = client.post("/new", data={"way": "example"})
    saved = edit(client, page, r1__samples="21 000", r3__cost_per_sample="0,005")
    before, after = example_text().splitlines(), draft_of(saved).text.splitlines()
    assert [line for line in after if line not in before] == [
        "samples = 21_000",
        "cost_per_sample = 0.005",
    ]
    assert [line for line in before if line not in after] == [
        "samples = 20_000",
        "cpu = { chip = 2.1e-28, cycles_per_sample = 1.0e7, hertz = 2.0e9 }",
    ]
    same = edit(client, page)
    assert draft_of(same).text == example_text()


def test_mistakes_stand_beside_their_cells_and_nothing_typed_is_lost(client: TestClient) -> None:
    page = client.post("/new", data={"way": "example"})
    wrong = edit(
        client, page, r0__samples="-5", r1__name="St Mary", r2__valuation="a lot", rounds="1,5"
    )
    assert wrong.status_code == 422
    assert problems(wrong.text) == [
        "must be more than 0, got -5",
        "'St Mary' is the name of the member in row 2 already",
        "must be a number, got 'a lot'",
        "must be a whole number, got 1.5",
    ]
    typed = fields(wrong.text)
    assert (typed["r0-samples"], typed["r2-valuation"], typed["rounds"]) == ("-5", "a lot", "1,5")
    right = {"r0__samples": "5", "r1__name": "Mary", "r2__valuation": "3", "rounds": "2"}
    assert edit(client, wrong, **right).status_code == 200


def test_rows_without_scripts(client: TestClient) -> None:
    page = client.post("/new", data={"way": "example"})
    more = edit(client, page, action="add", r0__name="Changed")
    assert fields(more.text)["r6-name"] == ""
    assert fields(more.text)["r0-name"] == "Changed"
    less = edit(client, more, action="remove-1")
    assert fields(less.text)["r1-name"] == "St Mary"
    saved = edit(client, less)
    names = [row["name"] for row in draft_of(saved).data["clients"]]
    assert names == ["Changed", "St Mary", "Riverside", "Lakeside Clinic", "Children's Hospital"]


def test_a_table_pasted_below_is_merged_by_name(client: TestClient) -> None:
    page = client.post("/new", data={"way": "example"})
    text = "name\tcases\tvalue\nSt Mary\t19000\t\nNew\t5\t6\n"
    merged = edit(client, page, text=text, action="paste")
    clients = draft_of(merged).data["clients"]
    assert (clients[2]["samples"], clients[2]["valuation"]) == (19_000, 640_000)
    assert clients[6] == {"name": "New", "samples": 5, "valuation": 6}
    wrong = edit(client, page, text="a;b\nc;d\n", action="paste")
    assert wrong.status_code == 422
    assert "The pasted table" in wrong.text


def test_amounts_in_another_currency_are_refused(client: TestClient) -> None:
    page = client.post("/new", data={"way": "example"})
    wrong = edit(client, page, r0__valuation="900 000 USD")
    assert "is in USD, and this consortium counts in EUR" in wrong.text
    assert "is in $, and this consortium" in edit(client, page, server_fee="5 $").text
    assert edit(client, page, r0__valuation="900 000 €").status_code == 200


def test_names_with_commas_alone(client: TestClient) -> None:
    page = paste(client, "North, Berlin\nSouth, Ulm\n")
    names = [row["name"] for row in draft_of(page).data["clients"]]
    assert names == ["North, Berlin", "South, Ulm"]
    assert "each line was read as one name" in page.text
    assert "Which column is which?" in paste(client, "North, Berlin, 5\nSouth, Ulm, 6\n").text


def test_a_table_in_markdown(client: TestClient) -> None:
    head = "| Hospital | Cases | Value | Cost per case |\n|---|---:|:---:|---|\n"
    page = paste(client, f"{head}| A | 5 | 6 CHF | 1'250.- |\n")
    [row] = draft_of(page).data["clients"]
    assert row == {"name": "A", "samples": 5, "valuation": 6, "cost_per_sample": 1250}
    assert "not used" not in page.text


@pytest.mark.parametrize("other", ["6 $", "6.000,50 USD", "4 to 6 $"])
def test_an_amount_in_a_second_currency_stays_one(client: TestClient, other: str) -> None:
    page = paste(client, f"name\tvalue\nA\t5 €\nB\t{other}\n")
    assert page.status_code == 422
    assert fields(page.text)["r0-valuation"] == "5"
    assert fields(page.text)["r1-valuation"] == other
    assert "and row 1, valuation in EUR; give all amounts in one currency" in page.text
    again = edit(client, page)
    assert again.status_code == 422
    assert fields(again.text)["r1-valuation"] == other
    fixed = edit(client, again, r1__valuation="5,50")
    assert [row["valuation"] for row in draft_of(fixed).data["clients"]] == [5, 5.5]
    assert draft_of(fixed).data["currency"] == "EUR"


@pytest.mark.parametrize("table", ["name\tvalue\nNew\t6 $\n", "name\tvalue (USD)\nNew\t6\n"])
def test_a_pasted_table_in_another_currency(client: TestClient, table: str) -> None:
    page = client.post("/new", data={"way": "example"})
    wrong = edit(client, page, text=table, action="paste")
    assert wrong.status_code == 422
    assert "and this consortium counts in EUR" in wrong.text
    assert 6 not in [row.get("valuation") for row in draft_of(edit(client, wrong)).data["clients"]]


def test_headings_in_two_currencies(client: TestClient) -> None:
    page = paste(client, "name\tvalue (EUR)\tcost per sample ($)\nA\t5\t6\n")
    assert page.status_code == 422
    assert "column 'cost per sample ($)' is in $, and column 'value (EUR)' in EUR" in unescape(
        page.text
    )


def test_the_currency_of_a_number_that_was_asked_about(client: TestClient) -> None:
    page = paste(client, "name\tvalue\nA\t5.000 €\n")
    settled = edit(client, page, **{"answer-dot": "thousands"})
    assert draft_of(settled).data["clients"] == [{"name": "A", "valuation": 5_000}]
    assert draft_of(settled).data["currency"] == "EUR"


def test_two_decimal_marks(client: TestClient) -> None:
    page = paste(client, "name\tvalue\nA\t5.5\nB\t6,5\n")
    assert "The table has decimal points (&#39;5.5&#39;, row 1, valuation) and" in page.text


def test_a_consortium_that_changes(client: TestClient) -> None:
    states = '\n[[states]]\nname = "usual"\n\n[[states]]\nname = "away"\nwithout = ["St Mary"]\n'
    moves = "\n[transitions]\nusual = { usual = 0.9, away = 0.1 }\n"
    text = example_text() + states + moves
    page = paste(client, text)
    assert "shows everyone with the usual numbers" in page.text
    assert draft_of(edit(client, page, r0__samples="9")).data["states"][1]["without"] == ["St Mary"]
    renamed = edit(client, page, r2__name="Mary")
    assert renamed.status_code == 422
    assert "St Mary" in unescape(renamed.text)


def test_the_agreement_follows_only_a_complete_table(client: TestClient) -> None:
    page = client.post("/new", data={"way": "example"})
    assert "/design" in str(edit(client, page, action="design").url)
    assert "/members" in str(edit(client, page, r0__valuation="", action="design").url)


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names(client: TestClient, name: str) -> None:
    page = client.post("/new", data={"way": "empty"})
    saved = edit(
        client,
        page,
        name=name,
        r0__name=name,
        r0__samples="5",
        r0__valuation="6",
        r0__cost_per_sample="7",
    )
    assert saved.status_code == 200
    assert draft_of(saved).consortium.names == (name,)
    assert fields(saved.text)["r0-name"] == name
    assert "<script>alert" not in saved.text
    assert "<img" not in saved.text
    place = str(saved.url.path).removesuffix("members")
    for file in ("consortium.toml", "members.csv"):
        answer = client.get(place + file)
        header = answer.headers["content-disposition"]
        assert header.isascii()
        assert "\n" not in header
    cell = list(csv.reader(io.StringIO(answer.content.decode("utf-8-sig"))))[1][0]
    assert cell[0] not in "=+-@"
    assert read_clients(answer.content).table.names == [name]  # type: ignore[union-attr]


def test_control_characters_are_refused(client: TestClient) -> None:
    page = client.post("/new", data={"way": "example"})
    for name in ("St\u202eMary", "St\x07Mary"):
        wrong = edit(client, page, r2__name=name)
        assert problems(wrong.text) == ["must be one line of printable text"]


@pytest.mark.slow
def test_a_hundred_members(client: TestClient) -> None:
    rows = "".join(f"Clinic {n};{n + 1}000;{n + 1}00000;0,00{n + 10}\n" for n in range(100))
    page = paste(client, "name;samples;value;cost per sample\n" + rows)
    saved = edit(client, page, r99__samples="5")
    assert saved.status_code == 200
    assert numbers(saved, "samples")[98:] == [99_000, 5]
    assert draft_of(saved).consortium.size == 100
    assert draft_of(saved).travels


# --- Downloads -----------------------------------------------------------------------------


def test_the_file_is_the_exact_text(client: TestClient) -> None:
    draft = Draft(example_text().replace("Breast", "Brüste/«"))
    answer = client.get(f"/w/{draft.packed}/consortium.toml")
    assert answer.text == draft.text
    assert "filename*=UTF-8''Br%C3%BCste" in answer.headers["content-disposition"]


def test_the_table_can_be_read_again(client: TestClient) -> None:
    text = example_text().replace("860_000 ", "[800_000, 900_000]").replace("0.0042", "450.123")
    draft = Draft(text)
    answer = client.get(f"/w/{draft.packed}/members.csv")
    page = upload(client, "members.csv", answer.content)
    assert page.status_code == 200
    before, after = draft.consortium, draft_of(page).consortium
    for field in ("names", "samples", "valuation", "cost_per_sample", "communication_cost"):
        assert list(getattr(after, field)) == list(getattr(before, field)), field


# --- For programs --------------------------------------------------------------------------


def test_the_api_says_what_was_read(client: TestClient) -> None:
    content = base64.b64encode(DOUBT.encode("cp1252")).decode()
    answer = client.post("/api/clients", json={"content": content, "filename": "k.csv"}).json()
    assert answer["clients"][1]["numbers"]["samples"] == {"value": 7, "low": None, "high": None}
    assert answer["problems"][0]["field"] == "samples"
    assert answer["questions"][0]["choices"][0]["answer"] == "thousands"
    again = {"text": DOUBT, "answers": {"dot": "thousands"}}
    answer = client.post("/api/clients", json=again).json()
    assert answer["problems"] == answer["questions"] == []


@pytest.mark.parametrize(
    "wrong",
    [
        {"content": "%"},
        {"text": "a", "content": "YQ=="},
        {"answers": {"dot": "x"}},
        {"other": 1},
        {"text": "\ud800"},
    ],
)
def test_the_api_refuses(client: TestClient, wrong: dict[str, Any]) -> None:
    body = json.dumps(wrong).encode()
    answer = client.post("/api/clients", content=body, headers={"content-type": "application/json"})
    assert answer.status_code == 422
    assert answer.json()["problems"]


# --- Round trips ---------------------------------------------------------------------------

NAMES = st.text(st.characters(exclude_categories=["C", "Z"]), min_size=1, max_size=20)
AMOUNTS = st.floats(1e-6, 1e12).map(lambda value: float(f"{value:.12g}"))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::fedaccord.FileNote")  # any numbers, also unlikely ones
@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(NAMES, st.integers(1, 10**9), AMOUNTS, AMOUNTS, st.floats(0, 0.99)),
        min_size=1,
        max_size=5,
        unique_by=lambda row: row[0],
    )
)
def test_table_to_file_to_table(rows: list[tuple[Any, ...]]) -> None:
    blank = Draft("rounds = 5\ndiscount_factor = 0.5 # half\n")
    columns = ("name", "samples", "valuation", "cost_per_sample", "discount_factor")
    typed = [
        FormRow(None, {column: as_cell(value) for column, value in zip(columns, row, strict=True)})
        for row in rows
    ]
    read = read_form(blank, Form({"rounds": "5", "discount_factor": "0.5"}, typed))
    names = [row.text("name") for row in typed]
    if read.draft is None:  # a name that means a sum, or that Unicode takes for another one
        assert all(place.field == "name" for place in read.problems), read.problems
        return
    form = form_of(read.draft)
    for before, after in zip(typed, form.rows, strict=True):
        for column in COLUMNS[1:]:
            assert before.text(column) == after.text(column)
    assert len(names) == len(form.rows)
    again = read_form(read.draft, form)
    assert again.draft == read.draft


def test_a_table_pasted_below_an_empty_one(client: TestClient) -> None:
    page = client.post("/new", data={"way": "empty"})
    filled = edit(client, page, text="name;samples\nA;5\n", action="paste")
    assert numbers(filled, "samples") == [5]
    assert edit(client, page).status_code == 422


def test_problems_have_places() -> None:
    read = read_form(Draft("rounds = 5\n"), Form({"rounds": "x"}, [FormRow(None, {"name": ""})]))
    assert Place(-1, "rounds") in read.problems


# --- Anything at all -----------------------------------------------------------------------

CELLS = st.one_of(
    st.sampled_from(
        [
            *("", "42.000", "1,5", "97", "97 %", "5 to 8", "600 ± 30 %", "3 €", "4 $", "-1", "nan"),
            *("1e400", "0,000", "1.2.3", "total", "unknown", "\t", '"', "about 5", "10-5", "5 %"),
        ]
    ),
    st.text(max_size=12),
)
STRANGE = [
    "clients = 5\n",
    "clients = [1, 2]\n",
    'clients = [{ name = 5, samples = "x", valuation = true }]\n',
    'name = 5\nrounds = true\nslot = 3\ncurrency = [1]\n[[clients]]\nname = ["a"]\n',
    "[[clients]]\nsamples = { low = 5 }\nvaluation = [1, 2, 3, 4]\nclass = 3\ncpu = 7\n",
    '[clients]\nname = "A"\n',
    "rounds = 99999999999999999999999\n[[clients]]\nsamples = 1e400\n",
    "discount_factor = 1979-05-27\n[[clients]]\nvaluation = 07:32:00\n",
    '[law]\nkind = 5\n[[clients]]\nname = "A"\nlaw = 3\n',
    "states = 5\ntransitions = 6\n[[clients]]\nname = 'A'\n",
    '[[clients]]\nname = "A"\n[law]\nkind = "paper"\n[[clients]]\nname = "B"\n',
]


@pytest.mark.slow
@settings(max_examples=80, deadline=None)
@given(
    st.dictionaries(st.sampled_from(COLUMNS), CELLS),
    st.dictionaries(st.sampled_from(SHARED), CELLS),
)
def test_no_cell_breaks_the_page(cells: dict[str, str], shared: dict[str, str]) -> None:
    draft = Draft(example_text())
    form = form_of(draft)
    rows = [replace(form.rows[0], cells={**form.rows[0].cells, **cells}), *form.rows[1:]]
    typed = Form({**form.shared, **shared}, [*rows, FormRow(None, cells)])
    read = read_form(draft, typed)
    assert (read.draft is None) == bool(read.problems or read.others)
    for choice in ("thousands", "decimal"):
        answers = {"dot": choice, "comma": choice, "percent": "yes", "sums": "yes"}
        again = read_form(draft, answered(draft, typed, answers))
        assert {question.key for question in again.questions} <= {"sums"}


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(CELLS, max_size=6), max_size=6), st.sampled_from("\t;,|"))
def test_no_paste_breaks_the_page(rows: list[list[str]], separator: str) -> None:
    client = TestClient(create_workshop(), base_url=HERE)
    body = "\n".join(separator.join(row) for row in rows)
    for head in ("", "name\tsamples\tvalue\tcost per sample\tdelta\n".replace("\t", separator)):
        assert paste(client, head + body).status_code in (200, 422)
    assert upload(client, "x", (head + body).encode("utf-16")).status_code in (200, 422)


@pytest.mark.parametrize("text", STRANGE)
def test_strange_files(client: TestClient, text: str) -> None:
    place = f"/w/{Draft(text).packed}/"
    page = client.get(place + "members")
    assert page.status_code in (200, 422)
    if page.status_code == 200:
        assert edit(client, page).status_code in (200, 422)
        changed = edit(client, page, r0__name="New", r0__samples="5", rounds="7", slot="")
        assert changed.status_code in (200, 422)
    for file in ("consortium.toml", "members.csv"):
        assert client.get(place + file).status_code in (200, 422)
    assert paste(client, text).status_code in (200, 422)


# --- What is set for the agreement stays ---------------------------------------------------------

SET = "?punishment=reversion&margin=0.05"


def test_the_table_passes_on_what_is_set(client: TestClient) -> None:
    page = client.get(f"/w/{Draft(example_text()).packed}/members{SET}")
    assert f'/design{SET.replace("&", "&amp;")}"' in page.text
    fields = _Inputs(page.text).fields | {"r0-samples": "17 000"}
    action = unescape(re.findall(r'<form method="post" action="([^"]+)"', page.text)[0])
    for button, leads in (("save", f"members{SET}&saved=yes"), ("design", f"design{SET}")):
        sent = client.post(action, data=fields | {"action": button}, follow_redirects=False)
        assert sent.headers["location"].endswith(f"/{leads}"), button


def test_a_what_if_goes_with_the_member_that_has_another_number(client: TestClient) -> None:
    action = f"/w/{Draft(example_text()).packed}/members{SET}&without=4"
    fields = _Inputs(client.get(action).text).fields
    fewer = {key: value for key, value in fields.items() if not key.startswith("r0-")}
    sent = client.post(action, data=fewer | {"action": "design"}, follow_redirects=False)
    assert sent.headers["location"].endswith(f"/design{SET}")


@pytest.mark.parametrize("page", ["interview", "compare", "train", "consortium.toml"])
def test_one_can_save_and_go_on(client: TestClient, page: str) -> None:
    action = f"/w/{Draft(example_text()).packed}/members"
    fields = _Inputs(client.get(action).text).fields | {"r0-samples": "17 000", "action": page}
    sent = client.post(action, data=fields, follow_redirects=False)
    assert sent.headers["location"].endswith(f"/{page}")
    changed = unpack(sent.headers["location"].split("/")[2])
    assert changed.data["clients"][0]["samples"] == 17_000


def test_saving_leads_nowhere_else(client: TestClient) -> None:
    action = f"/w/{Draft(example_text()).packed}/members"
    fields = _Inputs(client.get(action).text).fields
    for page in ("//elsewhere.example", "../../api/openapi.json", "design?margin=x"):
        sent = client.post(action, data=fields | {"action": page}, follow_redirects=False)
        assert sent.headers["location"].endswith("/members?saved=yes"), page


INCOMPLETE = 'rounds = 5\ndiscount_factor = 0.9\n[[clients]]\nname = "North"\nsamples = 10\n'


@pytest.mark.parametrize(
    "page",
    [
        *("design", "compare", "train", "more", "ways-out", "print", "report.html"),
        *("profile.csv", "member/1", "member/1/sheet.html"),
    ],
)
def test_pages_that_need_all_numbers_lead_to_the_table(client: TestClient, page: str) -> None:
    place = f"/w/{Draft(INCOMPLETE).packed}"
    found = client.get(f"{place}/{page}{SET}", follow_redirects=False)
    assert found.status_code == 303
    assert found.headers["location"] == f"{place}/members{SET}"


def test_pages_about_mistakes_keep_the_draft(client: TestClient) -> None:
    place = f"/w/{Draft(example_text()).packed}"
    lost = client.get(f"{place}/member/9{SET}")
    assert lost.status_code == 404
    back = f'<a href="{place}/members{SET.replace("&", "&amp;")}">Back to the members</a>'
    assert back in lost.text
    broken = client.get(f"/w/{Draft('clients = 5').packed}/members")
    assert broken.status_code == 422
    assert '<a href="/">Back to the start</a>' in broken.text


def test_a_file_keeps_its_name_in_a_message(client: TestClient) -> None:
    named = {"file": ("ref.toml", b'clients = "members.csv"\n')}
    refused = client.post("/new", data={"way": "upload"}, files=named)
    assert "<p>ref.toml: clients: takes its members from the file" in unescape(refused.text)


# --- What is wrong in a file that was uploaded ----------------------------------------------


def file_with(*, top: str = "", member: str = "") -> bytes:
    """A consortium file of two members; what is given replaces the same keys."""

    def lines(usual: dict[str, str], given: str) -> str:
        own = dict(line.split(" = ", 1) for line in given.splitlines())
        return "".join(f"{key} = {value}\n" for key, value in (usual | own).items())

    numbers = {"valuation": "700_000", "cost_per_sample": "0.004", "samples": "20_000"}
    head = lines({"rounds": "50", "discount_factor": "0.9"}, top)
    first = lines({"name": '"North"'} | numbers, member)
    second = lines({"name": '"South"'} | numbers, "")
    return f"{head}\n[[clients]]\n{first}\n[[clients]]\n{second}".encode()


@pytest.mark.parametrize(
    ("wrong", "cell", "answer", "said"),
    [
        ("samples = 42.000", "r0-samples", "dot=thousands", 42_000),
        ("samples = 42.000", "r0-samples", "dot=decimal", 42),
        ("valuation = 350.000", "r0-valuation", "dot=thousands", 350_000),
        ("discount_factor = 97", "r0-discount_factor", "percent=yes", 0.97),
        ("discount_factor = 97", "discount_factor", "percent=yes", 0.97),
        ("rounds = 50.000", "rounds", "dot=decimal", 50),
    ],
)
def test_an_uploaded_file_is_asked_about_as_a_table_is(
    client: TestClient, wrong: str, cell: str, answer: str, said: float
) -> None:
    of_member = cell.startswith("r0-")
    content = file_with(member=wrong) if of_member else file_with(top=wrong)
    page = upload(client, "c.toml", content)
    assert page.status_code == 200
    assert fields(page.text)[cell] == wrong.split(" = ")[1]
    assert len(questions(page.text)) == len(problems(page.text)) == 1
    key, chosen = answer.split("=")
    saved = edit(client, page, **{f"answer-{key}": chosen})
    assert saved.url.query == b"saved=yes"
    data = draft_of(saved).data
    assert (data["clients"][0] if of_member else data)[cell.removeprefix("r0-")] == said
    assert draft_of(saved).is_complete


def test_what_an_answer_replaces_can_be_typed_as_well(client: TestClient) -> None:
    page = upload(client, "c.toml", file_with(member="samples = 42.000"))
    again = edit(client, page)
    assert again.status_code == 422
    assert len(questions(again.text)) == 1
    assert numbers(edit(client, again, r0__samples="42"), "samples") == [42, 20_000]


def test_a_value_of_the_wrong_kind_is_taken_as_it_stands_in_its_cell(client: TestClient) -> None:
    page = upload(client, "c.toml", file_with(top='rounds = "50"', member='samples = "20_000"'))
    assert len(problems(page.text)) == 2
    assert draft_of(edit(client, page)).is_complete


def test_unknown_keys_can_be_left_out(client: TestClient) -> None:
    content = file_with(top="foo = 3 # what is it?\nname = 'Two'", member='samplse = 4\nbar = "x"')
    page = upload(client, "c.toml", content)
    assert questions(page.text) == [
        "The file has keys that mean nothing here: 'foo', 'samplse', 'bar'. Leave them out?"
    ]
    assert "choose one of name, rounds, discount_factor, server_fee" in page.text
    assert "leaves, growth, clients, states" in page.text
    assert "samplse: unknown key; did you mean &#39;samples&#39;?" in page.text
    refused = edit(client, page, r0__samples="30 000")
    assert refused.status_code == 422
    assert questions(refused.text) == questions(page.text)
    saved = edit(client, refused, answer__unknown="yes")
    text = draft_of(saved).text
    assert draft_of(saved).is_complete
    assert not {"foo", "samplse", "bar"} & set(re.findall(r"\w+", text))
    assert numbers(saved, "samples") == [30_000, 20_000]


def test_unknown_keys_inside_tables_can_be_left_out_too(client: TestClient) -> None:
    law = '\n[law]\nkind = "power"\nscale = 1.0\nexponent = 0.5\nx = 1\n'
    page = upload(client, "c.toml", file_with() + law.encode())
    assert questions(page.text) == [
        "The file has a key that means nothing here: 'x'. Leave it out?"
    ]
    saved = edit(client, page, answer__unknown="yes")
    assert draft_of(saved).is_complete
    assert draft_of(saved).data["law"]["exponent"] == 0.5


def test_what_the_table_does_not_have_is_corrected_in_the_file(client: TestClient) -> None:
    page = upload(client, "c.toml", file_with(top="growth = -1"))
    assert "growth: must be" in page.text
    assert "correct it in the file and upload the file again" in page.text
    page = upload(client, "c.toml", file_with(member='class = "x"'))
    assert problems(page.text)[0].startswith("class: unknown class 'x'; there are no [classes]; ")
    assert "correct it in the file and upload the file again" in page.text


# --- Numbers that are possible and unlikely ------------------------------------------------


@pytest.mark.filterwarnings("ignore::fedaccord.FileNote")
def test_an_unlikely_number_is_asked_about_until_somebody_is_sure(client: TestClient) -> None:
    page = upload(client, "c.toml", file_with(member="valuation = 7_000"))
    assert len(questions(page.text)) == 1
    assert "The valuation of North is 7000" in page.text
    assert draft_of(page).is_complete  # nothing is refused
    again = edit(client, page)
    assert again.url.query == b"saved=yes"
    assert len(questions(again.text)) == 1
    sure = edit(client, again, answer__valuation="yes")
    assert questions(sure.text) == []
    assert draft_of(sure).data["sure"] == ["valuation"]
    assert draft_of(sure).data["clients"][0]["valuation"] == 7_000

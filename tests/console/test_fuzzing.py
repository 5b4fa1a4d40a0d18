"""Any query, any address, any form: pages answer with a page, never with a broken one.

`--hypothesis-profile=explore` draws new ones, and more of them.
"""

import base64
import zlib
from collections.abc import Iterator
from urllib.parse import quote

import pytest
from fastapi import FastAPI
from fastapi.routing import _IncludedRouter
from fastapi.testclient import TestClient
from hypothesis import example as case
from hypothesis import given, settings
from hypothesis import strategies as st

from fedaccord.console.workshop.app import create_workshop
from fedaccord.console.workshop.draft import LARGEST, Draft
from fedaccord.console.workshop.settings import Settings
from tests.console.drafts import example, some
from tests.console.members import enter
from tests.console.room_story import close_rooms, created

MEGABYTE = 1 << 20
HERE = "http://127.0.0.1:8321"
CLIENT = TestClient(create_workshop(), base_url=HERE, raise_server_exceptions=False)
PAGES = ("members", "interview", "design", "more", "ways-out", "compare", "print", "train")
FILES = ("report.html", "profile.csv", "consortium.toml", "members.csv", "member/1/sheet.html")
ALL = (*PAGES, *FILES, "member/1", "member/2")
SMALL = some(["A", "B", "C"])

NUMBERS = st.one_of(
    st.floats(0, 1).map(str),
    st.floats().map(str),
    st.integers(-2, 12).map(str),
    st.integers().map(str),
    st.sampled_from(
        ["1e308", "5e-324", "0.9999999999999999", "-0.0", "nan", "१२", "1_0", "for-ever"]
    ),
)
CHOICES = st.sampled_from(
    [
        "individual",
        "uniform",
        "most-data",
        "fair share",
        "suspension",
        "reversion",
        "for-ever",
        "yes",
        "no",
        "",
    ]
)
TEXTS = st.text(st.characters(codec="utf-8"), max_size=40)
VALUES = st.one_of(NUMBERS, CHOICES, TEXTS)
NAMES = st.sampled_from([*Settings.model_fields, "own_patience", "who", "more", "x"])


def answers(path: str, **query: str) -> None:
    """The page is there, or it says what is wrong with the question."""
    answer = CLIENT.get(path, params=query or None)
    assert answer.status_code in (200, 404, 422), f"{path} {query}: {answer.text[-500:]}"
    assert "not your fault" not in answer.text


@pytest.mark.slow
@given(page=st.sampled_from(ALL), query=st.dictionaries(NAMES, VALUES, max_size=4))
@case(page="design", query={"discount_factor": "0.9999999999999999"})
@case(page="design", query={"joins": "1", "joins_samples": "1e308", "doubles": "1"})
@case(page="more", query={"punishment_slots": "9007199254740992", "audit_rate": "5e-324"})
def test_any_settings(page: str, query: dict[str, str]) -> None:
    answers(f"/w/{SMALL.packed}/{page}", **query)


@given(page=st.sampled_from(ALL), name=NAMES, value=NUMBERS)
def test_any_number_in_each_setting(page: str, name: str, value: str) -> None:
    answers(f"/w/{SMALL.packed}/{page}", **{name: value})


@given(query=st.dictionaries(NAMES | TEXTS, VALUES, max_size=6))
def test_any_answers_of_the_interview(query: dict[str, str]) -> None:
    answers(f"/w/{SMALL.packed}/interview", **query)


BOUNDARY = b"--x\r\n"
DISPOSITION = b'Content-Disposition: form-data; name="'
PARTS = st.lists(
    st.one_of(
        st.binary(max_size=20),
        st.sampled_from(
            [
                BOUNDARY,
                b"--x--",
                b"\r\n\r\n",
                DISPOSITION + b'way"',
                DISPOSITION + b'file"; filename="x.csv"',
                DISPOSITION + b'\xff"',
                b"Content-Type: text/plain; charset=utf-16",
                b"way=upload&",
                b"text=%00%ff&",
                b"r0-name=x&",
                b"{",
            ]
        ),
    ),
    max_size=8,
).map(b"".join)
KINDS = st.sampled_from(
    [
        "multipart/form-data; boundary=x",
        "multipart/form-data; boundary=",
        "multipart/form-data",
        "application/x-www-form-urlencoded",
        "application/json",
        "text/plain; charset=x",
        "",
    ]
)


def posts_of(app: FastAPI) -> list[str]:
    """The addresses of all pages that take a form, but for the way out."""
    return sorted(
        str(route.path)
        for included in app.routes
        if isinstance(included, _IncludedRouter)
        for route in included.effective_route_contexts()
        if "POST" in (route.methods or set())
        and not str(route.path).startswith(("/api/", "/leave"))
    )


@pytest.fixture(scope="module")
def faces(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[tuple[TestClient, str]]]:
    """Each address that takes a form, with a browser that may send it one."""
    folder = tmp_path_factory.mktemp("faces")
    story, member = created(folder), enter(folder / "mary")
    browsers = [CLIENT, member, story.http, story.coordinator]
    yield [(one, path) for one in browsers for path in posts_of(one.app)]
    close_rooms()


@pytest.mark.slow
@given(data=st.data(), kind=KINDS, body=PARTS)
@settings(max_examples=200)
def test_any_form(
    faces: list[tuple[TestClient, str]], data: st.DataObject, kind: str, body: bytes
) -> None:
    """Most of them are neither whole nor forms."""
    client, path = data.draw(st.sampled_from(faces))
    place = path.replace("{packed}", SMALL.packed)
    answer = client.post(place, content=body, headers={"Content-Type": kind})
    assert answer.status_code < 500, f"{path} {kind} {body!r}: {answer.text[-500:]}"


@pytest.mark.slow
@pytest.mark.parametrize("body", [b"garbage", BOUNDARY + b"\r\n", b""])
def test_a_form_that_is_not_whole(faces: list[tuple[TestClient, str]], body: bytes) -> None:
    kind = {"Content-Type": "multipart/form-data; boundary=x"}
    for client, path in faces:
        answer = client.post(path.replace("{packed}", SMALL.packed), content=body, headers=kind)
        assert answer.status_code < 500, f"{path}: {answer.text[-500:]}"
        assert "not your fault" not in answer.text
    answer = CLIENT.post("/new", content=b"garbage", headers=kind)
    assert answer.status_code == 400
    assert "The form that was sent is not whole, or not a form." in answer.text


def mistreated(packed: str, data: st.DataObject) -> str:
    """An address that was cut, or changed somewhere."""
    at = data.draw(st.integers(0, len(packed)))
    other = data.draw(st.text(st.characters(codec="utf-8"), max_size=3))
    return packed[:at] + other + packed[at + data.draw(st.integers(0, len(packed))) :]


@given(data=st.data(), page=st.sampled_from(ALL))
def test_addresses_that_are_not_whole(data: st.DataObject, page: str) -> None:
    answers(f"/w/{quote(mistreated(example().packed, data), safe='')}/{page}")


@given(content=st.binary(max_size=200) | TEXTS.map(str.encode), page=st.sampled_from(ALL))
@case(content=b'name = "\x00"', page="members")
@case(content=b"clients = 3", page="members")
@case(content=b"[[clients]]\nname = [1]", page="interview")
@case(content=b"clients = [" + b"[" * 500 + b"]" * 500 + b"]", page="members")
def test_addresses_that_hold_anything(content: bytes, page: str) -> None:
    packed = base64.urlsafe_b64encode(zlib.compress(content)).decode().rstrip("=")
    answers(f"/w/{packed}/{page}")


@given(data=st.data(), page=st.sampled_from(ALL))
def test_files_that_were_changed_somewhere(data: st.DataObject, page: str) -> None:
    text = SMALL.text
    at = data.draw(st.integers(0, len(text)))
    put = data.draw(
        st.one_of(TEXTS, NUMBERS, st.sampled_from(["{low = 1}", "[1, 2]", "'unknown'"]))
    )
    draft = Draft(text[:at] + put + text[at + data.draw(st.integers(0, 12)) :])
    answers(f"/w/{draft.packed}/{page}")


FIELDS = ("samples", "valuation", "cost_per_sample", "discount_factor", "quality", "observed")
TOML = st.one_of(
    st.floats().map(repr),
    st.integers().map(str),
    st.sampled_from(["true", "[]", "{}", "'unknown'", "{low = 1, high = 2}"]),
    st.just("{low = 0, likely = 1e300, high = inf}"),
)


@given(field=st.sampled_from([*FIELDS, "class"]), value=TOML, page=st.sampled_from(ALL))
def test_any_number_of_a_member(field: str, value: str, page: str) -> None:
    lines = [line for line in SMALL.text.splitlines() if line.partition(" =")[0] != field]
    at = lines.index("[[clients]]") + 2
    lines.insert(at, f"{field} = {value}")
    answers(f"/w/{Draft(chr(10).join(lines)).packed}/{page}")


@pytest.mark.slow
@pytest.mark.parametrize("megabytes", [LARGEST // MEGABYTE + 1, 800])
def test_a_bomb_does_not_go_off(megabytes: int) -> None:
    making = zlib.compressobj(9)
    parts = [making.compress(b"#" * MEGABYTE) for _ in range(megabytes)]
    bomb = base64.urlsafe_b64encode(b"".join(parts) + making.flush()).decode().rstrip("=")
    for page in ("members", "design"):
        answer = CLIENT.get(f"/w/{bomb[:60_000]}/{page}")
        assert answer.status_code == 404
        assert "not whole" in answer.text


def test_texts_that_python_gives_up_on() -> None:
    deep = "clients = " + "[" * 100_000
    digits = "rounds = " + "9" * 10_000
    table = "a" + ".a" * 20_000 + " = 1"
    for text in (deep, digits, table):
        for page in ("members", "design", "interview", "consortium.toml"):
            answers(f"/w/{Draft(text).packed}/{page}")

"""What every face of the console shares: guards, limits, pages, pictures."""

import hashlib
from importlib import resources
from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from playwright.sync_api import Browser
from starlette.exceptions import HTTPException
from starlette.requests import Request

from fedaccord import plots
from fedaccord.agreement.solve import solve_agreement
from fedaccord.console.web.app import create_app
from fedaccord.console.web.guards import CONTENT_POLICY, Limits
from fedaccord.console.web.pages import Pages, without_styles
from fedaccord.console.web.rates import Rate
from fedaccord.console.workshop.app import create_workshop
from fedaccord.console.workshop.draft import Draft
from fedaccord.files.consortium import example_consortium, example_text
from fedaccord.report.pages import as_svg
from tests.console.browser import check_page, served, visitor
from tests.lies import lie

HERE = "http://127.0.0.1:8321"


@pytest.fixture
def client() -> TestClient:
    return TestClient(create_workshop(), base_url=HERE, raise_server_exceptions=False)


def broken() -> None:
    """What a mistake in a route does."""
    raise RuntimeError("secret detail")


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/", 200),
        ("/no-such-page", 404),
        ("/static/console.css", 200),
        ("/api/openapi.json", 200),
        ("/broken", 500),
        ("/api/broken", 500),
    ],
)
def test_every_answer_has_the_headers(path: str, status: int) -> None:
    app = create_workshop()
    for place in ("/broken", "/api/broken"):
        app.add_api_route(place, broken)
    answer = TestClient(app, base_url=HERE, raise_server_exceptions=False).get(path)
    assert answer.status_code == status
    assert answer.headers["content-security-policy"] == CONTENT_POLICY
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["referrer-policy"] == "same-origin"
    assert "secret detail" not in answer.text


def test_an_error_that_nobody_expected_is_for_the_log(client: TestClient) -> None:
    client.app.add_api_route("/broken", broken)  # type: ignore[attr-defined]
    assert "It is not your fault" in client.get("/broken").text
    with pytest.raises(RuntimeError):  # the server writes it into its log
        TestClient(client.app, base_url=HERE).get("/broken")


def test_nothing_inline_is_allowed() -> None:
    assert "unsafe" not in CONTENT_POLICY
    assert "*" not in CONTENT_POLICY


@lie(
    "another web page",
    "reach a page on this machine under a name of its own that leads here (DNS rebinding)",
    "what is asked of any other host than the page's own is refused",
)
@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "127.0.0.1.evil.example",
        "",
        "[",
        "10.0.0.1",
        "127.0.0.1:99999",
        "127.0.0.1:x",
        "127.0.0.1:-1",
    ],
)
def test_another_host_is_refused(client: TestClient, host: str) -> None:
    assert client.get("/", headers={"host": host}).status_code == 400


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "https://evil.example"},
        {"origin": "null"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
        {"origin": "http://127.0.0.1:1"},
        {"origin": HERE.replace("http:", "https:")},
        {"origin": HERE.removeprefix("http://")},
    ],
)
def test_a_change_from_another_page_is_refused(client: TestClient, headers: dict[str, str]) -> None:
    assert client.post("/no-such-page", headers=headers).status_code == 403


def test_a_change_from_the_own_page_passes(client: TestClient) -> None:
    headers = {"origin": HERE, "sec-fetch-site": "same-origin"}
    assert client.post("/no-such-page", headers=headers).status_code == 404


@pytest.mark.parametrize("secure", [False, True])
def test_the_same_name_without_tls_is_another_page(secure: bool) -> None:
    """Whoever is between can write what a page at http says, and send what it likes from there."""
    app = create_app(
        "t", Pages("fedaccord.console.room"), hosts=["a"], limits=Limits(secure=secure)
    )
    schemes = ("https", "http") if secure else ("http", "https")
    client = TestClient(app, base_url=f"{schemes[0]}://a")
    found = [
        client.post("/static/x", headers={"origin": f"{scheme}://a"}).status_code
        for scheme in schemes
    ]
    assert found == [405, 403]


def test_too_much_is_refused(client: TestClient) -> None:
    answer = client.post("/no-such-page", headers={"content-length": str(10**9)})
    assert answer.status_code == 413
    assert "no more than 8 megabytes are taken at once" in answer.text
    assert '<a href="/">Back to the start</a>' in answer.text
    place = f"/w/{Draft(example_text()).packed}"
    training = client.post(f"{place}/train", headers={"content-length": str(10**9)})
    assert f'<a href="{place}/members">Back to the members</a>' in training.text
    told = client.post("/api/solve", headers={"content-length": str(10**9)})
    assert told.json() == {"problems": ["no more than 8 megabytes are taken at once"]}


def test_an_error_is_a_page_or_json(client: TestClient) -> None:
    assert "There is no such page" in client.get("/nothing").text
    assert client.get("/api/nothing").json() == {"problems": ["Not Found"]}


def test_an_address_of_the_api_names_all_of_its_methods(client: TestClient) -> None:
    answer = client.patch("/api/trainings/x")
    assert answer.status_code == 405
    assert answer.headers["allow"] == "DELETE, GET"


def test_htmx_is_the_published_file() -> None:
    folder = resources.files("fedaccord.console.web") / "static"
    said = (folder / "README.md").read_text("utf-8")
    (file,) = (f for f in Path(str(folder)).iterdir() if f.name.startswith("htmx-4"))
    assert hashlib.sha256(file.read_bytes()).hexdigest() in said


def test_a_picture_needs_no_styles() -> None:
    figure = plots.plot_contributions(solve_agreement(example_consortium()))
    picture = without_styles(as_svg(figure, "picture"))
    assert "style" not in picture
    assert 'fill="' in picture


@pytest.mark.slow
def test_a_browser_shows_the_start(browser: Browser) -> None:
    with served(create_workshop()) as address, visitor(browser) as page:
        page.goto(address)
        check_page(page)


@pytest.mark.parametrize(
    ("name", "value", "status"),
    [
        ("Origin", "http://[", 403),
        ("Origin", "null", 403),
        ("Content-Length", "\u00b2", 413),
        ("Content-Length", "9" * 5_000, 413),
        ("Content-Length", "-1", 413),
    ],
)
def test_odd_headers_are_refused(name: str, value: str, status: int) -> None:
    client = TestClient(create_workshop(), base_url="http://127.0.0.1:8321")
    answer = client.post("/new", headers={name.encode(): value.encode("latin-1")})
    assert answer.status_code == status


def test_whoever_has_many_addresses_is_limited_all_the_same() -> None:
    rate = Rate(attempts=2, seconds=600.0)

    def comes_from(address: str) -> Request:
        return Request({"type": "http", "client": (address, 1), "headers": []})

    rate.check(comes_from("2001:db8:0:7::1"))
    rate.check(comes_from("2001:db8:0:7:ffff::2"))
    with pytest.raises(HTTPException):
        rate.check(comes_from("2001:db8:0:7::3"))
    rate.check(comes_from("2001:db8:0:8::1"))

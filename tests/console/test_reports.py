"""What is taken away: the page to sign, the amounts, mechanisms side by side."""

import codecs
import csv
import io
import re
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

import fedaccord as fa
from fedaccord.console.workshop.app import create_workshop
from tests.cli.conftest import Run, run  # noqa: F401  (a fixture)
from tests.console.drafts import HOSTILE, example, some

HERE = "http://127.0.0.1:8321"


@pytest.fixture(scope="module")
def client() -> TestClient:
    return TestClient(create_workshop(), base_url=HERE)


@pytest.mark.slow
def test_the_report_is_the_one_of_solve(client: TestClient, run: Run) -> None:  # noqa: F811
    draft = example()
    Path("consortium.toml").write_text(draft.text, "utf-8")
    flags = ["--punishment", "reversion", "--report", "report.html"]
    assert run("solve", "consortium.toml", *flags).exit_code == 0
    answer = client.get(f"/w/{draft.packed}/report.html?punishment=reversion")
    assert answer.text == Path("report.html").read_text("utf-8")
    assert answer.headers["content-disposition"] == 'attachment; filename="agreement.html"'


@pytest.mark.slow
def test_the_report_says_what_was_set_here(client: TestClient) -> None:
    shown = client.get(f"/w/{example().packed}/report.html?discount_factor=0.7&without=2").text
    assert "discount_factor = 0.7" in shown
    assert "a what-if of the workshop, not in the file" in shown


@pytest.mark.slow
def test_the_page_to_print_is_in_a_sandbox(client: TestClient) -> None:
    answer = client.get(f"/w/{example().packed}/print")
    policy = answer.headers["content-security-policy"]
    assert policy.startswith("sandbox")
    assert "default-src 'none'" in policy
    assert "script-src" not in policy
    assert "Signatures" in answer.text
    assert "content-disposition" not in answer.headers


def test_the_amounts(client: TestClient, tmp_path: Path) -> None:
    draft = some(HOSTILE)
    answer = client.get(f"/w/{draft.packed}/profile.csv?punishment=reversion")
    assert answer.headers["content-type"].startswith("text/csv")
    assert answer.content.startswith(codecs.BOM_UTF8)  # spreadsheets take it for another encoding
    head, *rows = csv.reader(io.StringIO(answer.content.decode("utf-8-sig")))
    assert head == ["name", "contribution"]
    assert rows[1][0] == "'=HYPERLINK(1)"
    agreed = fa.solve_agreement(draft.consortium, margin=0.01)
    assert [float(row[1]) for row in rows] == agreed.profile.tolist()
    (tmp_path / "profile.csv").write_bytes(answer.content)
    assert (fa.load_profile(tmp_path / "profile.csv", draft.consortium) == agreed.profile).all()


def test_mechanisms_side_by_side(client: TestClient) -> None:
    shown = client.get(f"/w/{example().packed}/compare").text
    for entry in fa.compare(example().consortium).entries:
        assert f'<th scope="row">{entry.name}</th>' in shown
    assert "Whoever slips gets no model" in shown or "whoever slips gets no model" in shown
    assert not re.search(r"<svg[^>]*style=", shown)

"""`fedaccord study`: a page with a slider; mistakes are one sentence."""

from dataclasses import replace
from pathlib import Path

import pytest

from fedaccord.studies.study import MULTIPLES, STUDIES
from tests.cli.conftest import Run


@pytest.mark.slow
@pytest.mark.originals("heart-disease")
def test_the_page_has_a_slider_over_what_errors_cost(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With one way to train instead of five, and without the second preparation."""
    whole = STUDIES["four-hospitals"]
    monkeypatch.setitem(STUDIES, whole.name, replace(whole, ways=whole.ways[1:2], warning=None))
    result = run("study", "four-hospitals", "--seeds", "2", "--out", "page.html")
    assert result.exit_code == 0, result.output
    page = Path("page.html").read_text(encoding="utf-8")
    for heading in ("Who should join", "What they can agree on", "What it is worth in money"):
        assert f"<h2>{heading}</h2>" in page
    slider = page.partition(f'<div class="slider" data-start="{MULTIPLES.index(1.0)}">')[2]
    rows = slider.partition("</table>")[0].partition("<tbody>")[2]
    assert rows.count("<tr>") == len(MULTIPLES)
    assert 'type: "range"' in slider


def test_the_help_names_the_studies_and_shows_no_markup(run: Run) -> None:
    said = run("study", "--help").stdout
    assert "four-hospitals or six-regions" in said
    assert "\\[" not in said


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("five-banks",), "there is no case study called 'five-banks'"),
        (("four-hospitals", "--out", "page.pdf"), "--out: must end in .html or .md"),
        (("four-hospitals", "--seeds", "1"), "--seeds: must be 2 or more"),
    ],
)
def test_mistakes(run: Run, words: tuple[str, ...], message: str) -> None:
    result = run("study", *words)
    assert result.exit_code == 2
    assert message in result.stderr

"""The page of the evaluation is current, and the HTML page has it all."""

import hashlib
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fedaccord.cli.reproduction import trained_sections
from fedaccord.experiments.claims import Claim
from fedaccord.experiments.evaluation import Section, section_names, section_of, summary
from fedaccord.experiments.page import render_markdown, render_page
from fedaccord.experiments.sweep import solve_sweep
from fedaccord.experiments.table import Table

PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "evaluation.md"


def every_section() -> list[Section]:
    return [section_of(name) for name in section_names()]


@pytest.fixture(scope="module")
def sections() -> list[Section]:
    return every_section()


def test_the_page_in_the_docs_is_current(sections: list[Section]) -> None:
    """If it is not: `fedaccord reproduce claims --out docs/explanation`."""
    trained = trained_sections(PAGE.parent)
    assert [section.name for section in trained] == ["accuracy", "law"]
    assert PAGE.read_text(encoding="utf-8") == render_markdown(sections, trained)


def test_rounding_decides_nothing(sections: list[Section], monkeypatch: pytest.MonkeyPatch) -> None:
    """Another processor rounds otherwise, and must find the same page."""
    chance = np.random.default_rng(0)

    def rounded_otherwise(*setting: Any) -> Table:
        table = solve_sweep(*setting)
        amounts = {
            name: x for name, x in table.columns.items() if name.endswith(("total", "ratio"))
        }
        noise = 1e-13 * chance.uniform(-1.0, 1.0, (len(amounts), len(table)))
        rounded = {
            name: x * (1.0 + own) for (name, x), own in zip(amounts.items(), noise, strict=True)
        }
        return Table({**table.columns, **rounded})

    monkeypatch.setattr("fedaccord.experiments.sweep._kept", rounded_otherwise)
    assert render_markdown(every_section(), []) == render_markdown(sections, [])


@pytest.mark.parametrize("name", ["accuracy", "law"])
def test_what_was_trained_is_in_the_docs_as_the_command_wrote_it(name: str) -> None:
    written = json.loads((PAGE.parent / f"{name}.json").read_text(encoding="utf-8"))["sha256"]
    assert list(written) == [f"{name}.csv", f"{name}.svg", f"{name}.png"]
    for file in (f"{name}.csv", f"{name}.png"):  # the page shows no SVG, so none is kept
        content = (PAGE.parent / file).read_bytes()
        assert hashlib.sha256(content).hexdigest() == written[file]


def verdict(sections: list[Section], figure: str, start: str) -> str:
    [section] = [section for section in sections if section.name == figure]
    [claim] = [claim for claim in section.claims if claim.statement.startswith(start)]
    return claim.verdict


SAME_RIDERS = "Without a critical client, under the same number of free riders,"
KNOWN = [
    ("fig3", "N = 200: the critical client", "holds"),
    ("fig3", "Free riders are reduced", "holds"),
    ("fig4", "N = 181: training data at", "holds"),
    ("fig4", "N = 181: training data under", "holds within rounding"),
    ("fig4", "Training data is increased", "holds within rounding"),
    ("fig4", f"{SAME_RIDERS} converted clients choose less", "does not hold"),
    ("fig6", f"{SAME_RIDERS} converted clients choose less", "does not hold"),
    ("fig6", f"{SAME_RIDERS} the data ratio decreases", "holds"),
    ("fig5", "Free riders are reduced", "holds"),
    ("fig5", "When D is small there are few", "holds"),
    ("fig6", "Training data is increased", "holds within rounding"),
    ("fig7", "Under contract design only 20 %", "holds"),
    ("fig8", "A smaller G leads to a smaller threshold", "does not hold"),
    ("fig9", "Under the agreement the number", "does not hold"),
    ("fig10", "It is constant from", "holds"),
    ("fig11", "Free riders are reduced", "holds"),
    ("fig11", "When the critical client's contribution reaches 0", "holds"),
    ("fig12", "With the same number of contributors that give all, the data ratio", "holds"),
    ("fig12", "With the same number of contributors that give all, conv", "does not hold"),
    ("fig12", "With a critical client, the total data", "does not hold"),
    ("fig12", f"{SAME_RIDERS} converted clients choose less", "holds"),
    ("fig12", "Training data is increased", "holds within rounding"),
    ("fig14", "Training data is increased", "holds within rounding"),
    ("fig15", "The discount factor does not", "does not hold"),
    ("fig16", "The data ratio is then", "does not hold"),
    ("fig18", "When the model is good enough, a new client", "holds"),
    ("fig22", "Under contract design", "holds"),
]


@pytest.mark.parametrize(("figure", "start", "expected"), KNOWN)
def test_what_is_known_of_the_papers_numbers(
    sections: list[Section], figure: str, start: str, expected: str
) -> None:
    assert verdict(sections, figure, start) == expected


def test_what_does_not_hold_says_why(sections: list[Section]) -> None:
    claims = [claim for section in sections for claim in section.claims]
    assert len(claims) > 90
    for claim in claims:
        assert claim.ours
        assert claim.why or claim.verdict == "holds"


def test_a_summary_counts() -> None:
    claims = [Claim("", "", "", "holds"), Claim("", "", "", "does not hold", "so")]
    assert "holds 1, holds within rounding 0, does not hold 1." in summary(claims)


def test_the_html_page_stands_alone(sections: list[Section]) -> None:
    page = render_page(sections, [], {"fig4": b"<svg/>"}, ["law is left out & why"])
    assert page.count('src="data:image/svg+xml;base64,') == 1
    assert not re.search(r'(src|href)="https?:', page)
    for section in sections:
        assert f'<section id="{section.name}">' in page
    assert "law is left out &amp; why" in page

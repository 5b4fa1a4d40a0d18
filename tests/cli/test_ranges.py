"""Ranges on the command line: solve and certify over them, and what they cost."""

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Run


@pytest.fixture
def ranged(run: Run) -> Path:
    """The example with one valuation that is a range."""
    run("init", "c.toml")
    path = Path("c.toml")
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("valuation = 360_000", "valuation = [200_000, 520_000]"), "utf-8")
    return path


@pytest.mark.slow
def test_solve_uses_the_ranges_of_the_file(run: Run, ranged: Path) -> None:
    result = run("solve", str(ranged))
    assert result.exit_code == 0
    words = " ".join(result.stdout.split())
    assert "It holds for every combination of numbers within the ranges" in words
    assert "Closest to slipping is Lakeside Clinic" in words
    solved = json.loads(run("solve", str(ranged), "--format", "json").stdout)
    assert solved["agreement"]["robust"] is True
    assert solved["certificate"]["over_ranges"]["holds"] is True
    stated = json.loads(run("solve", str(ranged), "--as-stated", "--format", "json").stdout)
    assert stated["agreement"]["robust"] is False
    assert stated["certificate"]["over_ranges"] is None


@pytest.mark.slow
def test_within_puts_a_range_around_every_number(run: Run) -> None:
    solved = json.loads(run("solve", "--within", "30%", "--format", "json").stdout)
    assert solved["agreement"]["total"] == pytest.approx(985_919, abs=0.51)
    doubled = json.loads(run("solve", "--within", "x2", "--format", "json").stdout)
    assert doubled["agreement"]["total"] == pytest.approx(966_986, abs=0.51)
    both = ("--within", "10 %", "--within", "discount-factor=12.5%")
    patient = json.loads(run("solve", *both, "--format", "json").stdout)
    assert patient["agreement"]["total"] == pytest.approx(990_261, abs=0.51)
    none = run("solve", "--within", "x4")
    assert none.exit_code == 0
    assert "within the ranges" in " ".join(none.stdout.split())


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--within", "300%"), "--within: must be a percentage below 100"),
        (("--within", "lots"), "--within: must be a percentage below 100"),
        (("--within", "sample=10%"), "--within sample=10%: did you mean 'samples'?"),
        (("--within", "samples="), "--within: must be a percentage below 100"),
    ],
)
def test_wrong_widths(run: Run, words: tuple[str, ...], message: str) -> None:
    result = run("solve", *words)
    assert result.exit_code == 2
    assert result.stderr.startswith(f"Error: {message}")
    assert len(result.stderr.splitlines()) == 1


@pytest.mark.slow
def test_ranges_of_the_file_and_of_the_command_line_are_not_mixed(run: Run, ranged: Path) -> None:
    result = run("solve", str(ranged), "--within", "10%")
    assert result.exit_code == 2
    assert "--as-stated would leave them out" in result.stderr
    assert run("solve", str(ranged), "--as-stated", "--within", "10%").exit_code == 0


@pytest.mark.slow
def test_certify_judges_a_profile_over_the_ranges(run: Run, ranged: Path) -> None:
    run("solve", str(ranged), "--as-stated", "--profile-out", "stated.csv")
    assert run("certify", str(ranged), "stated.csv").exit_code == 0
    wide = ranged.read_text(encoding="utf-8").replace("[200_000, 520_000]", "[20_000, 700_000]")
    ranged.write_text(wide, encoding="utf-8")
    refuted = run("certify", str(ranged), "stated.csv")
    assert refuted.exit_code == 1
    words = " ".join(refuted.stdout.split())
    assert "but not for all within their ranges, Lakeside Clinic first of all" in words
    assert run("certify", str(ranged), "stated.csv", "--as-stated").exit_code == 0


@pytest.mark.slow
def test_a_robust_agreement_can_be_read_back(run: Run, ranged: Path) -> None:
    Path("a.json").write_text(run("solve", str(ranged), "--format", "json").stdout, "utf-8")
    assert run("certify", str(ranged), "a.json").exit_code == 0
    refused = run("certify", str(ranged), "a.json", "--as-stated")
    assert refused.exit_code == 2
    assert "ranges of numbers or a measured law of the loss" in refused.stderr


@pytest.mark.slow
def test_what_ranges_cost(run: Run) -> None:
    run("init", "c.toml")
    words = ("ranges", "c.toml", "--punishment", "reversion", "--margin", "0", "--within", "10%")
    result = run(*words, "--picture", "costs.png")
    assert result.exit_code == 0
    assert "102,133" in result.stdout
    assert "Find out the numbers of St Mary first" in " ".join(result.stdout.split())
    assert Path("costs.png").read_bytes().startswith(b"\x89PNG")
    costs = json.loads(run(*words, "--format", "json").stdout)
    assert costs["find_out_first"] == "St Mary"
    assert [row["exists"] for row in costs["widths"]][:6] == [True] * 4 + [False] * 2
    assert run("ranges", "c.toml", "--picture", "costs.gif").exit_code == 2


@pytest.mark.slow
def test_the_page_says_what_holds_over_the_ranges(run: Run, ranged: Path) -> None:
    run("solve", str(ranged), "--report", "page.html")
    page = Path("page.html").read_text(encoding="utf-8")
    assert "If the numbers are not exactly as stated" in page
    assert "200,000 to 520,000" in page

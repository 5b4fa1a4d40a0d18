"""Audits on the command line: rates, budgets, what is needed, and what is refused."""

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Run


@pytest.fixture
def file(run: Run) -> str:
    run("init", "c.toml")
    return "c.toml"


def test_a_rate_for_all_and_for_one(run: Run) -> None:
    solved = json.loads(run("solve", "--audit-rate", "0.1", "--format", "json").stdout)
    assert solved["agreement"]["total"] == pytest.approx(974_745, abs=0.5)
    assert solved["agreement"]["monitoring"] == {
        "audit": 0.1,
        "samples_checked": None,
        "false_alarm": 0.0,
        "seen_late": 1,
    }
    rates = [client["audit_probability"] for client in solved["agreement"]["clients"]]
    assert max(rates) == pytest.approx(0.1)
    one = ("--clients", "3", "--audit-rate", "0.5", "--audit-rate", "client-2=0.25")
    solved = json.loads(run("solve", *one, "--format", "json").stdout)
    assert solved["agreement"]["monitoring"]["audit"] == [0.5, 0.25, 0.5]


@pytest.mark.slow
def test_a_budget_of_audits(run: Run, file: str) -> None:
    options = ("--punishment", "reversion", "--margin", "0", "--audits-per-slot", "1")
    solved = json.loads(run("solve", file, *options, "--format", "json").stdout)
    assert solved["agreement"]["total"] == pytest.approx(91_898, abs=0.5)
    assert sum(solved["agreement"]["monitoring"]["audit"]) == pytest.approx(1.0)
    assert solved["certificate"]["holds"] is True
    dear = ("--audit-cost", "2", "--audit-cost", "Riverside=4")
    dearer = json.loads(run("solve", file, *options, *dear, "--format", "json").stdout)
    assert dearer["agreement"]["total"] < solved["agreement"]["total"]


@pytest.mark.slow
def test_solve_says_how_few_audits_would_do(run: Run, file: str) -> None:
    words = " ".join(run("solve", file, "--for-ever", "--report", "r.html").stdout.split())
    assert "With one audit in 3 slots that finds any slip, shared out as needed" in words
    assert "nobody gains by slipping." in words
    assert "you could afford audits that miss 88 % of the slips." in words
    page = Path("r.html").read_text(encoding="utf-8")
    assert "How slips are seen" in page
    assert "With one audit in 3 slots" in page


@pytest.mark.slow
def test_certify_takes_a_whole_agreement_or_options(run: Run, file: str) -> None:
    printed = run("solve", file, "--audit-rate", "0.4", "--format", "json").stdout
    Path("a.json").write_text(printed, encoding="utf-8")
    assert run("certify", file, "a.json").exit_code == 0
    refused = run("certify", file, "a.json", "--audit-rate", "0.1")
    assert refused.exit_code == 2
    assert "says how slips are seen" in refused.stderr
    rows = json.loads(printed)["agreement"]["clients"]
    text = "".join(f"{row['name']},{row['contribution']}\n" for row in rows)
    Path("p.csv").write_text(f"name,contribution\n{text}", encoding="utf-8")
    assert run("certify", file, "p.csv").exit_code == 0
    rarely = run("certify", file, "p.csv", "--audit-rate", "0.1")
    assert rarely.exit_code == 1
    assert "audited with probability 0.1" in " ".join(rarely.stdout.split())
    checked = run("certify", file, "p.csv", "--samples-checked", "1", "--seen-late", "2")
    assert checked.exit_code == 0


def test_play_draws_audits(run: Run, file: str) -> None:
    options = ("--audit-rate", "0.5", "--false-alarm", "0.05", "--seed", "3", "--format", "json")
    first = json.loads(run("play", file, *options).stdout)
    assert first["false_alarms"] > 0
    assert first == json.loads(run("play", file, *options).stdout)


@pytest.mark.slow
def test_audit_rates_of_the_example(run: Run, file: str) -> None:
    found = json.loads(run("audit-rates", file, "--margin", "0", "--format", "json").stdout)
    assert found["per_slot"] == pytest.approx(1.29, abs=0.005)
    assert found["checks_per_slot"] == pytest.approx(1.365, abs=0.0005)
    assert [row["audits"] for row in found["budgets"]] == [0.25, 0.5, 1.0, 2.0, 4.0]
    totals = [row["total"] for row in found["budgets"]]
    assert totals == sorted(totals)
    result = run("audit-rates", file, "--picture", "a.png")
    assert result.exit_code == 0
    assert "Least audit" in result.stdout
    assert Path("a.png").stat().st_size > 10_000


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("solve", "--audit-rate", "2"), "--audit-rate: must be from 0 to 1, got 2"),
        (("solve", "--audit-rate", "often"), "--audit-rate often: must be a number"),
        (("solve", "--audit-rate", "x=1"), "--audit-rate: there is no client"),
        (("solve", "--audit-cost", "2"), "--audit-cost: needs --audits-per-slot"),
        (("solve", "--audits-per-slot", "-1"), "--audits-per-slot: must be 0 or more"),
        (
            ("solve", "--audits-per-slot", "1", "--agreement", "uniform"),
            "--audits-per-slot: needs --agreement individual",
        ),
        (
            ("solve", "--audits-per-slot", "1", "--whole-samples"),
            "--audits-per-slot: cannot be combined with --whole-samples",
        ),
        (
            ("solve", "--audits-per-slot", "1", "--objective", "fair-share"),
            "--audits-per-slot: finds the most data",
        ),
        (("solve", "--samples-checked", "0"), "must be 1 or more"),
        (
            ("solve", "--seen-late", "2", "--false-alarm", "0.1"),
            "--seen-late: slips that are seen late cannot be combined with false alarms",
        ),
        (
            ("play", "--audit-rate", "0.1", "--false-alarm", "0.2"),
            "--false-alarm: must be at most the probability of an audit, 0.1, got 0.2",
        ),
    ],
)
def test_what_is_refused(run: Run, words: tuple[str, ...], message: str) -> None:
    result = run(*words, "--clients", "5")
    assert result.exit_code == 2
    assert message in " ".join(result.stderr.split())
    assert "Traceback" not in result.stderr


def test_states_are_refused(run: Run, file: str) -> None:
    text = Path(file).read_text(encoding="utf-8")
    states = '\n[[states]]\nname = "all"\n\n[[states]]\nname = "fewer"\nwithout = ["Riverside"]\n'
    Path("s.toml").write_text(text + states, encoding="utf-8")
    result = run("solve", "s.toml", "--audit-rate", "0.5")
    assert result.exit_code == 2
    assert "--audit-rate: is not possible for a file with states" in result.stderr

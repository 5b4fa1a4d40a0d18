"""`fedaccord certify`: exit code 0 if proved and 1 if refuted, with the reason."""

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Run

GREEDY = {
    "University Hospital": 28_000,
    "Northern General": 20_000,
    "St Mary": 18_000,
    "Riverside": 22_000,
    "Lakeside Clinic": 16_000,
    "Children's Hospital": 12_000,
}


@pytest.mark.parametrize("kind", ["individual", "uniform"])
def test_profiles_written_by_solve_are_proved(run: Run, kind: str) -> None:
    run("init")
    words = ("solve", "consortium.toml", "--agreement", kind)
    answer = run(*words, "--profile-out", "p.csv", "--format", "json").stdout
    Path("p.json").write_text(answer)
    for profile in ("p.csv", "p.json"):
        result = run("certify", "consortium.toml", profile)
        assert result.exit_code == 0
        assert "Proved: no client gains by slipping" in result.stdout


def test_a_profile_that_holds_may_still_not_be_in_the_members_interest(run: Run) -> None:
    run("init")
    largest = list(GREEDY)[:3]
    Path("p.json").write_text(
        json.dumps({name: GREEDY[name] * (name in largest) for name in GREEDY})
    )
    result = run("certify", "consortium.toml", "p.json")
    assert result.exit_code == 0
    said = " ".join(result.stdout.split())
    assert "St Mary pays more than without an agreement (" in said
    assert "Everyone would pay less under another profile, with 77,970 samples in all." in said


@pytest.mark.slow
def test_a_refuted_profile_says_who_would_slip_and_why(run: Run) -> None:
    run("init")
    Path("p.json").write_text(json.dumps(GREEDY))
    words = ("certify", "consortium.toml", "p.json", "--punishment", "reversion")
    result = run(*words, "--report", "r.html")
    assert result.exit_code == 1
    refuted = (
        "Refuted, with reversion for ever: 1 of 6 clients would slip, Lakeside Clinic first of "
    )
    assert refuted in " ".join(result.stdout.split())
    assert "Lakeside Clinic    16,000          0   65.28         0.50" in result.stdout
    assert "Who would slip" in Path("r.html").read_text()


def test_the_json_of_certify(run: Run) -> None:
    run("init")
    Path("p.json").write_text(json.dumps(GREEDY))
    words = ("certify", "consortium.toml", "p.json", "--format", "json")
    assert run(*words).exit_code == 0  # one slot of suspension is enough
    result = run(*words, "--punishment", "reversion")
    assert result.exit_code == 1
    answer = json.loads(result.stdout)
    assert list(answer) == ["consortium", "certificate", "law", "worth"]
    certificate = answer["certificate"]
    assert list(certificate) == [
        *("holds", "worst_client", "slack", "smallest_discount_factor"),
        *("punishment", "monitoring", "punishment_holds", "law_holds", "nothing_harsher"),
        *("under_laws", "under_fresh_laws", "over_ranges"),
        *("keeps_if_one_is_out", "keeps_if_all_are_out", "assumptions", "clients"),
    ]
    assert (certificate["holds"], certificate["worst_client"]) == (False, "Lakeside Clinic")
    assert certificate["punishment_holds"] is True
    assert list(certificate["clients"][0]) == [
        *("name", "contribution", "cost_equilibrium", "cost_alone", "cost_punished"),
        *("cost_agreement", "cost_deviation"),
        *("deviation", "threshold", "slack", "keeps", "audit_probability"),
    ]
    assert [client["keeps"] for client in certificate["clients"]].count(False) == 1


@pytest.mark.slow
def test_infinite_is_null(run: Run) -> None:
    run("init")
    Path("p.json").write_text(json.dumps(dict.fromkeys(GREEDY, 0)))
    result = run("certify", "consortium.toml", "p.json", "--format", "json", "--report", "r.html")
    assert result.exit_code == 1
    answer = json.loads(result.stdout, parse_constant=pytest.fail)
    assert answer["certificate"]["smallest_discount_factor"] is None
    assert answer["certificate"]["clients"][0]["cost_agreement"] is None
    assert run("certify", "consortium.toml", "p.json").exit_code == 1


def test_the_papers_setting_needs_only_a_profile(run: Run) -> None:
    Path("p.csv").write_text("name,contribution\nclient-1,0\nclient-2,10000\n")
    for words in (["--paper", "--clients", "2"], ["--clients", "2"]):
        result = run("certify", "p.csv", *words, "--format", "json")
        assert result.exit_code in (0, 1)
        assert ("No file given" in result.stderr) == ("--paper" not in words)


def test_a_short_punishment_deters_less(run: Run) -> None:
    run("solve", "--paper", "--profile-out", "p.csv")
    assert run("certify", "p.csv", "--paper").exit_code == 0
    assert run("certify", "p.csv", "--paper", "--punishment-slots", "2").exit_code == 1


def test_the_profile_is_missing(run: Run) -> None:
    run("init")
    result = run("certify", "consortium.toml")
    assert result.exit_code == 2
    assert "PROFILE is missing: consortium.toml is the consortium's FILE" in result.stderr


def test_the_file_is_missing(run: Run) -> None:
    """The message begins with the consortium that the profile was compared with."""
    Path("p.json").write_text(json.dumps(GREEDY))
    result = run("certify", "p.json")
    assert result.exit_code == 2
    assert result.stderr.startswith(
        "Error: against the paper's setting (no FILE was given): p.json: 106 mistakes:\n"
    )
    assert run("certify", "p.json", "--paper").stderr.startswith("Error: p.json: 106 mistakes:\n")


def test_an_agreement_is_proved_with_its_own_punishment(run: Run) -> None:
    """An agreement found for two slots is proved for two, and rejected for any other number."""
    solved = run("solve", "--paper", "--punishment-slots", "2", "--format", "json")
    Path("a.json").write_text(solved.stdout)
    proved = run("certify", "a.json", "--paper", "--format", "json")
    assert proved.exit_code == 0
    certificate = json.loads(proved.stdout)["certificate"]
    assert certificate["punishment"] == {"kind": "reversion", "slots": 2}
    assert certificate["slack"] == pytest.approx(0.0, abs=1e-6)
    refused = run("certify", "a.json", "--paper", "--punishment-slots", "5")
    assert refused.exit_code == 2
    assert (
        "punishes a slip by reversion for 2 slots, and not by reversion for 5 slots"
        in refused.stderr
    )


@pytest.mark.slow
def test_clients_that_would_contribute_more_are_listed_separately(run: Run) -> None:
    Path("c.toml").write_text(
        "rounds = 1\ndiscount_factor = 0.9\n"
        + "".join(
            f'[[clients]]\nname = "{name}"\nvaluation = {valuation}\ncost_per_sample = 1\n'
            f"samples = {samples}\n"
            for name, valuation, samples in (("a", 707, 26), ("b", 544, 62), ("c", 4750, 37))
        )
    )
    Path("p.json").write_text('{"a": 23, "b": 8, "c": 32}')
    result = run("certify", "c.toml", "p.json", "--report", "r.html")
    assert result.exit_code == 1
    refuted = (
        "Refuted, with suspension for 1 slot: 1 of 3 clients would contribute more than agreed, c "
        "first of all."
    )
    assert refuted in " ".join(result.stdout.split())
    assert "Would contribute more" in result.stdout
    assert "Would slip" not in result.stdout
    assert "Contributing more than agreed is not a slip" in Path("r.html").read_text()

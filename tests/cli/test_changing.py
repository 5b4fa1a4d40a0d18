"""`solve`, `play` and `departures` for consortia that change."""

import csv
import json
from pathlib import Path

import pytest

from fedaccord.files.consortium import example_text
from tests.cli.conftest import Run
from tests.test_schemas import check

STATES = """
[[states]]
name = "all six"

[[states]]
name = "without Riverside"
without = ["Riverside"]

[transitions]
"all six" = { "all six" = 0.9, "without Riverside" = 0.1 }
"""


@pytest.fixture
def file(tmp_path: Path) -> str:
    (tmp_path / "c.toml").write_text(example_text() + STATES, encoding="utf-8")
    return "c.toml"


def text_of(run: Run, *words: str) -> str:
    result = run(*words)
    assert result.exit_code == 0, result.output
    return " ".join(result.output.split())


def test_solve_shows_each_state(run: Run, file: str) -> None:
    text = text_of(run, "solve", file, "--punishment", "reversion", "--margin", "0")
    for words in (
        '"all six": "all six" 90 %, "without Riverside" 10 %.',
        '108,088 samples are agreed in "all six": 2,726 fewer than if it lasted for ever.',
        'does not hold: Riverside and Lakeside Clinic would slip in "all six".',
        "The one closest to slipping is Riverside",
        "It need not be the largest agreement that holds",
    ):
        assert words in text
    usual = text_of(run, "solve", file)
    assert "That the state may change costs no data" in usual
    assert "need not be" not in usual


def test_solve_for_programs(run: Run, file: str) -> None:
    words = ("solve", file, "--punishment", "reversion", "--margin", "0", "--format", "json")
    record = json.loads(run(*words).stdout)
    check("solve-states", record)
    assert record["certificate"]["holds"] is True
    assert record["for_ever_holds"] is False
    first, second = record["states"]
    assert first["for_ever_slips"] == ["Riverside", "Lakeside Clinic"]
    assert first["total"] == pytest.approx(108_088, abs=0.5)
    assert second["without"] == ["Riverside"]
    assert second["next"] == {"all six": 0.0, "without Riverside": 1.0}


def test_play_shows_the_states(run: Run, file: str, tmp_path: Path) -> None:
    words = ("--slots", "12", "--deviate", "St Mary@3", "--deviate", "Riverside@11")
    text = text_of(run, "play", file, *words, "--csv", "slots.csv")
    assert "Slot 3: St Mary trains on 0 samples instead of 18,000." in text
    assert "Slot 11: Riverside does not slip: it is away." in text
    record = json.loads(run("play", file, *words, "--format", "json").stdout)
    assert record["states"][0] == "all six"
    assert set(record["states"]) == {"all six", "without Riverside"}
    with (tmp_path / "slots.csv").open() as rows:
        assert [row["state"] for row in csv.DictReader(rows)] == record["states"]
    assert text_of(run, "play", file, "--slots", "3").count("Nobody slipped.") == 1


@pytest.mark.parametrize(
    "words",
    [
        ("solve", "--whole-samples"),
        ("solve", "--agreement", "uniform"),
        ("solve", "--report", "r.html"),
        ("solve", "--law", "law.toml"),
        ("solve", "--model-keeps", "0.5"),
        ("play", "--noise", "0.1"),
        ("play", "--dropout", "0.1"),
        ("play", "--strategy", "St Mary=grim-trigger"),
    ],
)
def test_what_states_do_not_have_is_refused(run: Run, file: str, words: tuple[str, ...]) -> None:
    command, *rest = words
    result = run(command, file, *rest)
    assert result.exit_code == 2
    assert len(result.output.strip().splitlines()) == 1
    assert result.output.startswith("Error: ")


def test_leaving_and_growth_are_said(run: Run, tmp_path: Path) -> None:
    text = example_text().replace("currency =", "leaves = 0.05\ngrowth = 0.1\ncurrency =", 1)
    (tmp_path / "t.toml").write_text(text, encoding="utf-8")
    said = text_of(run, "solve", "t.toml")
    assert "leaves after a slot with a probability of 5 %, and is replaced" in said
    assert "grow by 10 % a slot" in said
    assert "a discount factor of 0.9 counts as 0.9405" in said
    record = json.loads(run("solve", "t.toml", "--format", "json").stdout)
    check("solve", record)
    assert record["consortium"]["turnover"]["growth"] == 0.1


def test_departures(run: Run, tmp_path: Path) -> None:
    (tmp_path / "p.toml").write_text(example_text(), encoding="utf-8")
    text = text_of(run, "departures", "p.toml", "--punishment", "reversion")
    assert "The others would miss University Hospital most" in text
    assert "Whoever leaves, the others' amounts no longer hold" in text
    assert "Riverside would slip if Lakeside Clinic left." in text
    assert "Nobody is indispensable" in text
    usual = text_of(run, "departures", "p.toml")
    assert "Whoever leaves, the others' amounts still hold" in usual


def test_departures_for_programs_and_of_many(run: Run) -> None:
    record = json.loads(run("departures", "--paper", "--clients", "9", "--format", "json").stdout)
    check("departures", record)
    assert len(record["departures"]) == 9
    text = text_of(run, "departures", "--paper", "--clients", "22", "--samples", "40000")
    assert "20 of 22 clients; --all lists every one." in text


def test_departures_where_there_is_no_agreement(run: Run) -> None:
    text = text_of(run, "departures", "--paper", "--clients", "9")
    assert "There is no agreement to lose" in text


def test_departures_and_states(run: Run, file: str) -> None:
    result = run("departures", file)
    assert result.exit_code == 0
    assert "the states are left out here" in result.stderr

"""`fedaccord play`: the JSON contract, the text, the files, and invalid input."""

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Run

ONE_SLIP = ("--paper", "--deviate", "client-7@5", "--punishment-slots", "5")
CHANCE = ("--noise", "0.05", "--dropout", "0.02", "--seed", "3")


def play_json(run: Run, *words: str) -> dict[str, Any]:
    result = run("play", *words, "--format", "json")
    assert result.exit_code == 0, result.output
    return dict(json.loads(result.stdout, parse_constant=pytest.fail))


# --- JSON ----------------------------------------------------------------------------------


def test_the_json_contract(run: Run) -> None:
    answer = play_json(run, *ONE_SLIP)
    assert list(answer) == [
        *("agreement", "slots", "phases", "totals", "suspended", "events", "clients"),
        *("noise", "dropout", "tolerance", "seed"),  # later additions
        *("false_alarms", "missed_deviations", "absences", "slots_out"),
        *("false_alarm_cost", "missed_deviation_cost", "shortest_punishment"),
    ]
    solved = json.loads(
        run("solve", "--paper", "--punishment-slots", "5", "--format", "json").stdout
    )
    assert answer["agreement"] == solved["agreement"]
    assert answer["slots"] == len(answer["phases"]) == len(answer["totals"]) == 50
    assert answer["phases"] == ["cooperating"] * 5 + ["punishing"] * 5 + ["cooperating"] * 40
    assert list(answer["clients"][0]) == ["name", "discounted_cost", "discounted_cost_if_kept"]
    assert answer["events"] == [
        {
            **{"slot": 5, "client": "client-7", "kind": "deviation"},
            **{"agreed": 10_000.0, "contributed": 0.0, "lasted": 1},
        },
        {
            **{"slot": 6, "client": None, "kind": "punishment"},
            **{"agreed": None, "contributed": None, "lasted": 5},
        },
        {
            **{"slot": 11, "client": None, "kind": "return"},
            **{"agreed": None, "contributed": None, "lasted": 1},
        },
    ]
    assert answer["shortest_punishment"] == 5
    slipped = answer["clients"][6]
    assert slipped["discounted_cost"] > slipped["discounted_cost_if_kept"]
    assert all(
        client["discounted_cost"] == client["discounted_cost_if_kept"]
        for client in answer["clients"]
        if client is not slipped
    )


def test_for_ever_is_null(run: Run) -> None:
    answer = play_json(run, "--paper", "--deviate", "client-7@5")
    [punishment] = [event for event in answer["events"] if event["kind"] == "punishment"]
    assert punishment["lasted"] is None
    assert answer["shortest_punishment"] is None


def test_infinite_costs_are_null(run: Run) -> None:
    answer = play_json(run, "--paper", "--clients", "60", "--strategy", "all=free-ride")
    assert answer["totals"] == [0.0] * 50
    assert answer["clients"][0]["discounted_cost"] is None


@pytest.mark.slow
def test_random_events_are_reproducible_and_counted(run: Run) -> None:
    first, again = (play_json(run, *ONE_SLIP, *CHANCE, "--slots", "30") for _ in range(2))
    assert first == again
    assert (first["noise"], first["dropout"], first["seed"]) == (0.05, 0.02, 3)
    assert 0.1 < first["tolerance"] < 0.4
    absences = [event for event in first["events"] if event["kind"] == "absence"]
    assert first["absences"] == len(absences) > 10
    another = play_json(run, *ONE_SLIP, *CHANCE[:4], "--seed", "4", "--slots", "30")
    assert another["totals"] != first["totals"]


def test_a_given_tolerance_is_used(run: Run) -> None:
    assert play_json(run, "--paper", "--noise", "0.05", "--tolerance", "0.3")["tolerance"] == 0.3
    assert play_json(run, "--paper")["tolerance"] == 0


# --- Text ----------------------------------------------------------------------------------


def test_the_text(run: Run) -> None:
    result = run("play", *ONE_SLIP)
    assert result.exit_code == 0
    for words in (
        "the paper's setting, 100 clients",
        "An individual agreement on 992,709 samples in a slot (equilibrium: 505,063).",
        "The shortest punishment that still enforces the agreement: 5 slots.",
        "Slots 1-5 cooperating, 6-10 punishing, 11-50 cooperating.",
        "slot 5: client-7 trained on 0 instead of 10,000; punishment until slot 10; "
        "it saved 0.0000935 and lost 0.000809",
        "slipping",
    ):
        assert words in result.stdout


def test_nobody_slips_by_default(run: Run) -> None:
    result = run("play", "--slots", "9")
    assert result.stdout.startswith("No file given, so this is the paper's setting")
    assert "Slots 1-9 cooperating." in result.stdout
    assert "Nobody slipped." in result.stdout
    assert "--deviate NAME@SLOT" in result.stdout


def test_the_chosen_tolerance_is_printed(run: Run) -> None:
    said = " ".join(run("play", *ONE_SLIP, *CHANCE).stdout.split())
    assert "Contributions are observed with an error of 5 % (standard deviation)" in said
    assert "is tolerated, which costs least." in said
    assert "Absences: " in said


def test_no_agreement_is_not_an_error(run: Run) -> None:
    words = ("--paper", "--discount-factor", "0.3", "--agreement", "uniform")
    result = run("play", *words, "--noise", "0.1", "--deviate", "client-80@2:5")
    assert result.exit_code == 0
    said = " ".join(result.stdout.split())
    assert "No uniform agreement exists from client-2 on: the clients are not patient" in said
    assert "So everyone plays the equilibrium, 505,063 samples in a slot." in said
    assert "cooperating" not in said
    answer = play_json(run, *words)
    assert answer["agreement"]["exists"] is False
    assert answer["totals"] == pytest.approx([505_063.3] * 50, abs=0.05)


def test_the_uniform_agreement(run: Run) -> None:
    result = run("play", "--paper", "--agreement", "uniform", "--margin", "0.05", "--slots", "3")
    assert "A uniform agreement on " in result.stdout


@pytest.mark.slow
def test_long_lists_are_shortened_without_all(run: Run) -> None:
    words = ("play", "--paper", "--slots", "5", "--strategy", "all=selfish")
    short, long = run(*words).stdout, run(*words, "--all").stdout
    assert "... and 30 more; --all lists every one." in short
    assert short.count("client-") < 35
    assert "more; --all" not in long


# --- Who does what -------------------------------------------------------------------------

ODD = """
rounds = 50
discount_factor = 0.9
[[clients]]
name = "a@b:c=d"
valuation = 640000
cost_per_sample = 0.004
samples = 18000
[[clients]]
name = "all"
valuation = 360000
cost_per_sample = 0.0048
samples = 30000
[[clients]]
name = "x@5:3"
valuation = 700000
cost_per_sample = 0.0042
samples = 35000
"""


def test_names_with_special_characters(run: Run) -> None:
    Path("odd.toml").write_text(ODD)
    words = ("--deviate", "a@b:c=d@4:10", "--strategy", "a@b:c=d=forgiving:4")
    answer = play_json(run, "odd.toml", *words, "--punishment", "reversion")
    [slip] = [event for event in answer["events"] if event["kind"] == "deviation"]
    assert (slip["slot"], slip["client"], slip["contributed"]) == (4, "a@b:c=d", 10.0)
    assert "x@5:3 did not slip" in run("play", "odd.toml", "--deviate", "x@5:3@2:35000").stdout


def test_a_client_called_all_is_one_client(run: Run) -> None:
    Path("odd.toml").write_text(ODD)
    words = ("--strategy", "all=selfish", "--strategy", "*=friedman", "--punishment", "reversion")
    said = run("play", "odd.toml", *words).stdout
    assert "Strategies: a@b:c=d, x@5:3 grim-trigger; all selfish." in said


def test_a_clients_own_strategy_overrides_the_one_for_all(run: Run) -> None:
    words = (
        "--strategy",
        "client-9=keep",
        "--strategy",
        "all=loyal",
        "--strategy",
        "client-8=myopic",
    )
    assert (
        "Strategies: 98 clients loyal; client-8 myopic; client-9 keep."
        in run("play", "--paper", *words).stdout
    )


def test_slips_and_a_strategy_can_be_combined(run: Run) -> None:
    words = (
        "--strategy",
        "*=forgiving:2",
        "--deviate",
        "client-9@3:1",
        "--deviate",
        "client-9@9:2",
    )
    answer = play_json(run, "--paper", "--slots", "12", *words)
    slips = [event for event in answer["events"] if event["kind"] == "deviation"]
    assert [(slip["slot"], slip["contributed"]) for slip in slips] == [(3, 1.0), (9, 2.0)]
    assert [n for n, phase in enumerate(answer["phases"], 1) if phase == "punishing"] == [
        4,
        5,
        10,
        11,
    ]


# --- Files ---------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_files(run: Run) -> None:
    result = run("play", *ONE_SLIP, *CHANCE, "--report", "r.html", "--csv", "s.csv")
    assert result.exit_code == 0
    assert "client-7 slipped, and lost by it" in Path("r.html").read_text()
    with Path("s.csv").open(newline="") as file:
        rows = list(csv.reader(file))
    assert rows[0] == ["slot", "phase", "total", "suspended"]
    assert [row[0] for row in rows[1:]] == [str(slot) for slot in range(1, 51)]
    assert {row[1] for row in rows[1:]} == {"cooperating", "punishing"}
    assert all(float(row[2]) > 0 for row in rows[1:])


# --- Invalid input -------------------------------------------------------------------------

REFUSED = {
    "an unknown client": (
        ["--deviate", "clinet-7@5"],
        "--deviate clinet-7@5: there is no client called 'clinet-7'; did you mean 'client-7'?",
    ),
    "nobody like that": (
        ["--strategy", "Bob=keep"],
        "no client called 'Bob'; the first is 'client-1'",
    ),
    "no slot": (["--deviate", "client-7"], "must be NAME@SLOT or NAME@SLOT:AMOUNT, for instance"),
    "no name": (["--deviate", "@5"], "must be NAME@SLOT"),
    "no amount": (["--deviate", "client-7@5:"], "must be NAME@SLOT"),
    "a slot that is not a number": (
        ["--deviate", "client-7@x"],
        "the slot must be a whole number, got 'x'",
    ),
    "the slot before the first": (["--deviate", "client-7@0"], "must be from 1 to 50, got 0"),
    "a slot after the last": (["--deviate", "client-7@51"], "must be from 1 to 50, got 51"),
    "too much": (["--deviate", "client-7@5:1e5"], "must be from 0 to 10000, all its samples"),
    "less than nothing": (["--deviate", "client-7@5:-1"], "must be from 0 to 10000"),
    "no number": (["--deviate", "client-7@5:x"], "the amount must be a number, got 'x'"),
    "not a number": (["--deviate", "client-7@5:nan"], "must be from 0 to 10000"),
    "twice at once": (
        ["--deviate", "client-7@5", "--deviate", "client-7@5:1"],
        "client-7 already slips in slot 5",
    ),
    "too many slips": (
        ["--slots", "200", *(w for n in range(1, 102) for w in ("--deviate", f"client-7@{n}"))],
        "at most 100 slips of one client can be planned",
    ),
    "an unknown strategy": (
        ["--strategy", "client-7=slefish"],
        "unknown strategy 'slefish': did you mean 'selfish'?",
    ),
    "no strategy": (["--strategy", "client-7="], "must be NAME=STRATEGY, for instance"),
    "forgiving for how long": (["--strategy", "all=forgiving"], "as in forgiving:3"),
    "two strategies": (
        ["--strategy", "client-7=keep", "--strategy", "client-7=loyal"],
        "client-7 already has a strategy",
    ),
    "two for everyone": (
        ["--strategy", "all=keep", "--strategy", "*=loyal"],
        "everyone already has a strategy (all=keep)",
    ),
    "negative noise": (["--noise", "-1"], "Error: --noise: must be 0 or more, got -1.0"),
    "infinite noise": (["--noise", "inf"], "--noise: must be 0 or more and finite, got inf"),
    "nobody ever present": (
        ["--dropout", "1"],
        "--dropout: must be from 0 to less than 1, got 1.0",
    ),
    "nobody present to be measured": (["--dropout", "1", "--noise", "0.1"], "less than 1, got 1.0"),
    "everything tolerated": (["--tolerance", "1"], "--tolerance: must be from 0 to less than 1"),
    "a negative seed": (["--seed", "-1"], "--seed: must be a whole number, 0 or more"),
    "no punishment": (["--punishment-slots", "0"], "must be 1 or more, got 0"),
    "no slots": (["--slots", "0"], "must be 1 or more, got 0"),
    "too many slots": (
        ["--slots", "1000000"],
        "are too many to record; at most 50,000 are possible",
    ),
    "a missing directory": (["--report", "no/r.html"], "no/r.html: cannot be written"),
    "a directory": (["--csv", "."], "is a directory, not a file"),
}


@pytest.mark.parametrize(("words", "message"), REFUSED.values(), ids=REFUSED.keys())
def test_rejected(run: Run, words: list[str], message: str) -> None:
    files = [
        w for w in ("--report", "r.html", "--csv", "s.csv") if words[0] not in ("--report", "--csv")
    ]
    result = run("play", "--paper", *files, *words)
    assert (result.exit_code, result.stdout) == (2, "")
    assert message in result.stderr
    assert "Traceback" not in result.stderr
    assert list(Path().iterdir()) == []


def test_all_mistakes_are_reported_at_once(run: Run) -> None:
    result = run("play", "--paper", "--deviate", "client-7@x", "--strategy", "client-8=nice")
    assert result.exit_code == 2
    assert result.stderr.startswith("Error: 2 mistakes:\n  --strategy client-8=nice: ")

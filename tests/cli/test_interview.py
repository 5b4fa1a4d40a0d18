"""`fedaccord interview`: asked one by one, by options, by a file of answers."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from typer.testing import CliRunner

import fedaccord as fa
from fedaccord.cli import app
from fedaccord.cli.options import flag_of
from fedaccord.interviews.questions import QUESTIONS
from tests.cli.conftest import Run
from tests.interviews.organisations import HOSPITAL, LEAST


def options(answers: dict[str, Any]) -> list[str]:
    return [word for key, value in answers.items() for word in (flag_of(key), str(value))]


def typed(lines: list[str], *words: str) -> Result:
    """Runs the interview, and types these lines."""
    text = "".join(f"{line}\n" for line in lines)
    return CliRunner().invoke(app, ["interview", *words], input=text, catch_exceptions=False)


REPLIES = [
    *("St Mary", "", "quarterly"),  # name, currency, slot
    *("2000", "2", "", "6"),  # cases a month, years, no price but minutes of annotation
    *("2.5", "200", "40", "80"),  # machine, throughput, staff, wage
    *("30 000", "25 000", "300", "2 %", "20 %"),  # cases a year, and what a wrong one costs
    *("3 %", "10 %"),  # interest, chance of ending
]


def test_a_conversation(run: Run) -> None:
    result = typed([*REPLIES, "yes"], "new.toml")
    assert result.exit_code == 0, result.output
    assert "1. What is the organisation called?" in result.stdout
    assert "valuation = 1,191,000" in result.stdout
    assert "20 % x (2 % x 25,000 + 98 % x 300) = 158.8" in result.stdout
    assert "Wrote new.toml." in result.stdout
    [client] = fa.load_consortium("new.toml")
    assert client == fa.Client("St Mary", 1_191_000, 1.067, 48_000, 0.0, 0.96683)
    assert len(REPLIES) == 18


def test_an_unlikely_answer_is_asked_about_at_once(run: Run) -> None:
    confirmed, corrected = ("1500", ""), ("0.6 %", "2 %")
    replies = [*REPLIES[:4], *confirmed, *REPLIES[5:14], *corrected, *REPLIES[15:], "yes"]
    result = typed(replies, "new.toml")
    assert result.exit_code == 0, result.output
    assert result.stdout.count("A case would be used for 1500 years") == 1  # and never again
    assert result.stdout.count("always says 'no finding' is right in 99.4 % of the cases") == 1
    assert "2 % x 25,000 + 98 % x 300" in result.stdout


def test_numbers_with_decimal_commas_and_units(run: Run) -> None:
    answers = LEAST | {"gpu_price": "$ 2,50", "seconds_per_sample": "0,004", "interest": "6,5 %"}
    words = ("interview", *options(answers | {"currency": "USD"}), "--format", "json")
    found = {row["question"]: row["value"] for row in json.loads(run(*words).stdout)["answers"]}
    assert found["gpu_price"]["likely"] == 2.5
    assert found["seconds_per_sample"]["likely"] == 0.004
    assert found["interest"]["likely"] == 0.065


def test_an_answer_is_repeated_as_it_was_read(run: Run) -> None:
    result = typed([*REPLIES[:7], "2,50 $", "2,50", *REPLIES[8:], "no"], "new.toml")
    assert "is in $, and all amounts are in EUR; give all amounts in one currency" in result.stdout
    assert "= 2.5\n" in result.stdout


def test_mistakes_going_back_and_needed_answers(run: Run) -> None:
    replies = [
        *("back", "", "Wrong name", "back", "St Mary"),
        *("euro", "back", "St Mary", "EUR", "3 moons"),
        *REPLIES[2:],
    ]
    result = typed([*replies, "perhaps", "yes"], "new.toml")
    assert result.exit_code == 0, result.output
    for words in (
        "This is the first question.",
        "This one needs an answer.",
        "must be three letters like EUR, got 'euro'",
        "must be a stretch of time",
    ):
        assert words in result.stdout
    assert fa.load_consortium("new.toml").names == ("St Mary",)


@pytest.mark.parametrize("number", range(len(REPLIES) + 1))
def test_stopping_leaves_nothing(run: Run, number: int) -> None:
    stopped = typed([*REPLIES[:number], "stop"], "new.toml")
    assert (stopped.exit_code, list(Path().iterdir())) == (130, [])
    assert stopped.stdout.endswith("Stopped; nothing was written.\n")
    ended = typed(REPLIES[:number], "new.toml")
    assert (ended.exit_code, list(Path().iterdir())) == (2, [])
    assert ended.stderr.startswith("Error: the interview ended before its last question")


def test_interrupting_leaves_nothing(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(prompt: str) -> str:
        raise KeyboardInterrupt

    monkeypatch.setattr("builtins.input", interrupt)
    result = CliRunner().invoke(app, ["interview", "new.toml"])
    assert "Stopped; nothing was written." in result.stderr
    assert list(Path().iterdir()) == []


def test_saying_no_leaves_nothing(run: Run) -> None:
    result = typed([*REPLIES, "no"], "new.toml")
    assert result.exit_code == 0
    assert result.stdout.endswith("Nothing was written.\n")
    assert list(Path().iterdir()) == []


def test_only_what_is_missing_is_asked(run: Run) -> None:
    known = {key: value for key, value in HOSPITAL.items() if key != "false_cost"}
    result = typed(["", "", "300"], *options(known))
    assert result.exit_code == 0
    assert "What does a false finding cost?" in result.stdout
    assert "What does a missed finding cost?" not in result.stdout
    assert "For a consortium file:\n\n[[clients]]\n" in result.stdout


def test_options_for_every_question(run: Run) -> None:
    shown = run("interview", "--help").stdout
    for question in QUESTIONS:
        assert f"{flag_of(question.key)} " in shown
    result = run("interview", *options(HOSPITAL), "--format", "json")
    assert json.loads(result.stdout, parse_constant=pytest.fail) == fa.interview(HOSPITAL).to_dict()


def test_a_file_of_answers_and_options_before_them(run: Run) -> None:
    Path("answers.json").write_text(json.dumps(LEAST | {"gpu_price": [1, 3], "slot": None}))
    words = ("interview", "--answers", "answers.json", "--name", "Other", "--format", "json")
    answer = json.loads(run(*words).stdout)
    assert answer["name"] == "Other"
    [price] = [row for row in answer["answers"] if row["question"] == "gpu_price"]
    assert price["value"] == {"low": 1, "likely": 2, "high": 3}


def test_one_client_after_the_other(run: Run) -> None:
    assert run("interview", "c.toml", *options(LEAST)).exit_code == 0
    monthly = run("interview", "c.toml", *options(HOSPITAL | {"slot": "1 month"}))
    assert monthly.exit_code == 2
    assert monthly.stderr == (
        'Error: c.toml: slot: is "3 months" in this file, but "1 month" in the answers\n'
    )
    second = run("interview", "c.toml", *options(HOSPITAL))
    assert second.exit_code == 0, second.output
    assert '+name = "University Hospital"' in second.stdout
    first, other = fa.load_consortium("c.toml")
    assert (first.name, other.valuation) == ("Least", 1_191_000)
    again = run("interview", "c.toml", *options(LEAST | {"point_worth": 600}))
    assert (
        "-valuation = 12_500  # interview: a percentage point is worth 500 a year" in again.stdout
    )
    assert (
        "+valuation = 15_000  # interview: a percentage point is worth 600 a year" in again.stdout
    )
    assert list(fa.load_consortium("c.toml"))[1] == other


def test_rounds_and_slot_come_from_the_file(run: Run) -> None:
    run("init", "c.toml")
    Path("c.toml").write_text(
        Path("c.toml").read_text("utf-8").replace("rounds = 50", "rounds = 7"), encoding="utf-8"
    )
    answer = json.loads(run("interview", "c.toml", *options(LEAST), "--format", "json").stdout)
    assert answer["rounds"] == 7
    with pytest.warns(fa.FileNote, match="The valuation of Least is 4167 EUR"):
        assert len(fa.load_consortium("c.toml")) == 7


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--gpu-price", "12.000"], "--gpu-price: '12.000' is either 12 or 12000;"),
        (["--gpu-price", "12,000"], "--gpu-price: '12,000' is either 12 or 12000;"),
        (["--gpu-price", "2.50 USD"], "--gpu-price: is in USD, and all amounts are in EUR;"),
        (["--gpu-price", "5 %"], "--gpu-price: must be a number, not a percentage, got '5 %'"),
        (["--samples", "500 €"], "--samples: must be a number, not an amount in EUR, got '500 €'"),
        (["--interest", "6.5"], "0 to 100 % (0 to 1), got '6.5'; write 6.5 % if that is meant"),
        (["--prevalence", "5"], "--prevalence: must be from 0 to 100 %"),
        (["--format", "json"], "--cases-per-month: is missing: How many new cases"),
        (["--answers", "no.json"], "no.json: there is no such file"),
        (["--answers", "list.json"], "list.json: must be an object with an answer"),
        (["--answers", "broken.json"], "broken.json: is not usable JSON"),
        (["--answers", "wrong.json"], "wrong.json: "),
        (["list.json", "--answers", "list.json"], "list.json: is an input of this command"),
        (["broken.toml"], "broken.toml: is not TOML"),
        (["nowhere/new.toml"], "nowhere/new.toml: cannot be written"),
        (["csv.toml"], "csv.toml: takes its clients from c.csv"),
    ],
)
def test_wrong_input(run: Run, words: list[str], message: str) -> None:
    Path("list.json").write_text("[1]")
    Path("broken.json").write_text("[1")
    Path("wrong.json").write_text('{"gpu_price": {"low": 3}}')
    Path("broken.toml").write_text("rounds = ")
    Path("csv.toml").write_text('rounds = 5\ndiscount_factor = 0.5\nclients = "c.csv"')
    Path("c.csv").write_text("name,valuation,cost_per_sample,samples\nA,1,1,5\n")
    before = {path: path.read_bytes() for path in Path().iterdir()}
    result = run("interview", "--name", "A", *words)
    assert result.exit_code == 2
    assert message in result.stderr
    assert "Traceback" not in result.output
    assert {path: path.read_bytes() for path in Path().iterdir()} == before


def test_ranges_can_be_written_as_ranges(run: Run) -> None:
    answers = '{"name": "Lake", "cases_per_month": "800-1200", "gpu_price": "2-3", '
    answers += '"samples_per_second": "20", "point_worth": "4000-12000"}'
    Path("answers.json").write_text(answers, encoding="utf-8")
    assert run("interview", "c.toml", "--answers", "answers.json", "--ranges").exit_code == 0
    again = ("interview", "c.toml", "--answers", "answers.json", "--ranges", "--name", "Bay")
    assert run(*again).exit_code == 0
    consortium = fa.load_consortium("c.toml")
    assert consortium.ranges is not None
    assert consortium.ranges.valuation.tolist() == [[100_000.0] * 2, [300_000.0] * 2]
    assert consortium.valuation.tolist() == [200_000.0] * 2
    assert consortium.ranges.samples[:, 0].tolist() == [2_400.0, 3_600.0]


# --- Several at once, in processes of their own -----------------------------------------------

QUESTION = b"Write this to c.toml?"


def started(*words: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "fedaccord", "interview", "c.toml", *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def asked(name: str, *, known: int = 1) -> subprocess.Popen[bytes]:
    """An interview that waits for the last answer; the file answers some of the first questions."""
    process = started()
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write("".join(f"{line}\n" for line in [name, *REPLIES[known:]]).encode())
    process.stdin.flush()
    said = b""
    while QUESTION not in said:
        part = os.read(process.stdout.fileno(), 4096)
        assert part, said
        said += part
    return process


@pytest.mark.slow
@pytest.mark.parametrize("new", [True, False])
def test_eight_add_a_client_at_once(run: Run, new: bool) -> None:
    if not new:
        run("interview", "c.toml", *options(LEAST))
    names = {f"Clinic {n}" for n in range(8)}
    processes = [started(*options(LEAST | {"name": name})) for name in sorted(names)]
    for process in processes:
        process.communicate(timeout=240)
    assert [process.returncode for process in processes] == [0] * 8
    there = {client.name for client in fa.load_consortium("c.toml")}
    assert there == names | (set() if new else {"Least"})


@pytest.mark.slow
def test_a_client_that_came_while_another_was_asked_stays(run: Run) -> None:
    for other, known in (("First", 1), ("Second", 3)):  # into a new file, and into one that exists
        process = asked(f"Asked before {other}", known=known)
        run("interview", "c.toml", *options(LEAST | {"name": other, "slot": "3 months"}))
        _, errors = process.communicate(b"yes\n", timeout=120)
        assert process.returncode == 0, errors
        assert b"Note: c.toml had changed meanwhile; the other changes stay." in errors
    names = [client.name for client in fa.load_consortium("c.toml")]
    assert names == ["First", "Asked before First", "Second", "Asked before Second"]


@pytest.mark.slow
def test_numbers_that_somebody_else_wrote_for_the_same_client_stay(run: Run) -> None:
    process = asked("Least")
    run("interview", "c.toml", *options(LEAST))
    before = Path("c.toml").read_bytes()
    _, errors = process.communicate(b"yes\n", timeout=120)
    assert process.returncode == 2
    assert errors.decode() == (
        "Error: c.toml: somebody else wrote numbers for Least meanwhile, so nothing was written; "
        "look at them and try again\n"
    )
    assert Path("c.toml").read_bytes() == before


@pytest.mark.slow
def test_a_file_that_somebody_removed_meanwhile_is_not_begun_again(run: Run) -> None:
    run("interview", "c.toml", *options(LEAST))
    process = asked("Other", known=3)
    Path("c.toml").unlink()
    _, errors = process.communicate(b"yes\n", timeout=120)
    assert process.returncode == 2
    assert errors == b"Error: c.toml: was removed meanwhile, so nothing was written\n"
    assert list(Path().iterdir()) == []

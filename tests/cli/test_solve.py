"""`fedaccord solve`: the JSON contract, the tables, and the files it writes."""

import csv
import json
import os
import pty
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from fedaccord.files.consortium import example_text
from tests.cli.conftest import Run


def solve_json(run: Run, *words: str) -> dict[str, Any]:
    result = run("solve", *words, "--format", "json")
    assert result.exit_code == 0, result.output
    return dict(json.loads(result.stdout, parse_constant=pytest.fail))


CONTRACT = {  # the fields in their order; * marks later additions
    "consortium": ["name", "clients", "rounds", "samples"],
    "equilibrium": [
        *("case", "unique", "total", "critical_client", "free_riders"),
        *("total_cost", "clients"),  # *
    ],
    "agreement": [
        *("kind", "exists", "total", "ratio", "free_riders", "free_riders_removed"),
        *("first_converted", "first_converted_by"),  # *
        *("level", "largest_level", "smallest_discount_factor"),
        *("exists_from", "reason", "objective", "margin", "whole_samples"),  # *
        *("punishment", "monitoring", "nobody_worse", "robust", "total_cost", "clients"),  # *
    ],
    "certificate": [
        *("holds", "worst_client", "slack"),
        *("assumptions", "under_laws", "under_fresh_laws", "over_ranges"),  # *
        "would_slip_if_one_is_out",  # *
    ],
    "law": ["kind", "measure", "floor", "terms"],  # *
    "worth": [  # *
        *("measure", "measured", "alone", "alone_band", "equilibrium", "equilibrium_band"),
        *("agreed", "agreed_band", "gain", "gain_band", "saving_per_slot", "saving_band"),
        *("saving_per_year", "stake", "saving_share", "currency", "slot", "slots_per_year"),
        *("range_used", "verdict", "clients"),
    ],
    "social_optimum": ["total", "total_cost", "price_of_anarchy"],  # *
    "sentences": [  # *
        *("consortium", "close_call", "agreement", "alternatives"),
        *("audits", "ranges", "law", "questions"),
    ],
}


def test_the_json_contract(run: Run) -> None:
    answer = solve_json(run, "--paper", "--agreement", "uniform")
    assert answer.pop("coalition") is None  # under reversion nobody goes alone
    names = ["name", "exists", "reason", "punishment", "objective", "margin"]
    for other in answer.pop("alternatives"):
        assert list(other) == [*names, "total", "total_cost", "saving_per_slot"]
    assert {part: list(record) for part, record in answer.items()} == CONTRACT
    assert answer["consortium"]["clients"] == 100
    assert answer["consortium"]["samples"] == 1_000_000
    assert isinstance(answer["consortium"]["samples"], int)
    assert list(answer["equilibrium"]["clients"][0]) == ["name", "contribution", "role", "cost"]
    assert list(answer["agreement"]["clients"][0]) == [
        *("name", "contribution", "role", "cost", "saving"),
        *("worse_than_equilibrium", "alone_cost", "threshold", "audit_probability"),  # *
        *("samples", "discount_factor"),  # *
    ]
    assert answer["agreement"]["clients"][0]["role"] == "free rider"


def test_the_papers_numbers(run: Run) -> None:
    answer = solve_json(run, "--paper", "--agreement", "uniform")
    equilibrium, agreement = answer["equilibrium"], answer["agreement"]
    assert equilibrium["case"] == "I"
    assert equilibrium["critical_client"] == "client-50"
    assert equilibrium["total"] == pytest.approx(505_063.3, abs=0.05)
    assert agreement["total"] == pytest.approx(887_448.1, abs=0.05)
    assert agreement["level"] == pytest.approx(7966.3, abs=0.05)
    assert agreement["ratio"] == pytest.approx(1.7571, abs=5e-5)
    assert agreement["smallest_discount_factor"] == pytest.approx(0.8)
    assert agreement["exists_from"] == pytest.approx(0.5106, abs=5e-5)
    riders = (
        equilibrium["free_riders"],
        agreement["free_riders"],
        agreement["free_riders_removed"],
    )
    assert riders == (49, 1, 48)
    assert agreement["first_converted"] == "client-2"
    assert answer["certificate"]["holds"] is True
    assert answer["certificate"]["worst_client"] == "client-2"
    assert answer["social_optimum"]["price_of_anarchy"] > 1


def test_the_individual_agreement_is_the_default(run: Run) -> None:
    agreement = solve_json(run, "--paper")["agreement"]
    assert agreement["kind"] == "individual"
    assert agreement["total"] == pytest.approx(993_957, abs=0.5)
    assert (agreement["level"], agreement["first_converted"]) == (None, None)


def test_no_agreement_is_not_an_error(run: Run) -> None:
    words = ("--paper", "--agreement", "uniform", "--discount-factor", "0.5")
    answer = solve_json(run, *words)
    assert answer["agreement"]["exists"] is False
    assert "not patient enough" in answer["agreement"]["reason"]
    assert answer["agreement"]["total"] == answer["equilibrium"]["total"]
    text = run("solve", *words)
    assert text.exit_code == 0
    said = " ".join(text.stdout.split())
    assert "No uniform agreement exists from client-2 on: the clients are not patient" in said
    assert "a uniform agreement from client-2 on would exist above 0.511." in said
    feasible = run("solve", *words, "--first-converted", "feasible")
    assert "a uniform agreement would exist above 0.027." in " ".join(feasible.stdout.split())


def test_without_a_file_it_uses_the_papers_setting_and_says_so(run: Run) -> None:
    said = "No file given, so this is the paper's setting"
    result = run("solve", "--format", "json")
    assert said in result.stderr
    json.loads(result.stdout)
    assert said in run("solve").stdout
    assert said not in run("solve", "--paper").output


def test_the_options_of_the_papers_setting(run: Run) -> None:
    answer = solve_json(
        run,
        *("--clients", "20", "--samples", "500", "--rounds", "10"),
        *("--cost-per-sample", "2e-6", "--discount-factor", "0.9"),
    )
    consortium = answer["consortium"]
    assert (consortium["clients"], consortium["rounds"], consortium["samples"]) == (20, 10, 10_000)


def test_the_options_of_the_agreement(run: Run) -> None:
    answer = solve_json(
        run,
        *("--paper", "--objective", "least-total-cost", "--margin", "0.1"),
        *("--whole-samples", "--punishment-slots", "12"),
    )["agreement"]
    assert answer["objective"] == "least total cost"
    assert answer["margin"] == 0.1
    assert answer["punishment"] == {"kind": "reversion", "slots": 12}
    assert answer["whole_samples"] is True
    assert all(client["contribution"].is_integer() for client in answer["clients"])
    feasible = solve_json(
        run,
        *("--paper", "--agreement", "uniform", "--discount-factor", "0.5"),
        *("--first-converted", "feasible"),
    )["agreement"]
    assert feasible["exists"] is True


def test_the_text(run: Run) -> None:
    run("init")
    text = run("solve", "consortium.toml").stdout
    assert "Breast imaging, six hospitals" in text
    for words in ("50,397", "116,000", "3 of 6", "0 of 6", "2.30", "Proved: no client gains"):
        assert words in text
    assert "Lakeside Clinic       16,000        0   16,000" in text
    assert "With reversion, the paper's punishment, the best agreement would be on 110,325" in text
    assert max(len(line.rstrip()) for line in text.splitlines()) <= 100
    assert "\x1b" not in text


ROW = re.compile(r"client-\d+ +\d")


@pytest.mark.slow
def test_only_some_of_many_clients_are_listed(run: Run) -> None:
    text = run("solve", "--paper", "--agreement", "uniform").stdout
    listed = [line.split()[0] for line in text.splitlines() if ROW.match(line)]
    assert len(listed) == 20
    assert {"client-1", "client-2", "client-50", "client-100"} <= set(listed)
    assert "20 of 100 clients" in text
    every = run("solve", "--paper", "--all").stdout
    assert sum(bool(ROW.match(line)) for line in every.splitlines()) == 100
    assert "of 100 clients, by" not in every


def test_names_are_printed_verbatim(run: Run) -> None:
    names = ["[red]St[/red] :smile: Mary", "<b>R&D</b> $x$"]
    lines = ["rounds = 50", "discount_factor = 0.8"]
    for name in names:
        lines += ["[[clients]]", f"name = '{name}'", "valuation = 1", "cost_per_sample = 1e-6"]
        lines += ["samples = 500"]
    Path("c.toml").write_text("\n".join(lines))
    text = run("solve", "c.toml").stdout
    assert all(name in text for name in names)


@pytest.mark.slow
def test_the_files_it_writes(run: Run) -> None:
    run("init")
    words = ("solve", "consortium.toml", "--punishment", "reversion", "--margin", "0")
    result = run(*words, "--report", "r.html", "--profile-out", "p.csv")
    assert result.exit_code == 0
    rows = list(csv.DictReader(Path("p.csv").read_text().splitlines()))
    assert [row["name"] for row in rows][:2] == ["University Hospital", "Northern General"]
    assert float(rows[4]["contribution"]) == pytest.approx(11297.155, abs=0.01)
    assert Path("r.html").read_text().startswith("<!DOCTYPE html>")
    assert sorted(path.name for path in Path().iterdir()) == ["consortium.toml", "p.csv", "r.html"]


@pytest.mark.slow
def test_the_default_is_suspension_for_a_file_and_the_papers_for_the_paper(run: Run) -> None:
    run("init")
    own = solve_json(run, "consortium.toml")["agreement"]
    assert (own["punishment"]["kind"], own["punishment"]["slots"]) == ("suspension", 1)
    assert (own["objective"], own["total"]) == ("least total cost", 116_000)
    papers = solve_json(run, "--paper")["agreement"]
    assert papers["punishment"] == {"kind": "reversion", "slots": None}
    assert papers["objective"] == "most data"
    ever = solve_json(run, "consortium.toml", "--for-ever", "--model-keeps", "0.5")["agreement"]
    assert ever["punishment"]["slots"] is None
    assert round(ever["total"]) < 116_000


@pytest.mark.slow
def test_whoever_is_worse_off_is_named(run: Run) -> None:
    run("init")
    words = ("solve", "consortium.toml", "--agreement", "uniform")
    told = " ".join(run(*words).stdout.split())
    assert "Lakeside Clinic pays more than without an agreement" in told
    answer = solve_json(run, *words[1:])["agreement"]["clients"]
    worse = [client["name"] for client in answer if client["worse_than_equilibrium"]]
    assert worse == ["Lakeside Clinic"]
    assert all(client["alone_cost"] >= client["cost"] for client in answer)
    nobody = solve_json(run, *words[1:], "--nobody-worse")["agreement"]
    assert nobody["nobody_worse"] is True
    assert not any(client["worse_than_equilibrium"] for client in nobody["clients"])


def test_exists_from_takes_margin_and_punishment_length_into_account(run: Run) -> None:
    """One slot of punishment counts for less than 0.5 at any patience: never 0.5106."""
    words = ("--paper", "--agreement", "uniform")
    never = solve_json(run, *words, "--punishment-slots", "1")
    assert never["agreement"]["exists_from"] is None
    told = run("solve", *words, "--punishment-slots", "1").stdout
    assert "would exist above" not in told
    later = solve_json(run, *words, "--margin", "0.1")
    assert later["agreement"]["exists_from"] == pytest.approx(0.6106, abs=5e-5)


SHEET = "Hospital;Cases;Value;Cost per case;City\nA;42.000;700.000 €;0,0042;X\nB;500;1 €;0,1;\n"
NOTES = """\
Note: sheet.csv: not used: 1 column, 'City'
Note: sheet.csv: line 2, samples: '42.000' was read as 42000 (1 number like it in the same way), \
because '0,0042' (line 2, cost_per_sample) shows that the file has decimal commas
"""


def test_notes_on_a_spreadsheet_are_printed_once_on_stderr(run: Run) -> None:
    Path("c.toml").write_text('rounds = 5\ndiscount_factor = 0.9\nclients = "sheet.csv"\n')
    Path("sheet.csv").write_text(SHEET, encoding="utf-8")
    result = run("solve", "c.toml", "--format", "json")
    assert result.stderr == NOTES
    assert json.loads(result.stdout)["consortium"]["samples"] == 42_500
    assert run("solve", "c.toml").stderr == NOTES  # for every command, not only the first


def test_the_usual_margin_is_for_files_only(run: Run) -> None:
    run("init")
    assert solve_json(run, "consortium.toml")["agreement"]["margin"] == 0.01
    assert solve_json(run, "consortium.toml", "--margin", "0")["agreement"]["margin"] == 0.0
    assert solve_json(run, "--paper")["agreement"]["margin"] == 0.0
    played = json.loads(run("play", "consortium.toml", "--format", "json").stdout)
    assert played["agreement"]["margin"] == 0.01


def test_a_knife_edge_is_told_first(run: Run) -> None:
    run("init")
    words = ("solve", "consortium.toml", "--punishment", "reversion")
    lines = run(*words, "--margin", "0").stdout.splitlines()
    assert lines[2].startswith("Knife-edge: Riverside and Lakeside Clinic are exactly indifferent")
    assert lines[3].endswith("(--margin 0.01)")
    assert "Knife-edge" not in run(*words).stdout


def test_what_it_is_worth(run: Run) -> None:
    run("init")
    worth = solve_json(run, "consortium.toml")["worth"]
    assert (worth["verdict"], worth["currency"], worth["slots_per_year"]) == (
        *("worth signing", "EUR"),
        12.0,
    )
    assert worth["saving_per_year"] == pytest.approx(12 * worth["saving_per_slot"])
    assert worth["clients"][4]["verdict"] == "hardly worth signing"
    assert worth["saving_band"] is None  # the law is assumed
    text = run("solve", "consortium.toml").stdout
    assert "Cost of a slot to all together, EUR" in text
    assert "EUR saved" in text


NUMBER = re.compile(r"(?<![\w.])-?\d[\d,]*(?:\.\d+)?(?:e-?\d+)?")
GROUP = ((890_000, 0.004, 4_000), (1_500_000, 0.015, 52_000), (1_450_000, 0.019, 59_000))
"""Valuation, cost per sample and samples: some of these would do better without the others."""
EVERYONE = ((1_310_000, 0.017, 34_000), (610_000, 0.018, 56_000), (180_000, 0.013, 50_000))
"""All of these would pay less under another profile."""


def consortium_of(clients: tuple[tuple[float, float, int], ...], last: tuple[Any, ...]) -> str:
    tables = "".join(
        f'[[clients]]\nname = "Clinic {n}"\nvaluation = {worth}\ncost_per_sample = {cost}\n'
        f"samples = {samples}\n"
        for n, (worth, cost, samples) in zip("ABCD", (*clients, last), strict=True)
    )
    return f"rounds = 50\ndiscount_factor = 0.9\n{tables}"


def leaves(record: Any) -> list[Any]:
    if isinstance(record, dict | list):
        inside = record.values() if isinstance(record, dict) else record
        return [leaf for each in inside for leaf in leaves(each)]
    return [record]


def rounds_to(value: float, text: str) -> bool:
    """Whether a number is printed like this."""
    decimals = len(text.partition("e")[0].partition(".")[2])
    shown = float(text.replace(",", ""))
    half = 0.5 * 10.0 ** (float(text.partition("e")[2] or 0) - decimals)
    return bool(abs(value - shown) <= half * (1 + 1e-9))


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("example", ()),
        ("example", ("--objective", "most-data", "--margin", "0")),
        ("example", ("--agreement", "uniform", "--punishment", "reversion")),
        ("example", ("--within", "30%")),
        ("example", ("--audit-rate", "0.4", "--false-alarm", "0.01")),
        ("example", ("--margin", "0.9")),
        ("group", ("--objective", "most-data")),
        ("everyone", ("--objective", "most-data")),
    ],
)
def test_json_has_every_number_and_name_that_people_read(
    run: Run, tmp_path: Path, text: str, options: tuple[str, ...]
) -> None:
    content = {
        "example": example_text(),
        "group": consortium_of(GROUP, (1_870_000, 0.019, 58_000)),
        "everyone": consortium_of(EVERYONE, (130_000, 0.015, 3_000)),
    }[text]
    (tmp_path / "c.toml").write_text(content, encoding="utf-8")
    printed = run("solve", "c.toml", "--all", *options).stdout
    record = json.loads(run("solve", "c.toml", *options, "--format", "json").stdout)
    found = leaves(record)
    said = " ".join(each for each in found if isinstance(each, str))
    numbers = [float(each) for each in found if type(each) in (int, float)]
    written = set(NUMBER.findall(said))
    for number in NUMBER.findall(printed):
        assert number in written or any(rounds_to(each, number) for each in numbers), number
    for client in record["agreement"]["clients"]:
        assert client["name"] in printed
    flat = " ".join(printed.split())
    for part in record["sentences"].values():
        for sentence in part:
            assert sentence in flat


def test_json_has_the_group_that_would_go_and_the_alternatives(run: Run, tmp_path: Path) -> None:
    (tmp_path / "g.toml").write_text(consortium_of(GROUP, (1_870_000, 0.019, 58_000)))
    options = ("g.toml", "--objective", "most-data")
    record = json.loads(run("solve", *options, "--format", "json").stdout)
    group = record["coalition"]
    assert (group["everyone"], group["holds"]) == (False, None)
    assert {row["name"] for row in group["clients"] if row["saving"] > 0} == set(group["members"])
    text = " ".join(run("solve", *options).stdout.split())
    assert "A group would do better on its own, for good: " in text
    assert all(member in text for member in group["members"])
    names = [other["name"] for other in record["alternatives"]]
    assert names[0] == "reversion"
    assert names[-1] == "least total cost"
    # the options are named after sentences that JSON has without them
    assert ("--nobody-worse rules that out." in text) == ("nobody worse" in names)
    assert "(--objective least-total-cost)" in text
    assert "--" not in json.dumps(record["sentences"]).replace("`fedaccord ranges`", "")

    (tmp_path / "e.toml").write_text(consortium_of(EVERYONE, (130_000, 0.015, 3_000)))
    words = ("solve", "e.toml", "--objective", "most-data", "--format", "json")
    everyone = json.loads(run(*words).stdout)["coalition"]
    assert (everyone["everyone"], everyone["holds"]) == (True, True)


def test_an_option_follows_its_sentence_however_that_is_worded(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The option belongs to the remark, not to its words."""
    cheaper = "fedaccord.summaries.alternatives.cheaper_sentence"
    monkeypatch.setattr(cheaper, lambda *_: "Another one is cheaper.")
    monkeypatch.setattr("fedaccord.summaries.agreement.worse_off", lambda _: "Some pay more.")
    words = ("--punishment", "suspension", "--objective", "most-data")
    text = run("solve", "--paper", "--clients", "20", *words).stdout
    assert "Another one is cheaper. (--objective least-total-cost)" in text
    assert "Some pay more. (--nobody-worse rules that out.)" in text


def on_a_terminal(where: Path, words: list[str], replies: list[str]) -> tuple[int, str]:
    """The exit code of a command on a terminal of its own, and all that it shows there."""
    terminal, end = pty.openpty()
    command = subprocess.Popen(
        [sys.executable, "-m", "fedaccord", *words],
        cwd=where,
        stdin=end,
        stdout=end,
        stderr=end,
        start_new_session=True,
    )
    os.close(end)
    shown = b""
    while True:
        try:
            shown += os.read(terminal, 4096)
        except OSError:  # the command has ended
            break
        if shown.endswith(b"> ") and replies:
            shown += b"\n"
            os.write(terminal, replies.pop(0).encode() + b"\n")
    os.close(terminal)
    return command.wait(), shown.decode()


@pytest.mark.slow
def test_a_table_alone_and_its_questions_on_a_terminal(run: Run, tmp_path: Path) -> None:
    text = "Zentrum;Fallzahl;Wert;Kostpreis (€)\nA;42.000;700.000;1\nB;30.000;640.000;1\n"
    Path("t.csv").write_text(text, "utf-8")
    refused = run("solve", "t.csv")
    assert refused.exit_code == 2
    assert refused.stderr.count("\n") == 2  # a note and one mistake
    assert "I don't know the column 'Kostpreis (€)'; is it 'cost_per_sample'?" in refused.stderr
    code, shown = on_a_terminal(tmp_path, ["solve", "t.csv"], ["9", "1", "1"])
    assert code == 0
    assert "I don't know the column 'Kostpreis (€)', which begins with 1, 1. What is it?" in shown
    assert "Please type a number from 1 to 7, or Enter alone." in shown
    assert "What does '42.000' (and 3 more like it) mean?" in shown
    assert "2 clients with 72,000 samples in total" in shown
    code, shown = on_a_terminal(tmp_path, ["solve", "t.csv"], ["", ""])
    assert code == 2
    assert "column 'cost_per_sample' is missing" in shown

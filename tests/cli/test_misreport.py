"""`fedaccord misreport`: the JSON contract, the tables, the picture, and invalid input."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Run

NAMES = [
    *("equilibrium", "free equilibrium", "uniform", "individual", "suspension", "posted"),
    *("clock", "serial clock", "fair exchange"),
]


def misreport_json(run: Run, *words: str) -> dict[str, Any]:
    result = run("misreport", *words, "--format", "json")
    assert result.exit_code == 0, result.output
    return dict(json.loads(result.stdout, parse_constant=pytest.fail))


@pytest.mark.slow
def test_the_json_contract(run: Run) -> None:
    paper = ("--paper", "--clients", "5", "--samples", "200000")
    answer = misreport_json(run, *paper, "--reports", "20", "--no-everyone")
    assert [entry["name"] for entry in answer["mechanisms"]] == NAMES
    for entry in answer["mechanisms"]:
        assert len(entry["clients"]) == 5
        assert set(entry["clients"][0]) >= {
            *("name", "report", "gain", "gain_of_computation", "gain_of_saving", "total"),
        }
        honest = entry["name"] in ("posted", "clock", "serial clock", "fair exchange")
        assert (entry["largest_gain"] <= 1e-9) == honest
        assert entry["everyone"] == []


def test_everyone_and_the_seed(run: Run) -> None:
    words = ("--paper", "--clients", "3", "--mechanism", "uniform", "--seed", "7")
    [entry] = misreport_json(run, *words)["mechanisms"]
    assert [one["order"] for one in entry["everyone"]][-1] == "random"
    assert [one["seed"] for one in entry["everyone"]] == [None] * 4 + [7]


@pytest.mark.slow
def test_the_tables_and_the_sentences(run: Run, tmp_path: Path) -> None:
    picture = tmp_path / "lies.svg"
    words = ("--mechanism", "individual", "--mechanism", "serial-clock", "--picture", str(picture))
    result = run("misreport", "--paper", *words)
    assert result.exit_code == 0, result.output
    said = " ".join(result.stdout.split())
    assert "individual (most data): all 100 clients gain by a lie." in said
    assert "client-1 gains most: to report a ratio of 0 saves it" in said
    assert "serial clock: nobody gains by any of 200 false reports." in said
    assert "90 more clients; --all shows them." in said
    assert "public ranges" in said
    assert "add --everyone" in said
    assert picture.read_text("utf-8").startswith("<?xml")


def test_one_client_only(run: Run) -> None:
    words = ("--mechanism", "equilibrium", "--client", "client-60")
    [entry] = misreport_json(run, "--paper", *words)["mechanisms"]
    [client] = entry["clients"]
    assert (client["name"], client["field"]) == ("client-60", "ratio")
    assert client["gain_of_computation"] == pytest.approx(0.494, abs=5e-4)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--mechanism", "barter"), "--mechanism: there is no 'barter'"),
        (("--reports", "0"), "must be 1 or more"),
        (("--seed", "-1"), "must be 0 or more"),
        (("--client", "Nobody"), "Nobody"),
        (("--picture", "lies.txt"), "--picture: must end in .png, .svg or .pdf"),
        (("--clients", "20000"), "--reports: 200 reports of each of 20,000 clients are too many"),
    ],
)
def test_wrong_options(run: Run, words: tuple[str, ...], message: str) -> None:
    result = run("misreport", "--paper", *words)
    assert result.exit_code == 2
    assert message in result.stderr
    assert "Traceback" not in result.stderr

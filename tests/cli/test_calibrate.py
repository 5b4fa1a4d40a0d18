"""`fedaccord calibrate`: measured numbers as text, as JSON and in a file."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fedaccord.training.calibration import Losses

import fedaccord as fa
from tests.cli.conftest import Run

QUICK = ("--rounds", "6", "--seeds", "1")


def calibrate_json(run: Run, *words: str) -> dict[str, Any]:
    result = run("calibrate", *words, "--format", "json")
    assert result.exit_code == 0, result.output
    return dict(json.loads(result.stdout, parse_constant=pytest.fail))


def test_the_record(run: Run) -> None:
    answer = calibrate_json(
        run, *QUICK, "--price-per-second", "2", "--value-of-loss", "10", "--dataset", "digits"
    )
    assert (answer["dataset"], answer["task"], answer["rounds"]) == ("digits", "softmax", 6)
    assert answer["cost_per_sample"] == pytest.approx(2 * 6 * answer["seconds_per_sample"])
    assert answer["valuation"] == pytest.approx(10 * answer["law_at_the_end"]["data"])
    assert isinstance(answer["law"]["fits"], bool)
    assert answer["law"]["fits"] == (not answer["law"]["objections"])
    assert len({point["total"] for point in answer["losses"]}) == 6
    assert max(point["round"] for point in answer["losses"]) == 6


def test_equation_4(run: Run) -> None:
    """Chip / 2 x cycles x hertz^2, where cycles = seconds x hertz."""
    answer = calibrate_json(run, *QUICK, "--chip", "2e-28", "--hertz", "2e9")
    cycles = 6 * answer["seconds_per_sample"] * 2e9
    assert answer["cost_per_sample"] == pytest.approx(2e-28 / 2 * cycles * 2e9**2)
    assert answer["valuation"] is None


def test_numbers_are_written_into_a_file(run: Run) -> None:
    run("init", "mine.toml")
    Path("few.toml").write_text(
        Path("mine.toml").read_text(encoding="utf-8").replace("rounds = 50", "rounds = 6"),
        encoding="utf-8",
    )
    words = ("--seeds", "1", "--price-per-second", "1", "--value-of-loss", "10")
    one = ("--client", "St Mary", "--out", "new.toml")
    result = run("calibrate", "few.toml", *words, *one)
    assert result.exit_code == 0, result.output
    before, after = fa.load_consortium("few.toml"), fa.load_consortium("new.toml")
    n = before.index("St Mary")
    changed = (before.cost_per_sample != after.cost_per_sample).nonzero()[0].tolist()
    assert changed == [n]
    assert (before.valuation != after.valuation).nonzero()[0].tolist() == [n]
    assert (before.samples == after.samples).all()
    written = Path("new.toml").read_text(encoding="utf-8")
    assert written.startswith("# Measured with softmax on digits")
    for line in Path("few.toml").read_text(encoding="utf-8").splitlines():
        if "#" in line:
            assert line.partition("#")[2] in written  # the user's comments are kept
    assert run("calibrate", "few.toml", *words, "--out", "few.toml").exit_code == 0
    assert len(set(fa.load_consortium("few.toml").cost_per_sample.tolist())) == 1


@pytest.mark.parametrize("suffix", ["png", "svg"])
def test_text_and_picture(run: Run, suffix: str) -> None:
    result = run("calibrate", *QUICK, "--picture", f"law.{suffix}")
    assert result.exit_code == 0
    assert "seconds per sample in a round" in result.stdout
    assert "The law" in result.stdout
    assert "To turn seconds into a cost, give --price-per-second" in result.stdout
    assert "To turn a into a valuation, give --value-of-loss" in result.stdout
    assert Path(f"law.{suffix}").stat().st_size > 1000


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--out", "new.toml"), "need a FILE to put the numbers into"),
        (("--client", "St Mary"), "need a FILE to put the numbers into"),
        (("--chip", "1"), "--hertz: must be given together with chip"),
        (
            ("--chip", "1", "--hertz", "1", "--price-per-second", "1"),
            "--price-per-second: must be given alone",
        ),
        (("--price-per-second", "0"), "--price-per-second: must be more than 0 and finite, got 0"),
        (("--price-per-second", "inf"), "must be more than 0 and finite, got inf"),
        (("--chip", "-1", "--hertz", "-1e9"), "--chip: must be more than 0 and finite, got -1"),
        (("--chip", "1", "--hertz", "-1e9"), "--hertz: must be more than 0 and finite, got -1e+09"),
        (
            ("--chip", "1", "--hertz", "1e200"),
            "what a second costs: must be more than 0 and finite",
        ),
        (("--value-of-loss", "-1"), "--value-of-loss: must be more than 0"),
        (("--picture", "law.doc"), "must end in .png, .svg or .pdf"),
        (("--dataset", "cifar"), "no dataset called 'cifar'"),
        (("--rounds", "3"), "must be 4 or more to fit the law"),
        (("--rounds", "9" * 400), "9,007,199,254,740,992 or less"),
        (("--rate", "1e300"), "rate: must be more than 0 and fit 32 bits, got 1e+300"),
    ],
)
def test_rejected(run: Run, words: tuple[str, ...], message: str) -> None:
    result = run("calibrate", *words)
    assert result.exit_code == 2
    assert message in result.stderr
    assert not Path("new.toml").exists()


def test_an_infinite_valuation(run: Run) -> None:
    result = run("calibrate", *QUICK, "--value-of-loss", "1e308", "--format", "json")
    assert result.exit_code == 2
    assert "the valuation: must be more than 0 and finite, got inf" in result.stderr


def test_nothing_to_write(run: Run) -> None:
    """Neither a price nor a value: the new file would have none of the measured numbers."""
    run("init", "mine.toml")
    result = run("calibrate", "mine.toml", "--out", "new.toml")
    assert result.exit_code == 2
    assert "--out: there would be no number to write into the file: give a price" in result.stderr
    assert not Path("new.toml").exists()


def test_no_valuation_is_written_if_data_does_not_help(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The loss rises with data, so there is no valuation, and no price was given."""
    totals, turns = np.array([10, 100, 1000, 2000]), np.array([1, 50])
    rising = Losses(totals, turns, np.log(totals)[:, None] * np.ones(2))
    monkeypatch.setattr("fedaccord.training.calibration.measure_losses", lambda *_, **__: rising)
    run("init", "mine.toml")
    words = ("calibrate", "mine.toml", "--value-of-loss", "5", "--out", "new.toml")
    result = run(*words)
    assert result.exit_code == 2
    assert "there is no number to write: more data does not lower the loss at all" in result.stderr
    assert not Path("new.toml").exists()
    assert run(*words, "--price-per-second", "1").exit_code == 0
    assert Path("new.toml").exists()


def test_rejected_with_a_file(run: Run) -> None:
    run("init", "mine.toml")
    result = run("calibrate", "mine.toml", "--client", "St Mark")
    assert result.exit_code == 2
    assert "no client called 'St Mark'" in result.stderr
    result = run("calibrate", "mine.toml", "--client", "St Mary")
    assert result.exit_code == 2
    assert "--client: goes with --out only" in result.stderr
    result = run("calibrate", "mine.toml", "--rounds", "6")
    assert result.exit_code == 2
    assert "--rounds: mine.toml says 50" in result.stderr


def test_clients_in_a_csv_file(run: Run) -> None:
    """The CSV file is unchanged: the new file lists the clients itself, and a note says so."""
    table = "name,valuation,cost_per_sample,samples\nNorth,1,2,400\nSouth,2,3,400\n"
    Path("clients.csv").write_text(table, encoding="utf-8")
    Path("mine.toml").write_text(
        '# ours\nrounds = 6\ndiscount_factor = 0.5\nclients = "clients.csv"\n', encoding="utf-8"
    )
    words = ("--seeds", "1", "--price-per-second", "1", "--client", "North", "--out", "new.toml")
    result = run("calibrate", "mine.toml", *words)
    assert result.exit_code == 0, result.output
    assert "clients.csv is unchanged; new.toml lists the clients itself" in result.stderr
    assert Path("clients.csv").read_text(encoding="utf-8") == table
    before, after = fa.load_consortium("mine.toml"), fa.load_consortium("new.toml")
    assert (before.cost_per_sample != after.cost_per_sample).tolist() == [True, False]

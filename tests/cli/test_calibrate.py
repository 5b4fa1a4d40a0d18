"""`fedaccord calibrate`: the law as text, as JSON, as a picture and in a file."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fedaccord as fa
from fedaccord.files.curve import load_curve
from fedaccord.training import learning_curve
from fedaccord.trials.calibration import Calibration
from tests.cli.conftest import Run

QUICK = ("--rounds", "6", "--seeds", "2", "--smallest", "200", "--measure", "loss")


def example(run: Run, name: str = "mine.toml") -> fa.Consortium:
    """A consortium file with few rounds."""
    run("init", name)
    text = Path(name).read_text(encoding="utf-8").replace("rounds = 50", "rounds = 6")
    Path(name).write_text(text, encoding="utf-8")
    return fa.load_consortium(name)


WITH_FILE = ("--seeds", "2", "--smallest", "200", "--measure", "loss")


def calibrate_json(run: Run, *words: str) -> dict[str, Any]:
    result = run("calibrate", *words, "--format", "json")
    assert result.exit_code == 0, result.output
    return dict(json.loads(result.stdout, parse_constant=pytest.fail))


def test_the_record(run: Run) -> None:
    answer = calibrate_json(run, *QUICK, "--price-per-second", "2", "--dataset", "digits")
    assert (answer["dataset"], answer["task"], answer["rounds"]) == ("digits", "softmax", 6)
    assert answer["cost_per_sample"] == pytest.approx(2 * 6 * answer["seconds_per_sample"])
    assert (answer["measure"], answer["seeds"], answer["test_examples"]) == ("loss", 2, 359)
    assert (answer["law"]["kind"], answer["law"]["measure"]) == ("measured", "loss")
    assert answer["law"]["evidence"]["range"] == [254.0, 1438.0]
    assert [point["samples"] for point in answer["curve"]] == [254, 359, 508, 719, 1017, 1438]
    assert answer["alone"] == []


def test_equation_4(run: Run) -> None:
    """Chip / 2 x cycles x hertz^2, where cycles = seconds x hertz."""
    answer = calibrate_json(run, *QUICK, "--chip", "2e-28", "--hertz", "2e9")
    cycles = 6 * answer["seconds_per_sample"] * 2e9
    assert answer["cost_per_sample"] == pytest.approx(2e-28 / 2 * cycles * 2e9**2)


@pytest.mark.slow
def test_the_law_is_written_into_a_file_and_nothing_else_changes(run: Run) -> None:
    before = example(run)
    text = Path("mine.toml").read_text(encoding="utf-8")
    result = run("calibrate", "mine.toml", *WITH_FILE, "--out", "mine.toml")
    assert result.exit_code == 0, result.output
    assert "The curve is in curve.csv, the law in mine.toml." in result.stdout
    assert "One example stands for 80." in result.stdout
    written = Path("mine.toml").read_text(encoding="utf-8")
    assert written.startswith("# Measured with softmax on digits: the loss after 6 rounds, at 6")
    assert set(text.splitlines()) <= set(written.splitlines())
    after = fa.load_consortium("mine.toml")
    for field in ("valuation", "cost_per_sample", "samples", "discount_factor"):
        assert np.array_equal(getattr(before, field), getattr(after, field))
    assert after.law.kind == "measured"
    assert after.law.evidence is not None
    assert after.law.evidence.curve.largest == pytest.approx(116_000, rel=0.01)
    assert not Path("curve.csv.part").exists()
    again = run("calibrate", "mine.toml", *WITH_FILE, "--task", "mlp", "--out", "mine.toml")
    assert again.exit_code == 0, again.output
    written = Path("mine.toml").read_text(encoding="utf-8")
    assert written.count("# Measured with") == 1
    assert "# Measured with mlp" in written


@pytest.mark.slow
def test_a_cost_is_written_for_the_clients_whose_machine_this_is(run: Run) -> None:
    before = example(run)
    words = ("--price-per-second", "1", "--client", "Riverside", "--out", "new.toml")
    result = run("calibrate", "mine.toml", *WITH_FILE, *words)
    assert result.exit_code == 0, result.output
    after = fa.load_consortium("new.toml")
    changed = (before.cost_per_sample != after.cost_per_sample).nonzero()[0].tolist()
    assert changed == [before.index("Riverside")]
    assert np.array_equal(before.valuation, after.valuation)
    assert after.law.kind == "measured"


@pytest.mark.slow
def test_a_curve_elsewhere(run: Run) -> None:
    example(run)
    Path("data").mkdir()
    words = ("--curve", "data/ours.csv", "--out", "new.toml")
    result = run("calibrate", "mine.toml", *WITH_FILE, *words)
    assert result.exit_code == 0, result.output
    assert 'curve = "data/ours.csv"' in Path("new.toml").read_text(encoding="utf-8")
    assert load_curve("data/ours.csv", "loss").examples == 359


@pytest.mark.slow
def test_a_killed_run_goes_on(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fedaccord.training.curve_store._SECONDS_BETWEEN", 0.0)
    trained, left = learning_curve._train, iter(range(7))

    def some(*arguments: Any) -> Any:
        if next(left, None) is None:
            raise KeyboardInterrupt
        return trained(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(learning_curve, "_train", some)
        assert run("calibrate", *QUICK, "--curve", "c.csv").exit_code == 130
    assert Path("c.csv.part").exists()
    assert not Path("c.csv").exists()
    other = run("calibrate", *QUICK, "--task", "mlp", "--curve", "c.csv")
    assert other.exit_code == 2
    assert "c.csv.part: belongs to another measurement (task: softmax, now mlp)" in other.stderr
    assert run("calibrate", *QUICK, "--curve", "c.csv").exit_code == 0
    assert not Path("c.csv.part").exists()
    assert run("calibrate", *QUICK, "--curve", "whole.csv").exit_code == 0
    assert Path("c.csv").read_bytes() == Path("whole.csv").read_bytes()


def test_a_curve_that_no_law_fits_is_kept_and_refused(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = iter(range(1000))

    def worse(*_: Any) -> Any:
        values = np.full(359, 1.0 + next(calls) % 6)
        return {"error": values, "loss": values}

    monkeypatch.setattr(learning_curve, "_judged", worse)
    example(run)
    result = run("calibrate", "mine.toml", *WITH_FILE, "--out", "new.toml")
    assert result.exit_code == 2
    assert "more data made it worse" in result.stderr
    assert Path("curve.csv").exists()
    assert not Path("new.toml").exists()


@pytest.mark.slow
def while_measuring(monkeypatch: pytest.MonkeyPatch, change: Callable[[], object]) -> None:
    """Let somebody change something while the first model is trained."""
    trained, left = learning_curve._train, [change]

    def interfering(*arguments: Any) -> Any:
        if left:
            left.pop()()
        return trained(*arguments)

    monkeypatch.setattr(learning_curve, "_train", interfering)


@pytest.mark.slow
def test_what_somebody_else_writes_while_the_law_is_measured_stays(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    example(run)
    file = Path("mine.toml")

    def change() -> None:
        file.write_text(
            file.read_text("utf-8").replace("# Hospitals", "# Ours: hospitals", 1), "utf-8"
        )

    while_measuring(monkeypatch, change)
    file.write_text("# Hospitals\n" + file.read_text("utf-8"), "utf-8")
    result = run("calibrate", "mine.toml", *WITH_FILE, "--out", "mine.toml")
    assert result.exit_code == 0, result.output
    assert "# Ours: hospitals" in file.read_text("utf-8")
    assert fa.load_consortium(file).law.kind == "measured"


@pytest.mark.slow
def test_a_law_for_other_rounds_than_the_file_has_by_now_is_refused(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    example(run)
    file = Path("mine.toml")
    other = file.read_text("utf-8").replace("rounds = 6", "rounds = 7")
    while_measuring(monkeypatch, lambda: file.write_text(other, "utf-8"))
    result = run("calibrate", "mine.toml", *WITH_FILE, "--out", "mine.toml")
    assert result.exit_code == 2
    assert result.stderr.endswith(
        "mine.toml: has 7 rounds by now, and the law was measured for 6; the curve is in "
        "curve.csv\n"
    )
    assert file.read_text("utf-8") == other
    assert load_curve("curve.csv", "loss").examples == 359
    assert not Path("curve.csv.part").exists()


@pytest.mark.slow
def test_a_change_at_the_last_moment_is_refused_and_the_measurement_kept(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    example(run)
    file, written_into = Path("mine.toml"), Calibration.written_into

    def late(*arguments: Any) -> str:
        text = written_into(*arguments)
        file.write_text("# Somebody else's\n" + file.read_text("utf-8"), "utf-8")
        return text

    with monkeypatch.context() as patch:
        patch.setattr(Calibration, "written_into", late)
        result = run("calibrate", "mine.toml", *WITH_FILE, "--out", "mine.toml")
    assert result.exit_code == 2
    assert "mine.toml: was changed by another program meanwhile" in result.stderr
    assert file.read_text("utf-8").startswith("# Somebody else's")
    assert not Path("curve.csv").exists()
    monkeypatch.setattr(learning_curve, "_train", pytest.fail)  # nothing is measured again
    assert run("calibrate", "mine.toml", *WITH_FILE, "--out", "mine.toml").exit_code == 0
    assert "# Somebody else's" in file.read_text("utf-8")


def test_members_with_their_own_data(run: Run) -> None:
    rng = np.random.default_rng(0)
    Path("data").mkdir()
    for name, size in (("North", 300), ("South", 200), ("test", 300)):
        inputs = rng.normal(size=(size, 4)).astype(np.float32)
        labels = (inputs.sum(axis=1) + rng.normal(size=size) > 0).astype(np.int64)
        np.savez(Path("data") / f"{name}.npz", inputs=inputs, labels=labels)
    words = ("--rounds", "5", "--seeds", "3", "--measure", "loss", "--smallest", "60")
    answer = calibrate_json(run, "--data", "data", *words)
    assert [one["name"] for one in answer["alone"]] == ["North", "South"]
    assert (answer["scale"], answer["curve"][-1]["samples"]) == (1.0, 500)


@pytest.mark.slow
@pytest.mark.parametrize("suffix", ["png", "svg", "pdf"])
def test_a_picture(run: Run, suffix: str) -> None:
    result = run("calibrate", *QUICK, "--picture", f"law.{suffix}")
    assert result.exit_code == 0, result.output
    assert "A single power: chi^2" in result.stdout
    assert "To turn seconds into a cost, give --price-per-second" in result.stdout
    assert "To keep the curve, give --curve" in result.stdout
    start = Path(f"law.{suffix}").read_bytes()[:5]
    assert start in (b"\x89PNG\r", b"<?xml", b"%PDF-")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--chip", "1"), "--hertz: must be given together with chip"),
        (("--price-per-second", "-1"), "--price-per-second: must be more than 0 and finite"),
        (("--price-per-second", "inf"), "--price-per-second: must be more than 0 and finite"),
        (
            ("--chip", "1", "--hertz", "1e200"),
            "what a second costs: must be more than 0 and finite",
        ),
        (("--picture", "law.doc"), "must end in .png, .svg or .pdf"),
        (("--dataset", "cifar"), "no dataset called 'cifar'"),
        (("--dataset", "digits", "--data", "."), "--dataset: cannot be combined with data"),
        (("--measure", "accuracy"), "'accuracy' is not one of 'error', 'loss'"),
        (("--smallest", "1400"), "--data: 1,438 examples from 1,400 on make 1 sizes"),
        (("--out", "new.toml"), "--out and --client: need a FILE to put the law into"),
        (("--rate", "1e300"), "rate: must be more than 0 and fit 32 bits, got 1e+300"),
    ],
)
def test_rejected(run: Run, words: tuple[str, ...], message: str) -> None:
    result = run("calibrate", *words)
    assert result.exit_code == 2
    assert message in " ".join(result.stderr.split())
    assert not Path("new.toml").exists()


def test_rejected_with_a_file(run: Run) -> None:
    run("init", "mine.toml")
    result = run("calibrate", "mine.toml", "--client", "St Mark")
    assert result.exit_code == 2
    assert "no client called 'St Mark'" in result.stderr
    result = run("calibrate", "mine.toml", "--client", "St Mary", "--out", "new.toml")
    assert result.exit_code == 2
    assert "--client: goes with --out and a price" in result.stderr
    result = run("calibrate", "mine.toml", "--rounds", "6")
    assert result.exit_code == 2
    assert "--rounds: mine.toml says 50" in result.stderr


@pytest.mark.slow
def test_the_curve_of_the_old_file_is_not_overwritten_for_a_new_one(run: Run) -> None:
    example(run)
    assert run("calibrate", "mine.toml", *WITH_FILE, "--out", "mine.toml").exit_code == 0
    result = run("calibrate", "mine.toml", *WITH_FILE, "--out", "new.toml")
    assert result.exit_code == 2
    assert "curve.csv: is an input of this command and is not overwritten" in result.stderr


@pytest.mark.slow
def test_clients_in_a_csv_file(run: Run) -> None:
    """The CSV file is unchanged; with a cost, the new file lists the clients itself."""
    table = "name,valuation,cost_per_sample,samples\nNorth,1,2,400\nSouth,2,3,400\n"
    Path("clients.csv").write_text(table, encoding="utf-8")
    Path("mine.toml").write_text(
        '# ours\nrounds = 6\ndiscount_factor = 0.5\nclients = "clients.csv"\n', encoding="utf-8"
    )
    result = run("calibrate", "mine.toml", *WITH_FILE, "--out", "law.toml")
    assert result.exit_code == 0, result.output
    assert 'clients = "clients.csv"' in Path("law.toml").read_text(encoding="utf-8")
    words = ("--price-per-second", "1", "--client", "North", "--out", "new.toml")
    result = run("calibrate", "mine.toml", *WITH_FILE, *words)
    assert result.exit_code == 0, result.output
    assert "clients.csv is unchanged; new.toml lists the clients itself" in result.stderr
    assert Path("clients.csv").read_text(encoding="utf-8") == table
    before, after = fa.load_consortium("mine.toml"), fa.load_consortium("new.toml")
    assert (before.cost_per_sample != after.cost_per_sample).tolist() == [True, False]

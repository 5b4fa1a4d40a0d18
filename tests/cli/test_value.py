"""`fedaccord value`: who helps whom, as text, as JSON, as a picture, and weights in a file."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fedaccord as fa
from fedaccord.data.dataset import load_dataset
from fedaccord.membership.quality import QualityWeight
from tests.cli.conftest import Run

QUICK = ("--rounds", "8", "--seeds", "2")
UNLIKE = ("--dataset", "digits", "--clients", "3", "--skew", "0.3")


def folder(path: Path) -> Path:
    """Two clients with their own data and tests, and one whose labels are wrong."""
    digits, rng = load_dataset("digits"), np.random.default_rng(0)
    (path / "test").mkdir(parents=True)
    for n, name in enumerate(["North", "South", "Wrong"]):
        own, test = slice(150 * n, 150 * n + 150), slice(60 * n, 60 * n + 60)
        labels = digits.labels[own]
        labels = rng.integers(0, 10, 150) if name == "Wrong" else labels
        np.savez(path / f"{name}.npz", inputs=digits.inputs[own], labels=labels)
        inputs, labels = digits.test_inputs[test], digits.test_labels[test]
        np.savez(path / "test" / f"{name}.npz", inputs=inputs, labels=labels)
    return path


def consortium_file(names: list[str]) -> Path:
    clients = "".join(
        f'[[clients]]\nname = "{name}"\nvaluation = 10.0  # a guess\ncost_per_sample = 0.001\n'
        "samples = 150\n\n"
        for name in names
    )
    text = f"# ours\nrounds = 8\ndiscount_factor = 0.8\n\n{clients}"
    Path("ours.toml").write_text(text, encoding="utf-8")
    return Path("ours.toml")


def test_the_text(run: Run) -> None:
    result = run("value", *UNLIKE, *QUICK)
    assert result.exit_code == 0, result.output
    first, *_ = result.stdout.splitlines()
    assert first.startswith(("Whose data helps whom most", "Nobody's data surely helps"))
    for words in ("Shapley value", "Leave-one-out", "client-3's", "All together, %", "±"):
        assert words in result.stdout
    assert "all 7 groups of 3 clients, each with 2 seeds" in " ".join(result.stdout.split())
    assert "quality" not in result.stdout.lower()


def test_data_of_ones_own(run: Run, tmp_path: Path) -> None:
    data = folder(tmp_path / "data")
    result = run("value", "--data", str(data), "--rounds", "30", "--seeds", "3", "--format", "json")
    assert result.exit_code == 0, result.output
    record: dict[str, Any] = json.loads(result.stdout, parse_constant=pytest.fail)
    names = [client["name"] for client in record["clients"]]
    assert names == ["North", "South", "Wrong"]
    north, _, wrong = record["clients"]
    assert (north["test_examples"], record["test_examples"]) == (60, 180)
    assert wrong["shapley"]["mean"] < north["shapley"]["mean"]
    assert [other["client"] for other in north["helps"]] == names
    total = sum(client["shapley"]["mean"] for client in record["clients"])
    assert total == pytest.approx(record["together"]["mean"] - record["untrained"]["mean"])


@pytest.mark.parametrize("columns", [200, 110, 60])
def test_tables_fit_the_terminal(run: Run, monkeypatch: pytest.MonkeyPatch, columns: int) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    result = run("value", "--clients", "6", "--skew", "0.3", "--rounds", "2", "--seeds", "2")
    assert result.exit_code == 0, result.output
    assert max(map(len, result.stdout.splitlines())) <= columns
    table = result.stdout.partition("Leave-one-out")[2].partition("Percentage")[0]
    assert ("client-6's" in table) == (columns > 60)
    assert (" ± " in table) == (columns != 110)


@pytest.mark.slow
def test_a_picture(run: Run) -> None:
    result = run("value", *UNLIKE, *QUICK, "--picture", "who.png")
    assert result.exit_code == 0, result.output
    assert Path("who.png").read_bytes().startswith(b"\x89PNG")
    assert run("value", "--picture", "who.txt").exit_code == 2


def test_more_clients_than_can_be_valued_exactly(run: Run) -> None:
    words = ("--clients", "9", "--rounds", "1", "--seeds", "2", "--permutations", "20")
    result = run("value", *words, "--tolerance", "20")
    told = " ".join(result.stdout.split())
    assert "Shapley values from 36 permutations, 36 of them truncated." in told
    assert "seeds, test examples and sampled permutations" in told


@pytest.mark.slow
def test_quality_weights_that_are_sure_go_into_a_copy_of_the_file(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    verdicts = {"North": "usable", "South": "too uncertain"}

    def measure(course: Any, *_: Any) -> tuple[QualityWeight, ...]:
        return tuple(
            QualityWeight(name, 150, (150, 75), (0.45, 0.47), 0.4567, 0.4, 0.51, verdicts[name])  # type: ignore[arg-type]
            for name in course.names
        )

    monkeypatch.setattr("fedaccord.membership.quality.measure_quality", measure)
    file = consortium_file(["North", "South"])
    words = ("value", str(file), "--seeds", "2", "--out", "new.toml")
    result = run(*words)
    assert result.exit_code == 0, result.output
    told = " ".join(result.stdout.split())
    assert "North: quality 0.46, from 0.4 to 0.51 (0.45 beside 150 samples of others" in told
    assert "South: no quality weight; one of its 150 samples could be worth 0.4 to 0.51." in told
    assert "The quality of North is in new.toml." in told
    written = Path("new.toml").read_text(encoding="utf-8")
    assert written.startswith("# Quality measured with softmax on digits, 8 rounds, 2 seeds: North")
    assert "# ours" in written
    assert "# a guess" in written
    assert fa.load_consortium("new.toml").quality.tolist() == [0.457, 1.0]
    assert fa.load_consortium(file).quality.tolist() == [1.0, 1.0]
    verdicts["North"] = "leave it out"
    result = run("value", str(file), "--seeds", "2", "--out", "none.toml")
    assert "do harm, and are best left out" in " ".join(result.stdout.split())
    assert "No quality weight is sure enough: none.toml was not written." in result.stdout
    assert not Path("none.toml").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--out", "new.toml"), "--out: needs a FILE"),
        (("ours.toml", "--rounds", "9"), "--rounds: ours.toml says 8"),
        (("ours.toml", "--clients", "3"), "--clients: the data, or the file, says who"),
        (("--seeds", "1"), "--seeds: must be a whole number, 2 or more, got 1"),
        (("--exact", "--permutations", "9"), "--permutations: cannot be combined with exact"),
        (("--clients", "20", "--exact"), "--exact: 20 clients have 1,048,575 groups"),
        (("--data", "nowhere"), "nowhere: there is no such directory"),
        (("--skew", "0"), "--skew: must be more than 0"),
        (("--tolerance", "-1"), "--tolerance: must be 0 or more, got -1"),
        (("--fine-tune", "2"), "--fine-tune: needs a test of each client's own to judge by"),
        (("--permutations", "20"), "--permutations: with 6 clients or fewer all groups are"),
        (("--tolerance", "1"), "--tolerance: goes with sampled permutations, but here all groups"),
        (("--clients", "8", "--exact", "--tolerance", "1"), "--tolerance: goes with sampled"),
    ],
)
def test_mistakes(run: Run, words: tuple[str, ...], message: str) -> None:
    consortium_file(["North", "South"])
    result = run("value", *words)
    assert result.exit_code == 2
    assert message in result.stderr
    assert "Traceback" not in result.stderr


def test_the_file_and_the_scale_say_how_many_records_each_trains_on(
    run: Run, tmp_path: Path
) -> None:
    data = str(folder(tmp_path / "data"))
    file = consortium_file(["North", "South", "Wrong"])
    whole = file.read_text(encoding="utf-8")
    trained = []
    for samples, scale in ((150, "1"), (40, "1"), (40, "0.5")):
        file.write_text(whole.replace("samples = 150", f"samples = {samples}"), encoding="utf-8")
        words = (str(file), "--data", data, "--seeds", "2", "--scale", scale)
        result = run("value", *words, "--format", "json")
        assert result.exit_code == 0, result.output
        record = json.loads(result.stdout)
        assert [one["samples"] for one in record["clients"]] == [samples] * 3
        trained.append(record["together"]["mean"])
    assert len(set(trained)) == 3
    result = run("value", str(file), "--data", data, "--seeds", "2", "--scale", "4")
    assert result.exit_code == 2
    assert "North: has 150 examples, but at scale 4 it needs 160" in result.stderr


@pytest.mark.slow
@pytest.mark.originals("heart-disease", "tcga-brca")
@pytest.mark.parametrize(
    ("dataset", "measure", "centre"),
    [("heart-disease", "accuracy", "Long Beach"), ("tcga-brca", "concordance", "Canada")],
)
def test_the_centres_of_a_dataset(run: Run, dataset: str, measure: str, centre: str) -> None:
    words = ("--dataset", dataset, "--rounds", "3", "--seeds", "2", "--rate", "0.1")
    result = run("value", *words, "--format", "json")
    assert result.exit_code == 0, result.output
    record = json.loads(result.stdout, parse_constant=pytest.fail)
    assert record["measure"] == measure
    last = record["clients"][-1]
    assert last["name"] == centre
    assert len(last["helps"]) == len(record["clients"])

"""`fedaccord init` and `fedaccord demo`: the first commands that anyone runs."""

import json
import re
from pathlib import Path

import pytest

from fedaccord.files.consortium import example_text
from fedaccord.summaries.demo import HEADINGS
from tests.cli.conftest import Run


def test_init_writes_a_file_that_every_command_accepts(run: Run) -> None:
    result = run("init")
    assert result.exit_code == 0
    assert Path("consortium.toml").read_text() == example_text()
    assert "fedaccord solve consortium.toml" in result.stdout


def test_init_overwrites_only_with_force(run: Run) -> None:
    Path("mine.toml").write_text("precious")
    result = run("init", "mine.toml")
    assert result.exit_code == 2
    assert result.stderr == "Error: mine.toml: already exists; --force overwrites it\n"
    assert Path("mine.toml").read_text() == "precious"
    assert run("init", "mine.toml", "--force").exit_code == 0
    assert Path("mine.toml").read_text() == example_text()


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """The demo with fewer trainings."""
    monkeypatch.setattr("fedaccord.trials.demonstration.SEEDS", 6)
    monkeypatch.setattr("fedaccord.trials.demonstration.FRESH_SEEDS", 6)


@pytest.mark.slow
@pytest.mark.usefixtures("quick")
def test_demo_tells_one_story_on_the_terminal_on_its_page_and_in_its_files(run: Run) -> None:
    result = run("demo", "--report", "page.html", "--files", "kept")
    assert result.exit_code == 0
    for n, heading in enumerate(HEADINGS, start=1):
        assert f"{n}. {heading}" in result.stdout
    said = " ".join(result.stdout.split())
    for words in (
        *("Measured with 66 trainings and 1,397 test images", "free-ride", "Of 400 images only"),
        *("EUR in a slot of 3 months", "laws that fit the measurements"),
        *("Proved: no client gains by slipping", "Assumed, not proved:", "Wrote page.html"),
    ):
        assert words in said
    page = " ".join(Path("page.html").read_text("utf-8").split())
    assert "An agreement that holds" in page
    # the gain that is predicted before the training is the one that it is compared with
    [predicted] = re.findall(r"the law predicts (\S+ to \S+) points", said)
    assert f"predicted {predicted} points of accuracy, measured" in said
    assert f"the law predicts {predicted} points" in page
    assert f"Predicted: {predicted} points of accuracy. Measured, with 6 seeds" in page
    # and the files lead to the same agreement
    names = sorted(str(path) for path in Path().rglob("*") if path.is_file())
    assert names == ["kept/consortium.toml", "kept/curve.csv", "page.html"]
    solved = run(
        *("solve", "kept/consortium.toml", "--objective", "fair-share", "--margin", "0.1"),
        *("--nobody-worse", "--whole-samples", "--format", "json"),
    )
    agreed = json.loads(solved.stdout)["agreement"]["total"]
    assert f"With {agreed:.0f} images they would reach" in said


def test_demo_without_pytorch_says_what_is_missing(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fedaccord.checks.is_installed", lambda *_: False)
    for words, what in ((["demo"], "the demo"), (["train", "--paper"], "training")):
        refused = run(*words)
        assert refused.exit_code == 2
        assert refused.stderr.startswith(f"Error: {what}")
        assert "needs PyTorch" in refused.stderr
        assert len(refused.stderr.splitlines()) == 1
    assert not list(Path().iterdir())


def test_demo_refuses_a_directory_that_cannot_be_made(run: Run) -> None:
    Path("taken").write_text("a file")
    refused = run("demo", "--files", "taken")
    assert refused.exit_code == 2
    assert refused.stderr.startswith("Error: --files: taken: ")
    assert len(refused.stderr.splitlines()) == 1


def test_demo_writes_its_page_to_a_web_page_only(run: Run) -> None:
    refused = run("demo", "--report", "page.pdf")
    assert refused.exit_code == 2
    assert "name it .html" in " ".join(refused.stderr.split())
    assert not list(Path().iterdir())

"""`fedaccord reproduce`: its files, what is reused, and invalid input."""

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fedaccord.data import mnist
from fedaccord.experiments import presets
from fedaccord.experiments.figure_data import PartFile
from fedaccord.experiments.presets import TrainingPreset, figure_titles, own_titles
from fedaccord.experiments.reproduction import trained_sections
from tests.cli.conftest import Run
from tests.experiments.presets_for_tests import small_training

DOCS = Path(__file__).parents[2] / "docs" / "explanation"
ENDINGS = ("csv", "svg", "png", "json")


def test_without_a_figure_all_are_listed(run: Run, tmp_path: Path) -> None:
    result = run("reproduce")
    assert result.exit_code == 0
    names = [line.split()[0] for line in result.output.splitlines()]
    assert names == [*figure_titles(), *own_titles(), "accuracy", "law", "claims", "all"]
    listed = json.loads(run("reproduce", "--format", "json").stdout)["figures"]
    assert [each["figure"] for each in listed] == names
    assert listed[0]["title"] == figure_titles()["fig3"]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_a_figure_is_four_files(run: Run, tmp_path: Path) -> None:
    result = run("reproduce", "fig4", "--out", "figures/new")
    assert result.exit_code == 0
    folder = tmp_path / "figures" / "new"
    assert sorted(path.name for path in folder.iterdir()) == sorted(f"fig4.{e}" for e in ENDINGS)
    lines = (folder / "fig4.csv").read_text().splitlines()
    assert lines[0].startswith("clients,case,free_riders,uniform_ratio,individual_ratio")
    assert len(lines) == 200
    settings = json.loads((folder / "fig4.json").read_text())
    assert settings["setting"]["samples"] == 10_000
    assert "clients" not in settings["setting"]
    assert (settings["swept"]["first"], settings["swept"]["last"]) == (2, 200)
    assert settings["seed"] is None
    assert "181" in result.output
    assert "holds within rounding" in result.output


def made(result: object) -> list[tuple[str, bool]]:
    record = json.loads(result.stdout)  # type: ignore[attr-defined]
    return [(figure["figure"], figure["kept"]) for figure in record["figures"]]


@pytest.mark.slow
def test_existing_figures_are_kept_and_changed_ones_are_made(run: Run, tmp_path: Path) -> None:
    words = ("reproduce", "fig16", "fig15", "--out", "out", "--format", "json")
    assert made(run(*words)) == [("fig15", False), ("fig16", False)]
    before = (tmp_path / "out" / "fig15.svg").stat().st_mtime_ns
    assert made(run(*words)) == [("fig15", True), ("fig16", True)]
    assert (tmp_path / "out" / "fig15.svg").stat().st_mtime_ns == before
    (tmp_path / "out" / "fig16.csv").write_text("half of")
    assert made(run(*words)) == [("fig15", True), ("fig16", False)]
    assert made(run(*words, "--force")) == [("fig15", False), ("fig16", False)]
    assert made(run(*words, "--width", "two-columns")) == [("fig15", False), ("fig16", False)]


@pytest.mark.slow
def test_a_figure_with_unreadable_settings_is_made_again(run: Run, tmp_path: Path) -> None:
    words = ("reproduce", "fig15", "--out", "out", "--format", "json")
    run(*words)
    for text in ("no json", "[]", "{}"):
        (tmp_path / "out" / "fig15.json").write_text(text)
        assert made(run(*words)) == [("fig15", False)]


@pytest.mark.slow
def test_a_seed_changes_the_random_draws(run: Run, tmp_path: Path) -> None:
    words = ("reproduce", "fig17", "--out", "out", "--format", "json")
    run(*words)
    own = (tmp_path / "out" / "fig17.csv").read_bytes()
    assert made(run(*words, "--seed", "5")) == [("fig17", False)]
    assert (tmp_path / "out" / "fig17.csv").read_bytes() != own
    assert json.loads((tmp_path / "out" / "fig17.json").read_text())["seed"] == 5


@pytest.mark.slow
def test_claims_are_written_to_a_page(run: Run, tmp_path: Path) -> None:
    result = run("reproduce", "claims", "--out", "out")
    assert result.exit_code == 0
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["evaluation.md"]
    page = (tmp_path / "out" / "evaluation.md").read_text()
    assert "### Figure 23: " in page
    assert "accuracy.png" not in page  # nothing was trained
    assert "does not hold" in result.output


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["fig2"], "Error: there is no 'fig2': did you mean 'fig23'?"),
        (["fig4", "figs", "no"], "Error: 2 mistakes:"),
        (["fig17", "--seed", "-1"], "must be 0 or more, got -1"),
        (
            ["fig3", "fig4", "--seed", "1"],
            "Error: --seed: no random numbers are drawn for fig3, fig4",
        ),
        (["fig4", "--out", "file"], "Error: file: cannot be written to: File exists"),
        (["fig4", "--out", "file/below"], "Error: file/below: cannot be written to"),
    ],
)
def test_rejected(run: Run, tmp_path: Path, words: list[str], message: str) -> None:
    (tmp_path / "file").write_text("here already")
    result = run("reproduce", *words)
    assert result.exit_code == 2
    assert message in result.stderr
    assert "Traceback" not in result.output
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


@pytest.fixture
def no_mnist(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """MNIST is neither on disk nor available for download."""
    monkeypatch.setenv("FEDACCORD_DATA", str(tmp_path / "nowhere"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("HOME", str(tmp_path))
    nowhere = [replace(file, url=f"http://127.0.0.1:9/{file.name}") for file in mnist.FILES.files]
    monkeypatch.setattr(mnist, "FILES", replace(mnist.FILES, files=tuple(nowhere)))


@pytest.mark.usefixtures("no_mnist")
def test_training_without_mnist_fails_with_one_sentence(run: Run, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    result = run("reproduce", "law", "--out", "out")
    assert result.exit_code == 2
    assert "MNIST is not on this machine and could not be downloaded" in result.stderr
    assert "FEDACCORD_DATA" in result.stderr
    assert list((tmp_path / "out").iterdir()) == []


@pytest.mark.slow
@pytest.mark.usefixtures("no_mnist")
def test_a_plot_of_another_width_needs_no_training(run: Run, tmp_path: Path) -> None:
    """The results in the docs are available, and MNIST is not."""
    pytest.importorskip("torch")
    shutil.copytree(DOCS, tmp_path / "out")
    words = ("reproduce", "law", "--out", "out", "--format", "json")
    assert made(run(*words)) == [("law", False)]
    assert (tmp_path / "out" / "law.csv").read_bytes() == (DOCS / "law.csv").read_bytes()
    assert (tmp_path / "out" / "law.png").read_bytes() != (DOCS / "law.png").read_bytes()
    assert made(run(*words)) == [("law", True)]
    assert run(*words, "--force").exit_code == 2
    assert made(run(*words)) == [("law", True)]  # nothing was lost


@pytest.mark.slow
@pytest.mark.usefixtures("no_mnist")
def test_without_mnist_the_rest_still_runs(run: Run, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    words = ("reproduce", "fig16", "law", "--out", "out")
    result = run(*words)
    assert result.exit_code == 0
    assert "fig16     made" in result.output
    assert "Left out: law. " in result.output
    assert "Verdicts on 4 statements" in result.output
    record = json.loads(run(*words, "--format", "json").stdout)
    assert [note.partition(". ")[0] for note in record["notes"]] == ["Left out: law"]
    assert record["measured"] == []


@pytest.mark.usefixtures("no_mnist")
@pytest.mark.slow
def test_claims_of_another_seed_are_not_shown(run: Run, tmp_path: Path) -> None:
    """The results in the docs are for seed 1."""
    pytest.importorskip("torch")
    shutil.copytree(DOCS, tmp_path / "out")
    for seed in (None, 1):
        assert [part.name for part in trained_sections(DOCS, seed)] == ["accuracy", "law"]
    result = run("reproduce", "claims", "--seed", "7", "--out", "out", "--format", "json")
    assert json.loads(result.stdout)["measured"] == []
    assert "accuracy.png" not in (tmp_path / "out" / "evaluation.md").read_text()


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """A law that is measured quickly, without MNIST: six runs."""
    pytest.importorskip("torch")
    options = {"law": {"samples": [20, 100, 500], "rounds": [1, 2, 5]}}
    small = {name: small_training(name, **options.get(name, {})) for name in ("accuracy", "law")}

    def find(name: str, seed: int | None = None) -> TrainingPreset:
        return small[name] if seed is None else replace(small[name], seed=seed)

    monkeypatch.setattr(presets, "find_training", find)


def interrupt_after(runs: int, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Interrupt training after this many finished runs; returns the seeds of those started."""
    from fedaccord.training import course

    real: Callable[..., Any] = course.train
    begun: list[int] = []

    def train(*words: Any, seed: int, **more: Any) -> Any:
        if len(begun) == runs:
            raise KeyboardInterrupt
        begun.append(seed)
        return real(*words, seed=seed, **more)

    monkeypatch.setattr(course, "train", train)
    return begun


@pytest.mark.slow
@pytest.mark.usefixtures("small")
def test_interrupted_training_resumes(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("reproduce", "law", "--out", "whole")
    words = ("reproduce", "law", "--out", "out")
    with monkeypatch.context() as patch:
        interrupt_after(4, patch)
        assert run(*words).exit_code != 0
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["law.part.json"]
    with monkeypatch.context() as patch:
        begun = interrupt_after(99, patch)
        assert run(*words, "--width", "two-columns").exit_code == 0
        assert begun == [1, 2]  # of six
    names = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert names == sorted(f"law.{e}" for e in ENDINGS)
    whole, resumed = (tmp_path / folder / "law.csv" for folder in ("whole", "out"))
    assert resumed.read_bytes() == whole.read_bytes()


def test_parts_of_other_settings_are_ignored(tmp_path: Path) -> None:
    parts = PartFile(tmp_path, "law", {"rate": 0.5})
    parts["seed 1"] = [0.1 + 0.2, 1 / 3]
    assert PartFile(tmp_path, "law", {"rate": 0.5}) == {"seed 1": [0.1 + 0.2, 1 / 3]}
    assert PartFile(tmp_path, "law", {"rate": 0.4}) == {}
    assert PartFile(tmp_path, "accuracy", {"rate": 0.5}) == {}
    for text in ("[]", "{}", '{"settings": {"rate": 0.5}, "parts": [1]}'):
        parts.path.write_text(text)
        assert PartFile(tmp_path, "law", {"rate": 0.5}) == {}


@pytest.mark.slow
@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("otherwise", ["--force", "--seed", "half"])
def test_parts_that_are_not_reused(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, otherwise: str
) -> None:
    words = ["reproduce", "law", "--out", "out"]
    with monkeypatch.context() as patch:
        interrupt_after(4, patch)
        run(*words)
    if otherwise == "half":
        path = tmp_path / "out" / "law.part.json"
        path.write_text(path.read_text()[:-9])
    else:
        words += {"--force": ["--force"], "--seed": ["--seed", "5"]}[otherwise]
    begun = interrupt_after(99, monkeypatch)
    assert run(*words).exit_code == 0
    assert len(begun) == 6
    assert not (tmp_path / "out" / "law.part.json").exists()


@pytest.mark.slow
@pytest.mark.usefixtures("no_mnist")
def test_all_continues_without_mnist(run: Run, tmp_path: Path) -> None:
    result = run("reproduce", "all", "--out", "out")
    assert result.exit_code == 0
    written = {path.name for path in (tmp_path / "out").iterdir()}
    figures = figure_titles() | own_titles()
    assert written == {f"{name}.{e}" for name in figures for e in ENDINGS} | {
        "evaluation.md",
        "index.html",
    }
    page = (tmp_path / "out" / "index.html").read_text()
    assert page.count("data:image/svg+xml;base64,") == len(figures)
    assert page.count("Left out: accuracy, law. ") == 1
    assert "Left out: accuracy, law. " in result.output

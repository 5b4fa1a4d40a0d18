"""`fedaccord init` and `fedaccord demo`: the first commands that anyone runs."""

from pathlib import Path

import pytest

from fedaccord.files.consortium import example_text
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


def test_demo_shows_every_step_and_that_accuracy_is_gained(run: Run) -> None:
    result = run("demo")
    assert result.exit_code == 0
    for words in (
        *("1. Left to itself", "free-ride", "50,397", "2. Together", "110,814", "116,000"),
        *("3. The agreement with suspension", "Proved: no client gains by slipping"),
        *("Assumed, not proved:", "4. More data", "individual against"),
        *("5. A page", "fedaccord-demo.html", "fedaccord init"),
    ):
        assert words in result.stdout
    page = Path("fedaccord-demo.html").read_text()
    assert "An agreement that holds" in page
    assert "What it means for a model" in page
    # ten seeds, 232 images against 101: the gain was 3.9 ± 2.2 points
    [line] = [line for line in result.stdout.splitlines() if "against equilibrium" in line]
    assert "points of accuracy" in line
    assert "chance" not in line
    assert float(line.split("equilibrium: ")[1].split(" points")[0]) > 1.0


def test_demo_without_pytorch_leaves_that_step_out(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fedaccord.checks.is_installed", lambda *_: False)
    result = run("demo")
    assert result.exit_code == 0
    assert "This step needs PyTorch" in result.stdout
    assert "What it means for a model" not in Path("fedaccord-demo.html").read_text()
    refused = run("train", "--paper")
    assert refused.exit_code == 2
    assert "training needs PyTorch" in refused.stderr


def test_demo_writes_its_page_to_the_given_file(run: Run) -> None:
    assert run("demo", "--report", "page.html").exit_code == 0
    assert [path.name for path in Path().iterdir()] == ["page.html"]

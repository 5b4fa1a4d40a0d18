"""`fedaccord init` and `fedaccord demo`: the first things that anyone runs."""

from pathlib import Path

from fedaccord.game.files import example_text
from tests.cli.conftest import Run


def test_init_writes_a_file_that_every_command_takes(run: Run) -> None:
    result = run("init")
    assert result.exit_code == 0
    assert Path("consortium.toml").read_text() == example_text()
    assert "fedaccord solve consortium.toml" in result.stdout


def test_init_overwrites_only_when_told_to(run: Run) -> None:
    Path("mine.toml").write_text("precious")
    result = run("init", "mine.toml")
    assert result.exit_code == 2
    assert result.stderr == "Error: mine.toml: exists already; --force overwrites it\n"
    assert Path("mine.toml").read_text() == "precious"
    assert run("init", "mine.toml", "--force").exit_code == 0
    assert Path("mine.toml").read_text() == example_text()


def test_demo_tells_the_whole_story(run: Run) -> None:
    result = run("demo")
    assert result.exit_code == 0
    for words in (
        *("1. Alone", "free-ride", "50,397", "2. Together", "58,223", "110,814"),
        *("3. The individual agreement", "Proved", "4. A page", "fedaccord-demo.html"),
        "fedaccord init",
    ):
        assert words in result.stdout
    assert "An agreement that holds" in Path("fedaccord-demo.html").read_text()


def test_demo_writes_its_page_where_it_is_told(run: Run) -> None:
    assert run("demo", "--report", "page.html").exit_code == 0
    assert [path.name for path in Path().iterdir()] == ["page.html"]

"""Runs the command line in an empty directory."""

from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result
from typer.testing import CliRunner

from fedaccord.cli import app

Run = Callable[..., Result]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs `fedaccord` with these arguments; unexpected errors are not swallowed."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("NO_COLOR", "1")

    def run(*words: str) -> Result:
        return CliRunner().invoke(app, words, catch_exceptions=False)

    return run

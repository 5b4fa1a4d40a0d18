"""Rules for the whole package that no linter checks."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

import fedaccord
from fedaccord.moved import NOW_IN

HOUSE = Path(fedaccord.__file__).parent
FLAG = re.compile(r"(?<![\w-])--[a-z]")
COMMANDS = "cli/"
WITH_FLAGS = {
    "console/room/running.py",  # runs our own commands
    "deployment/fence.py",  # starts Flower
    "deployment/server.py",  # runs Flower's commands
    "flower/running.py",  # likewise
}
"""Modules that may mention flags."""


def modules_outside_the_command_line() -> Iterator[tuple[str, ast.Module]]:
    for path in sorted(HOUSE.rglob("*.py")):
        place = path.relative_to(HOUSE).as_posix()
        if not place.startswith(COMMANDS):
            yield place, ast.parse(path.read_text("utf-8"))


def strings_in(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Line and text of string literals other than docstrings, which may mention flags."""
    documentation = {
        id(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    for node in ast.walk(tree):
        if not isinstance(node, ast.Constant) or id(node) in documentation:
            continue
        if isinstance(node.value, str):
            yield node.lineno, node.value


@pytest.mark.slow
def test_only_the_command_line_mentions_flags() -> None:
    found = {
        f"{place}:{line}"
        for place, tree in modules_outside_the_command_line()
        for line, text in strings_in(tree)
        if place not in WITH_FLAGS and FLAG.search(text)
    }
    assert found == set()


@pytest.mark.slow
def test_only_the_command_line_prints() -> None:
    found = {
        f"{place}:{node.lineno}"
        for place, tree in modules_outside_the_command_line()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "print"
    }
    assert found == set()


@pytest.mark.parametrize("old", NOW_IN)
def test_old_modules_say_where_they_are_now(old: str) -> None:
    import_module(f"fedaccord.{NOW_IN[old]}")
    with pytest.raises(ModuleNotFoundError, match=r"has moved: use fedaccord\.\w+"):
        import_module(f"fedaccord.{old}")


def test_modules_below_an_old_package_say_so_too() -> None:
    with pytest.raises(ModuleNotFoundError) as moved:
        import_module("fedaccord.baselines.contract")
    assert str(moved.value) == (
        "fedaccord.baselines has moved: use fedaccord.mechanisms; its command is now "
        "`fedaccord detect`"
    )
    with pytest.raises(ModuleNotFoundError, match=r"has moved: use fedaccord\.mechanisms"):
        exec("from fedaccord import baselines", {})
    run = [sys.executable, "-m", "fedaccord.baselines.detection"]
    done = subprocess.run(run, capture_output=True, text=True, check=False)
    assert "fedaccord.baselines has moved: use fedaccord.mechanisms" in done.stderr
    assert "Traceback" not in done.stderr


def test_other_missing_modules_are_just_missing() -> None:
    with pytest.raises(ModuleNotFoundError, match=r"No module named 'fedaccord\.nothing'"):
        import_module("fedaccord.nothing")

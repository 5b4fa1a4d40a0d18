"""`fedaccord.training` gives its public names when they are used, without PyTorch before that."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from fedaccord import data, training


@pytest.mark.parametrize("name", training.__all__)
def test_every_name_is_there(name: str) -> None:
    assert getattr(training, name) is not None
    assert name in dir(training)


def test_type_checkers_see_the_same_names_in_the_same_places() -> None:
    tree = ast.parse(Path(str(training.__file__)).read_text(encoding="utf-8"))
    guarded = next(node for node in tree.body if isinstance(node, ast.If))
    seen = {
        alias.asname: node.module
        for node in guarded.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert seen == {name: f"fedaccord.training.{home}" for name, home in training._HOMES.items()}


def test_names_that_are_not() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = training.nothing


def test_the_law_needs_no_pytorch() -> None:
    code = "import sys, fedaccord.training.law, fedaccord.data; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_data_has_its_names_too() -> None:
    assert all(hasattr(data, name) for name in data.__all__)

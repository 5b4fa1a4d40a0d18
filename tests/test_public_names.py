"""`import fedaccord` gives the public names, lazily, and type checkers see the same ones."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import fedaccord


@pytest.mark.parametrize("name", fedaccord.__all__)
def test_every_name_is_there(name: str) -> None:
    value = getattr(fedaccord, name)
    assert value.__name__ == name
    assert value.__module__.startswith("fedaccord.")
    assert value.__doc__


def test_type_checkers_see_the_same_names_in_the_same_places() -> None:
    tree = ast.parse(Path(fedaccord.__file__).read_text(encoding="utf-8"))
    guarded = next(node for node in tree.body if isinstance(node, ast.If))
    seen = {}
    for node in guarded.body:
        assert isinstance(node, ast.ImportFrom)
        for alias in node.names:
            assert alias.asname == alias.name  # re-exported on purpose
            seen[alias.name] = node.module
    assert set(seen) == set(fedaccord.__all__)
    assert seen == {name: getattr(fedaccord, name).__module__ for name in fedaccord.__all__}


def test_names_that_are_not() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = fedaccord.nothing
    assert set(dir(fedaccord)) == {*fedaccord.__all__, "__version__"}


def test_importing_the_package_alone_imports_no_numpy() -> None:
    """Nor anything else of weight: `fedaccord --help` waits for none of it."""
    code = "import sys, fedaccord; print([m for m in ('numpy', 'scipy') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"

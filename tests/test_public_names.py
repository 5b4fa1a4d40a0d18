"""`import fedaccord` gives the public names, lazily, and type checkers see the same ones."""

import ast
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import fedaccord

SUBPACKAGES = {path.parent.name for path in Path(fedaccord.__file__).parent.glob("*/__init__.py")}


@pytest.mark.parametrize("name", fedaccord.__all__)
def test_every_name_is_there(name: str) -> None:
    value = getattr(fedaccord, name)
    assert value.__name__ == name
    assert value.__module__.startswith("fedaccord.")
    assert value.__doc__


def test_each_name_is_declared_where_it_is_defined() -> None:
    stub = ast.parse(Path(fedaccord.__file__).with_suffix(".pyi").read_text(encoding="utf-8"))
    homes = {
        alias.name: f"fedaccord.{node.module}"
        for node in stub.body
        if isinstance(node, ast.ImportFrom) and node.module is not None
        for alias in node.names
    }
    assert homes == {name: getattr(fedaccord, name).__module__ for name in fedaccord.__all__}


@pytest.mark.parametrize("name", fedaccord.__all__)
def test_help_shows_short_types(name: str) -> None:
    """`help(fa.solve_batch)` shows npt.ArrayLike, not the 300-character union behind it."""
    value = getattr(fedaccord, name)
    functions = [value, *vars(value).values()] if isinstance(value, type) else [value]
    for function in functions:
        if inspect.isfunction(function):
            parameters = inspect.signature(function).parameters.values()
            assert max((len(str(parameter)) for parameter in parameters), default=0) < 100


def test_unknown_names_raise() -> None:
    with pytest.raises(AttributeError, match="fedaccord attribute nothing"):
        getattr(fedaccord, "nothing")  # noqa: B009
    assert set(dir(fedaccord)) == set(fedaccord.__all__) | SUBPACKAGES


def test_subpackages_are_attributes_before_anybody_has_imported_them() -> None:
    code = "import sys, fedaccord; print(*(getattr(fedaccord, n).__name__ for n in sys.argv[1:]))"
    done = subprocess.run(
        [sys.executable, "-c", code, *SUBPACKAGES], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == [f"fedaccord.{name}" for name in SUBPACKAGES]


def test_a_star_import_takes_no_subpackages() -> None:
    """Some of them need extras, which may not be installed."""
    assert not SUBPACKAGES & set(fedaccord.__all__)


def test_importing_the_package_does_not_import_numpy() -> None:
    """Nor any other heavy library, so that `fedaccord --help` is fast."""
    code = "import sys, fedaccord; print([m for m in ('numpy', 'scipy') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"

"""A task of one's own by `module:function`: what its digest covers, and what is run."""

import hashlib
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import fedaccord as fa
from fedaccord.audits.software import software_of
from fedaccord.data.dataset import load_dataset
from fedaccord.training.code import check_code, read_code, run_code
from fedaccord.training.task import Model, find_task

BUILD = """\
import torch

def build(dataset):
    return torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, dataset.classes))
"""
WITH_LOSS = (
    BUILD
    + """
from fedaccord.training import Task
half = Task("any", build, lambda outputs, labels: torch.nn.functional.cross_entropy(
    outputs, labels, reduction="none") / 2)
number = 3
wrong_result = lambda dataset: 3
fails = lambda dataset: dataset.no_such_thing
"""
)
BAD = "import pathlib\npathlib.Path({mark!r}).touch()\n" + BUILD


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A directory on the Python path."""
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.syspath_prepend(folder)
    before = set(sys.modules)
    yield folder
    for name in set(sys.modules) - before:
        if name.split(".")[0] in ("own_model", "own_package"):
            del sys.modules[name]


def package(folder: Path) -> Path:
    """A package of three modules, of which one imports another."""
    top = folder / "own_package"
    (top / "parts").mkdir(parents=True)
    (top / "__init__.py").write_text("")
    (top / "parts" / "__init__.py").write_text("WIDTH = 8\n")
    (top / "models.py").write_text(
        "import torch\nfrom own_package.parts import WIDTH\n"
        "def build(dataset):\n    from own_package.parts.late import LAST\n"
        "    return torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, WIDTH), LAST)\n"
    )
    (top / "parts" / "late.py").write_text("import torch\nLAST = torch.nn.Linear(8, 10)\n")
    return top


# --- The digest ----------------------------------------------------------------------------


def test_the_digest_of_a_file_is_that_of_what_sha256sum_prints(place: Path) -> None:
    (place / "own_model.py").write_text(BUILD)
    printed = f"{hashlib.sha256(BUILD.encode()).hexdigest()}  own_model.py\n"
    digest = hashlib.sha256(printed.encode()).hexdigest()
    assert read_code("own_model:build").digest == digest
    assert read_code(f"{place / 'own_model.py'}:build").digest == digest


@pytest.mark.skipif(shutil.which("sha256sum") is None, reason="there is no sha256sum")
def test_the_digest_of_a_package_is_that_of_what_sha256sum_prints(place: Path) -> None:
    package(place)
    files = sorted(str(path.relative_to(place)) for path in place.rglob("*.py"))
    printed = subprocess.run(["sha256sum", *files], cwd=place, capture_output=True, check=True)
    assert (
        read_code("own_package.models:build").digest == hashlib.sha256(printed.stdout).hexdigest()
    )


def test_it_does_not_depend_on_where_the_code_is(place: Path, tmp_path: Path) -> None:
    package(place)
    elsewhere = package(tmp_path / "else" / "where").parent
    here = read_code("own_package.models:build")
    there = read_code("own_package.models:build", [elsewhere])
    assert here.place != there.place
    assert here.digest == there.digest


def test_nor_on_line_ends_or_on_what_is_not_python(place: Path) -> None:
    top = package(place)
    digest = read_code("own_package.models:build").digest
    source = (top / "models.py").read_bytes()
    (top / "models.py").write_bytes(source.replace(b"\n", b"\r\n"))
    (top / "weights.bin").write_bytes(b"1")
    (top / "a-script.py").write_text("1")
    (top / "__pycache__").mkdir(exist_ok=True)
    (top / "__pycache__" / "models.cpython-311.pyc").write_bytes(b"1")
    assert read_code("own_package.models:build").digest == digest


@pytest.mark.parametrize("change", ["edit", "add", "remove", "rename"])
def test_it_depends_on_every_module_of_the_package(change: str, place: Path) -> None:
    top = package(place)
    digest = read_code("own_package.models:build").digest
    part = top / "parts" / "late.py"
    if change == "edit":
        part.write_text(part.read_text() + "\n")
    elif change == "add":
        (top / "parts" / "new.py").write_text("")
    elif change == "remove":
        part.unlink()
    else:
        part.rename(part.with_name("later.py"))
    assert read_code("own_package.models:build").digest != digest


def test_reading_runs_nothing(place: Path) -> None:
    mark = place / "was run"
    top = package(place)
    for path in [top / "__init__.py", top / "models.py", place / "own_model.py"]:
        path.write_text(BAD.format(mark=str(mark)))
    read_code("own_package.models:build")
    for name in ("own_model:build", "own_package.models:build"):
        with pytest.raises(fa.InvalidInput, match=f"{name}: by the terms .* {'0' * 64}, but"):
            find_task(name, "0" * 64)
    assert not mark.exists()
    find_task("own_model:build", read_code("own_model:build").digest)
    assert mark.exists()


# --- What is run ---------------------------------------------------------------------------


def test_what_was_read_is_run_and_nothing_else(place: Path) -> None:
    """The file is another one by then."""
    path = place / "own_model.py"
    path.write_text(BUILD)
    code = read_code("own_model:build")
    path.write_text("build = 1\n")
    assert callable(run_code("own_model:build", code))


def test_compiled_code_beside_it_is_not_run(place: Path) -> None:
    """It is for a source of the same size and time, as all files in a Flower app have."""
    import importlib.util
    import os
    import py_compile

    path = place / "own_model.py"
    path.write_text("def build(dataset): return 1\n")
    os.utime(path, (1e9, 1e9))
    py_compile.compile(str(path), importlib.util.cache_from_source(str(path)))
    path.write_text("def build(dataset): return 2\n")
    os.utime(path, (1e9, 1e9))
    assert run_code("own_model:build", read_code("own_model:build"))(None) == 2


def test_a_package_also_imports_later_what_was_read(place: Path) -> None:
    top, digits = package(place), load_dataset("digits")
    task = find_task("own_package.models:build", read_code("own_package.models:build").digest)
    (top / "parts" / "late.py").write_text("LAST = None\n")
    assert list(Model(task, digits).module.children())[2].out_features == 10


def test_code_that_was_changed_is_run_anew(place: Path) -> None:
    top = package(place)
    first = run_code("own_package.models:build", read_code("own_package.models:build"))
    (top / "parts" / "__init__.py").write_text("WIDTH = 9\n")
    second = run_code("own_package.models:build", read_code("own_package.models:build"))
    assert (first.__globals__["WIDTH"], second.__globals__["WIDTH"]) == (8, 9)


@pytest.mark.slow
def test_a_directory_comes_before_the_python_path(place: Path, tmp_path: Path) -> None:
    (place / "own_model.py").write_text("build = 1\n")
    (tmp_path / "own_model.py").write_text(BUILD)
    code = read_code("own_model:build", [tmp_path])
    assert code.place == tmp_path
    assert callable(run_code("own_model:build", code))


# --- Tasks ---------------------------------------------------------------------------------


def test_a_function_or_a_task(place: Path) -> None:
    (place / "own_model.py").write_text(WITH_LOSS)
    digits, digest = load_dataset("digits"), read_code("own_model:build").digest
    build, half = find_task("own_model:build"), find_task("own_model:half")
    assert (build.name, half.name) == ("own_model:build", "own_model:half")
    assert build.code == half.code == digest
    whole, halved = Model(build, digits), Model(half, digits)
    test = digits.test_inputs, digits.test_labels
    losses = [model.evaluate(model.start(1), *test)[0] for model in (whole, halved)]
    assert losses[1] == pytest.approx(losses[0] / 2)


def test_an_audit_compares_all_of_the_code(place: Path) -> None:
    (place / "own_model.py").write_text(WITH_LOSS)
    assert software_of(find_task("own_model:half")).source == read_code("own_model:half").digest


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("own_model:missing", "own_model:missing: cannot be imported .AttributeError"),
        ("own_model:number", "own_model:number: must be a function of a dataset, .* got int"),
        ("own_model:", "is not of the form module:function"),
        (":build", "is not of the form module:function"),
        ("own model:build", "is not of the form module:function"),
        (
            "no_such_module:build",
            "there is no Python source of 'no_such_module' on the ",
        ),
        ("no_such_file.py:build", "no_such_file.py: cannot be read: No such file"),
        ("math:sqrt", "there is no Python source of 'math'"),
        ("json.decoder:JSONDecoder", r"its model cannot be built for digits \(TypeError"),
        ("code.py:build", "code.py: cannot be a module called 'code', as it is one of Python's"),
        ("my-model.py:build", "as it is not an identifier"),
        ("own_package.no:build", "there is no module own_package.no in"),
    ],
)
def test_what_is_no_task(name: str, message: str, place: Path) -> None:
    (place / "own_model.py").write_text(WITH_LOSS)
    package(place)
    with pytest.raises(fa.FedaccordError, match=message):
        Model(find_task(name), load_dataset("digits"))


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("wrong_result", "must build a torch.nn.Module, got int"),
        ("fails", r"its model cannot be built for digits \(AttributeError: .*no_such_thing"),
    ],
)
def test_functions_that_build_no_model(name: str, message: str, place: Path) -> None:
    (place / "own_model.py").write_text(WITH_LOSS)
    with pytest.raises(fa.FedaccordError, match=f"task own_model:{name}: {message}"):
        Model(find_task(f"own_model:{name}"), load_dataset("digits"))


def test_a_file_whose_module_is_another_one_already(place: Path, tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text("build = dir\n")
    with pytest.raises(fa.FedaccordError, match=r"torch\.py:build: (another module|cannot be)"):
        find_task(f"{tmp_path / 'torch.py'}:build")


def test_it_trains_by_its_name(place: Path) -> None:
    (place / "own_model.py").write_text(BUILD)
    trial = fa.train([30, 20], task=f"{place / 'own_model.py'}:build", rounds=2, seeds=1)
    assert "1.weight" in trial.runs[0].parameters
    assert (
        trial.course.model.task.code
        == check_code("own_model:build", read_code("own_model:build").digest).digest
    )

"""How an app names a task, and which file comes with it."""

import tomllib
from pathlib import Path

import pytest

from fedaccord.deployment.app_directory import write_app
from fedaccord.deployment.own_task import task_for_app
from fedaccord.errors import InvalidInput
from fedaccord.flower.fab import app_digest
from fedaccord.flower.local import empty_model
from fedaccord.training.code import read_code
from tests.flower.consortia import terms_of

BUILD = """\
import torch

def build(dataset):
    return torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(2, dataset.classes))
"""


def test_a_file_comes_with_the_app(tmp_path: Path) -> None:
    (tmp_path / "own_app_model.py").write_text(BUILD)
    own = task_for_app(f"{tmp_path / 'own_app_model.py'}:build")
    terms = terms_of(("a", "b"), training={"shape": [2], "classes": 2} | own.terms)
    assert terms.training.task == "own_app_model:build"
    write_app(tmp_path / "app", terms, code=own.code)
    there = read_code("own_app_model:build", [tmp_path / "app"])
    assert there.place == tmp_path / "app"
    assert there.digest == terms.training.code
    assert empty_model(terms, [tmp_path / "app"]).task.code == terms.training.code
    project = tomllib.loads((tmp_path / "app" / "pyproject.toml").read_text())
    assert project["tool"]["flwr"]["app"]["fab-include"] == ["fedaccord_app/**", "own_app_model.py"]


def test_it_is_part_of_what_flower_sends(tmp_path: Path) -> None:
    (tmp_path / "own_app_model.py").write_text(BUILD)
    own = task_for_app(f"{tmp_path / 'own_app_model.py'}:build")
    terms = terms_of(("a", "b"), training={"shape": [2], "classes": 2} | own.terms)
    write_app(tmp_path / "app", terms, code=own.code)
    digest = app_digest(tmp_path / "app")
    (tmp_path / "app" / "own_app_model.py").write_text(BUILD + "\n")
    assert app_digest(tmp_path / "app") != digest


def test_a_module_is_named_and_not_copied() -> None:
    own = task_for_app("fedaccord.training.task:_softmax")
    assert own.code is None
    assert own.terms == {
        "task": "fedaccord.training.task:_softmax",
        "code": read_code("fedaccord.training.task:_softmax").digest,
    }
    assert task_for_app("mlp").terms == {"task": "mlp"}


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("test_model.py", "Flower takes no file called test_model.py into an app: rename it"),
        ("model_test.py", "Flower takes no file called model_test.py"),
        ("torch.py", "there is another module called 'torch': rename torch.py"),
        ("fedaccord.py", "there is another module called 'fedaccord'"),
    ],
)
def test_files_that_could_not_be_found_again(name: str, message: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(BUILD)
    with pytest.raises(InvalidInput, match=message):
        task_for_app(f"{tmp_path / name}:build")

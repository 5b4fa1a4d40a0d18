"""The digest that members sign: of the app's content alone, and the one that Flower sends."""

import os
import shutil
from hashlib import sha256
from pathlib import Path

import pytest
from flwr.cli.build import build_fab_from_disk

from fedaccord.errors import InvalidInput
from fedaccord.flower.fab import app_digest
from tests.flower.fleet_server import bundle


@pytest.fixture
def app(tmp_path: Path) -> Path:
    bundle(tmp_path / "app", "app = 1\n")
    return tmp_path / "app"


def test_only_the_content_counts(app: Path, tmp_path: Path) -> None:
    digest = app_digest(app)
    assert digest == app_digest(app) == sha256(build_fab_from_disk(app)).hexdigest()
    copy = tmp_path / "elsewhere" / "another-name"
    before = os.umask(0o077)
    try:
        shutil.copytree(app, copy)
    finally:
        os.umask(before)
    for path in copy.rglob("*"):
        os.utime(path, (1_000_000_000, 1_000_000_000))
        path.chmod(0o700)
    cache = copy / "__pycache__"
    cache.mkdir()
    (cache / "client.cpython-311.pyc").write_bytes(b"compiled")
    assert app_digest(copy) == digest


def test_every_file_counts(app: Path) -> None:
    digest = app_digest(app)
    path = next(app.rglob("client.py"))
    path.write_text("app = 2\n")
    assert app_digest(app) != digest


def test_what_is_no_app(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"has no pyproject\.toml"):
        app_digest(tmp_path)
    (tmp_path / "pyproject.toml").write_text("[project]\nname = 'a'\n")
    with pytest.raises(InvalidInput, match="cannot be bundled"):
        app_digest(tmp_path)

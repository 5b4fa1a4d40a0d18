"""Small files in place of a dataset's original ones."""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest

from fedaccord.data.originals import Original, Originals

Publish = Callable[[ModuleType, Mapping[str, str]], None]


@pytest.fixture
def publish(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Publish:
    """Makes texts the files of a dataset, by the module that reads them."""

    def write(module: ModuleType, texts: Mapping[str, str]) -> None:
        files = []
        for name, text in texts.items():
            (tmp_path / name).write_text(text, encoding="utf-8")
            files.append(Original(name, hashlib.sha256(text.encode()).hexdigest(), "", text=True))
        originals: Originals = module.FILES
        assert [file.name for file in originals.files] == list(texts)
        monkeypatch.setattr(module, "FILES", replace(originals, files=tuple(files)))
        monkeypatch.setenv("FEDACCORD_DATA", str(tmp_path))

    return write

"""`fedaccord.training` loads its public names lazily, without importing PyTorch before."""

import subprocess
import sys

import pytest

from fedaccord import data, training


@pytest.mark.parametrize("name", training.__all__)
def test_every_name_is_there(name: str) -> None:
    assert getattr(training, name) is not None
    assert name in dir(training)


def test_the_law_needs_no_pytorch() -> None:
    code = "import sys, fedaccord.game.measured, fedaccord.data; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_data_has_its_names_too() -> None:
    assert all(hasattr(data, name) for name in data.__all__)

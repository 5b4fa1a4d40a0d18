"""One thread per test worker: on a busy machine two that wait for each other are much slower."""

import pytest
import torch


@pytest.fixture(autouse=True, scope="session")
def _one_thread() -> None:
    torch.set_num_threads(1)

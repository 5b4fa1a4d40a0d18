"""One thread for each worker: two that wait for each other on a busy machine are slower by far."""

import pytest
import torch


@pytest.fixture(autouse=True, scope="session")
def _one_thread() -> None:
    torch.set_num_threads(1)

"""One thread per worker."""

import pytest
import torch


@pytest.fixture(autouse=True, scope="session")
def _one_thread() -> None:
    # Two threads that wait for each other on a busy machine are slower by far.
    torch.set_num_threads(1)

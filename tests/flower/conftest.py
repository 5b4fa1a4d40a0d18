"""One thread per worker; and whether the tests on several machines ran."""

from collections.abc import Callable

import pytest
import torch


@pytest.fixture(autouse=True, scope="session")
def _one_thread() -> None:
    # Two threads that wait for each other on a busy machine are slower by far.
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def machines_ran(request: pytest.FixtureRequest) -> Callable[[str], None]:
    """Remembers how the tests on several machines ran, for the last line of `.ci/run`."""
    cache = request.config.cache
    assert cache is not None
    cache.set("fedaccord/machines", "did not run: they were skipped, or failed")
    return lambda how: cache.set("fedaccord/machines", f"ran in network namespaces, {how}")

"""One thread for each worker, and a PostgreSQL server for those that ask for it."""

from collections.abc import Iterator

import pytest
import torch

from tests.flower import postgresql


@pytest.fixture(autouse=True, scope="session")
def _one_thread() -> None:
    # Two threads that wait for each other on a busy machine are slower by far.
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def new_postgresql_database() -> Iterator[postgresql.Databases]:
    """Makes databases on a server that ends with the tests."""
    programs, account = postgresql.programs(), postgresql.account()
    if programs is None or account is None:
        pytest.skip("there is no PostgreSQL server here, or nobody to run it")
    with postgresql.server(programs, account) as databases:
        yield databases

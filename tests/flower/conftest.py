"""One thread for each worker, a story for the auditors, a PostgreSQL server for who asks for it."""

from collections.abc import Iterator

import pytest
import torch

from fedaccord.ledger.chain import Entry
from tests.flower import postgresql
from tests.flower.consortia import Clients
from tests.flower.stories import told


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


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[Entry], Clients]:
    """Three slots; b slips in the first."""
    return told(tmp_path_factory.mktemp("story") / "ledger.db", slots=3)

"""A PostgreSQL server for the tests that ask for it."""

from collections.abc import Iterator

import pytest

from tests.ledger import postgresql


@pytest.fixture(scope="session")
def new_postgresql_database() -> Iterator[postgresql.Databases]:
    """Creates databases on a server that ends with the tests."""
    programs, account = postgresql.programs(), postgresql.account()
    if programs is None or account is None:
        pytest.skip("there is no PostgreSQL server here, or nobody to run it")
    with postgresql.server(programs, account) as databases:
        yield databases

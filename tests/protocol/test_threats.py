"""The page on threats lists every test that performs an attack, and nothing else."""

import pytest

from tests.lies import PAGE, page_with, table


@pytest.mark.slow  # imports every package
def test_the_table_is_that_of_the_tests() -> None:
    assert PAGE.read_text("utf-8") == page_with(table()), "run: python -m tests.lies"

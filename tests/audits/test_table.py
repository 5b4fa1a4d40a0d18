"""The table in the documentation is the one that the code gives."""

import pytest

from tests.audits.table import cells, on_page, table

ONE_MACHINE_OR_ANOTHER = 2
"""Nearly equally unusual updates may be ranked otherwise on another machine."""


@pytest.mark.slow
def test_the_table_on_the_page_is_up_to_date() -> None:
    for shown, found in zip(cells(on_page()), cells(table()), strict=True):
        assert shown[:-1] == found[:-1]
        counts = [int(row[-1].split()[0]) for row in (shown, found)]
        assert abs(counts[0] - counts[1]) <= ONE_MACHINE_OR_ANOTHER, shown[0]

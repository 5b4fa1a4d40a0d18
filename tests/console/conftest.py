"""One browser for all tests of a worker."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser

from tests.console.browser import CHROMIUM, NO_CHROMIUM, chromium


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    if CHROMIUM is None:
        pytest.skip(NO_CHROMIUM)
    with chromium() as started:
        yield started

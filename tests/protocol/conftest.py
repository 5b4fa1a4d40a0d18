"""A story for verifiers."""

from pathlib import Path

import pytest

from fedaccord.ledger.chain import Entry
from tests.flower.consortia import Clients
from tests.flower.stories import told


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[Entry], Clients]:
    """Three slots; b slips in the first."""
    return told(tmp_path_factory.mktemp("story") / "ledger.db", slots=3)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where a ledger is kept."""
    return tmp_path / "ledger.db"

"""The command line, for tests of audits."""

from tests.cli.conftest import run

__all__ = ["run"]

"""Hypothesis settings, and tests that need the original files of a dataset.

The examples are the same every time, more of them with the slow tests.
`make test ARGS="--hypothesis-profile=explore"` draws new ones, and more of them.

`@pytest.mark.originals("mnist")` skips a test unless the directory in FEDACCORD_DATA has these
datasets. How many were skipped for want of data is printed at the end. A run that was given data
and skips one of them all the same has failed: it says less than it seems to.
"""

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "repeatable",
    derandomize=True,
    deadline=None,
    max_examples=6,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
settings.register_profile("thorough", settings.get_profile("repeatable"), max_examples=15)
settings.register_profile(
    "explore", settings.get_profile("repeatable"), derandomize=False, max_examples=1_000
)
settings.load_profile("repeatable")

NEEDS_DATA = "needs the original files, in FEDACCORD_DATA: "


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skips tests whose original files are not here."""
    given = os.environ.get("FEDACCORD_DATA")
    for mark in item.iter_markers("originals"):
        missing = [name for name in mark.args if not (given and Path(given, name).is_dir())]
        if missing:
            pytest.skip(NEEDS_DATA + ", ".join(missing))


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fails a run that was given data and skipped a test for want of it."""
    if os.environ.get("FEDACCORD_DATA") and skipped_for_want_of_data(session.config):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Says how many tests were skipped for want of data."""
    count = skipped_for_want_of_data(terminalreporter.config)
    given = os.environ.get("FEDACCORD_DATA")
    failed = ", which fails the run: FEDACCORD_DATA is set, but lacks them" if given else ""
    terminalreporter.write_line(f"Skipped for want of data: {count}{failed if count else ''}")


def skipped_for_want_of_data(config: pytest.Config) -> int:
    """The number of tests so far, those of other workers included."""
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    if reporter is None:  # a worker, which reports to the process that started it
        return 0
    return sum(NEEDS_DATA in str(report.longrepr) for report in reporter.stats.get("skipped", []))

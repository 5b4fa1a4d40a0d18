"""Processes end with the context in which they were started."""

import os
import sys
import time
from pathlib import Path

import pytest

from fedaccord.deployment.processes import Processes, free_ports
from fedaccord.errors import FedaccordError

WITH_CHILD = """\
import pathlib, subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
pathlib.Path("child").write_text(str(child.pid))
time.sleep(60)
"""


def runs(number: int) -> bool:
    try:
        return Path(f"/proc/{number}/stat").read_text().split()[2] != "Z"
    except FileNotFoundError:
        return False


def start(processes: Processes, name: str, program: str, folder: Path) -> None:
    words = [sys.executable, "-c", program]
    processes.start(name, words, folder=folder, environment=os.environ)


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="there is no /proc")
@pytest.mark.parametrize("error", [None, KeyboardInterrupt, FedaccordError])
def test_whatever_happens_they_and_their_children_end(
    error: type[BaseException] | None, tmp_path: Path
) -> None:
    mark = tmp_path / "child"

    def body() -> None:
        with Processes(tmp_path / "logs") as processes:
            start(processes, "parent", WITH_CHILD, tmp_path)
            processes.wait("parent", lambda: mark.exists() and mark.read_text() != "", 30)
            assert runs(int(mark.read_text()))
            if error is not None:
                raise error

    if error is None:
        body()
    else:
        with pytest.raises(error):
            body()
    end = time.monotonic() + 10
    while runs(int(mark.read_text())):
        assert time.monotonic() < end


def test_one_that_ends_by_itself_is_an_error_with_its_last_words(tmp_path: Path) -> None:
    with Processes(tmp_path / "logs") as processes:
        start(processes, "node", "print('one'); raise SystemExit('no data')", tmp_path)
        with pytest.raises(FedaccordError, match="node ended by itself: one / no data"):
            processes.wait("node", lambda: False, 30)


def test_one_that_takes_too_long(tmp_path: Path) -> None:
    with Processes(tmp_path / "logs") as processes:
        start(processes, "node", "import time; time.sleep(60)", tmp_path)
        with pytest.raises(FedaccordError, match="node was not ready after 0 s"):
            processes.wait("node", lambda: False, 0.2)


def test_ports_are_different() -> None:
    assert len(set(free_ports(20))) == 20

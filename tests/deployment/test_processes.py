"""Processes end with the context in which they were started."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from fedaccord.deployment.processes import Processes, end_left_behind, family, free_ports
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


needs_proc = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="there is no /proc")


def gone(number: int) -> None:
    end = time.monotonic() + 60
    while runs(number):
        assert time.monotonic() < end
        time.sleep(0.1)


@needs_proc
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
    gone(int(mark.read_text()))


DETACHED = WITH_CHILD.replace('sleep(60)"]', 'sleep(600)"], start_new_session=True')
"""Its child goes on when it is killed, as what a SuperLink starts does."""


@pytest.mark.slow
@needs_proc
def test_what_a_killed_program_left_behind_is_known_and_ended(tmp_path: Path) -> None:
    mark = tmp_path / "child"
    with Processes(tmp_path / "logs") as processes:
        start(processes, "parent", DETACHED, tmp_path)
        start(processes, "beside", "import time; time.sleep(600)", tmp_path)
        processes.wait("parent", lambda: mark.exists() and mark.read_text() != "", 60)
        child = int(mark.read_text())
        processes.check()
        (parent,) = (one for one in family([os.getpid()]) if one.number == parent_of(child))
        time.sleep(1.1)  # it looks once a second
        processes.check()
        os.kill(parent.number, signal.SIGKILL)
        gone(parent.number)
        assert [one.number for one in processes.left_by("parent")] == [child]
        with pytest.raises(FedaccordError, match="parent was killed by signal 9"):
            processes.check()
        assert runs(child)
    assert not runs(child)


def parent_of(number: int) -> int:
    return int(Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[1])


KEPT = """\
import sys, time
from pathlib import Path
from fedaccord.deployment.processes import Processes
with Processes(Path("logs"), record=Path("record.json")) as processes:
    words = [sys.executable, "-c", Path("program.py").read_text()]
    processes.start("parent", words, folder=Path(), environment={})
    while True:
        processes.check()
        time.sleep(0.1)
"""


@pytest.mark.slow
@needs_proc
def test_what_a_killed_context_left_behind_is_ended_by_the_next(tmp_path: Path) -> None:
    """By number and start time: whoever has one of the numbers since then is left alone."""
    (tmp_path / "program.py").write_text(DETACHED)
    record, mark = tmp_path / "record.json", tmp_path / "child"
    context = subprocess.Popen([sys.executable, "-c", KEPT], cwd=tmp_path)
    innocent = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    try:
        limit = time.monotonic() + 120
        while not (mark.exists() and mark.read_text() and mark.read_text() in recorded(record)):
            assert time.monotonic() < limit
            time.sleep(0.1)
        child = int(mark.read_text())
        parent = parent_of(child)
        with pytest.raises(FedaccordError, match=f"runs already, as process {context.pid}"):
            end_left_behind(record, lambda _: None)
        context.kill()
        context.wait()
        assert runs(parent)
        assert runs(child)
        kept = json.loads(record.read_text())
        kept["processes"].append([innocent.pid, kept["processes"][0][1], "parent"])
        record.write_text(json.dumps(kept))
        said: list[str] = []
        end_left_behind(record, said.append)
        assert not runs(parent)
        assert not runs(child)
        assert innocent.poll() is None
        (sentence,) = said
        assert sentence.startswith("waiting for ")
        assert f"(process {child})" in sentence
        assert f"(process {innocent.pid})" not in sentence
        assert not record.exists()
        end_left_behind(record, said.append)  # there is nothing left
        assert len(said) == 1
    finally:
        context.kill()
        context.wait()
        innocent.kill()
        innocent.wait()


def recorded(record: Path) -> str:
    return record.read_text() if record.exists() else ""


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"by": 3, "processes": []}', '{"by": [1]}'])
def test_a_record_that_is_none_says_nothing(text: str, tmp_path: Path) -> None:
    (tmp_path / "record.json").write_text(text)
    end_left_behind(tmp_path / "record.json", pytest.fail)


@needs_proc
def test_a_signal_waits_until_a_program_that_starts_is_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C in the middle of a start leaves nothing behind."""
    started: list[int] = []
    popen = subprocess.Popen

    def interrupted(*words: object, **options: object) -> object:
        process = popen(*words, **options)  # type: ignore[call-overload]
        started.append(process.pid)
        signal.raise_signal(signal.SIGINT)
        return process

    monkeypatch.setattr(subprocess, "Popen", interrupted)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt), Processes(tmp_path / "logs") as processes:
            start(processes, "node", "import time; time.sleep(600)", tmp_path)
    finally:
        signal.signal(signal.SIGINT, before)
    assert len(started) == 1
    gone(started[0])


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

"""Files that are written whole: what other programs do meanwhile, and what killed ones leave."""

import fcntl
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from fedaccord import atomic
from fedaccord.atomic import (
    ABSENT,
    Changed,
    WholeFile,
    fingerprint,
    locked,
    rewrite,
    write_together,
    write_whole,
)
from fedaccord.errors import FedaccordError

ADDS = """\
import sys
from pathlib import Path
from fedaccord.atomic import rewrite

path, name = Path(sys.argv[1]), sys.argv[2]
for _ in range(20):
    rewrite(path, lambda: (path.read_bytes() if path.exists() else b"") + f"{name}\\n".encode())
"""
"""Adds 20 lines to a file, one by one."""
STALLS = """\
import sys, time
from collections.abc import Iterator
from pathlib import Path
from fedaccord.atomic import write_whole

def parts() -> Iterator[bytes]:
    yield bytes(100_000)
    print("begun", flush=True)
    time.sleep(600)
    yield b"end"

write_whole(Path(sys.argv[1]), parts())
"""
"""Begins to write a file, and does not end."""


def process(code: str, *words: str) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-c", code, *words], stdout=subprocess.PIPE, text=True)


def begun(path: Path) -> subprocess.Popen[str]:
    """A process that is writing this file, and has written a part of it."""
    writer = process(STALLS, str(path))
    assert writer.stdout is not None
    assert writer.stdout.readline() == "begun\n"
    return writer


def kill(writer: subprocess.Popen[str]) -> None:
    writer.kill()
    writer.communicate()


def temporary(folder: Path) -> list[Path]:
    return sorted(folder.glob(".*.new"))


# --- What others change meanwhile ----------------------------------------------------------------


def test_a_file_that_changed_is_not_replaced(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("old")
    seen = fingerprint(path)
    path.write_text("another's")
    with pytest.raises(Changed, match="was changed by another program meanwhile"):
        write_whole(path, b"ours", seen=seen)
    assert path.read_text() == "another's"
    assert temporary(tmp_path) == []
    write_whole(path, b"ours", seen=fingerprint(path))
    assert path.read_text() == "ours"


def test_a_file_that_somebody_removed_is_not_written_again(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("old")
    seen = fingerprint(path)
    path.unlink()
    with pytest.raises(Changed):
        write_whole(path, b"ours", seen=seen)
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_there_by_now_is_not_replaced(tmp_path: Path) -> None:
    path = tmp_path / "file"
    assert fingerprint(path) == ABSENT
    path.write_text("another's")
    with pytest.raises(Changed):
        write_whole(path, b"ours", seen=ABSENT)
    assert path.read_text() == "another's"


@pytest.mark.parametrize("links", [True, False])
def test_a_file_that_appears_at_the_last_moment_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, links: bool
) -> None:
    path, link = tmp_path / "file", os.link

    def late(source: Path, target: Path) -> None:
        path.write_text("another's")
        if not links:
            raise PermissionError  # as on a file system without links
        link(source, target)

    monkeypatch.setattr(os, "link", late)
    with pytest.raises(Changed):
        write_whole(path, b"ours", seen=ABSENT)
    assert path.read_text() == "another's"
    assert temporary(tmp_path) == []


def test_a_new_file_on_a_file_system_without_links(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(source: Path, target: Path) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "link", refused)
    write_whole(tmp_path / "file", b"ours", seen=ABSENT)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_no_file_of_a_group_is_written_if_what_it_rests_on_changed(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.write_text("old")
    seen = {source: fingerprint(source), tmp_path / "one": ABSENT}
    source.write_text("new")
    files = [WholeFile(tmp_path / name, [b"ours"]) for name in ("one", "two")]
    with pytest.raises(Changed, match="source: was changed"):
        write_together(files, seen)
    assert list(tmp_path.iterdir()) == [source]


def test_a_locked_file_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file"
    path.write_text("old")
    monkeypatch.setattr(atomic, "_PATIENCE", 0.1)
    with path.open() as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        with pytest.raises(FedaccordError, match="file: is locked by another program; try again"):
            write_whole(path, b"ours", seen=fingerprint(path))
    assert path.read_text() == "old"
    write_whole(path, b"ours", seen=fingerprint(path))
    assert path.read_text() == "ours"


def test_directories_can_be_locked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(atomic, "_PATIENCE", 0.1)
    with locked(tmp_path), pytest.raises(FedaccordError, match="is locked"), locked(tmp_path):
        pass


def test_a_change_is_made_again_to_what_somebody_else_wrote(tmp_path: Path) -> None:
    path, others = tmp_path / "file", ["first", "second"]
    path.write_text("")

    def change() -> bytes:
        before = path.read_text()
        if others:
            path.write_text(before + others.pop(0))
        return f"{before} ours".encode()

    assert rewrite(path, change) == b"firstsecond ours"
    assert path.read_text() == "firstsecond ours"


def test_a_change_to_a_file_that_never_rests(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, count = tmp_path / "file", iter(range(100))
    monkeypatch.setattr(atomic, "_TRIES", 3)

    def change() -> bytes:
        path.write_text(f"another's {next(count)}")
        return b"ours"

    with pytest.raises(Changed):
        rewrite(path, change)
    assert path.read_text() == "another's 2"


@pytest.mark.slow
def test_eight_processes_lose_no_change(tmp_path: Path) -> None:
    path = tmp_path / "file"
    writers = [process(ADDS, str(path), str(n)) for n in range(8)]
    for writer in writers:
        writer.communicate(timeout=240)
    assert [writer.returncode for writer in writers] == [0] * 8
    assert sorted(path.read_text().split()) == sorted(str(n) for n in range(8) for _ in range(20))
    assert temporary(tmp_path) == []


# --- What killed writers leave -------------------------------------------------------------------


@pytest.mark.slow
def test_the_next_writer_removes_what_killed_ones_left(tmp_path: Path) -> None:
    path, other = tmp_path / "file", tmp_path / "other"
    for writer in [begun(path) for _ in range(3)]:
        kill(writer)
    assert len(temporary(tmp_path)) == 3
    write_whole(other, b"not its own")
    assert len(temporary(tmp_path)) == 3
    write_whole(path, b"ours")
    assert sorted(each.name for each in tmp_path.iterdir()) == ["file", "other"]


@pytest.mark.slow
def test_what_is_being_written_stays(tmp_path: Path) -> None:
    path = tmp_path / "file"
    alive, killed = begun(path), begun(path)
    kill(killed)
    alive.send_signal(signal.SIGSTOP)  # it still holds its lock
    assert len(temporary(tmp_path)) == 2
    write_whole(path, b"ours")
    assert len(temporary(tmp_path)) == 1
    kill(alive)
    write_whole(path, b"ours")
    assert temporary(tmp_path) == []


@pytest.mark.slow
def test_two_hundred_kills_leave_nothing(tmp_path: Path) -> None:
    """Of processes that write all the time, each at another moment."""
    path = tmp_path / "file"
    code = """\
import os, random, signal, sys, time
from pathlib import Path
from fedaccord.atomic import write_whole
content = [bytes(10_000)] * 20
for _ in range(200):
    writer = os.fork()
    if writer == 0:
        while True:
            write_whole(Path(sys.argv[1]), content)
    time.sleep(random.uniform(0.001, 0.01))
    os.kill(writer, signal.SIGKILL)
    os.waitpid(writer, 0)
print(len([name for name in os.listdir(Path(sys.argv[1]).parent) if name.endswith(".new")]))
write_whole(Path(sys.argv[1]), b"ours")
"""
    done = process(code, str(path))
    left, _ = done.communicate(timeout=240)
    assert done.returncode == 0
    assert int(left) < 5  # each writer removes what the one before left
    assert [each.name for each in tmp_path.iterdir()] == ["file"]


def abandoned(path: Path, owner: str, *, age: float = 0.0) -> Path:
    """A temporary file that nobody holds."""
    left = path.with_name(f".{atomic._mark(path)}.{owner}.0123456789abcdef.new")
    left.write_text("half")
    os.utime(left, (time.time() - age,) * 2)
    return left


def test_what_another_host_writes_stays_for_a_day(tmp_path: Path) -> None:
    """Its lock may not be seen here."""
    path, day = tmp_path / "file", 24 * 3600
    ours = abandoned(path, atomic._HOST)
    recent, old = (abandoned(path, "11111111", age=day - 60), abandoned(path, "22222222", age=day))
    write_whole(path, b"ours")
    assert (ours.exists(), recent.exists(), old.exists()) == (False, True, False)


def test_a_temporary_file_that_is_taken_away_before_it_is_locked_is_written_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, create, taken = tmp_path / "file", os.open, list[Path]()

    def robbed(name: Path, *flags: int) -> int:
        descriptor = create(name, *flags)
        if str(name).endswith(".new") and not taken:
            taken.append(Path(name))
            Path(name).unlink()
        return descriptor

    monkeypatch.setattr(os, "open", robbed)
    write_whole(path, b"ours")
    assert len(taken) == 1
    assert [each.name for each in tmp_path.iterdir()] == ["file"]
    assert path.read_text() == "ours"


def test_a_large_group_does_not_need_as_many_open_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(atomic, "_OPEN", 2)
    sync, descriptors, most = os.fsync, Path("/proc/self/fd"), list[int]()
    before = len([*descriptors.iterdir()])

    def counted(descriptor: int) -> None:
        most.append(len([*descriptors.iterdir()]) - before)
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", counted)
    write_together([WholeFile(tmp_path / str(n), [b"ours"]) for n in range(6)])
    assert most == [1, 2, 3, 3, 3, 3]
    assert {path.name for path in tmp_path.iterdir()} == set("012345")


# --- Where there are no locks --------------------------------------------------------------------


def test_a_system_without_locks(tmp_path: Path) -> None:
    """The module of locks exists on POSIX systems alone."""
    code = """\
import sys
sys.modules["fcntl"] = None
from pathlib import Path
from fedaccord.atomic import ABSENT, Changed, fingerprint, rewrite, write_whole
path = Path(sys.argv[1])
write_whole(path, b"first", seen=ABSENT)
rewrite(path, lambda: path.read_bytes() + b" second")
try:
    write_whole(path, b"third", seen=ABSENT)
except Changed:
    print(path.read_text())
"""
    done = process(code, str(tmp_path / "file"))
    assert done.communicate(timeout=60)[0] == "first second\n"
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_file_system_without_locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(descriptor: int, how: int) -> None:
        raise OSError(37, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refused)
    path = tmp_path / "file"
    left = abandoned(path, atomic._HOST)  # perhaps somebody is writing it
    write_whole(path, b"first", seen=ABSENT)
    rewrite(path, lambda: path.read_bytes() + b" second")
    assert path.read_text() == "first second"
    assert left.exists()


def test_the_error_names_the_file_and_not_its_temporary_name(tmp_path: Path) -> None:
    path = tmp_path / "nowhere" / "file"
    with pytest.raises(FileNotFoundError) as caught:
        write_whole(path, b"ours")
    assert caught.value.filename == str(path)

"""`fedaccord member serve` as a process."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from fedaccord.deployment.processes import listens
from tests.console.members import Everyone, home_of, open_room, terms_of

pytestmark = pytest.mark.slow
COMMAND = [sys.executable, "-m", "fedaccord", "member", "serve"]
_PATIENCE = 60.0


@contextmanager
def started(directory: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The command, and the address to which the file leads that it names."""
    words = [*COMMAND, str(directory), "--no-browser"]
    environment = os.environ | {"PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=environment) as process:
        try:
            assert process.stdout is not None
            printed = process.stdout.readline()
            named = re.search(r"open (\S+), which only you can read", printed)
            assert named is not None, printed
            file = Path(named[1])
            assert (file.stat().st_mode & 0o077, file.parent.stat().st_mode & 0o077) == (0, 0)
            found = re.search(r"http://127\.0\.0\.1:\d+/#([\w-]+)", file.read_text("utf-8"))
            assert found is not None
            assert found[1] not in printed  # it may be kept where others read it
            host, port = found[0].split("/")[2].split(":")
            while not listens(host, int(port)):
                time.sleep(0.1)
            yield process, found[0]
        finally:
            process.kill()


def test_it_listens_on_this_machine_only_and_ends(tmp_path: Path) -> None:
    with started(tmp_path / "mary") as (process, printed):
        address, _, code = printed.partition("#")
        with httpx.Client(base_url=address, trust_env=False) as client:
            assert client.get("/").status_code == 401
            assert client.post("/enter", data={"code": code}).status_code == 303
            assert "Paste the link" in client.get("/").text
        process.send_signal(signal.SIGTERM)
        process.wait(_PATIENCE)
    assert not (tmp_path / "mary").exists()


def test_a_directory_of_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("Dear Sir")
    done = subprocess.run(
        [*COMMAND, str(tmp_path), "--no-browser"], capture_output=True, text=True, check=False
    )
    assert done.returncode != 0
    assert "exists already, and is not empty" in done.stderr
    assert "Traceback" not in done.stderr


def test_what_is_no_certificate_is_said_at_once(tmp_path: Path) -> None:
    letter = tmp_path / "letter.txt"
    letter.write_text("Dear Sir")
    done = subprocess.run(
        [*COMMAND, str(tmp_path / "m"), "--no-browser", "--authority", str(letter)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"Error: {letter}: is not a certificate (PEM)\n"


@pytest.mark.parametrize("kind", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_the_node_ends_with_the_page(tmp_path: Path, kind: signal.Signals) -> None:
    with open_room(tmp_path, terms_of()) as room:
        everyone = Everyone(room, tmp_path)
        everyone.join_all()
        everyone.sign("St Mary")
        directory = home_of(everyone.pages["St Mary"]).directory
        with started(directory) as (process, printed):
            address, _, code = printed.partition("#")
            with httpx.Client(base_url=address, trust_env=False, timeout=_PATIENCE) as client:
                client.post("/enter", data={"code": code})
                client.post("/node/start")
            nodes = wait_for(lambda: nodes_of(directory), some=True)
            assert nodes
            process.send_signal(kind)
            process.wait(_PATIENCE)
        assert wait_for(lambda: nodes_of(directory), some=False) == []


def nodes_of(directory: Path) -> list[int]:
    """Processes of the node of this member, and those that they started."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = entry.read_bytes().split(b"\0")
            here = (entry.parent / "cwd").readlink()
        except OSError:
            continue
        if b"client.toml" in words and here == directory.resolve():
            found.append(int(entry.parent.name))
    return found


def wait_for(look: Callable[[], list[int]], *, some: bool) -> list[int]:
    """What is there, as soon as there is something, or nothing any more."""
    end = time.monotonic() + _PATIENCE
    while bool(found := look()) != some and time.monotonic() < end:
        time.sleep(0.1)
    return found

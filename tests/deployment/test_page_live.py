"""The how-to page on Flower, followed to the letter: every command is copied from the page."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from fedaccord.deployment.processes import end
from fedaccord.ledger.lines import load_entries
from fedaccord.ledger.store import open_ledger
from fedaccord.protocol.copies import contradictions
from fedaccord.protocol.verification import wrong_in
from tests.flower.deployment import free_port

PAGE = Path(__file__).parent.parent.parent / "docs" / "how-to" / "run-on-flower.md"
LAST = "## When something changes"
"""What follows is not part of the first slot."""
BLOCK = re.compile(r"^```(python|console)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LASTING = re.compile(r"fedaccord (server|member) start")
SECONDS = 240.0
"""For one command on a busy machine; no more than that is asked of it."""


def commands() -> Iterator[tuple[str, str]]:
    """The Python blocks and the commands of the page, in its order."""
    for kind, text in BLOCK.findall(PAGE.read_text("utf-8").split(LAST)[0]):
        if kind == "python":
            yield kind, text
        else:
            joined = text.replace("\\\n", " ")
            yield from (("console", line[2:]) for line in joined.splitlines() if line[:2] == "$ ")


class Reader:
    """Somebody who types what the page says, at machines that are all this one."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.stack = folder, ExitStack()
        programs = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        source = str(PAGE.parent.parent.parent / "src")
        self.environment = os.environ | {"PATH": programs, "PYTHONPATH": source, "NO_COLOR": "1"}
        self.ports = f"--port {free_port()} --superlink-port {free_port()}"

    def type(self, command: str) -> None:
        command = command.replace("--host server.example", f"--host localhost {self.ports}")
        if LASTING.match(command):
            log = self.folder / f"{command.rsplit(maxsplit=1)[-1]}.log"
            process = self.leave_running(command, log)
            if "server" in command:
                wait_for(log, "the server runs", process)
            return
        limit = time.monotonic() + SECONDS
        while True:
            done = self.run(command, limit - time.monotonic())
            # a check says what is still missing, and one looks again
            if done.returncode == 0 or " check " not in command or time.monotonic() > limit:
                break
            time.sleep(2)
        assert done.returncode == 0, f"{command}\n{done.stdout}"

    def run(self, command: str, seconds: float) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            command,
            shell=True,
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            timeout=max(1.0, seconds),
            check=False,
        )

    def leave_running(self, command: str, log: Path) -> "subprocess.Popen[bytes]":
        with log.open("wb") as file:
            process = subprocess.Popen(
                ["/bin/sh", "-c", f"exec {command}"],
                cwd=self.folder,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self.stack.callback(end, process)
        return process


def wait_for(log: Path, words: str, process: "subprocess.Popen[bytes] | None" = None) -> None:
    """Wait until a log says something."""
    limit = time.monotonic() + SECONDS
    while words not in log.read_text("utf-8"):
        assert process is None or process.poll() is None, log.read_text("utf-8")
        assert time.monotonic() < limit, log.read_text("utf-8")
        time.sleep(0.5)


def refuses_a_second_run(reader: Reader) -> None:
    """On the same ledger at the same time, as the page says, with the reason."""
    with open_ledger(reader.folder / "app" / "ledger.db"):
        refused = reader.run("fedaccord server run app --last-slot 2", SECONDS)
    assert refused.returncode == 2
    assert "ledger.db: another process is writing to this ledger; only one may" in refused.stdout


def survives_a_kill(reader: Reader) -> None:
    """The SuperLink is killed in the middle of a slot; the page's command goes on with it."""
    log, slot = reader.folder / "app.log", reader.folder / "slot.log"
    command = "fedaccord server run app --last-slot 2"
    watching = reader.leave_running(command, slot)
    wait_for(slot, "slot 2 begins", watching)
    known = json.loads((reader.folder / "app" / "run" / "processes.json").read_text())
    (superlink,) = (one[0] for one in known["processes"] if one[2] == "flower-superlink")
    os.kill(superlink, signal.SIGKILL)
    wait_for(log, "the server runs again")
    assert "superlink was killed by signal 9; it is started again" in log.read_text("utf-8")
    reader.type(command)


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("nginx", path="/usr/sbin:/usr/bin") is None, reason="needs nginx")
def test_the_page_leads_to_the_first_settled_slot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    reader, names = Reader(tmp_path), dict[str, Any]()
    with reader.stack:
        for kind, text in commands():
            if kind == "python":
                exec(text, names)
            else:
                reader.type(text)
        first = load_entries(str(tmp_path / "app" / "ledger.db"))
        refuses_a_second_run(reader)
        survives_a_kill(reader)
    verdicts = [entry.body["verdict"] for entry in first if entry.kind == "verdict"]
    assert verdicts == ["kept", "kept", "kept"]
    assert not [entry for entry in first if entry.kind in ("absence", "fault")]
    ledger = load_entries(str(tmp_path / "app" / "ledger.db"))
    assert wrong_in(ledger) == []
    assert [entry for entry in ledger if (entry.kind, entry.slot) == ("verdict", 2)]
    for member in ("st-mary", "northgate", "lakeside"):
        copy = load_entries(str(tmp_path / member / "ledger.db"))
        assert contradictions(ledger, copy) == []
        assert (tmp_path / member / "model.npz").is_file()

"""The how-to page on Flower, followed to the letter: every command is copied from the page."""

import os
import re
import shutil
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
            self._leave_running(command)
            return
        limit = time.monotonic() + SECONDS
        while True:
            done = self._run(command, limit - time.monotonic())
            # a check says what is still missing, and one looks again
            if done.returncode == 0 or " check " not in command or time.monotonic() > limit:
                break
            time.sleep(2)
        assert done.returncode == 0, f"{command}\n{done.stdout}"

    def _run(self, command: str, seconds: float) -> "subprocess.CompletedProcess[str]":
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

    def _leave_running(self, command: str) -> None:
        log = self.folder / f"{command.rsplit(maxsplit=1)[-1]}.log"
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
        if "server" in command:
            limit = time.monotonic() + SECONDS
            while "the server runs" not in log.read_text("utf-8"):
                assert process.poll() is None, log.read_text("utf-8")
                assert time.monotonic() < limit, log.read_text("utf-8")
                time.sleep(0.5)


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
    ledger = load_entries(str(tmp_path / "app" / "ledger.db"))
    assert wrong_in(ledger) == []
    verdicts = [entry.body["verdict"] for entry in ledger if entry.kind == "verdict"]
    assert verdicts == ["kept", "kept", "kept"]
    assert not [entry for entry in ledger if entry.kind in ("absence", "fault")]
    for member in ("st-mary", "northgate", "lakeside"):
        copy = load_entries(str(tmp_path / member / "ledger.db"))
        assert contradictions(ledger, copy) == []
        assert (tmp_path / member / "model.npz").is_file()

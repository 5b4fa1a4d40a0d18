"""Starts a run of the app in a directory, and follows it until it ends.

The server app writes its events to the log of the run as JSON. Flower passes that log on to whoever
may control the SuperLink, so the lines arrive here within about a second, wherever the ledger is.
"""

import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from fedaccord.errors import FedaccordError, InvalidInput
from fedaccord.flower.events import Event, LogFormat, Note, Say
from fedaccord.flower.listeners import printer
from fedaccord.flower.server_events import RunEnds, RunFailed, read_event

_SUPERLINK = "consortium"
"""The name of the connection in `flower-home/config.toml`."""
_QUIET = {
    "FLWR_TELEMETRY_ENABLED": "0",
    "FLWR_DISABLE_UPDATE_CHECK": "1",
    "NO_COLOR": "1",
    "PYTHONUNBUFFERED": "1",  # lines are passed on when they are written
}
_LEVEL = re.compile(r"^(?:\x1b\[\d+m)?(DEBUG|INFO|WARNING|ERROR|CRITICAL) .*?: +(.*)$")
"""A line of Flower's log."""
_CODE = re.compile(r"Exit Code: \d+")
OWN_EXAMPLES = ("test.npz", "test.csv")
"""Files of test examples that a server uses if they lie in its directory."""


def run_slots_and_watch(
    app: Path,
    last_slot: int,
    *,
    log_format: LogFormat = "text",
    listeners: Sequence[Say] = (),
) -> bool:
    """Run slots until `last_slot` is settled, print what happens, and return whether none is void.

    `listeners` are told as well. A run that fails is an error with the reason that it gives.
    """
    if not (app / "fedaccord_app" / "terms.toml").is_file():
        raise InvalidInput(f"{app}: is not a directory that `fedaccord flower new` wrote")
    flower = _Flower(app)
    everyone = [printer(sys.stdout, log_format), *listeners]
    run = ""
    try:
        run = flower.start(last_slot)
        return not _follow(flower, run, everyone).void
    except FedaccordError as error:  # whoever called says it to people
        for say in everyone if log_format == "json" else listeners:
            say(RunFailed(message=str(error)))
        raise
    except KeyboardInterrupt:
        if run:
            message = f"nobody watches any more, but run {run} goes on; `flwr stop {run}` stops it"
            everyone[0](Note(message=message))
        raise


def named_examples(app: Path) -> str:
    """The file of test examples that the configuration of an app names; nothing if it does not."""
    try:
        project = tomllib.loads((app / "pyproject.toml").read_text("utf-8"))
        return str(project["tool"]["flwr"]["app"]["config"].get("test-data", ""))
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return ""  # Flower says what is wrong with it


def own_examples(app: Path) -> str:
    """The file of test examples in a server's directory; nothing if its configuration names one."""
    found = [name for name in OWN_EXAMPLES if (app / name).is_file()]
    return found[0] if found and not named_examples(app) else ""


class _Flower:
    """Flower's command line, in the directory of an app."""

    def __init__(self, app: Path) -> None:
        self.app = app
        self.environment = (
            dict(os.environ) | _QUIET | {"FLWR_HOME": str(app.resolve() / "flower-home")}
        )

    def start(self, last_slot: int) -> str:
        """Start a run and return its id."""
        config = f'last-slot={last_slot} log-format="json"'
        if examples := own_examples(self.app):
            config += f' test-data="{examples}"'
        answer = self._answer("run", ".", _SUPERLINK, "--run-config", config)
        if not isinstance(answer, dict) or not answer.get("success"):
            why = _told(answer) or "Flower does not say why"
            raise FedaccordError(f"the run could not be started: {why}")
        return str(answer["run-id"])

    def status(self, run: str) -> str:
        """Such as `finished:completed`; nothing if the SuperLink does not answer."""
        answer = self._answer("ls", _SUPERLINK, "--run-id", run)
        runs = answer.get("runs", []) if isinstance(answer, dict) else []
        return str(runs[0].get("status", "")) if runs else ""

    def lines(self, run: str) -> Iterator[str]:
        """The lines of a run's log, as they are written, until the run or the connection ends."""
        words = [*_flwr(), "log", run, _SUPERLINK, "--stream"]
        with subprocess.Popen(
            words,
            cwd=self.app,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            encoding="utf-8",
            errors="replace",
        ) as process:
            assert process.stdout is not None
            try:
                yield from process.stdout
            finally:
                process.terminate()

    def _answer(self, *words: str) -> Any:
        done = subprocess.run(
            [*_flwr(), *words, "--format", "json"],
            cwd=self.app,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            check=False,
        )
        with suppress(ValueError):
            return json.loads(done.stdout)
        return {"error-message": (done.stderr or done.stdout).strip()}


def _flwr() -> list[str]:
    """Flower's command that belongs to this Python."""
    return [sys.executable, "-c", "from flwr.cli.app import app; app()"]


def _told(answer: Any) -> str:
    """The reason that Flower gives, on one line, without the name of the connection before it."""
    said = answer.get("error-message", "") if isinstance(answer, dict) else ""
    lines = str(said).splitlines()
    return " ".join(" ".join(one for one in lines if not one.startswith("Using SuperLink")).split())


def _follow(flower: _Flower, run: str, everyone: Sequence[Say]) -> RunEnds:
    """Tell everyone what a run says, and return its last event.

    The connection may break while the run goes on. The log is then read again from its beginning,
    and what was told already is left out.
    """
    told, error, ended = 0, "", None
    while ended is None:
        events = 0
        for line in flower.lines(run):
            event = _event_in(line)
            if event is None:
                error = _error_in(line) or error
                continue
            events += 1
            if events <= told:
                continue
            told = events
            for say in everyone:
                say(event)
            if isinstance(event, RunEnds):
                ended = event
        status = flower.status(run)
        if ended is None and (status.startswith("finished") or not status):
            raise _failed(flower, run, status, error)
    return ended


def _failed(flower: _Flower, run: str, status: str, error: str) -> FedaccordError:
    """Why a run ended too early."""
    if not status:
        error = (
            "the SuperLink does not answer any more; when it runs again (`fedaccord server start` "
            "starts one again that was killed), run the slots again"
        )
    elif status.endswith("stopped"):
        error = "it was stopped; run the slots again to go on where it was"
    elif not error:
        error = f"`flwr log {run} {_SUPERLINK} --show` in {flower.app} shows its log"
    return FedaccordError(f"the run failed: {error}")


def _event_in(line: str) -> Event | None:
    """The event in a line of the log, if there is one."""
    start = line.find('{"event"')
    if start < 0:
        return None
    try:
        fields = json.loads(line[start:])
    except ValueError:
        return None
    return read_event(fields) if isinstance(fields, dict) else None


def _error_in(line: str) -> str:
    """The sentence in a line of the log that is an error; Flower's own code for it says less."""
    found = _LEVEL.match(line.rstrip("\n"))
    if found is None or found[1] not in ("ERROR", "CRITICAL") or _CODE.fullmatch(found[2]):
        return ""
    return found[2]

"""The member's node: checked, started and stopped from the page, and its log."""

import subprocess
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from threading import Lock

from fastapi import APIRouter, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import RedirectResponse, Response

from fedaccord.console.member import keeping
from fedaccord.console.member.copy import last_settled
from fedaccord.console.member.home import CLIENT_FILE, Home
from fedaccord.console.web.streams import stream_of
from fedaccord.deployment.check import Finding, note
from fedaccord.deployment.kept import LONGEST, let_go, start_kept
from fedaccord.deployment.member_check import check_member
from fedaccord.deployment.processes import end
from fedaccord.errors import FedaccordError

router = APIRouter()
LOG = "node.log"
_SHOWN = 64 * 1024
"""Bytes of the log on the page: its end."""
_LINES = 200


class Node:
    """The process of the node, which ends with the page."""

    def __init__(self, directory: Path) -> None:
        """It is not started yet."""
        self._directory = directory
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = Lock()
        self._app: str | None = None

    @property
    def is_running(self) -> bool:
        """Whether it runs."""
        return self._process is not None and self._process.poll() is None

    @property
    def ended_with(self) -> int | None:
        """The exit code, if it ended by itself."""
        return None if self._process is None else self._process.poll()

    def is_outdated(self, app: str | None) -> bool:
        """Whether it was started with another app than the one that is signed now."""
        return self.is_running and app != self._app

    def start(self, app: str | None) -> None:
        """Start it, unless it runs; it will run this app."""
        with self._lock:
            if self.is_running:
                return
            if self._process is not None:
                let_go(self._process)
            self._app = app
            path = self._directory / LOG
            path.touch(mode=0o600)
            with path.open("ab") as log:
                self._process = start_kept(
                    keeping.__name__, [CLIENT_FILE], log, folder=self._directory
                )

    def stop(self) -> None:
        """End it, and everything that it started."""
        with self._lock:
            if self._process is not None:
                if self._process.poll() is None:
                    end(self._process, LONGEST)
                let_go(self._process)
            self._process = None

    @property
    def version(self) -> str:
        """Another text whenever there is something new to show."""
        path = self._directory / LOG
        size = path.stat().st_size if path.is_file() else 0
        return f"{size}-{self.is_running}"

    @property
    def lines(self) -> list[str]:
        """The end of its log."""
        path = self._directory / LOG
        if not path.is_file():
            return []
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - _SHOWN))
            return file.read().decode("utf-8", "replace").splitlines()[-_LINES:]


_ON_THE_PAGE = {
    "terms": "read and sign them on the page Terms",
    "data": "the page Data says what form they have",
    "signatures": "the room shows who has signed",
}
"""What to do here instead of with a command."""


def checked(home: Home) -> Sequence[Finding]:
    """What is right and wrong for a slot, and what to do about it on these pages."""
    trouble = ""
    try:
        home.take_signatures()
    except FedaccordError as error:
        trouble = str(error)
    found = [
        replace(one, do=_ON_THE_PAGE[one.about]) if one.do and one.about in _ON_THE_PAGE else one
        for one in check_member(home.directory)
    ]
    return [*found, note("room", trouble, "try again later")] if trouble else found


# --- Pages ---------------------------------------------------------------------------------


@router.get("/node", response_class=Response)
def node(request: Request) -> Response:
    """Whether it runs, and what it says."""
    return _page(request)


@router.get("/node/log", response_class=Response)
def log(request: Request) -> Response:
    """The part of the page that changes."""
    return _page(request, template="node_log.html.j2")


@router.get("/node/stream", response_class=Response)
async def stream(request: Request) -> Response:
    """Tells when there is something new."""
    running: Node = request.app.state.node

    async def version() -> str:
        return await run_in_threadpool(lambda: running.version)

    return stream_of(request, version, lambda _: False)


@router.post("/node/check", response_class=Response)
def check(request: Request) -> Response:
    """Check everything that a slot needs."""
    home: Home = request.app.state.home
    if not home.exists:
        return RedirectResponse("/join", 303)
    return _page(request, findings=checked(home))


@router.post("/node/start", response_class=Response)
def start(request: Request) -> Response:
    """Start the node, if the terms are signed."""
    home: Home = request.app.state.home
    if not home.exists or home.signed.own is None:
        raise FedaccordError("the node runs only under terms that were signed: sign them first")
    with suppress(FedaccordError):  # without the room's answer, the node runs all the same
        home.take_signatures()
    request.app.state.node.start(home.file.app)
    return RedirectResponse("/node", 303)


@router.post("/node/stop", response_class=Response)
def stop(request: Request) -> Response:
    """Stop the node."""
    request.app.state.node.stop()
    return RedirectResponse("/node", 303)


def _page(
    request: Request,
    *,
    template: str = "node.html.j2",
    findings: Sequence[Finding] = (),
) -> Response:
    home: Home = request.app.state.home
    if not home.exists:
        return RedirectResponse("/join", 303)
    running: Node = request.app.state.node
    response: Response = request.app.state.pages.show(
        request,
        template,
        title="Your node",
        current="node",
        node=running,
        is_outdated=running.is_outdated(home.file.app),
        lines=running.lines,
        is_signed=home.signed.own is not None,
        findings=findings,
        last=last_settled(home),
    )
    return response

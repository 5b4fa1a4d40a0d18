"""The server's processes: Flower's SuperLink, and nginx before it. They end together.

A SuperLink that is killed leaves the process behind that runs the slots, which holds the ledger
for about a minute. So whatever a SuperLink has left behind is ended before the next one starts.

Members' nodes are registered as soon as the SuperLink answers, under their clients' names: a node
is refused if it claims another name than the one its key is registered for.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

from cryptography.hazmat.primitives import serialization

from fedaccord.deployment.admission import load_app_terms, members_of
from fedaccord.deployment.app_directory import INVITATION, MEMBERS
from fedaccord.deployment.fence import nginx_words, superlink_words
from fedaccord.deployment.invitation import host_of, load_invitation
from fedaccord.deployment.new_directory import folder_names
from fedaccord.deployment.processes import Processes, end_left_behind, end_orphans, listens
from fedaccord.errors import FedaccordError, InvalidInput

QUIET = {
    "FLWR_TELEMETRY_ENABLED": "0",
    "FLWR_DISABLE_UPDATE_CHECK": "1",
    "FLWR_SUPEREXEC_TASK_POLL_INTERVAL": "0.1",
}
"""The server calls nobody outside, and looks for work ten times a second."""
RUNS = "the server runs"
"""How the line begins that is said when members' nodes can come, and slots can run."""
_START = 60.0
"""Seconds within which the SuperLink must answer."""
_RESTARTS, _WITHIN = 3, 600.0
"""A SuperLink that ends more often than that within so many seconds is not started again."""


def environment(app: Path) -> dict[str, str]:
    """Of every process of Flower's on the server."""
    programs = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
    home = str((app / "flower-home").resolve())
    return {**os.environ, **QUIET, "FLWR_HOME": home, "PATH": programs}


def superlink_address(app: Path) -> str:
    """Where the SuperLink of an app listens, as its configuration has it."""
    path = app / "flower-home" / "config.toml"
    try:
        found = tomllib.loads(path.read_text("utf-8"))["superlink"]["consortium"]["address"]
    except (OSError, tomllib.TOMLDecodeError, KeyError):
        raise InvalidInput("has no address of the SuperLink", str(path)) from None
    return str(found)


def find_nginx() -> str | None:
    """The program nginx, if it is installed; Debian has it where only root looks."""
    return shutil.which("nginx", path=f"{os.environ.get('PATH', os.defpath)}{os.pathsep}/usr/sbin")


def serve(app: Path, say: Callable[[str], None]) -> None:
    """Run the server until a signal ends it, or until one of its processes ends by itself."""
    if (nginx := find_nginx()) is None:
        raise FedaccordError(
            "nginx is not installed, and without it the server would be open to everyone: "
            "install it (apt install nginx-light), and start the server again"
        )
    address, record = superlink_address(app), app / "run" / "processes.json"
    end_left_behind(record, say)
    if listens(*host_of(address)):
        raise FedaccordError(f"something listens at {address} already: is the server running?")
    ended = _until_signalled()
    try:
        with Processes(app / "run", ended, record) as processes:
            start_superlink(app, processes, environment(app))
            for name in register_members(app):
                say(f"registered the node of {name}")
            start_nginx(app, processes, nginx)
            say(f"{RUNS}: Flower at {address}, for this machine only, and nginx before it")
            _keep_running(app, processes, say)
    except FedaccordError:
        if not ended():
            raise
    say("the server ends")


def _keep_running(app: Path, processes: Processes, say: Callable[[str], None]) -> None:
    """Start a SuperLink again that ended by itself, until something else ends."""
    restarts: list[float] = []
    while True:
        died = processes.ended("superlink")
        restarts = [at for at in restarts if time.monotonic() < at + _WITHIN]
        if died is not None and len(restarts) < _RESTARTS:
            say(f"{died}; it is started again")
            restarts.append(time.monotonic())
            end_orphans(processes.left_by("superlink"), say)
            start_superlink(app, processes, environment(app))
            register_members(app)
            say(f"{RUNS} again: what was under way goes on with the next `fedaccord server run`")
        processes.check()
        time.sleep(0.5)


def start_superlink(app: Path, processes: Processes, known: Mapping[str, str]) -> None:
    """Start Flower's server for this machine only, and wait until it answers."""
    host, port = host_of(superlink_address(app))
    program, *options = superlink_words(port)
    words = [str(Path(sys.executable).parent / program), *options]
    processes.start("superlink", words, folder=app, environment=known)
    processes.wait("superlink", lambda: listens(host, port), _START)


def start_nginx(app: Path, processes: Processes, nginx: str) -> None:
    """Start the proxy that members reach, and wait until it answers."""
    _, port = host_of(load_invitation(app / INVITATION).server.address)
    words = [nginx, *nginx_words(app)[1:]]
    processes.start("nginx", words, folder=app, environment=environment(app))
    processes.wait("nginx", lambda: listens("127.0.0.1", port), _START)


class Node(NamedTuple):
    """A node that the SuperLink knows."""

    number: int
    name: str
    public: bytes
    """Its key, as Flower keeps it."""
    online: bool


def register_members(app: Path) -> list[str]:
    """Register the nodes that are not registered yet; returns whose they are.

    A member with new keys has a new node. The old one is unregistered: whoever has its key is no
    longer that member.
    """
    cards, known = members_of(app).cards, nodes_of(app)
    files = folder_names(load_app_terms(app).clients)
    fresh = []
    for name, card in cards.items():
        public = _as_flower_has_it(card.node_key)
        nodes = [node for node in known if node.name == name]
        for old in nodes:
            if old.public != public:
                _flwr(app, "supernode", "unregister", str(old.number), "consortium")
        if all(node.public != public for node in nodes):
            file = Path(MEMBERS) / f"{files[name]}.pub"
            _flwr(app, "supernode", "register", str(file), "consortium", "--name", name)
            fresh.append(name)
    return fresh


def _as_flower_has_it(node_key: str) -> bytes:
    """A public key as OpenSSH writes it, in the form of the list of nodes."""
    form = (serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    return serialization.load_ssh_public_key(node_key.encode("ascii")).public_bytes(*form)


def nodes_of(app: Path) -> list[Node]:
    """The nodes that are registered at the SuperLink.

    The list of Flower's own command (flwr 1.41) leaves the names out.
    """
    from flwr.proto.control_pb2 import ListNodesRequest
    from flwr.supercore.control import ControlHttpClient
    from httpx import HTTPError

    address, authority = superlink_address(app), app / "keys" / "ca.pem"
    try:
        with ControlHttpClient.from_server_address(
            address, insecure=False, root_certificates=authority.read_bytes(), interceptors=[]
        ) as client:
            found = client.ListNodes(ListNodesRequest()).nodes_info
    except (HTTPError, OSError) as error:
        raise FedaccordError(f"Flower at {address} does not list its nodes: {error}") from None
    return [
        Node(node.node_id, node.name, node.public_key, node.status == "online")
        for node in found
        if node.status != "unregistered"
    ]


def reload_proxy(app: Path) -> bool:
    """Let a running nginx read its files again; returns whether one is running."""
    try:
        os.kill(int((app / "run" / "nginx.pid").read_text("ascii")), signal.SIGHUP)
    except (OSError, ValueError):
        return False
    return True


def _until_signalled() -> Callable[[], bool]:
    """Whether somebody asked this process to end."""
    asked = False

    def note(number: int, frame: FrameType | None) -> None:  # noqa: ARG001
        nonlocal asked
        asked = True

    for kind in (signal.SIGTERM, signal.SIGINT):
        signal.signal(kind, note)
    return lambda: asked


def _flwr(app: Path, *words: str) -> dict[str, Any]:
    """What a command of Flower's answers, in JSON."""
    done = subprocess.run(
        [str(Path(sys.executable).parent / "flwr"), *words, "--format", "json"],
        cwd=app,
        env=environment(app),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    try:
        answer: dict[str, Any] = json.loads(done.stdout)
    except ValueError:
        answer = {}
    if done.returncode or not answer.get("success"):
        said = answer.get("error-message") or done.stderr.strip() or done.stdout.strip()
        raise FedaccordError(f"flwr {' '.join(words[:2])} failed: {said}")
    return answer

"""A member's node: only the app that the member signed is ever started, whatever the server does.

The node is Flower's, with our connection, memory and pin; the server is ours, and sends anything.
"""

import logging
import ssl
import subprocess
import sys
import threading
from collections.abc import Iterator
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any, cast

import httpx
import pytest
from flwr.common.constant import ErrorCode
from flwr.supernode import fleet_http_connection
from flwr.supernode.start_client_internal import start_client_internal

from fedaccord.deployment.certificates import (
    make_certificates,
    make_client_certificate,
    make_node_key,
)
from fedaccord.errors import FedaccordError, InvalidInput
from fedaccord.flower import node
from fedaccord.flower.app_process import AppProcess
from fedaccord.flower.app_worker import Worker
from fedaccord.flower.client_file import load_client_file
from fedaccord.flower.fleet import Fleet, PinnedClient, tls_context
from fedaccord.flower.node_memory import Memories, NodeMemory
from fedaccord.flower.pin import Pin
from tests.flower.fleet_server import FleetServer, Sent, bundle, usual_signals
from tests.lies import lie

ECHO = """
from flwr.app import ConfigRecord, Message, RecordDict
from flwr.clientapp import ClientApp
app = ClientApp()
@app.query()
def answer(message, context):
    n = message.content["n"]["n"]
    said = {"said": "MINE", "n": n, "setting": str(context.run_config.get("mode"))}
    return Message(RecordDict({"r": ConfigRecord(said)}), reply_to=message)
"""
THIEF = "from pathlib import Path\n" + ECHO.replace(
    '"MINE"', 'Path(context.node_config["client-file"]).read_text()'
)
NUMBERS = """\
name = "a"
valuation = 31.25
cost_per_sample = 0.05
samples = 100
discount_factor = 0.8
"""


class Node:
    """A node in this process, with the app in it as well unless a test wants a real process."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.file = folder / "client.toml"
        self.started: list[str] = []
        """The digests of the apps that were given a message."""
        self._worker: dict[str, Worker] = {}

    def sign(self, content: bytes | str | None) -> None:
        digest = content if isinstance(content, str | None) else sha256(content).hexdigest()
        line = "" if digest is None else f'app = "{digest}"\n'
        self.file.write_text(f'server = "127.0.0.1:1"\n{line}{NUMBERS}')

    def answer(self, run: str, parts: list[bytes]) -> list[bytes]:
        from flwr.proto.runtime_pb2 import PullTaskInputResponse

        given = PullTaskInputResponse.FromString(parts[0])
        self.started.append(sha256(given.fab.content).hexdigest())
        return self._worker.setdefault(run, Worker()).answer(parts)

    def serve(self, server: FleetServer, process: AppProcess | None = None) -> list[Any]:
        """Let the server send its messages, and return what the node answered."""
        pin, runner = Pin(self.file), cast(AppProcess, self if process is None else process)

        class Connected(Fleet):
            def from_server_address(self, *given: Any, **named: Any) -> PinnedClient:
                client = super().from_server_address(*given, **named)
                client._client = httpx.Client(transport=httpx.MockTransport(server.handle))
                return client

        make_node_key(self.folder / f"node-{id(server)}.key")
        key = node.load_node_key(self.folder / f"node-{id(server)}.key")
        context = ssl.create_default_context()
        with pytest.MonkeyPatch.context() as patch, usual_signals():
            patch.setattr(fleet_http_connection, "FleetHttpClient", Connected(pin, context))
            start_client_internal(
                state_factory=Memories(NodeMemory(pin, runner)),
                server_address="127.0.0.1:1",
                node_config={"client-file": str(self.file)},
                insecure=False,
                authentication_keys=(key, key.public_key()),
                isolation="process",
                trusted_entities=pin.trusted_entities,
            )
        return [
            reply.error.code if reply.has_error() else dict(reply.content["r"])
            for reply in server.replies
        ]


@pytest.fixture
def member(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Node:
    monkeypatch.setenv("FLWR_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(sys, "path", list(sys.path))
    for name in [name for name in sys.modules if name.startswith("app_")]:
        monkeypatch.delitem(sys.modules, name)
    (tmp_path / "member").mkdir()
    return Node(tmp_path / "member")


@pytest.fixture
def app(tmp_path: Path) -> bytes:
    return bundle(tmp_path / "app", ECHO, mode="signed")


@pytest.fixture
def thief(tmp_path: Path) -> bytes:
    """The same name and version, but it sends the member's file to the server."""
    return bundle(tmp_path / "thief", THIEF, mode="signed")


REFUSED = ErrorCode.INVALID_FAB


def test_the_signed_app_answers(member: Node, app: bytes) -> None:
    member.sign(app)
    run = Sent(app)
    answers = member.serve(FleetServer([run, run, run]))
    assert [one["n"] for one in answers] == [1, 2, 3]
    assert {one["said"] for one in answers} == {"MINE"}


@lie(
    "the server",
    "send a member's node another app, which reads the member's numbers and sends them away",
    "the node of ours starts only the app whose digest the member signed; its log has both digests",
)
def test_another_app(
    member: Node, app: bytes, thief: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    member.sign(app)
    with caplog.at_level(logging.ERROR, "fedaccord"):
        assert member.serve(FleetServer([Sent(thief)])) == [REFUSED]
    assert member.started == []
    (said,) = [one.message for one in caplog.records if one.name == "fedaccord"]
    assert sha256(thief).hexdigest() in said
    assert sha256(app).hexdigest() in said
    assert "fedaccord member sign" in said


def test_without_the_pin_the_thief_succeeds(member: Node, thief: bytes) -> None:
    """The attack is a real one: signed by mistake, it works."""
    member.sign(thief)
    assert "31.25" in member.serve(FleetServer([Sent(thief)]))[0]["said"]


@lie(
    "the server",
    "send another app under the digest that the member signed",
    "the node computes the digest of what it was sent, and refuses it",
)
def test_a_claimed_digest(member: Node, app: bytes, thief: bytes) -> None:
    member.sign(app)
    run = Sent(thief, claimed=sha256(app).hexdigest())
    assert member.serve(FleetServer([run])) == [REFUSED]
    assert member.started == []


@lie(
    "the server",
    "start a second run with another app, or one with an app that the member signed earlier",
    "every run is checked, and every message again: what the member's file says now counts",
)
def test_a_second_run(member: Node, app: bytes, thief: bytes, tmp_path: Path) -> None:
    new = bundle(tmp_path / "new", ECHO.replace("MINE", "NEW"), mode="signed")
    member.sign(app)
    right = Sent(app)
    old = Sent(new, claimed=sha256(app).hexdigest())  # the new one, to get the old one started
    server = FleetServer([right, Sent(thief), right, Sent(new), right, old])
    server.before = {3: lambda: member.sign(new)}
    answers = member.serve(server)
    assert [one if one == REFUSED else one["said"] for one in answers] == [
        *("MINE", REFUSED, "MINE"),
        *("NEW", REFUSED, REFUSED),  # newly signed, without a restart; and the old one ends
    ]


@pytest.mark.parametrize("content", [b"", b"no zip at all", b"PK\x03\x04" + bytes(100)])
def test_what_is_no_app_does_not_end_the_node(member: Node, app: bytes, content: bytes) -> None:
    member.sign(app)
    answers = member.serve(FleetServer([Sent(content), Sent(app)]))
    assert answers[0] == REFUSED
    assert answers[1]["said"] == "MINE"


@lie(
    "the server",
    "change the settings of the signed app, or have it started as something else",
    "the node of ours takes the settings, the name and the version from the signed app alone",
)
def test_settings(member: Node, app: bytes) -> None:
    member.sign(app)
    runs = [
        Sent(app, settings={"mode": "another"}),
        Sent(app, settings={"unknown": 1}),
        Sent(app, kind="flwr-agentapp"),
        Sent(app, version="1.0.0/../../../elsewhere"),
    ]
    answers = member.serve(FleetServer(runs))
    assert [one["setting"] for one in answers] == ["signed"] * 4


def test_an_unreadable_file_starts_nothing(member: Node, app: bytes) -> None:
    member.sign(app)
    run = Sent(app)
    server = FleetServer([run, run, run])
    server.before = {1: lambda: member.sign(None), 2: lambda: member.file.write_text("oops")}
    answers = member.serve(server)
    assert answers[0]["said"] == "MINE"
    assert answers[1:] == [REFUSED] * 2


def test_a_member_must_have_signed(member: Node) -> None:
    member.sign(None)
    with pytest.raises(InvalidInput, match=r"has signed no app yet.*`fedaccord member sign`"):
        node.run_node(member.file)
    member.file.write_text(NUMBERS)
    with pytest.raises(InvalidInput, match="server is missing"):
        node.run_node(member.file)
    member.sign("0" * 64)
    with pytest.raises(FedaccordError, match=r"node\.key: cannot be read"):
        node.run_node(member.file)
    make_node_key(member.folder / "node.key")
    with pytest.raises(FedaccordError, match=r"ca\.pem: cannot be read"):
        node.run_node(member.file)
    (member.folder / "node.key").write_text("no key")
    with pytest.raises(InvalidInput, match="is not a node's private key"):
        node.run_node(member.file)


# --- The app's process ---------------------------------------------------------------------

CRASH = ECHO.replace("n = message", "import os; os._exit(3) if message").replace(
    '["n"]["n"]', '["n"]["n"] == 1 else None; n = message.content["n"]["n"]'
)


@pytest.mark.slow
@lie(
    "whoever reaches the machine",
    "put another app where Flower installs apps, under the name of the signed one",
    "the node of ours installs apps in an empty directory of its own, which only its user enters",
)
def test_the_process(
    member: Node, app: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    poisoned = tmp_path / "poisoned"
    digest = sha256(app).hexdigest()
    place = poisoned / "apps" / f"consortium.test.1.0.0.{digest[:8]}"
    bundle(place, THIEF)
    package = next(path for path in (tmp_path / "app").iterdir() if path.is_dir()).name
    next(path for path in place.iterdir() if path.is_dir()).rename(place / package)
    text = (tmp_path / "app" / "pyproject.toml").read_text()
    (place / "pyproject.toml").write_text(text)
    monkeypatch.setenv("FLWR_HOME", str(poisoned))
    member.sign(app)
    assert "31.25" in member.serve(FleetServer([Sent(app)]))[0]["said"], "the attack is no attack"
    crash = bundle(tmp_path / "crash", CRASH)
    home = tmp_path / "private"
    home.mkdir(mode=0o700)
    process = AppProcess(home)
    try:
        run = Sent(app)
        answers = member.serve(FleetServer([run, run]), process)
        assert [one["said"] for one in answers] == ["MINE", "MINE"]
        member.sign(crash)
        failing = Sent(crash)
        answers = member.serve(FleetServer([failing, failing]), process)
        assert answers[0] == ErrorCode.CLIENT_APP_CRASHED
        assert answers[1]["n"] == 2
    finally:
        process.end()
    assert process._process.poll() is not None


@pytest.mark.slow
def test_the_process_ends_with_its_node() -> None:
    """However the node ends: its end of the pipe is closed, even by SIGKILL."""
    words = [sys.executable, "-P", "-m", "fedaccord.flower.app_worker"]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        process.stdin.close()
        assert process.wait(timeout=60) == 0


# --- What we rely on in Flower -------------------------------------------------------------


def test_flower_is_as_we_know_it() -> None:
    """If one of these fails with a new flwr, read `node.py`, `fleet.py` and `node_memory.py`."""
    from inspect import getsource, signature

    source = getsource(fleet_http_connection.http_request_response)
    assert "FleetHttpClient.from_server_address(" in source
    assert set(signature(Fleet.from_server_address).parameters) - {"self"} == set(
        list(signature(PinnedClient.from_server_address).parameters)[:4]
    )
    loop = getsource(start_client_internal)
    assert "isolation == ISOLATION_MODE_SUBPROCESS" in loop
    assert "_pull_and_store_message(" in loop


# --- The connection ------------------------------------------------------------------------


@pytest.fixture
def guarded(tmp_path: Path) -> Iterator[tuple[Path, int]]:
    """A proxy that answers only those who show a certificate that it knows."""
    make_certificates(tmp_path / "keys", ["127.0.0.1"])
    make_client_certificate(tmp_path, "a")

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "keys/server.pem", tmp_path / "keys/server.key")
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(tmp_path / "tls.pem")
    server = HTTPServer(("127.0.0.1", 0), Answer)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield tmp_path, server.server_address[1]
    server.shutdown()
    server.server_close()


def _status(folder: Path, port: int, lines: str) -> int:
    path = folder / "client.toml"
    path.write_text(NUMBERS + lines)
    context = tls_context(load_client_file(path), folder)
    return httpx.get(f"https://127.0.0.1:{port}", verify=context).status_code


def test_the_node_shows_its_certificate(guarded: tuple[Path, int]) -> None:
    folder, port = guarded
    known, own = 'authority = "keys/ca.pem"\n', 'certificate = "tls.pem"\n'
    assert _status(folder, port, known + own) == 200
    with pytest.raises(httpx.TransportError):
        _status(folder, port, known)
    with pytest.raises(httpx.ConnectError, match="CERTIFICATE_VERIFY_FAILED"):
        _status(folder, port, 'authority = "tls.pem"\n' + own)
    with pytest.raises(InvalidInput, match="its key does not fit"):
        _status(folder, port, known + own + 'certificate_key = "keys/server.key"\n')

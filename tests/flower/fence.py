"""An nginx with our configuration, before a stand-in for the SuperLink that records requests."""

import os
import shutil
import socket
import ssl
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any, NamedTuple

from fedaccord.deployment.fence import nginx_text, nginx_words
from tests.flower.deployment import free_port, until

NGINX = shutil.which("nginx", path="/usr/local/sbin:/usr/sbin:/usr/bin:/usr/local/bin")
NO_NGINX = "nginx is not installed (on Debian: apt-get install nginx-light)"


class Arrived(NamedTuple):
    """A request as the SuperLink would see it."""

    line: str
    headers: dict[str, str]
    body: bytes


class Recorder(BaseHTTPRequestHandler):
    """Answers everything with its own request line, and pull-object with what was sent."""

    protocol_version = "HTTP/1.1"
    arrived: list[Arrived]

    def handle_one_request(self) -> None:
        self.raw_requestline = self.rfile.readline(65537)
        if not self.raw_requestline or not self.parse_request():
            self.close_connection = True
            return
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.arrived.append(Arrived(self.requestline, headers, body))
        answer = body if "/pull-object " in self.requestline else self.requestline.encode()
        self.send_response(200)
        self.send_header("content-length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *said: Any) -> None:
        """Nothing: what arrived is in the list."""


@contextmanager
def recorder(keys: Path) -> Iterator[tuple[int, list[Arrived]]]:
    """A stand-in for the SuperLink, with its certificate: its port and what arrived."""
    arrived: list[Arrived] = []
    server = ThreadingHTTPServer(
        ("127.0.0.1", 0), type("Recording", (Recorder,), {"arrived": arrived})
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(keys / "server.pem", keys / "server.key")
    server.socket = context.wrap_socket(server.socket, server_side=True)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield int(server.server_address[1]), arrived
    finally:
        server.shutdown()
        server.server_close()


@contextmanager
def running_nginx(
    home: Path,
    superlink: str,
    beside: str = "",
    *,
    before: str = "",
    user: int | None = None,
    **limits: Any,
) -> Iterator[int]:
    """An nginx with our configuration for the server's directory `home`: its port.

    `beside` is another server of the same nginx, `before` is what stands above all
    else, and `user` is who starts it, if not whoever tests.
    """
    assert NGINX is not None
    port = free_port()
    text = nginx_text(
        listen=f"127.0.0.1:{port}",
        superlink=superlink,
        keys=Path("keys"),
        run=Path("run"),
        **limits,
    )
    (home / "nginx.conf").write_text(f"{before}{text.rstrip().removesuffix('}')}{beside}}}\n")
    run = home / "run"
    if not run.exists():
        run.mkdir(mode=0o700)
        os.chown(run, home.stat().st_uid, home.stat().st_gid)
    process = subprocess.Popen(
        [NGINX, *nginx_words(home)[1:]],
        cwd=home,
        user=user,
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    try:
        until(lambda: process.poll() is not None or _listens(port), 20, "nginx")
        if process.poll() is not None and process.stderr is not None:
            raise AssertionError(process.stderr.read().decode())
        yield port
    finally:
        process.terminate()
        process.wait(timeout=20)
        if process.stderr is not None:
            process.stderr.close()


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def context_of(authority: Path, certificate: Path | None = None) -> ssl.SSLContext:
    """TLS as a client with these files has it; `certificate` is the folder of tls.pem."""
    context = ssl.create_default_context(cafile=str(authority))
    if certificate is not None:
        context.load_cert_chain(certificate / "tls.pem", certificate / "tls.key")
    return context


def send(port: int, context: ssl.SSLContext, request: bytes) -> bytes:
    """Send these bytes over TLS, and return all that comes back until the other end closes."""
    plain = socket.create_connection(("127.0.0.1", port), timeout=20)
    try:
        with context.wrap_socket(plain, server_hostname="localhost") as secure:
            with suppress(OSError):  # it need not read to the end what it refuses
                secure.sendall(request)
            return _all(secure)
    except OSError:
        return b""


def _all(secure: ssl.SSLSocket) -> bytes:
    parts = []
    with suppress(OSError):
        while part := secure.recv(65536):
            parts.append(part)
    return b"".join(parts)


def status(answer: bytes) -> int:
    """The status of an answer; 0 if there was none."""
    return int(answer.split(b" ", 2)[1]) if answer.startswith(b"HTTP/") else 0

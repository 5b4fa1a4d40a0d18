"""Serves an application until it is interrupted, and opens it in the browser."""

import signal
import socket
import ssl
import threading
import webbrowser
from collections.abc import Callable
from pathlib import Path

import uvicorn
from fastapi import FastAPI

from fedaccord.errors import FedaccordError, InvalidInput

LOOPBACK = ("127.0.0.1", "localhost", "::1")
"""The names of this machine, for pages that nobody else may reach."""
_LONGEST = 256 * 1024
"""Bytes of a request's first lines: an address may contain a consortium."""


def listen(host: str, port: int) -> socket.socket:
    """A socket at a port; any free one if it is 0."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    found = socket.socket(family)
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        found.bind((host, port))
    except (OSError, OverflowError) as error:
        found.close()
        reason = getattr(error, "strerror", None) or error
        raise FedaccordError(f"nothing can listen at {host}:{port}: {reason}") from None
    return found


def check_certificate(chain: Path, key: Path) -> None:
    """Refuse files that no server can show: what is wrong with them, in a sentence."""
    for path in (chain, key):
        try:
            path.open("rb").close()
        except OSError as error:
            reason = error.strerror or error
            raise InvalidInput(f"cannot be read: {reason}", str(path)) from None
    try:
        # an encrypted key would have us ask for its password
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(chain, key, password="")
    except (ssl.SSLError, ValueError) as error:
        reason = getattr(error, "reason", None) or ""
        if reason == "KEY_VALUES_MISMATCH":
            raise InvalidInput(f"is not the key of the certificate {chain}", str(key)) from None
        raise InvalidInput(
            f"is not a certificate (PEM) with the key {key}, which must have no password",
            str(chain),
        ) from None


def serve(
    app: FastAPI,
    at: socket.socket,
    *,
    opened: Callable[[], str] | None = None,
    certificate: tuple[Path, Path] | None = None,
    trusted_proxy: str = "",
) -> None:
    """Serve until Ctrl-C or SIGTERM.

    Args:
        app: What is served.
        at: Where.
        opened: Makes the address to open in a browser once the server runs.
        certificate: The files of a certificate and of its key, for TLS.
        trusted_proxy: The address of a proxy whose word is taken for who calls.
    """
    chain, key = certificate or (None, None)
    server = uvicorn.Server(
        uvicorn.Config(
            app,
            log_level="warning",
            access_log=False,  # addresses would be in it
            server_header=False,
            h11_max_incomplete_event_size=_LONGEST,
            http="h11",
            proxy_headers=bool(trusted_proxy),
            forwarded_allow_ips=trusted_proxy or None,
            timeout_graceful_shutdown=3,
            ssl_certfile=chain,
            ssl_keyfile=key,
        )
    )
    if opened is not None:
        threading.Timer(0.5, lambda: webbrowser.open(opened())).start()
    for kind in (signal.SIGINT, signal.SIGTERM):
        # uvicorn sends itself the signal again once it has ended in order, which is the end for us
        signal.signal(kind, lambda *_: None)
    server.run(sockets=[at])

"""A member's node: Flower's SuperNode, outside of any app, which starts only the signed one.

It is Flower's own node (`start_client_internal`) with three things of ours, each of which Flower
is handed as an argument but the first: the connection (`fleet.py`: client certificate, pin, pace),
the memory (here: a message goes to the app's process and its reply comes back), and the key that
vouches for the signed app (`pin.py`, which also says what the pin does not hold).
"""

import logging
import os
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from fedaccord.errors import FedaccordError, InvalidInput
from fedaccord.flower.client_file import load_client_file
from fedaccord.flower.member_log import write_log
from fedaccord.flower.pin import Pin

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric import ec

    from fedaccord.flower.fleet import Fleet

LOG = logging.getLogger("fedaccord")
_QUIET = {"FLWR_TELEMETRY_ENABLED": "0", "FLWR_DISABLE_UPDATE_CHECK": "1"}
"""A member's node calls nobody but its server."""
_SAID_BY_US = ("Connection attempt failed", "FAB verification failed", "Cannot get processing")
_PAUSE = 10.0
"""Seconds before the node starts again after an error of Flower's."""


def run_node(client_file: Path) -> None:
    """Connect a member to its server, and answer until a signal (SIGTERM, SIGINT) ends the node.

    Only the app whose digest is `app` in the client's file is started; the file is read again for
    every message. If the server is away, the node tries again until it is back.
    """
    client_file = client_file.resolve()
    address, pin, key = check_node(client_file)
    for name, value in _QUIET.items():  # before Flower is imported
        os.environ.setdefault(name, value)
    from fedaccord.flower.fleet import Fleet, tls_context

    write_log()
    flower = logging.getLogger("flwr")
    flower.setLevel(logging.WARNING)
    flower.addFilter(_not_said_by_us)

    context = tls_context(load_client_file(client_file), client_file.parent)
    with TemporaryDirectory(prefix="fedaccord-node-") as home:
        os.environ["FLWR_HOME"] = home  # apps that are installed elsewhere are of no use here
        _serve(address, pin, key, Fleet(pin, context), Path(home))


def check_node(client_file: Path) -> tuple[str, Pin, "ec.EllipticCurvePrivateKey"]:
    """The server's address, the pin and the key of a node, if its member's files are complete."""
    file = load_client_file(client_file)
    if file.server is None:
        raise InvalidInput(
            "server is missing: the address HOST:PORT of the server", str(client_file)
        )
    pin = Pin(client_file)
    pin.signed()
    return file.server, pin, load_node_key(client_file.parent / file.node_key)


def _not_said_by_us(record: logging.LogRecord) -> bool:
    """Leave out what Flower says at each attempt to reach the server, and of a refused app."""
    return not str(record.msg).startswith(_SAID_BY_US)


def load_node_key(path: Path) -> "ec.EllipticCurvePrivateKey":
    """The key with which the node logs in."""
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.serialization import load_ssh_private_key

    try:
        key = load_ssh_private_key(path.read_bytes(), None)
    except OSError as error:
        raise FedaccordError(f"{path}: cannot be read: {error.strerror or error}") from None
    except (ValueError, UnsupportedAlgorithm):
        raise InvalidInput("is not a node's private key", str(path)) from None
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise InvalidInput("is not a node's private key: Flower needs one of P-384", str(path))
    return key


def _serve(
    address: str, pin: Pin, key: "ec.EllipticCurvePrivateKey", fleet: "Fleet", home: Path
) -> None:
    """Run Flower's node again and again: an error in it, whoever caused it, is no reason to end."""
    from flwr.supernode import fleet_http_connection
    from flwr.supernode.start_client_internal import start_client_internal

    from fedaccord.flower.app_process import AppProcess
    from fedaccord.flower.node_memory import Memories, NodeMemory

    # the one place where Flower takes no argument
    fleet_http_connection.FleetHttpClient = fleet  # type: ignore[attr-defined,assignment,unused-ignore]
    process = AppProcess(home)
    LOG.info("this node connects to %s, and starts only the app %s", address, pin.signed())
    try:
        while True:
            start_client_internal(
                state_factory=Memories(NodeMemory(pin, process)),
                server_address=address,
                node_config={"client-file": str(pin.client_file)},
                insecure=False,
                authentication_keys=(key, key.public_key()),
                isolation="process",  # Flower starts no program of its own
                trusted_entities=pin.trusted_entities,
            )
            LOG.error("Flower's node ended by an error; it is started again in %.0f s", _PAUSE)
            time.sleep(_PAUSE)
    finally:
        process.end()

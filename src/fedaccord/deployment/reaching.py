"""A member's way to the server: name, proxy, certificates, clock, Flower behind it, its key there.

Nothing is changed at the server. To find out whether its node's key is registered, the member asks
to be activated with a heartbeat interval that Flower never accepts: a key that Flower does not know
is refused for that before the interval is looked at.
"""

import http.client
import socket
import ssl
from collections.abc import Iterator
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any

from fedaccord.deployment.check import Finding, note, ok, wrong
from fedaccord.deployment.invitation import host_of
from fedaccord.errors import FedaccordError
from fedaccord.flower.client_file import ClientFile

_SECONDS = 10.0
_AHEAD, _BEHIND = 5.0, 305.0
"""Flower refuses a node whose clock is further ahead or behind, in seconds."""
_NEVER = 0.0
"""A heartbeat interval that Flower never accepts."""
_ACTIVATE = "/v1/fleet/activate-node"
_ASK = "ask the coordinator whether the server runs (`fedaccord server check`)"


def check_server(member: Path, file: ClientFile) -> Iterator[Finding]:
    """Whether this member gets through to the server, and is known there."""
    if file.server is None:
        yield wrong("server", "client.toml has no address", 'add server = "HOST:PORT"')
        return
    from fedaccord.flower.fleet import tls_context

    try:
        context = tls_context(file, member)
        status, date = _ask(file.server, context)
    except FedaccordError as error:
        yield wrong("server", str(error), "correct the file")
        return
    except (OSError, http.client.HTTPException) as error:
        yield _unreached(file.server, error)
        return
    if status == http.client.BAD_REQUEST:
        yield wrong(
            "server",
            f"{file.server} does not accept this member's certificate",
            "send card.json to the coordinator, who runs `fedaccord server admit`",
        )
        return
    yield ok("server", f"{file.server} is reached, and shows the right certificate")
    yield from _check_clock(date)
    yield from _check_registered(member, file, context)


def _ask(address: str, context: ssl.SSLContext) -> tuple[int, str | None]:
    """The status and the time of the proxy's answer to a path that nobody may use."""
    host, port = host_of(address)
    connection = http.client.HTTPSConnection(host, port, timeout=_SECONDS, context=context)
    try:
        connection.request("GET", "/")
        answer = connection.getresponse()
        return answer.status, answer.getheader("Date")
    finally:
        connection.close()


def _unreached(address: str, error: OSError | http.client.HTTPException) -> Finding:
    """What is wrong on the way, and whose it is to mend."""
    host, port = host_of(address)
    if isinstance(error, ssl.SSLCertVerificationError):
        return wrong(
            "server",
            f"{address} shows another certificate than the one in this directory, or one that "
            f"expired ({error.verify_message})",
            "ask the coordinator for the new to-sign.toml; go on only with a certificate that "
            "came from there",
        )
    if isinstance(error, ssl.SSLError):
        return wrong("server", f"{address} ended the TLS connection: {error.reason}", _ASK)
    if isinstance(error, socket.gaierror):
        return wrong("server", f"the name {host} is not known", "check server in client.toml")
    if isinstance(error, TimeoutError):
        return wrong(
            "server",
            f"{address} did not answer in {_SECONDS:.0f} s",
            f"does your firewall let this machine out to port {port}?",
        )
    if isinstance(error, ConnectionRefusedError):
        return wrong("server", f"nothing listens at {address}", _ASK)
    return wrong("server", f"{address} is not reached: {error}", _ASK)


def _check_clock(date: str | None) -> Iterator[Finding]:
    if date is None:
        return
    ahead = (datetime.now(UTC) - parsedate_to_datetime(date)).total_seconds()
    found = f"{abs(ahead):.0f} s {'ahead of' if ahead > 0 else 'behind'} the server's"
    if not -_BEHIND < ahead < _AHEAD:
        yield wrong("clock", f"this machine's clock is {found}", "set it, by NTP for example")
    elif abs(ahead) > _AHEAD / 2:
        yield note(
            "clock", f"this machine's clock is {found}", "Flower refuses more than 5 s ahead"
        )
    else:
        yield ok("clock", "agrees with the server's")


def _check_registered(member: Path, file: ClientFile, context: ssl.SSLContext) -> Iterator[Finding]:
    """Whether Flower runs behind the proxy, and knows the key of this member's node."""
    import httpx
    from flwr.proto.fleet_pb2 import ActivateNodeRequest
    from flwr.supercore.error import ApiErrorCode, FlowerError
    from flwr.supercore.interceptors.http.runtime_version import RuntimeVersionHttpInterceptor
    from flwr.supercore.primitives.asymmetric import public_key_to_bytes
    from flwr.supernode.fleet_http_client import FleetHttpClient
    from flwr.supernode.node_auth_http_interceptor import NodeAuthHttpInterceptor

    from fedaccord.flower.node import load_node_key

    key = load_node_key(member / file.node_key)
    interceptors: list[Any] = [
        RuntimeVersionHttpInterceptor(component_name="SuperNode"),
        NodeAuthHttpInterceptor(key, key.public_key()),
    ]
    request = ActivateNodeRequest(
        public_key=public_key_to_bytes(key.public_key()), heartbeat_interval=_NEVER
    )
    with FleetHttpClient(
        f"https://{file.server}", interceptors=interceptors, verify=context, timeout=_SECONDS
    ) as client:
        try:
            client.ActivateNode(request)
        except httpx.TransportError as error:
            yield wrong("node", f"the server did not answer: {error}", _ASK)
            return
        except httpx.HTTPStatusError as error:
            status, said = error.response.status_code, FlowerError.from_json(error.response.text)
        else:  # a later version of Flower may accept anything
            status, said = http.client.OK, None
    if said is not None and said.code == ApiErrorCode.FLEET_INVALID_HEARTBEAT_INTERVAL:
        yield ok("node", "Flower runs behind the proxy, and knows the key of this member's node")
    elif status in (502, 503, 504):
        yield wrong("node", "the proxy runs, but Flower behind it does not", _ASK)
    elif status == http.client.UNAUTHORIZED:
        yield wrong(
            "node", "Flower refuses the signature of this node", "check this machine's clock"
        )
    else:
        yield wrong(
            "node",
            f"Flower does not know the key of this member's node (status {status})",
            "send card.json to the coordinator, who runs `fedaccord server admit`",
        )

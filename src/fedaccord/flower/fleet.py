"""A node's connection to the server: Flower's own, with a client certificate, the pin and a pace.

Flower's SuperNode (1.41) has no option for a client certificate, and waits a fixed three seconds
when there is no message. Both are decided in its client of the Fleet API, so the one class here
takes the place of that client.
"""

import logging
import ssl
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import httpx
from flwr.proto.fab_pb2 import GetFabRequest, GetFabResponse
from flwr.proto.fleet_pb2 import PullMessagesRequest, PullMessagesResponse
from flwr.proto.run_pb2 import GetRunRequest, GetRunResponse
from flwr.supercore.protobuf.client import ProtobufClientInterceptor
from flwr.supernode.fleet_http_client import FleetHttpClient

from fedaccord.errors import FedaccordError, InvalidInput
from fedaccord.flower.client_file import ClientFile
from fedaccord.flower.pace import pause_after
from fedaccord.flower.pin import Pin

LOG = logging.getLogger("fedaccord")


def tls_context(file: ClientFile, folder: Path) -> ssl.SSLContext:
    """Trust in the consortium's authority alone, and the member's own certificate if it has one."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    place = folder / file.authority
    try:
        context.load_verify_locations(place)
        if file.certificate is not None:
            place = folder / file.certificate
            context.load_cert_chain(place, folder / file.certificate_key)
    except ssl.SSLError as error:
        raise InvalidInput(
            f"is not a certificate, or its key does not fit: {error}", str(place)
        ) from None
    except OSError as error:
        raise FedaccordError(f"{place}: cannot be read: {error.strerror or error}") from None
    return context


class Fleet:
    """Makes the clients; it stands where Flower looks for its own class."""

    def __init__(self, pin: Pin, context: ssl.SSLContext) -> None:
        """`context` is used for every connection to the server."""
        self.pin, self.context = pin, context

    def from_server_address(
        self,
        server_address: str,
        insecure: bool,
        root_certificates: bytes | str | None,  # noqa: ARG002
        interceptors: Sequence[ProtobufClientInterceptor],
    ) -> "PinnedClient":
        """A client of the Fleet API, always with TLS."""
        if insecure:
            raise FedaccordError("a node connects to its server with TLS only")
        return PinnedClient(server_address, self.pin, self.context, interceptors)


class PinnedClient(FleetHttpClient):  # type: ignore[misc,unused-ignore]
    """Flower's client, which passes on no app but the signed one."""

    def __init__(
        self,
        address: str,
        pin: Pin,
        context: ssl.SSLContext,
        interceptors: Sequence[ProtobufClientInterceptor],
    ) -> None:
        """`address` is HOST:PORT."""
        super().__init__(f"https://{address}", interceptors=interceptors, verify=context)
        self._pin, self._reach = pin, Reach(address)

    def GetRun(self, request: GetRunRequest) -> GetRunResponse:  # noqa: N802  Flower's name
        """A run, without what the server may add to the signed app: settings, and other kinds."""
        response = super().GetRun(request)
        response.run.ClearField("override_config")
        response.run.ClearField("primary_task_type")
        return response

    def GetFab(self, request: GetFabRequest) -> GetFabResponse:  # noqa: N802  Flower's name
        """A bundle, which Flower accepts only if it is the signed one."""
        response = super().GetFab(request)
        fab = response.fab
        refusal = self._pin.refusal(fab.content, request.hash_str)
        if refusal is not None:
            LOG.error("%s", refusal)
        fab.hash_str = request.hash_str
        fab.verifications.clear()
        fab.verifications.update(self._pin.verifications(fab.content, signed=refusal is None))
        return response

    def PullMessages(  # noqa: N802  Flower's name
        self, request: PullMessagesRequest
    ) -> PullMessagesResponse:
        """Wait for the next message: Flower would wait three seconds after each empty answer."""
        start = time.monotonic()
        while True:
            asked = time.monotonic()
            response = super().PullMessages(request)
            if response.messages_list:
                return response
            now = time.monotonic()
            time.sleep(pause_after(now - start, now - asked))

    def _unary_unary(self, **call: Any) -> Any:
        try:
            response = super()._unary_unary(**call)
        except (httpx.TransportError, httpx.HTTPStatusError) as error:
            self._reach.failed(error, call["path"])
            raise
        self._reach.worked()
        return response


class Reach:
    """Says in one sentence that the server cannot be reached, and when it can be again."""

    def __init__(self, address: str) -> None:
        """`address` is HOST:PORT."""
        self.address = address
        self._away_since: float | None = None

    def worked(self) -> None:
        """A request was answered."""
        if self._away_since is not None:
            seconds = time.monotonic() - self._away_since
            LOG.warning("the server at %s is there again, after %.0f s", self.address, seconds)
        self._away_since = None

    def failed(self, error: httpx.TransportError | httpx.HTTPStatusError, path: str) -> None:
        """A request was not answered, or refused."""
        said = _in_words(error, path)
        if said and self._away_since is None:
            self._away_since = time.monotonic()
            LOG.warning("the server at %s %s", self.address, said)


_AGAIN = "this node tries again until it is there"


def _in_words(error: httpx.TransportError | httpx.HTTPStatusError, path: str) -> str:
    """What is wrong, and what follows; empty if it is part of Flower's normal course."""
    if isinstance(error, httpx.TransportError):
        if "certificate" in str(error).lower() or "ssl" in str(error).lower():
            return f"cannot be trusted, or does not trust this node: {error}"
        return f"cannot be reached ({error}); {_AGAIN}"
    status = error.response.status_code
    if status in (502, 503, 504):
        return f"is not running behind its proxy (status {status}); {_AGAIN}"
    if status == httpx.codes.UNAUTHORIZED:
        return (
            "does not accept this node's key: it must be registered there, and the clocks of both "
            "machines must be right"
        )
    if path.endswith("activate-node"):
        return (
            f"refuses this node (status {status}): whoever runs it must have this member's "
            "certificate and node key (`fedaccord server admit`)"
        )
    return ""

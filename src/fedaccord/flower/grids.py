"""Where simulated slots run: in this process, or on a Ray cluster that is closed to others.

In one process, the client app answers every message at once. It does what Flower's own grids do,
without Ray, threads or waiting: for simulations and tests.

By default Ray listens on all interfaces, and anyone who reaches a port can run code. Here its ports
are on the loopback interface and require a token that only this process and its children have, and
its files are in a directory that only this user can enter. A cluster that is already running, of
this user or another, is left alone.
"""

import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from secrets import token_hex
from typing import Any
from uuid import uuid4

from flwr.app import Context, Message, RecordDict
from flwr.clientapp import ClientApp
from flwr.proto.node_pb2 import NodeInfo
from flwr.serverapp import Grid
from flwr.supercore.run import Run
from flwr.supercore.task_identity import TaskIdentity

from fedaccord.errors import FedaccordError

_SERVER, _RUN = 1, 1


class InProcessGrid(Grid):  # type: ignore[misc,unused-ignore]
    """Nodes that all run one client app."""

    def __init__(
        self,
        app: ClientApp,
        node_configs: Sequence[Mapping[str, str | int]],
        first_node: int = 1_000,
    ) -> None:
        """A node for each configuration."""
        TaskIdentity.run_id, TaskIdentity.node_id, TaskIdentity.task_id = _RUN, _SERVER, 1
        self.app = app
        self.contexts = {
            node: Context(_RUN, node, dict(config), RecordDict(), {})
            for node, config in enumerate(node_configs, start=first_node)
        }
        self._replies: dict[str, Message] = {}

    def set_run(self, run: Run) -> None:
        """There is only one."""

    @property
    def run(self) -> Run:
        """There is only one."""
        return Run.create_empty(_RUN)

    def create_message(
        self,
        content: RecordDict,
        message_type: str,
        dst_node_id: int,
        group_id: str,
        ttl: float | None = None,
    ) -> Message:
        """Flower's old way to create a message."""
        return Message(content, dst_node_id, message_type, ttl=ttl, group_id=group_id)

    def get_node_ids(self) -> list[int]:
        """All nodes."""
        return list(self.contexts)

    def get_nodes(self) -> list[NodeInfo]:
        """All nodes, none of which is registered."""
        return [NodeInfo(node_id=node) for node in self.contexts]

    def push_messages(self, messages: Iterable[Message]) -> list[str]:
        """Let the nodes answer."""
        ids = []
        for message in messages:
            message.metadata.__dict__["_message_id"] = uuid4().hex
            ids.append(message.metadata.message_id)
            reply = self.app(message, self.contexts[message.metadata.dst_node_id])
            self._replies[message.metadata.message_id] = reply
        return ids

    def pull_messages(self, message_ids: Iterable[str]) -> list[Message]:
        """The answers to these messages."""
        return [self._replies.pop(known) for known in message_ids if known in self._replies]

    def send_and_receive(
        self,
        messages: Iterable[Message],
        *,
        timeout: float | None = None,  # noqa: ARG002
    ) -> list[Message]:
        """Send messages and return the answers."""
        return self.pull_messages(self.push_messages(messages))


_QUIET = {
    "FLWR_TELEMETRY_ENABLED": "0",
    "FLWR_DISABLE_UPDATE_CHECK": "1",
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
}
_LOOPBACK = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"
"""Where Ray supports no clusters it uses the loopback interface only; with "0", on Linux too."""
_SHORT = "/tmp" if os.name == "posix" else None
"""Paths of sockets must be short, and TMPDIR may be long."""


@contextmanager
def closed_cluster() -> Iterator[dict[str, Any]]:
    """The arguments with which `ray.init` starts a closed cluster.

    The settings are in the environment, which Ray's processes inherit, and are removed afterwards.
    """
    import ray
    from ray._private import ray_constants

    if ray.is_initialized():
        raise FedaccordError(
            "Ray is already running in this process, and Flower would shut it down after the "
            "simulation: call ray.shutdown() first"
        )
    closed = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": token_hex(32), _LOOPBACK: "0"}
    quiet = {name: value for name, value in _QUIET.items() if name not in os.environ}
    folder = tempfile.TemporaryDirectory(prefix="ray-", dir=_SHORT, ignore_cleanup_errors=True)
    usual = ray_constants.ENABLE_RAY_CLUSTER
    try:
        with folder as place, _environment(quiet | closed):
            _read_settings_again(clusters=False)
            # "local" is never a cluster that is running, whatever RAY_ADDRESS says; Ray opens its
            # own directory to everyone, so it is a subdirectory of ours
            yield {"address": "local", "_temp_dir": str(Path(place, "ray"))}
    finally:
        _read_settings_again(clusters=usual)


@contextmanager
def _environment(values: Mapping[str, str]) -> Iterator[None]:
    """Set variables, and restore them afterwards."""
    before = {name: os.environ.get(name) for name in values}
    try:
        os.environ.update(values)
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _read_settings_again(*, clusters: bool) -> None:
    """Ray reads them only on import; `clusters` says whether it may use other interfaces."""
    from ray._private import ray_constants
    from ray._raylet import (  # type: ignore[attr-defined,unused-ignore]
        AuthenticationTokenLoader,
        Config,
    )

    ray_constants.ENABLE_RAY_CLUSTER = clusters
    Config.initialize("")
    AuthenticationTokenLoader.instance().reset_cache()

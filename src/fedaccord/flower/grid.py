"""A grid in one process: the client app answers every message at once.

It does what Flower's own grids do, without Ray, threads or waiting: for simulations and tests.
"""

from collections.abc import Iterable, Mapping, Sequence
from uuid import uuid4

from flwr.app import Context, Message, RecordDict
from flwr.clientapp import ClientApp
from flwr.proto.node_pb2 import NodeInfo
from flwr.serverapp import Grid
from flwr.supercore.run import Run
from flwr.supercore.task_identity import TaskIdentity

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

"""What a node remembers, for Flower: a message goes to the app's process, and its reply comes back.

Flower puts a task for each message into a queue, from which a separate program takes it. Here there
is no queue: when Flower looks for the reply to a message, the app's process is asked for it.
"""

import logging
from collections.abc import Sequence
from typing import Any

from flwr.app import Error, Message
from flwr.common.constant import ErrorCode
from flwr.common.serde import (
    context_from_proto,
    context_to_proto,
    fab_to_proto,
    message_from_proto,
    run_to_proto,
)
from flwr.proto.message_pb2 import Context as ProtoContext
from flwr.proto.message_pb2 import Message as ProtoMessage
from flwr.proto.message_pb2 import ObjectTree
from flwr.proto.runtime_pb2 import PullTaskInputResponse
from flwr.supercore.inflatable.inflatable_object import get_object_id, iterate_object_tree
from flwr.supercore.object_store import ObjectStoreFactory
from flwr.supernode.nodestate import NodeStateFactory
from flwr.supernode.nodestate.in_memory_nodestate import InMemoryNodeState
from flwr.supernode.start_client_internal import FAB_VERIFICATION_ERROR, _insert_message

from fedaccord.errors import FedaccordError
from fedaccord.flower.app_process import AppProcess
from fedaccord.flower.pin import Pin

LOG = logging.getLogger("fedaccord")
_TASK = 1
"""Tasks are never queued, so one number is enough."""


class NodeMemory(InMemoryNodeState):  # type: ignore[misc,unused-ignore]
    """Flower's memory of a node, in which replies are found by asking the app for them."""

    def __init__(self, pin: Pin, process: AppProcess) -> None:
        """Every message is checked against the pin before the process sees it."""
        super().__init__(ObjectStoreFactory().store())
        self._pin, self._process = pin, process

    def create_task(self, *_: Any, **__: Any) -> int:
        """No task: the message itself is answered."""
        return _TASK

    def get_messages_legacy(
        self,
        *,
        run_ids: Sequence[int] | None = None,
        is_reply: bool | None = None,
        limit: int | None = None,
    ) -> Sequence[Message]:
        """Messages that were not retrieved yet; replies are waited for."""
        if is_reply:
            for message in super().get_messages_legacy(is_reply=False):
                self._answer(message)
        return super().get_messages_legacy(run_ids=run_ids, is_reply=is_reply, limit=limit)

    def _answer(self, message: Message) -> None:
        message_id = message.metadata.message_id
        self.record_message_processing_start(message_id)
        try:
            error = self._reply(message)
        except (FedaccordError, ValueError) as problem:
            LOG.error("%s; the server was told that the app failed", problem)
            error = Error(ErrorCode.CLIENT_APP_CRASHED, "The app's process ended.")
        if error is not None:
            _insert_message(Message(error, reply_to=message), self, self.object_store)
        self.record_message_processing_end(message_id)
        self.object_store.delete(message_id)

    def _reply(self, message: Message) -> Error | None:
        """Store the app's reply to a message, or return why there is none."""
        message_id, run_id = message.metadata.message_id, message.metadata.run_id
        run: Any = self.get_run(run_id)  # Flower stores the run, its app and its context first
        fab: Any = self.get_fab(run.fab_hash)
        if (refusal := self._pin.refusal(fab.content, run.fab_hash)) is not None:
            LOG.error("%s", refusal)
            return FAB_VERIFICATION_ERROR
        context: Any = self.get_run_series_context(run.series_id)
        given = PullTaskInputResponse(
            context=context_to_proto(context),
            run=run_to_proto(run),
            fab=fab_to_proto(fab),
            task_id=_TASK,
        )
        tree = self.object_store.get_object_tree(message_id)
        ids = dict.fromkeys(part.object_id for part in iterate_object_tree(tree))
        contents = [self.object_store.get(one) or b"" for one in ids]
        parts = [given.SerializeToString(), message_id.encode("ascii"), *contents]
        self._keep(run_id, run.series_id, self._process.answer(f"{run_id}, {run.fab_hash}", parts))
        return None

    def _keep(self, run_id: int, series_id: int, reply: list[bytes]) -> None:
        message, tree, context, *contents = reply
        self.object_store.preregister(run_id, ObjectTree.FromString(tree))
        for content in contents:
            self.object_store.put(get_object_id(content), content)
        known = context_from_proto(ProtoContext.FromString(context))
        self.set_run_series_context(series_id, known)
        self.store_message(message_from_proto(ProtoMessage.FromString(message)))


class Memories(NodeStateFactory):  # type: ignore[misc,unused-ignore]
    """Hands the memory to Flower."""

    def __init__(self, memory: NodeMemory) -> None:
        """There is only one."""
        super().__init__(ObjectStoreFactory())
        self.objectstore_factory.store_instance = memory.object_store
        self.state_instance = memory

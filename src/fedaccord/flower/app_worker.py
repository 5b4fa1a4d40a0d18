"""The app's process: it loads the app of the first message, and answers one message after another.

It does what Flower's `flwr-clientapp` does for one message, without a port. Errors go to the log of
the node; the server learns that there was one, and nothing of what it says.
"""

import hashlib
import logging
import os
import signal
import sys
from contextlib import suppress
from importlib import import_module
from queue import SimpleQueue
from threading import Thread
from typing import TYPE_CHECKING, Any, BinaryIO

from fedaccord.flower.app_process import read_parts, write_parts
from fedaccord.flower.member_log import write_log

if TYPE_CHECKING:
    from flwr.app import Context, Message
    from flwr.clientapp import ClientApp
    from flwr.proto.runtime_pb2 import PullTaskInputResponse

LOG = logging.getLogger("fedaccord")
_NEEDED = (
    "torch",
    "fedaccord.flower.client_app",
    "fedaccord.flower.client_file",
    "fedaccord.flower.local",
    "fedaccord.flower.audited",
)
"""What our apps import sooner or later: imported before the first message comes."""


def main() -> None:
    """Answer until the node ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal sends it to the node as well
    write_log()
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what the app prints goes to the log
    asked: SimpleQueue[list[bytes]] = SimpleQueue()
    Thread(target=_read, args=(sys.stdin.buffer, asked), daemon=True).start()
    for name in _NEEDED:
        with suppress(ImportError):
            import_module(name)
    worker = Worker()
    while True:
        write_parts(replies, worker.answer(asked.get()))


def _read(file: BinaryIO, asked: "SimpleQueue[list[bytes]]") -> None:
    """Pass messages on; without the node there is nothing left to do, not even to finish."""
    while (parts := read_parts(file)) is not None:
        asked.put(parts)
    os._exit(0)


class Worker:
    """Answers messages with the app of the first one."""

    def __init__(self) -> None:
        """No app is loaded yet."""
        self._app: ClientApp | None = None

    def answer(self, parts: list[bytes]) -> list[bytes]:
        """The reply: its metadata, the tree of its objects, the context, and the objects."""
        from flwr.app.message import remove_content_from_message
        from flwr.common.serde import context_from_proto, context_to_proto, message_to_proto
        from flwr.proto.runtime_pb2 import PullTaskInputResponse
        from flwr.supercore.inflatable.inflatable_object import (
            get_all_nested_objects,
            get_object_tree,
            no_object_id_recompute,
        )

        given = PullTaskInputResponse.FromString(parts[0])
        context = context_from_proto(given.context)
        message = _inflated(parts[1].decode("ascii"), parts[2:])
        reply = self._reply(given, message, context)
        reply.metadata.__dict__["_message_id"] = reply.object_id
        with no_object_id_recompute():
            objects = get_all_nested_objects(reply)
            return [
                message_to_proto(remove_content_from_message(reply)).SerializeToString(),
                get_object_tree(reply).SerializeToString(),
                context_to_proto(context).SerializeToString(),
                *(one.deflate() for one in objects.values()),
            ]

    def _reply(
        self, given: "PullTaskInputResponse", message: "Message", context: "Context"
    ) -> "Message":
        from flwr.app import Error, Message
        from flwr.common.constant import ErrorCode
        from flwr.supercore.task_identity import TaskIdentity

        TaskIdentity.task_id, TaskIdentity.run_id = given.task_id, given.run.run_id
        TaskIdentity.node_id = given.context.node_id
        try:
            if self._app is None:
                self._app = _load(given.fab.content)
        except Exception:
            LOG.exception("the app could not be loaded")
            code = ErrorCode.LOAD_CLIENT_APP_EXCEPTION
            return Message(Error(code, "The app could not be loaded."), reply_to=message)
        try:
            reply: Message = self._app(message=message, context=context)
            return reply
        except Exception:
            LOG.exception("the app failed")
            code = ErrorCode.CLIENT_APP_RAISED_EXCEPTION
            return Message(Error(code, "The app failed."), reply_to=message)


def _inflated(object_id: str, contents: list[bytes]) -> "Message":
    from flwr.supercore.inflatable.inflatable_object import get_object_id
    from flwr.supercore.inflatable.inflatable_utils import inflate_object_from_contents

    by_id = {get_object_id(content): content for content in contents}
    message: Any = inflate_object_from_contents(object_id, by_id)
    message.metadata.__dict__["_message_id"] = object_id
    return message  # type: ignore[no-any-return]


def _load(bundle: bytes) -> "ClientApp":
    """Install the bundle into this process's own, empty directory, and load the app from there.

    Its name and version are those in the bundle, whatever the server calls it.
    """
    from flwr.cli.config_utils import get_fab_metadata
    from flwr.cli.install import install_from_fab
    from flwr.clientapp.utils import get_load_client_app_fn

    install_from_fab(bundle, skip_prompt=True)
    name, version = get_fab_metadata(bundle)
    load = get_load_client_app_fn(default_app_ref="", app_path=None, multi_app=True)
    return load(name, version, hashlib.sha256(bundle).hexdigest())


if __name__ == "__main__":
    main()

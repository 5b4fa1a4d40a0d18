"""A server of Flower's Fleet API in this process, for one node: it can send anything."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from threading import Lock
from typing import Any

import httpx
from flwr.app import ConfigRecord, Message, RecordDict
from flwr.app.message import remove_content_from_message
from flwr.common.serde import message_to_proto, user_config_to_proto
from flwr.proto.fab_pb2 import Fab, GetFabRequest, GetFabResponse
from flwr.proto.fleet_pb2 import (
    ActivateNodeResponse,
    DeactivateNodeResponse,
    PullMessagesResponse,
    PushMessagesRequest,
    PushMessagesResponse,
)
from flwr.proto.heartbeat_pb2 import SendNodeHeartbeatResponse
from flwr.proto.message_pb2 import (
    ConfirmMessageReceivedResponse,
    ObjectTree,
    PullObjectRequest,
    PullObjectResponse,
    PushObjectRequest,
    PushObjectResponse,
)
from flwr.proto.run_pb2 import GetRunRequest, GetRunResponse, Run
from flwr.supercore.inflatable.inflatable_object import (
    get_all_nested_objects,
    get_object_id,
    get_object_tree,
    iterate_object_tree,
)
from flwr.supercore.inflatable.inflatable_utils import inflate_object_from_contents
from flwr.supercore.protobuf.constants import PROTOBUF_MEDIA_TYPE
from flwr.supercore.task_identity import TaskIdentity

NODE = 7


class NothingLeft(Exception):
    """All messages were sent: Flower's loop ends."""


@dataclass
class Sent:
    """A run as the server describes it, and what it sends as its app."""

    content: bytes
    claimed: str = ""
    settings: dict[str, Any] = field(default_factory=dict)
    kind: str = ""
    version: str = "1.0.0"


class FleetServer:
    """Sends one message for each run that it is given, in turn, and keeps the replies."""

    def __init__(self, runs: list[Sent]) -> None:
        self.runs = runs
        self.replies: list[Message] = []
        self.before: dict[int, Any] = {}
        """What happens before the message of a run is sent."""
        self._next = 0
        self._objects: dict[str, bytes] = {}
        self._tree, self._missing, self._lock = ObjectTree(), set[str](), Lock()

    def handle(self, request: httpx.Request) -> httpx.Response:
        what = request.url.path.removeprefix("/v1/fleet/").replace("-", "_")
        answer = getattr(self, f"_{what}")(request.content)
        headers = {"content-type": PROTOBUF_MEDIA_TYPE}
        return httpx.Response(200, content=answer.SerializeToString(), headers=headers)

    def _activate_node(self, _: bytes) -> Any:
        return ActivateNodeResponse(node_id=NODE)

    def _deactivate_node(self, _: bytes) -> Any:
        return DeactivateNodeResponse()

    def _send_node_heartbeat(self, _: bytes) -> Any:
        return SendNodeHeartbeatResponse(success=True)

    def _pull_messages(self, _: bytes) -> Any:
        if self._next == len(self.runs):
            raise NothingLeft
        if self._next in self.before:
            self.before[self._next]()
        self._next += 1
        # all runs that send the same thing are one run
        number = 1 + self.runs.index(self.runs[self._next - 1])
        TaskIdentity.run_id, TaskIdentity.node_id, TaskIdentity.task_id = number, 1, 1
        message = Message(RecordDict({"n": ConfigRecord({"n": self._next})}), NODE, "query")
        message.metadata.__dict__["_message_id"] = message.object_id
        self._objects |= {i: o.deflate() for i, o in get_all_nested_objects(message).items()}
        return PullMessagesResponse(
            messages_list=[message_to_proto(remove_content_from_message(message))],
            message_object_trees=[get_object_tree(message)],
        )

    def _pull_object(self, asked: bytes) -> Any:
        content = self._objects[PullObjectRequest.FromString(asked).object_id]
        return PullObjectResponse(object_found=True, object_available=True, object_content=content)

    def _confirm_message_received(self, _: bytes) -> Any:
        return ConfirmMessageReceivedResponse()

    def _get_run(self, asked: bytes) -> Any:
        number = GetRunRequest.FromString(asked).run_id
        run = self.runs[number - 1]
        return GetRunResponse(
            run=Run(
                run_id=number,
                fab_id="consortium/test",
                fab_version=run.version,
                fab_hash=run.claimed or sha256(run.content).hexdigest(),
                override_config=user_config_to_proto(run.settings),
                primary_task_type=run.kind,
                series_id=number,
            )
        )

    def _get_fab(self, asked: bytes) -> Any:
        request = GetFabRequest.FromString(asked)
        content = self.runs[request.run_id - 1].content
        return GetFabResponse(fab=Fab(hash_str=request.hash_str, content=content))

    def _push_messages(self, asked: bytes) -> Any:
        self._tree = PushMessagesRequest.FromString(asked).message_object_trees[0]
        self._missing = {part.object_id for part in iterate_object_tree(self._tree)}
        return PushMessagesResponse(objects_to_push=list(self._missing), session_id="session")

    def _push_object(self, asked: bytes) -> Any:
        content = PushObjectRequest.FromString(asked).object_content
        with self._lock:  # Flower pushes several at a time
            self._objects[get_object_id(content)] = content
            self._missing.discard(get_object_id(content))
            if not self._missing:
                contents = dict(self._objects)
                reply: Any = inflate_object_from_contents(self._tree.object_id, contents)
                self.replies.append(reply)
        return PushObjectResponse(stored=True)


@contextmanager
def usual_signals() -> Iterator[None]:
    """Flower's node sets handlers of its own."""
    kinds = (signal.SIGINT, signal.SIGTERM, signal.SIGQUIT)
    before = [signal.getsignal(kind) for kind in kinds]
    try:
        yield
    finally:
        for kind, handler in zip(kinds, before, strict=True):
            signal.signal(kind, handler)


def bundle(folder: Path, client: str, **settings: Any) -> bytes:
    """A bundle with this code as its client app, and these settings."""
    from flwr.cli.build import build_fab_from_disk

    lines = "\n".join(f'{key} = "{value}"' for key, value in settings.items())
    name = f"app_{sha256(client.encode()).hexdigest()[:8]}"  # modules are imported once a process
    files = {
        "pyproject.toml": f"""\
[project]
name = "test"
version = "1.0.0"
description = ""
license = "Apache-2.0"
dependencies = []
[tool.flwr.app]
publisher = "consortium"
[tool.flwr.app.components]
serverapp = "{name}.server:app"
clientapp = "{name}.client:app"
[tool.flwr.app.config]
{lines}
""",
        f"{name}/__init__.py": "",
        f"{name}/server.py": "app = None\n",
        f"{name}/client.py": client,
    }
    for place, text in files.items():
        path = folder / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    made: bytes = build_fab_from_disk(folder)
    return made

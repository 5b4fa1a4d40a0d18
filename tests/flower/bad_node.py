"""A node that attacks a SuperLink: it takes part as its client would, until its attack is due.

    python -m tests.flower.bad_node ADDRESS CLIENT_DIRECTORY ATTACK OTHER_NODE

OTHER_NODE is the id of another node, to speak for. What it was asked goes into `asked.jsonl` in the
client's directory, and whether a model came along.
"""

import json
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import load_ssh_private_key
from flwr.app import Context, Message, RecordDict
from flwr.common.serde import message_from_proto, message_to_proto
from flwr.proto.message_pb2 import ObjectTree
from flwr.supercore.inflatable.inflatable_object import (
    add_header_to_object_body,
    get_all_nested_objects,
    get_object_id,
    get_object_tree,
)
from flwr.supercore.inflatable.inflatable_utils import pull_and_inflate_object_from_tree
from flwr.supercore.task_identity import TaskIdentity
from flwr.supernode.fleet_http_connection import http_request_response

from fedaccord.flower.client_app import app_of_files
from fedaccord.flower.wire import pack, unpack


class Objects(NamedTuple):
    """What a node sends: its message, which objects that has, and their bytes."""

    message: Message
    tree: ObjectTree
    contents: dict[str, bytes]


def objects_of(message: Message) -> Objects:
    message.metadata.__dict__["_message_id"] = message.object_id
    parts = get_all_nested_objects(message)
    return Objects(message, get_object_tree(message), {k: v.deflate() for k, v in parts.items()})


def with_root(objects: Objects, root: bytes) -> Objects:
    """The same announcement, but its first object has these bytes."""
    children = objects.tree.children
    message = message_from_proto(message_to_proto(objects.message))
    message.metadata.__dict__["_message_id"] = get_object_id(root)
    tree = ObjectTree(object_id=get_object_id(root), children=children)
    return Objects(message, tree, objects.contents | {get_object_id(root): root})


# --- Attacks -------------------------------------------------------------------------------


def no_protobuf(reply: Message, _: int) -> Objects:
    return with_root(objects_of(reply), add_header_to_object_body(b"\xff" * 99, reply))


def wrong_type(reply: Message, _: int) -> Objects:
    return with_root(objects_of(reply), RecordDict().deflate())


def missing_child(reply: Message, _: int) -> Objects:
    objects = objects_of(reply)
    return objects._replace(tree=ObjectTree(object_id=objects.tree.object_id))


def never_uploaded(reply: Message, _: int) -> Objects:
    return objects_of(reply)._replace(contents={})


def as_another(reply: Message, other: int) -> Objects:
    """Says in the reply's own bytes that it comes from another node, which trained on nothing."""
    body, _ = unpack(reply)
    reply.content = pack(body | {"samples": 0})
    announced = objects_of(reply)
    forged = message_from_proto(message_to_proto(reply))
    forged.metadata.__dict__["_src_node_id"] = other
    return with_root(announced, forged.deflate())


def stay_away(_: Message, __: int) -> None:
    """Sends nothing."""


def bad_name(reply: Message, other: int) -> Objects:
    """The same as the first, when it is asked for its name."""
    return no_protobuf(reply, other)


ATTACKS: dict[str, Callable[[Message, int], Objects | None]] = {
    attack.__name__: attack
    for attack in (
        no_protobuf,
        wrong_type,
        missing_child,
        never_uploaded,
        as_another,
        stay_away,
        bad_name,
    )
}


# --- The node ------------------------------------------------------------------------------


class BadNode:
    """Answers honestly, but for the training, or for the question for its name."""

    def __init__(self, folder: Path, attack: str, other: int) -> None:
        self.folder, self.attack, self.other = folder, ATTACKS[attack], other
        self.when = "query.name" if attack == "bad_name" else "train"
        self.app = app_of_files(folder / "terms.toml")

    def reply(self, message: Message, context: Context) -> Objects | None:
        """What it sends back, if anything."""
        asked, model = unpack(message)
        with (self.folder / "asked.jsonl").open("a") as file:
            file.write(json.dumps({"stage": asked.get("stage"), "model": bool(model)}) + "\n")
        reply: Message = self.app(message, context)
        if message.metadata.message_type == self.when:
            return self.attack(reply, self.other)
        return objects_of(reply)

    def serve(self, address: str) -> None:
        key = load_ssh_private_key((self.folder / "node.key").read_bytes(), None)
        assert isinstance(key, ec.EllipticCurvePrivateKey)
        keys = key, key.public_key()
        certificates = (self.folder / "ca.pem").read_bytes()
        with http_request_response(address, False, certificates, keys) as node:
            node_id, receive, send, _, _, pull, push, confirm = node
            context = Context(0, node_id, self._config(), RecordDict(), {})
            while True:
                if (received := receive()) is None:
                    time.sleep(0.5)
                    continue
                sent, tree = received
                run, sent_id = sent.metadata.run_id, sent.metadata.message_id
                TaskIdentity.run_id, TaskIdentity.node_id, TaskIdentity.task_id = run, node_id, 1
                message = pull_and_inflate_object_from_tree(
                    tree, partial(pull, run), lambda _: None, return_type=Message
                )
                message.metadata.__dict__["_message_id"] = sent_id
                confirm(run, sent_id)
                if (objects := self.reply(message, context)) is not None:
                    wanted, session = send(objects.message, objects.tree, 0.0)
                    for known in wanted & objects.contents.keys():
                        push(run, session, known, objects.contents[known])

    def _config(self) -> dict[str, bool | float | int | str]:
        return {"client-file": str(self.folder / "client.toml")}


if __name__ == "__main__":
    where, client, what, whom = sys.argv[1:]
    BadNode(Path(client), what, int(whom)).serve(where)

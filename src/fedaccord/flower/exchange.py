"""Sends messages to nodes and collects the replies, so that a bad reply harms only its sender.

Flower's own `send_and_receive` unpacks all replies together: one that cannot be unpacked ends the
server, one whose objects never arrive delays all others, and each counts as coming from whatever
node its own bytes name. Here every reply is waited for separately, with a deadline and a size
limit, and belongs to the node that the message was sent to.

Only the server needs this module, and importing it takes about a second. So it is separate from
`wire`, which a client imports in a new process for every message.
"""

import json
import time
from collections.abc import Callable, Mapping
from functools import partial
from threading import Thread
from typing import cast

import httpx
from flwr.app import Array, Message
from flwr.proto.message_pb2 import ConfirmMessageReceivedRequest, ObjectTree
from flwr.proto.runtime_pb2 import PullAppMessagesRequest
from flwr.serverapp import Grid
from flwr.supercore.inflatable.inflatable_object import (
    get_object_body,
    get_object_head_values_from_object_content,
    iterate_object_tree,
)
from flwr.supercore.inflatable.inflatable_protobuf_utils import make_pull_object_fn_protobuf
from flwr.supercore.inflatable.inflatable_utils import (
    ObjectPullError,
    inflate_object_from_contents,
    pull_objects,
)
from flwr.supercore.run import RunNotRunningException
from flwr.superlink.grid.http_grid import HttpGrid

from fedaccord.flower.pace import pause_after
from fedaccord.flower.wire import Unreadable
from fedaccord.protocol.parameters import Arrays
from fedaccord.protocol.reasons import Reason

Pull = Callable[[str, float], Message | None]
"""Pulls the reply to the message with this id before a deadline; None if it is not there yet."""
Found = dict[int, Message | Unreadable]
"""The replies that arrived, by node."""

_BODY_BYTES = 64 * 1024
"""The size of a reply without its parameters."""
_ARRAY_BYTES = 4 * 1024
"""The size of an array without its numbers: its name, header and form."""
_PAUSE = 0.1
"""Seconds between two attempts to pull a reply, or a part of one, that is almost there."""
_TOGETHER = 20
"""So many replies are waited for at the full pace; if there are more, at a slower one."""
_GRACE = 2.0
"""Seconds after the deadline for replies that are just being unpacked."""


def room_for(model: Arrays | None) -> int:
    """How many bytes a reply may take, packed and unpacked; with a model, if one is given."""
    numbers = sum(array.nbytes + _ARRAY_BYTES for array in (model or {}).values())
    return _BODY_BYTES + numbers + numbers // 8


def exchange(
    grid: Grid,
    messages: Mapping[int, Message],
    seconds: float,
    room: int,
    found: Found | None = None,
) -> Found:
    """Send a message to each node, and return the replies that arrived in time, by node.

    `found` is filled as they arrive: somebody may want to see who has not answered yet.
    """
    found = {} if found is None else found
    if not messages:
        return {}
    end = time.monotonic() + seconds
    sent = set(grid.push_messages(list(messages.values())))
    ids = {
        node: message.metadata.message_id
        for node, message in messages.items()
        if message.metadata.message_id in sent
    }
    if isinstance(grid, HttpGrid):
        pull = partial(_pull_over_http, grid, room=room)
        return _in_threads(pull, ids, end, found)
    return _one_by_one(lambda known, _: _pull_locally(grid, known), ids, end, found)


def _one_by_one(pull: Pull, ids: dict[int, str], end: float, found: Found) -> Found:
    """For a grid in this process, where pulling a reply never blocks."""
    while True:
        for node in ids.keys() - found.keys():
            _look(found, node, pull, ids[node], end)
        if found.keys() == ids.keys() or time.monotonic() >= end:
            return found
        time.sleep(_PAUSE)


def _in_threads(pull: Pull, ids: dict[int, str], end: float, found: Found) -> Found:
    """A thread for each message: a slow node delays only its own thread."""
    stopped: list[RunNotRunningException] = []

    def wait(node: int, message_id: str) -> None:
        crowd = max(1.0, len(ids) / _TOGETHER)
        start = asked = time.monotonic()
        try:
            while not _look(found, node, pull, message_id, end):
                now = time.monotonic()
                if now >= end:
                    return
                pause = crowd * pause_after(now - start, now - asked)
                time.sleep(min(pause, end - now))  # a last look is at the deadline
                asked = time.monotonic()
        except RunNotRunningException as error:
            stopped.append(error)

    threads = [Thread(target=wait, args=item, daemon=True) for item in ids.items()]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(0.0, end + _GRACE - time.monotonic()))
    if stopped:  # by whoever started the run, not by a node
        raise stopped[0]
    return dict(found)  # a copy: what a late thread still adds is not in it


def _look(found: Found, node: int, pull: Pull, message_id: str, end: float) -> bool:
    """Pull a reply if it is there. Whatever goes wrong with it is the fault of its node."""
    try:
        reply: Message | Unreadable | None = pull(message_id, end)
        if not isinstance(reply, Message | None):
            reply = Unreadable(Reason.NO_MESSAGE)
    except Unreadable as problem:
        reply = problem
    except httpx.TransportError:  # the SuperLink could not be reached, which is no node's fault
        reply = None
    except Exception:  # a node chose the bytes: Flower may raise anything
        reply = Unreadable(Reason.NOT_UNPACKED)
    if reply is not None:
        found[node] = reply
    return reply is not None


def _pull_locally(grid: Grid, message_id: str) -> Message | None:
    return next(iter(grid.pull_messages([message_id])), None)


# --- Over HTTP, from a SuperLink -----------------------------------------------------------


def _pull_over_http(grid: HttpGrid, message_id: str, end: float, room: int) -> Message | None:
    """Like the grid's own `pull_messages`, for one message and within limits."""
    client, run_id = grid._runtime_client, grid.run.run_id
    answer = client.PullMessages(PullAppMessagesRequest(message_ids=[message_id]))
    both = zip(answer.messages_list, answer.message_object_trees, strict=True)
    # nodes can send messages that answer nothing, and any pull returns those as well
    replies = [(m, tree) for m, tree in both if m.metadata.reply_to_message_id == message_id]
    if not replies:
        return None
    reply, tree = replies[0]
    pull_object = make_pull_object_fn_protobuf(client.PullObject, grid.node, run_id)
    taken = 0

    def pull(object_id: str) -> bytes:
        nonlocal taken
        content: bytes = pull_object(object_id)
        taken += len(content)
        if taken > room:
            raise Unreadable(Reason.TOO_LARGE)
        return content

    try:
        contents = pull_objects(
            _object_ids(tree, room),
            pull,
            max_time=max(0.0, end - time.monotonic()),
            max_tries_per_object=None,
            initial_backoff=_PAUSE,
            backoff_cap=1.0,
        )
    except ObjectPullError:
        raise Unreadable(Reason.NOT_WHOLE) from None
    finally:
        client.ConfirmMessageReceived(
            ConfirmMessageReceivedRequest(
                node=grid.node, run_id=run_id, message_object_id=reply.metadata.message_id
            )
        )
    return inflated(reply.metadata.message_id, contents, room)


def inflated(message_id: str, contents: dict[str, bytes], room: int) -> Message:
    """The message that consists of these objects, if it takes no more than `room` bytes."""
    check_inflated(contents, room)
    return cast(Message, inflate_object_from_contents(message_id, contents))


def _object_ids(tree: ObjectTree, room: int) -> list[str]:
    """The objects that a reply consists of, each once."""
    found = list(dict.fromkeys(part.object_id for part in iterate_object_tree(tree)))
    if len(found) > room // 64:  # an object takes at least the 64 digits of its id
        raise Unreadable(Reason.TOO_LARGE)
    return found


def check_inflated(contents: Mapping[str, bytes], room: int) -> None:
    """Refuse arrays that would exceed `room` bytes when unpacked: a chunk can be repeated."""
    size = 0
    for content in contents.values():
        kind, children, _ = get_object_head_values_from_object_content(content)
        if kind == "Array":
            form = json.loads(get_object_body(content, Array))
            size += sum(len(contents[children[chunk]]) for chunk in form["arraychunk_ids"])
        if size > room:
            raise Unreadable(Reason.TOO_LARGE)

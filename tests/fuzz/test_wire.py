"""Replies of any form, on the wire and behind the guards: server and other clients continue.

The seeds are fixed, so every run tries the same replies. Add any that causes a failure here.
"""

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flwr.app import Message
from flwr.supercore.inflatable.inflatable_object import get_all_nested_objects, get_object_id
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fedaccord.flower import exchange
from fedaccord.flower.exchange import inflated, room_for
from fedaccord.flower.grids import InProcessGrid
from fedaccord.flower.server_app import _reply
from fedaccord.flower.wire import Unreadable
from fedaccord.ledger.chain import START
from fedaccord.protocol.coordinator import Coordinator
from fedaccord.protocol.envelopes import Ask, Reply
from fedaccord.protocol.guards import read_update, take_replies
from fedaccord.protocol.messages import AskedTraining
from fedaccord.protocol.verification import wrong_in
from tests.flower.consortia import START_MODEL, Clients, ledger_at, privates_of, verdicts
from tests.flower.grids import NAMES, TERMS, grid_of, slots_on

pytestmark = pytest.mark.slow

MUTANTS = 10_000
SEED = 11


# --- Bytes ---------------------------------------------------------------------------------


def honest_messages(path: Path) -> dict[str, Message]:
    """A reply of b's to every kind of question."""
    seen: dict[str, Message] = {}

    class Watched(InProcessGrid):
        def pull_messages(self, message_ids: Iterable[str]) -> list[Message]:
            replies = super().pull_messages(message_ids)
            for reply in replies:
                if reply.metadata.src_node_id == 1_001:
                    seen[reply.metadata.message_type] = reply
            return replies

    slots_on(Watched(grid_of().app, [{"name": name} for name in NAMES]), path)
    return seen


def mutated(content: bytes, rng: np.random.Generator) -> bytes:
    """An object with some bytes changed, mostly in its body; the header matches the new body."""
    head, _, body = content.partition(b"\0")
    if rng.random() < 0.2:
        return scrambled(content, rng)
    body = scrambled(body, rng)
    kind, children, _ = head.split(b" ")
    return b" ".join([kind, children, str(len(body)).encode()]) + b"\0" + body


def scrambled(content: bytes, rng: np.random.Generator) -> bytes:
    """Some bytes changed, removed, repeated or inserted."""
    data = bytearray(content)
    for _ in range(int(rng.integers(1, 3))):
        at, length = int(rng.integers(len(data) + 1)), int(rng.geometric(0.4))
        match int(rng.integers(4)):
            case 0:
                data[at : at + length] = rng.bytes(length)
            case 1:
                del data[at : at + length]
            case 2:
                data[at:at] = data[at : at + length] * int(rng.integers(1, 4))
            case _:
                data[at:at] = rng.bytes(length)
    return bytes(data)


def with_other_part(contents: dict[str, bytes], known: str, part: bytes) -> dict[str, bytes]:
    """The objects with one of them replaced, and references to it updated."""
    old, new = known.encode(), get_object_id(part).encode()
    renamed = {key: value.replace(old, new) for key, value in contents.items() if key != known}
    return renamed | {get_object_id(part): part}


def test_no_bytes_of_a_reply_stop_the_server(tmp_path: Path) -> None:
    rng = np.random.default_rng(SEED)
    messages = list(honest_messages(tmp_path / "ledger.db").values())
    told = AskedTraining(basis="agreement", contribution=1, model="0" * 64)
    ask = Ask("train", 1, 1, START, {"b": told}, START_MODEL)
    outcomes = Counter[str]()
    for _ in range(MUTANTS):
        message = messages[int(rng.integers(len(messages)))]
        parts = {k: v.deflate() for k, v in get_all_nested_objects(message).items()}
        known = list(parts)[int(rng.integers(len(parts)))]
        part = mutated(parts[known], rng)
        root = get_object_id(part) if known == message.object_id else message.object_id
        pull = partial(unpacked, root, with_other_part(parts, known, part))
        found: dict[int, Any] = {}
        exchange._look(found, 1, pull, "", 0.0)
        reply = _reply(1, "b", found[1], most=len(START_MODEL))
        _, faults = take_replies(
            ask, [reply], lambda name, r: read_update(ask, name, r, 50, START_MODEL)
        )
        json.dumps([fault.body for fault in faults])
        outcomes["unreadable" if isinstance(found[1], Unreadable) else "readable"] += 1
    assert min(outcomes.values()) > MUTANTS // 20, outcomes


def unpacked(root: str, contents: dict[str, bytes], _: str, __: float) -> Message:
    room = room_for(START_MODEL)
    if sum(map(len, contents.values())) > room:
        raise Unreadable("is larger than what was asked for")
    return inflated(root, contents, room)


# --- Bodies --------------------------------------------------------------------------------

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=20)
    | st.sampled_from([2**53, 2**53 + 1, 10**12, 10**400, -1, 1e290, 5e-324, "1", "\x1b[2J"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner),
    max_leaves=6,
)
ARRAYS = st.sampled_from(
    [
        None,
        {},
        {"w": np.zeros(3, np.float32)},
        {"w": np.full(3, np.nan, np.float32), "b": np.zeros(1, np.float32)},
        {"w": np.full(3, 3e38, np.float32), "b": np.zeros(1, np.float32)},
        {"w": np.zeros((3, 1), np.float32), "b": np.zeros(1, np.float32)},
        {"w": np.zeros(3, np.float64), "b": np.zeros(1, np.float32)},
        {"w": "no array", "b": 7},
    ]
)


@settings(
    max_examples=120,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(data=st.data())
def test_no_reply_behind_the_guards_harms_the_others(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """In one stage fields of b's reply are replaced by anything; the ledger still verifies."""
    clients = Clients(TERMS, privates_of(NAMES))
    attacked = data.draw(st.sampled_from(["report", "rank", "offer", "train", "settle"]))

    def replies(ask: Ask) -> list[Reply]:
        given = clients(ask)
        if ask.stage != attacked:
            return given
        return [wild(reply, data) if reply.client == "b" else reply for reply in given]

    with ledger_at(tmp_path_factory.mktemp("fuzz") / "ledger.db") as ledger:
        coordinator = Coordinator(TERMS, ledger, START_MODEL)
        while (ask := coordinator.next_ask(1)) is not None:
            coordinator.take(ask, replies(ask))
        found = verdicts(ledger, 1)
        assert found["a"] == found["c"] == "kept"
        assert wrong_in(ledger.entries()) == []
        assert all(np.isfinite(array).all() for array in coordinator.model.values())
        Coordinator(TERMS, ledger, START_MODEL)  # a restarted server continues


def wild(reply: Reply, data: st.DataObject) -> Reply:
    body = dict(reply.body)
    for key in data.draw(st.sets(st.sampled_from(sorted(body)), max_size=2)):
        body[key] = data.draw(JSON)
    if data.draw(st.booleans()):
        body |= data.draw(st.dictionaries(st.text(max_size=5), JSON, max_size=2))
    if data.draw(st.booleans()):
        reply = replace(reply, parameters=data.draw(ARRAYS))
    return replace(reply, body=data.draw(JSON) if data.draw(st.integers(0, 9)) == 0 else body)

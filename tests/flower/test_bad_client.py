"""What one bad client can do to the others: nothing, and the ledger says what it tried."""

import json
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from flwr.app import Array, ArrayRecord, Context, Message, RecordDict
from flwr.supercore.inflatable.inflatable_object import (
    add_header_to_object_body,
    get_all_nested_objects,
    get_object_body,
)
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fedaccord.flower import exchange
from fedaccord.flower.client_app import client_app
from fedaccord.flower.exchange import check_inflated, room_for
from fedaccord.flower.grids import InProcessGrid
from fedaccord.flower.server_app import run_slots
from fedaccord.flower.wire import Unreadable, pack, pack_arrays, unpack
from fedaccord.ledger.lines import load_entries
from fedaccord.protocol.coordinator import Coordinator
from fedaccord.protocol.envelopes import Ask, Reply
from fedaccord.protocol.limits import MOST_SAMPLES, RATIOS
from fedaccord.protocol.messages import AskedReport
from fedaccord.protocol.parameters import Arrays, digest
from fedaccord.protocol.private import Private
from fedaccord.protocol.verification import wrong_in
from tests.flower.consortia import (
    START_MODEL,
    Clients,
    ledger_at,
    privates_of,
    run,
    terms_of,
    verdicts,
)
from tests.flower.grids import NAMES, TERMS, client_of, faults, grid_of, slots_on
from tests.lies import lie

HARMLESS = {"a": "kept", "b": "absence", "c": "kept"}


class Attacked(InProcessGrid):
    """A grid on which what comes from b is something else."""

    attack: Callable[[Message], Any]

    def pull_messages(self, message_ids: Iterable[str]) -> list[Message]:
        replies = super().pull_messages(message_ids)
        return [self.attack(r) if r.metadata.src_node_id == 1_001 else r for r in replies]


def attacked(attack: Callable[[Message], Any]) -> Attacked:
    grid = Attacked(grid_of().app, [{"name": name} for name in NAMES])
    grid.attack = attack
    return grid


def unreadable(_: Message) -> Any:
    raise ValueError("what Flower says to bytes that are no protobuf")


def of_training(attack: Callable[[Message], Any]) -> Callable[[Message], Any]:
    return lambda reply: attack(reply) if "train" in reply.metadata.message_type else reply


@lie(
    "a client",
    "end the server by a reply that Flower cannot unpack",
    "a fault of that client, which is absent; the others go on",
)
@pytest.mark.parametrize(
    ("attack", "reason"),
    [
        (unreadable, "cannot be unpacked"),
        (lambda _: RecordDict(), "is not a message"),
        (lambda _: Array(np.zeros(1)), "is not a message"),
        (lambda _: 7, "is not a message"),
    ],
)
def test_a_reply_that_is_none_ends_nothing(
    attack: Callable[[Message], Any], reason: str, tmp_path: Path
) -> None:
    assert slots_on(attacked(of_training(attack)), tmp_path / "ledger.db") == HARMLESS
    assert faults(tmp_path / "ledger.db") == {("b", reason)}


def test_nor_does_one_to_the_question_for_its_name(tmp_path: Path) -> None:
    assert slots_on(attacked(unreadable), tmp_path / "ledger.db") == HARMLESS


@pytest.mark.slow
@lie(
    "a client",
    "hold up all others by announcing a reply that it never uploads",
    "at the deadline its reply is missing, and no one else's",
)
def test_who_never_uploads_its_reply_is_waited_for_alone() -> None:
    gone_on = threading.Event()

    def pull(message_id: str, end: float) -> Message | None:
        if message_id == "b":
            assert gone_on.wait(60), "all waited for b"
        return Message(RecordDict(), 1, "train")

    end = time.monotonic() + 0.2
    found = exchange._in_threads(pull, {1: "a", 2: "b", 3: "c"}, end, {})
    gone_on.set()
    assert sorted(found) == [1, 3]


def test_a_lost_connection_to_the_superlink_is_nobody_s_fault() -> None:
    tries = 0

    def pull(_: str, __: float) -> Message:
        nonlocal tries
        tries += 1
        if tries < 3:
            raise httpx.ConnectError("lost")
        return Message(RecordDict(), 1, "train")

    (found,) = exchange._in_threads(pull, {1: "a"}, time.monotonic() + 20, {}).values()
    assert isinstance(found, Message)


@lie(
    "a client",
    "answer in another's name, with that one's node id in its reply",
    "it has answered for itself: a reply belongs to the node that was asked",
)
def test_a_reply_with_another_s_node_id_is_its_sender_s(tmp_path: Path) -> None:
    def as_c(reply: Message) -> Message:
        reply.metadata.__dict__["_src_node_id"] = 1_002
        reply.metadata.__dict__["_reply_to_message_id"] = "another"
        body, _ = unpack(reply)
        content = pack(body | {"samples": 0})
        forged = Message(content, 1, "train", ttl=9.0)
        forged.metadata.__dict__.update(reply.metadata.__dict__)
        return forged

    found = slots_on(attacked(of_training(as_c)), tmp_path / "ledger.db")
    assert found == {"a": "kept", "b": "deviation", "c": "kept"}


@lie(
    "a client",
    "answer in another's name with the token of its own question",
    "a fault: each client has a token of its own for each question, which no other can work out",
)
def test_tokens_are_secret_and_one_for_each_client_and_question(tmp_path: Path) -> None:
    clients = Clients(TERMS, privates_of(NAMES))
    seen: list[str] = []

    def in_c_s_name(ask: Ask) -> list[Reply]:
        seen.extend(ask.token(name) for name in ask.contents)
        replies = clients(ask)
        if ask.stage != "report":
            return replies
        forged = replace(replies[1], client="c", body=replies[1].body | {"ratio": 1e9})
        return [forged, *replies]

    with ledger_at(tmp_path / "ledger.db") as ledger:
        run(Coordinator(TERMS, ledger, START_MODEL), in_c_s_name, 2)
        assert set(verdicts(ledger, 1).values()) == {"kept"}
        reports = [e.body["ratio"] for e in ledger.entries(kind="report") if e.client == "c"]
    assert 1e9 not in reports
    assert len(set(seen)) == len(seen)
    again = Ask(
        "report",
        1,
        0,
        ledger.head,
        {"a": AskedReport(phase="cooperating", suspended={}, returned=[])},
    )
    assert again.token("a") != replace(again, secret=b"another").token("a")


LOGS = st.floats(np.log10(RATIOS[0]), np.log10(RATIOS[1]))
RATIO = st.sampled_from(RATIOS) | LOGS.map(lambda power: float(10.0**power))
SAMPLES = st.sampled_from([1, MOST_SAMPLES]) | st.integers(1, MOST_SAMPLES)
PATIENCE = st.sampled_from([0.0, 5e-324, 0.8, 1 - 2**-53])


@pytest.mark.slow
@lie(
    "a client",
    "stop the server for good by an extreme number in its report",
    "whatever the guards let through can be worked with; the rest is a fault",
)
@settings(
    max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    numbers=st.lists(st.tuples(RATIO, SAMPLES, PATIENCE), min_size=3, max_size=3),
    rounds=st.sampled_from([1, 2, 10**9]),
    kind=st.sampled_from(["individual", "uniform"]),
    slots=st.sampled_from([None, 1, 10**9]),
)
def test_every_report_that_passes_can_be_worked_with(
    numbers: list[tuple[float, int, float]],
    rounds: int,
    kind: str,
    slots: int | None,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """A server that was started again goes on, and the ledger can be verified."""
    terms = terms_of(
        NAMES, rounds=rounds, agreement=kind, punishment_slots=slots, update_bound="off"
    )
    privates = [
        Private(name, ratio, 1.0, samples, delta, tells_discount_factor=True)
        for name, (ratio, samples, delta) in zip(NAMES, numbers, strict=True)
    ]
    clients = Clients(terms, privates)
    with ledger_at(tmp_path_factory.mktemp("extreme") / "ledger.db") as ledger:
        for _ in range(12):  # as far as the first rounds: a thousand million would be many
            ask = Coordinator(terms, ledger, START_MODEL).next_ask(1)
            if ask is None:
                break
            coordinator = Coordinator(terms, ledger, START_MODEL)
            again = coordinator.next_ask(1)
            assert again is not None
            coordinator.take(again, clients(again))
        assert not list(ledger.entries(kind="fault"))
        assert wrong_in(ledger.entries()) == []


# --- Memory --------------------------------------------------------------------------------


def packed(arrays: Arrays) -> dict[str, bytes]:
    """The objects that a content becomes on the wire."""
    parts = get_all_nested_objects(pack({}, pack_arrays(arrays)))
    return {name: part.deflate() for name, part in parts.items()}


@lie(
    "a client",
    "fill the server's memory by one chunk of an array repeated a thousand times",
    "a fault: what a reply would inflate to is known before it is inflated",
)
def test_repeated_chunks_are_counted_before_they_are_inflated() -> None:
    model = {"w": np.zeros(250_000, np.float32)}
    contents = packed(model)
    room = room_for(model)
    check_inflated(contents, room)
    for name, content in contents.items():
        if content.startswith(b"Array "):
            form = json.loads(get_object_body(content, Array))
            form["arraychunk_ids"] *= 1_500
            array = Array(model["w"])
            contents[name] = add_header_to_object_body(json.dumps(form).encode(), array)
    assert sum(map(len, contents.values())) < room
    with pytest.raises(Unreadable, match="is larger than what was asked for"):
        check_inflated(contents, room)


def test_a_model_s_own_update_has_room() -> None:
    rng = np.random.default_rng(0)
    for shapes in ([(1,)], [(10, 784), (10,)], [(3,)] * 200, [(1_000, 1_000)]):
        model = {f"layer{n}.weight": rng.normal(size=s) for n, s in enumerate(shapes)}
        contents = packed(model)
        assert sum(map(len, contents.values())) <= room_for(model)
        check_inflated(contents, room_for(model))


@lie(
    "a client",
    "send parameters where none were asked for, or more than the model has",
    "a fault of that client",
)
@pytest.mark.parametrize("stage", ["query.report", "query.offer", "query.settle", "train"])
def test_parameters_that_were_not_asked_for_are_a_fault(stage: str, tmp_path: Path) -> None:
    app = grid_of().app

    def generous(message: Message, context: Context) -> Message:
        reply: Message = app(message, context)
        kind = message.metadata.message_type
        if kind == stage and context.node_config["name"] == "b":
            more = {f"w{n}": Array(np.zeros(3, np.float32)) for n in range(3)}
            reply.content["arrays"] = ArrayRecord(more)
        return reply

    slots_on(grid_of(app=generous), tmp_path / "ledger.db")  # type: ignore[arg-type]
    reason = "has parameters that were not asked for"
    assert faults(tmp_path / "ledger.db") == {("b", reason)}


def test_an_array_that_says_it_is_huge_is_not_made_room_for(tmp_path: Path) -> None:
    app = grid_of().app

    def boasting(message: Message, context: Context) -> Message:
        reply: Message = app(message, context)
        if message.metadata.message_type == "train" and context.node_config["name"] == "b":
            record: Any = reply.content["arrays"]
            good = record["w"]
            data = good.data.replace(b"(3,)", b"(3000000000000,)").ljust(len(good.data))
            record["w"] = Array("float32", (3,), good.stype, data)
        return reply

    found = slots_on(grid_of(app=boasting), tmp_path / "ledger.db")  # type: ignore[arg-type]
    assert found == HARMLESS
    assert faults(tmp_path / "ledger.db") == {("b", "has unreadable parameters")}


# --- The model -----------------------------------------------------------------------------


@lie(
    "a client",
    "ruin the model by one huge, finite update",
    "a fault: an update beyond the bound of the terms does not count, and its client is absent",
)
def test_one_huge_update_does_not_ruin_the_model(tmp_path: Path) -> None:
    clients = Clients(TERMS, privates_of(NAMES))

    def poisoned(ask: Ask) -> list[Reply]:
        return [
            replace(r, parameters={k: np.full_like(v, 1e6) for k, v in r.parameters.items()})
            if (ask.stage, r.client) == ("train", "b") and r.parameters
            else r
            for r in clients(ask)
        ]

    with ledger_at(tmp_path / "ledger.db") as ledger:
        coordinator = run(Coordinator(TERMS, ledger, START_MODEL), poisoned, 1)
        assert verdicts(ledger, 1) == HARMLESS
        (fault,) = ledger.entries(kind="fault")
        assert fault.body["reason"] == "has an update that is too long"
        assert fault.body["norm"] == pytest.approx(2e6)
        assert wrong_in(ledger.entries()) == []
    assert all(np.abs(array).max() < 1_000 for array in coordinator.model.values())


def models_sent(grid: InProcessGrid) -> dict[str, list[str]]:
    """What is in every message that carries parameters, by the name of the node's client."""
    sent: dict[str, list[str]] = {
        str(context.node_config["name"]): [] for context in grid.contexts.values()
    }
    push = grid.push_messages

    def watched(messages: Iterable[Message]) -> list[str]:
        messages = list(messages)
        for message in messages:
            _, arrays = unpack(message)
            if arrays is not None:
                name = str(grid.contexts[message.metadata.dst_node_id].node_config["name"])
                sent[name].append(digest(arrays))
        return push(messages)

    grid.push_messages = watched  # type: ignore[method-assign]
    return sent


@lie(
    "a client",
    "refuse its offer, and take the model at the settlement",
    "it is sent no model, in no message of the slot",
)
def test_who_refuses_is_sent_no_model(tmp_path: Path) -> None:
    terms, privates = terms_of(answer_seconds=0.01), privates_of()
    privates[1] = replace(privates[1], discount_factor=0.01)  # what it is offered is not for it
    grid = InProcessGrid(
        client_app(client_of(privates, terms)), [{"name": private.name} for private in privates]
    )
    sent = models_sent(grid)
    with ledger_at(tmp_path / "ledger.db") as ledger:
        run_slots(grid, Coordinator(terms, ledger, START_MODEL), 1)
        assert verdicts(ledger, 1) == {n: "refused" if n == "b" else "kept" for n in "abcde"}
    assert sent["b"] == []
    assert len(set(sent["c"])) == terms.rounds + 1


@lie(
    "a client",
    "accept its offer, stay away from the rounds, and take the models",
    "it is sent no model after the round that it missed",
)
def test_who_stays_away_from_the_rounds_is_sent_no_model_of_the_slot(tmp_path: Path) -> None:
    app = grid_of().app

    def away(message: Message, context: Context) -> Message:
        if message.metadata.message_type == "train" and context.node_config["name"] == "b":
            return Message(pack({"problem": "failure"}), reply_to=message)
        reply: Message = app(message, context)
        return reply

    grid = grid_of(app=away)  # type: ignore[arg-type]
    sent = models_sent(grid)
    assert slots_on(grid, tmp_path / "ledger.db") == HARMLESS
    assert sent["b"] == [digest(START_MODEL)]  # the one to train in round 1, none of the slot
    entries = load_entries(str(tmp_path / "ledger.db"))
    assert [e.body["averaged"] for e in entries if e.kind == "round"] == [True, True]


@lie(
    "a client",
    "train on less than it accepted, and go on taking the models",
    "it is sent no model after the round in which it slipped, and the verdict is deviation",
)
def test_who_slips_is_sent_no_model_from_the_next_round_on(tmp_path: Path) -> None:
    privates = privates_of(NAMES)
    privates[1] = replace(privates[1], slips={1: 1})
    grid = grid_of(app=client_app(client_of(privates)))
    sent = models_sent(grid)
    assert slots_on(grid, tmp_path / "ledger.db")["b"] == "deviation"
    assert sent["b"] == [digest(START_MODEL)]


def test_whose_part_is_nothing_is_sent_the_model_at_the_end(tmp_path: Path) -> None:
    """At the equilibrium a trains on nothing: it has kept to that."""
    terms = terms_of(NAMES, answer_seconds=0.01, discount_factor=0.0, margin=0.0)
    privates = [replace(p, discount_factor=0.0) for p in privates_of(NAMES)]
    app = client_app(client_of(privates, terms))
    grid = InProcessGrid(app, [{"name": name} for name in NAMES])
    sent = models_sent(grid)
    with ledger_at(tmp_path / "ledger.db") as ledger:
        coordinator = Coordinator(terms, ledger, START_MODEL)
        run_slots(grid, coordinator, 1)
        (basis,) = ledger.entries(kind="basis")
        assert basis.body["contributions"]["a"] == 0
    assert sent["a"] == [digest(coordinator.model)]


@pytest.mark.slow
def test_a_void_slot_hands_out_no_model(tmp_path: Path) -> None:
    """Two of three are away: the model is still the one of the slot before."""
    grid = grid_of()
    for node in (1_001, 1_002):
        del grid.contexts[node]
    sent = models_sent(grid)
    assert slots_on(grid, tmp_path / "ledger.db") == {"a": "kept", "b": "absence", "c": "absence"}
    assert sent["a"] == []

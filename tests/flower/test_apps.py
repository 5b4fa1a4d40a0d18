"""The apps on a grid in this process: nodes and names, and invalid messages."""

import io
import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from flwr.app import Array, ArrayRecord, ConfigRecord, Context, Message, RecordDict
from flwr.app.error import Error
from flwr.proto.node_pb2 import NodeInfo
from flwr.serverapp import Grid, ServerApp
from flwr.supercore import log

from fedaccord.errors import FedaccordError
from fedaccord.flower.client_app import client_app
from fedaccord.flower.exchange import exchange
from fedaccord.flower.grids import InProcessGrid
from fedaccord.flower.server_app import Directory, run_slots, server_app
from fedaccord.flower.simulation import copy_of_node
from fedaccord.flower.wire import Unreadable, pack, unpack
from fedaccord.ledger.lines import load_entries
from fedaccord.protocol.coordinator import Coordinator
from fedaccord.protocol.copies import contradictions
from fedaccord.protocol.parameters import Arrays
from fedaccord.protocol.participant import Participant
from fedaccord.protocol.state import State
from fedaccord.protocol.terms_text import terms_text
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


@pytest.mark.slow
def test_the_same_ledger_as_without_flower(tmp_path: Path) -> None:
    slots_on(grid_of(), tmp_path / "flower.db", 3)
    with ledger_at(tmp_path / "plain.db") as ledger:
        run(Coordinator(TERMS, ledger, START_MODEL), Clients(TERMS, privates_of(NAMES)), 3)
    assert load_entries(str(tmp_path / "flower.db")) == load_entries(str(tmp_path / "plain.db"))


def test_copies_in_the_node_state_agree_with_the_ledger(tmp_path: Path) -> None:
    grid = grid_of()
    slots_on(grid, tmp_path / "ledger.db", 2)
    server = load_entries(str(tmp_path / "ledger.db"))
    for context in grid.contexts.values():
        copy = list(copy_of_node(context).entries())
        assert {entry.slot for entry in copy} == {1, 2}
        assert contradictions(server, copy) == []


# --- Nodes ---------------------------------------------------------------------------------


def test_nodes_are_identified_by_name_whatever_their_id(tmp_path: Path) -> None:
    slots_on(grid_of(("c", "a", "b")), tmp_path / "one.db")
    slots_on(grid_of(), tmp_path / "other.db")
    assert load_entries(str(tmp_path / "one.db")) == load_entries(str(tmp_path / "other.db"))


def test_two_nodes_with_one_name_are_both_refused(tmp_path: Path) -> None:
    found = slots_on(grid_of((*NAMES, "b")), tmp_path / "ledger.db")
    assert found == {"a": "kept", "b": "absence", "c": "kept"}
    assert faults(tmp_path / "ledger.db") == {(None, "is one of several nodes that claim to be b")}


def test_the_node_of_an_unknown_client_is_refused(tmp_path: Path) -> None:
    found = slots_on(grid_of((*NAMES, "stranger")), tmp_path / "ledger.db")
    assert set(found.values()) == {"kept"}
    assert faults(tmp_path / "ledger.db") == {(None, "is a node of no client in the terms")}


def test_a_key_registered_for_another_client_is_refused(tmp_path: Path) -> None:
    class Registered(InProcessGrid):
        def get_nodes(self) -> list[NodeInfo]:
            names = ["a", "a", "c"]
            return [
                NodeInfo(node_id=n, name=name) for n, name in zip(self.contexts, names, strict=True)
            ]

    grid = Registered(grid_of().app, [{"name": name} for name in NAMES])
    assert slots_on(grid, tmp_path / "ledger.db")["b"] == "absence"
    reason = "claims to be b, but its key is registered for another client"
    assert faults(tmp_path / "ledger.db") == {(None, reason)}


def test_an_impostor_does_not_lock_out_the_right_node(tmp_path: Path) -> None:
    """A fourth node, registered as c, says it is b; b's own key still speaks for b."""

    class Registered(InProcessGrid):
        def get_nodes(self) -> list[NodeInfo]:
            names = ["a", "b", "c", "c"]
            return [
                NodeInfo(node_id=n, name=name) for n, name in zip(self.contexts, names, strict=True)
            ]

    grid = Registered(grid_of().app, [{"name": name} for name in (*NAMES, "b")])
    assert set(slots_on(grid, tmp_path / "ledger.db").values()) == {"kept"}
    reason = "claims to be b, but its key is registered for another client"
    assert faults(tmp_path / "ledger.db") == {(None, reason)}


def test_nodes_that_leave_are_forgotten_and_new_ones_are_asked() -> None:
    grid = grid_of()
    directory = Directory(grid, TERMS)
    assert directory.refresh() == []
    assert list(directory.nodes.values()) == ["a", "b", "c"]
    gone = grid.contexts.pop(1_001)
    directory.refresh()
    assert list(directory.nodes.values()) == ["a", "c"]
    grid.contexts[2_000] = Context(1, 2_000, gone.node_config, RecordDict(), {})
    directory.refresh()
    assert directory.nodes[2_000] == "b"


def test_a_node_that_does_not_say_its_name_is_ignored(tmp_path: Path) -> None:
    app = grid_of().app

    def mute(message: Message, context: Context) -> Message:
        if message.metadata.message_type == "query.name" and context.node_config["name"] == "b":
            return Message(Error(2, "my valuation is 51"), reply_to=message)
        answer: Message = app(message, context)
        return answer

    grid = grid_of(app=mute)  # type: ignore[arg-type]
    assert slots_on(grid, tmp_path / "ledger.db")["b"] == "absence"


@pytest.mark.slow
def test_a_client_that_joins_between_two_slots_takes_part_in_the_second(tmp_path: Path) -> None:
    grid = grid_of()
    late = grid.contexts.pop(1_001)

    def watch(state: State, arrays: Arrays) -> None:
        if state.settled == 1:
            grid.contexts[1_001] = late

    with ledger_at(tmp_path / "ledger.db") as ledger:
        run_slots(grid, Coordinator(TERMS, ledger, START_MODEL), 2, watch)
        assert verdicts(ledger, 1) == {"a": "kept", "b": "absence", "c": "kept"}
        assert set(verdicts(ledger, 2).values()) == {"kept"}


def test_it_waits_as_long_as_the_terms_say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    waited: set[tuple[str, float]] = set()

    def timed(
        grid: Grid, messages: dict[int, Message], seconds: float, room: int, found: Any = None
    ) -> dict[int, Message | Unreadable]:
        waited.update((message.metadata.message_type, seconds) for message in messages.values())
        return exchange(grid, messages, seconds, room)

    monkeypatch.setattr("fedaccord.flower.server_app.exchange", timed)
    terms = terms_of(NAMES, answer_seconds=7.0, training_seconds=99.0)
    app = client_app(client_of(privates_of(NAMES), terms))
    with ledger_at(tmp_path / "ledger.db") as ledger:
        coordinator = Coordinator(terms, ledger, START_MODEL)
        run_slots(InProcessGrid(app, [{"name": name} for name in NAMES]), coordinator, 1)
    questions = {f"query.{stage}" for stage in ("name", "report", "rank", "offer", "settle")}
    assert waited == {("train", 99.0), *((question, 7.0) for question in questions)}


# --- What the server says ------------------------------------------------------------------


@pytest.fixture
def streamed() -> Iterator[io.StringIO]:
    """The stream of `flwr run`, which shows what Flower's own logger logs."""
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    logging.getLogger("flwr").addHandler(handler)
    yield stream
    logging.getLogger("flwr").removeHandler(handler)


def served(home: Path) -> tuple[ServerApp, Context]:
    home.mkdir()
    (home / "terms.toml").write_text(terms_text(TERMS))
    config: dict[str, bool | float | int | str] = {
        "ledger": str(home / "ledger.db"),
        "last-slot": 2,
    }
    app = server_app(home / "terms.toml", start=lambda _: START_MODEL)
    return app, Context(1, 1, {}, RecordDict(), config)


def test_the_stream_says_which_slots_are_settled(tmp_path: Path, streamed: io.StringIO) -> None:
    app, context = served(tmp_path / "app")
    app(grid_of(), context)
    warning, *lines = streamed.getvalue().splitlines()
    assert warning.startswith("offers are computed from the ratios that clients report")
    assert lines[0] == "test: running slots 1 to 2 with a, b and c"
    assert [line.split(":")[0] for line in lines if "is settled" in line] == [
        "slot 1 is settled",
        "slot 2 is settled",
    ]
    assert lines[-1] == "the run is over: 2 slots settled, none of them void"


def test_an_error_of_the_server_is_one_sentence_in_the_stream(
    tmp_path: Path, streamed: io.StringIO
) -> None:
    """Flower logs whatever a server app raises with a traceback; a sentence is enough for ours."""
    app, context = served(tmp_path / "app")
    with ledger_at(tmp_path / "app" / "ledger.db"), pytest.raises(FedaccordError) as refused:
        app(grid_of(), context)
    log(logging.ERROR, "%s raised an exception", "ServerApp", exc_info=refused.value)
    log(logging.ERROR, "%s raised an exception", "ServerApp", exc_info=ValueError("a mistake"))
    assert streamed.getvalue().splitlines() == [
        f"{tmp_path}/app/ledger.db: another process is writing to this ledger; only one may",
        "ServerApp raised an exception",
        "ValueError: a mistake",
    ]


# --- Messages that are no replies ----------------------------------------------------------


def spoiling(spoil: Callable[[Message, Message], Message]) -> Any:
    """The app of a consortium in which client b sends invalid replies to training."""
    app = grid_of().app

    def answer(message: Message, context: Context) -> Message:
        reply: Message = app(message, context)
        if message.metadata.message_type == "train" and context.node_config["name"] == "b":
            return spoil(message, reply)
        return reply

    return answer


def with_bytes(message: Message, reply: Message) -> Message:
    content: Any = reply.content
    good = content["arrays"]["w"]
    content["arrays"] = ArrayRecord({"w": Array("float32", (3,), good.stype, b"junk"), "b": good})
    return Message(content, reply_to=message)


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (lambda m, _: Message(Error(2, "secret"), reply_to=m), "failed (Flower's error 2)"),
        (lambda m, _: Message(RecordDict(), reply_to=m), "has no readable content"),
        (
            lambda m, _: Message(
                RecordDict({"fedaccord": ConfigRecord({"json": "{"})}), reply_to=m
            ),
            "has no readable content",
        ),
        (
            lambda m, _: Message(
                RecordDict({"fedaccord": ConfigRecord({"json": "[" * 99_999})}), reply_to=m
            ),
            "has no readable content",
        ),
        (lambda m, _: Message(pack({"slot": 1}), reply_to=m), "is for another stage"),
        (with_bytes, "has unreadable parameters"),
    ],
)
def test_an_invalid_reply_is_a_fault(spoil: Any, reason: str, tmp_path: Path) -> None:
    found = slots_on(grid_of(app=spoiling(spoil)), tmp_path / "ledger.db")
    assert found == {"a": "kept", "b": "absence", "c": "kept"}
    assert faults(tmp_path / "ledger.db") == {("b", reason)}


def test_a_client_that_fails_reveals_no_reason(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(slot: int, turn: int, amount: int, parameters: Any, *, first: int = 0) -> Any:
        raise ValueError("my valuation is 34.0")

    find = client_of(privates_of(NAMES))

    def b_is_broken(context: Context) -> Participant:
        participant = find(context)
        if participant.private.name == "b":
            participant._train = broken
        return participant

    found = slots_on(grid_of(app=client_app(b_is_broken)), tmp_path / "ledger.db")
    assert found["b"] == "absence"
    assert faults(tmp_path / "ledger.db") == {("b", "says that it failed")}
    assert "my valuation is 34.0" in caplog.text  # at the client, where it belongs


def test_a_model_that_cannot_be_stored_is_logged_and_changes_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def full(context: Context, arrays: Any) -> None:
        raise OSError("no space left for /home/st-mary/model.npz")

    app = client_app(client_of(privates_of(NAMES)), full)
    found = slots_on(grid_of(app=app), tmp_path / "ledger.db")
    assert set(found.values()) == {"kept"}
    assert faults(tmp_path / "ledger.db") == set()
    assert "could not be kept" in caplog.text


@pytest.mark.parametrize("json", ["[1]", "7", "null", '"report"'])
def test_an_invalid_question_is_answered_with_one_word(json: str) -> None:
    grid = grid_of()
    (node, *_) = grid.get_node_ids()
    content = RecordDict({"fedaccord": ConfigRecord({"json": json})})
    (reply,) = grid.send_and_receive([Message(content, node, "query.report")])
    assert unpack(reply) == ({"problem": "refusal"}, None)


def test_a_node_without_a_client_reveals_neither_name_nor_reason(
    caplog: pytest.LogCaptureFixture,
) -> None:
    grid = grid_of(("a",))
    next(iter(grid.contexts.values())).node_config.clear()
    directory = Directory(grid, TERMS)
    assert directory.refresh() == []
    assert directory.nodes == {}
    assert "does not know its client" in caplog.text

"""The apps on a grid in this process: nodes and names, errors, and what leaves a client."""

import struct
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flwr.app import Array, ArrayRecord, ConfigRecord, Context, Message, RecordDict
from flwr.app.error import Error
from flwr.clientapp import ClientApp
from flwr.common.serde import recorddict_to_proto
from flwr.proto.node_pb2 import NodeInfo

from fedaccord.data.dataset import load_dataset
from fedaccord.flower.app_directory import write_app
from fedaccord.flower.client_app import app_of_files, client_app
from fedaccord.flower.client_file import load_client_file
from fedaccord.flower.grid import InProcessGrid
from fedaccord.flower.ledger.lines import load_entries
from fedaccord.flower.memory import StateCopy
from fedaccord.flower.nodes import Directory
from fedaccord.flower.protocol.audit import audit, contradictions
from fedaccord.flower.protocol.client import Participant, Private
from fedaccord.flower.protocol.coordinator import Coordinator
from fedaccord.flower.protocol.parameters import digest, from_bytes
from fedaccord.flower.protocol.terms import Terms, read_terms
from fedaccord.flower.server_app import first_model, run_slots
from fedaccord.flower.wire import pack, unpack
from tests.flower.consortia import (
    START_MODEL,
    Members,
    ledger_at,
    nudge,
    privates_of,
    run,
    terms_of,
    verdicts,
)

NAMES = ("a", "b", "c")
TERMS = terms_of(NAMES, answer_seconds=0.01)


def member(privates: list[Private], terms: Terms = TERMS) -> Callable[[Context], Participant]:
    by_name = {private.name: private for private in privates}

    def find(context: Context) -> Participant:
        return Participant(
            by_name[str(context.node_config["name"])], terms, StateCopy(context), nudge
        )

    return find


def grid_of(names: Iterable[str] = NAMES, app: ClientApp | None = None) -> InProcessGrid:
    privates = [*privates_of(NAMES), *privates_of(("stranger",))]
    return InProcessGrid(app or client_app(member(privates)), [{"name": name} for name in names])


def faults(path: Path) -> set[tuple[str | None, str]]:
    return {(e.client, e.body["reason"]) for e in load_entries(str(path)) if e.kind == "fault"}


def slots_on(grid: InProcessGrid, path: Path, slots: int = 1) -> dict[str, str]:
    with ledger_at(path) as ledger:
        run_slots(grid, Coordinator(TERMS, ledger, START_MODEL), slots)
        return verdicts(ledger, slots)


def test_the_same_ledger_as_without_flower(tmp_path: Path) -> None:
    slots_on(grid_of(), tmp_path / "flower.db", 3)
    with ledger_at(tmp_path / "plain.db") as ledger:
        run(Coordinator(TERMS, ledger, START_MODEL), Members(TERMS, privates_of(NAMES)), 3)
    assert load_entries(str(tmp_path / "flower.db")) == load_entries(str(tmp_path / "plain.db"))


def test_the_copies_in_flower_s_state_agree(tmp_path: Path) -> None:
    grid = grid_of()
    slots_on(grid, tmp_path / "ledger.db", 2)
    server = load_entries(str(tmp_path / "ledger.db"))
    for context in grid.contexts.values():
        copy = list(StateCopy(context).entries())
        assert {entry.slot for entry in copy} == {1, 2}
        assert contradictions(server, copy) == []


# --- Nodes ---------------------------------------------------------------------------------


def test_nodes_are_told_by_name_whatever_their_number(tmp_path: Path) -> None:
    slots_on(grid_of(("c", "a", "b")), tmp_path / "one.db")
    slots_on(grid_of(), tmp_path / "other.db")
    assert load_entries(str(tmp_path / "one.db")) == load_entries(str(tmp_path / "other.db"))


def test_two_nodes_with_one_name_are_both_refused(tmp_path: Path) -> None:
    found = slots_on(grid_of((*NAMES, "b")), tmp_path / "ledger.db")
    assert found == {"a": "kept", "b": "absence", "c": "kept"}
    assert faults(tmp_path / "ledger.db") == {(None, "is one of several nodes that say they are b")}


def test_a_stranger_s_node_is_refused(tmp_path: Path) -> None:
    found = slots_on(grid_of((*NAMES, "stranger")), tmp_path / "ledger.db")
    assert set(found.values()) == {"kept"}
    assert faults(tmp_path / "ledger.db") == {(None, "is a node of nobody in the terms")}


def test_a_key_registered_for_another_is_refused(tmp_path: Path) -> None:
    class Registered(InProcessGrid):
        def get_nodes(self) -> list[NodeInfo]:
            names = ["a", "a", "c"]
            return [
                NodeInfo(node_id=n, name=name) for n, name in zip(self.contexts, names, strict=True)
            ]

    grid = Registered(grid_of().app, [{"name": name} for name in NAMES])
    assert slots_on(grid, tmp_path / "ledger.db")["b"] == "absence"
    reason = "says it is b, but its key is registered as another"
    assert faults(tmp_path / "ledger.db") == {(None, reason)}


def test_an_impostor_does_not_lock_the_right_node_out(tmp_path: Path) -> None:
    """A fourth node, registered as c, says it is b; b's own key still speaks for b."""

    class Registered(InProcessGrid):
        def get_nodes(self) -> list[NodeInfo]:
            names = ["a", "b", "c", "c"]
            return [
                NodeInfo(node_id=n, name=name) for n, name in zip(self.contexts, names, strict=True)
            ]

    grid = Registered(grid_of().app, [{"name": name} for name in (*NAMES, "b")])
    assert set(slots_on(grid, tmp_path / "ledger.db").values()) == {"kept"}
    reason = "says it is b, but its key is registered as another"
    assert faults(tmp_path / "ledger.db") == {(None, reason)}


def test_a_node_that_leaves_is_forgotten_and_one_that_comes_is_asked() -> None:
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


def test_who_cannot_say_its_name_is_nobody(tmp_path: Path) -> None:
    app = grid_of().app

    def mute(message: Message, context: Context) -> Message:
        if message.metadata.message_type == "query.name" and context.node_config["name"] == "b":
            return Message(Error(2, "my valuation is 51"), reply_to=message)
        answer: Message = app(message, context)
        return answer

    grid = grid_of(app=mute)  # type: ignore[arg-type]
    assert slots_on(grid, tmp_path / "ledger.db")["b"] == "absence"


# --- Messages that are no replies ----------------------------------------------------------


def spoiling(spoil: Callable[[Message, Message], Message]) -> Any:
    """The app of a consortium whose client b answers training with something else."""
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
        (lambda m, _: Message(pack({"slot": 1}), reply_to=m), "is of another stage"),
        (with_bytes, "has unreadable parameters"),
    ],
)
def test_what_is_no_reply_is_a_fault(spoil: Any, reason: str, tmp_path: Path) -> None:
    found = slots_on(grid_of(app=spoiling(spoil)), tmp_path / "ledger.db")
    assert found == {"a": "kept", "b": "absence", "c": "kept"}
    assert faults(tmp_path / "ledger.db") == {("b", reason)}


def test_a_client_that_fails_says_so_and_no_more(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(slot: int, turn: int, amount: int, parameters: Any) -> Any:
        raise ValueError("my valuation is 34.0")

    find = member(privates_of(NAMES))

    def b_is_broken(context: Context) -> Participant:
        participant = find(context)
        if participant.private.name == "b":
            participant._train = broken
        return participant

    found = slots_on(grid_of(app=client_app(b_is_broken)), tmp_path / "ledger.db")
    assert found["b"] == "absence"
    assert faults(tmp_path / "ledger.db") == {("b", "says that it failed")}
    assert "my valuation is 34.0" in caplog.text  # at the client, where it belongs


def test_a_model_that_cannot_be_kept_is_told_here_and_changes_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def full(context: Context, arrays: Any) -> None:
        raise OSError("no space left for /home/st-mary/model.npz")

    app = client_app(member(privates_of(NAMES)), full)
    found = slots_on(grid_of(app=app), tmp_path / "ledger.db")
    assert set(found.values()) == {"kept"}
    assert faults(tmp_path / "ledger.db") == set()
    assert "could not be kept" in caplog.text


@pytest.mark.parametrize("json", ["[1]", "7", "null", '"report"'])
def test_what_is_no_question_is_answered_by_a_bare_word(json: str) -> None:
    grid = grid_of()
    (node, *_) = grid.get_node_ids()
    content = RecordDict({"fedaccord": ConfigRecord({"json": json})})
    (reply,) = grid.send_and_receive([Message(content, node, "query.report")])
    assert unpack(reply) == ({"problem": "refusal"}, None)


def test_a_node_without_a_client_says_no_name_and_no_reason(
    caplog: pytest.LogCaptureFixture,
) -> None:
    grid = grid_of(("a",))
    next(iter(grid.contexts.values())).node_config.clear()
    directory = Directory(grid, TERMS)
    assert directory.refresh() == []
    assert directory.nodes == {}
    assert "does not know its client" in caplog.text


# --- What leaves a client ------------------------------------------------------------------


class Listening(InProcessGrid):
    """Keeps the bytes of everything that clients send."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.heard: list[bytes] = []

    def pull_messages(self, message_ids: Iterable[str]) -> list[Message]:
        replies = super().pull_messages(message_ids)
        self.heard += [recorddict_to_proto(r.content).SerializeToString() for r in replies]
        return replies


def forms_of(number: float) -> list[bytes]:
    """How a number could be written in a message."""
    texts = {repr(number), f"{number:g}", f"{number:.6g}", str(number)}
    return [
        *(text.encode() for text in texts),
        struct.pack("<d", number),
        struct.pack(">d", number),
        struct.pack("<f", number),
        struct.pack(">f", number),
    ]


def test_no_message_has_a_valuation_a_cost_or_a_sample(tmp_path: Path) -> None:
    """A whole consortium with real training: two slots, one slip, one refusal, one failure."""
    digits = load_dataset("digits")
    terms = read_terms(
        TERMS.model_dump(mode="json") | {"rounds": 2, "training": {"shape": [8, 8], "classes": 10}},
        "test",
    )
    privates = privates_of(NAMES, communication_cost=0.123456789)
    privates[0] = replace(privates[0], discount_factor=0.0123456789)
    privates[2] = replace(privates[2], slips={1: 3})
    write_app(tmp_path / "app", terms, privates, digits)
    app = app_of_files(tmp_path / "app" / "fedaccord_app" / "terms.toml")
    files = [str(tmp_path / "app" / "clients" / name / "client.toml") for name in NAMES]
    grid = Listening(app, [{"client-file": file} for file in files])
    with ledger_at(tmp_path / "ledger.db") as ledger:
        run_slots(grid, Coordinator(terms, ledger, first_model(terms)), 2)
    said = b"\0".join(grid.heard)
    assert len(grid.heard) > 20
    for private in privates:
        secrets = (private.valuation, private.cost_per_sample, private.communication_cost)
        for secret in (*secrets, private.discount_factor):
            for form in forms_of(secret):
                if len(form) > 3:  # "17" or "34" may be anything
                    assert form not in said
        data = tmp_path / "app" / "clients" / private.name / "data"
        with np.load(data / f"{private.name}.npz") as held:
            examples = held["inputs"]
        for example in examples:
            assert example.tobytes() not in said
            assert example[example.any(axis=1)][0].tobytes() not in said  # nor a row of one
    ratio = repr(privates[1].ratio).encode()
    assert ratio in said  # the test would see it


def test_the_fields_that_clients_send_are_these_and_no_others(tmp_path: Path) -> None:
    import json

    privates = privates_of(NAMES)
    privates[0] = replace(privates[0], tells_discount_factor=True)
    members, sent = Members(TERMS, privates), dict[str, set[str]]()

    def listen(ask: Any) -> Any:
        replies = members(ask)
        for reply in replies:
            json.dumps(reply.body)
            sent.setdefault(ask.stage, set()).update(reply.body)
        return replies

    with ledger_at(tmp_path / "ledger.db") as ledger:
        run(Coordinator(TERMS, ledger, START_MODEL), listen, 2)
    place = {"stage", "slot", "turn", "token"}
    assert sent == {
        "report": place | {"ratio", "samples", "discount_factor"},
        "rank": place | {"contribution"},
        "offer": place | {"accepts"},
        "train": place | {"samples"},
        "settle": place,
    }


# --- Clients by their files ----------------------------------------------------------------


def test_clients_by_their_files(tmp_path: Path) -> None:
    """As in a deployment, where each message may find a new process: all is in the files."""
    terms = read_terms(
        TERMS.model_dump(mode="json")
        | {"training": {"shape": [30], "classes": 2, "local": "epochs"}},
        "test",
    )
    home = tmp_path / "app"
    write_app(home, terms, privates_of(NAMES), load_dataset("breast-cancer"))
    file = home / "clients" / "b" / "client.toml"
    file.write_text(file.read_text() + "\n[slips]\n1 = 0\n")
    app = app_of_files(home / "fedaccord_app" / "terms.toml")
    files = [str(home / "clients" / name / "client.toml") for name in NAMES]
    grid = InProcessGrid(app, [{"client-file": file} for file in files])
    with ledger_at(tmp_path / "ledger.db") as ledger:
        coordinator = Coordinator(terms, ledger, first_model(terms))
        run_slots(grid, coordinator, 2)
        assert verdicts(ledger, 1) == {"a": "kept", "b": "deviation", "c": "kept"}
        assert set(verdicts(ledger, 2).values()) == {"kept"}
    server = load_entries(str(tmp_path / "ledger.db"))
    assert audit(server) == []
    for name in NAMES:
        copy = load_entries(str(home / "clients" / name / "ledger.db"))
        assert contradictions(server, copy) == []
        kept = from_bytes((home / "clients" / name / "model.npz").read_bytes())
        assert digest(kept) == digest(coordinator.model)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("samples = 40", "samples = 0"),
        ("valuation = 17.0", "valuation = -1.0"),
        ("valuation = 17.0", "valuation = nan"),
        ("discount_factor = 0.8", "discount_factor = 1.0"),
        ('name = "a"', 'nmae = "a"'),
        ("samples = 40", "samples = 40.5"),
        ("samples = 40", "samples = "),
    ],
)
def test_a_wrong_client_file_says_where(change: str, message: str, tmp_path: Path) -> None:
    write_app(tmp_path / "app", TERMS, privates_of(NAMES))
    file = tmp_path / "app" / "clients" / "a" / "client.toml"
    assert load_client_file(file).private == privates_of(NAMES)[0]
    file.write_text(file.read_text().replace(change, message))
    field = message.split(maxsplit=1)[0]
    with pytest.raises(Exception, match=f"(?s)client.toml: .*(is not TOML|{field}: )"):
        load_client_file(file)

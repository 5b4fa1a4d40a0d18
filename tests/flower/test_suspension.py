"""Suspension on Flower: the messages themselves show who was sent parameters."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from flwr.app import ArrayRecord, Message
from flwr.common.serde import recorddict_to_proto

from fedaccord.flower.client_app import client_app
from fedaccord.flower.grids import InProcessGrid
from fedaccord.flower.server_app import run_slots
from fedaccord.flower.wire import unpack
from fedaccord.ledger.store import Ledger
from fedaccord.protocol.coordinator import Coordinator
from fedaccord.protocol.parameters import Arrays
from fedaccord.protocol.private import Private
from fedaccord.protocol.terms import Terms
from fedaccord.protocol.verification import wrong_in
from tests.flower.consortia import START_MODEL, ledger_at, privates_of, terms_of, verdicts
from tests.flower.grids import client_of

NAMES = ("a", "b", "c", "d")


class Seen(NamedTuple):
    """A message to a client."""

    client: str
    slot: int
    stage: str
    turn: int
    arrays: bool
    """Whether any record in it is one of arrays."""
    content: bytes
    """As Flower sends it."""


class Watched(InProcessGrid):
    """Keeps what is sent to each client."""

    def __init__(self, terms: Terms, privates: list[Private]) -> None:
        nodes: list[dict[str, str | int]] = [{"name": private.name} for private in privates]
        super().__init__(client_app(client_of(privates, terms)), nodes)
        self.seen: list[Seen] = []

    def push_messages(self, messages: Iterable[Message]) -> list[str]:
        messages = list(messages)
        for message in messages:
            body, _ = unpack(message)
            if not body:  # it asks for the name of a new node
                continue
            node = message.metadata.dst_node_id
            content = recorddict_to_proto(message.content).SerializeToString()
            arrays = any(isinstance(one, ArrayRecord) for one in message.content.values())
            place = (body["slot"], body["stage"], body["turn"])
            client = str(self.contexts[node].node_config["name"])
            self.seen.append(Seen(client, *place, arrays, content))
        return super().push_messages(messages)

    def with_arrays(self, client: str) -> list[tuple[int, str, int]]:
        return [(s.slot, s.stage, s.turn) for s in self.seen if s.client == client and s.arrays]


def rules(**changes: Any) -> Terms:
    given = {"answer_seconds": 0.01, "punishment": "suspension", "punishment_slots": 1}
    return terms_of(NAMES, **(given | changes))


def on_grid(
    path: Path, terms: Terms, slots: int, change: Callable[[Private], Private]
) -> tuple[Watched, Ledger, list[Arrays]]:
    """Slots on a grid, and every model that there was after a question."""
    grid = Watched(terms, [change(private) for private in privates_of(NAMES)])
    models: list[Arrays] = [START_MODEL]
    ledger = ledger_at(path)
    coordinator = Coordinator(terms, ledger, START_MODEL)
    run_slots(grid, coordinator, slots, lambda _, model: models.append(model))
    return grid, ledger, models


def slipping(slips: dict[str, dict[int, int]]) -> Callable[[Private], Private]:
    return lambda private: replace(private, slips=slips.get(private.name, {}))


def whole_slot(slot: int) -> list[tuple[int, str, int]]:
    return [(slot, "train", 1), (slot, "train", 2), (slot, "settle", 0)]


@pytest.mark.slow
def test_from_its_slip_to_its_return_a_client_is_sent_no_array(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    grid, ledger, models = on_grid(path, rules(), 4, slipping({"c": {2: 0}}))
    with ledger:
        assert [verdicts(ledger, slot)["c"] for slot in range(1, 5)] == [
            *("kept", "deviation", "suspended", "kept")
        ]
        assert wrong_in(ledger.entries()) == []
    # the model of round 1 of slot 2 was sent before anyone could know; from then on none is
    assert grid.with_arrays("c") == [*whole_slot(1), (2, "train", 1), *whole_slot(4)]
    for other in "ad":
        assert grid.with_arrays(other) == [m for slot in range(1, 5) for m in whole_slot(slot)]
    # nor are the numbers hidden anywhere in what it was sent meanwhile
    mine = [s for s in grid.seen if s.client == "c"]
    out = [s for s in mine if s.slot == 3 or (s.slot, s.stage) == (2, "settle")]
    assert [(s.slot, s.stage) for s in out] == [(2, "settle"), (3, "settle")]
    numbers = {model["w"].tobytes() for model in models if model["w"].any()}
    assert not any(number in message.content for message in out for number in numbers)
    given = [s for s in grid.seen if s.client == "a" and s.slot == 3 and s.stage == "settle"]
    assert any(number in given[0].content for number in numbers)


@pytest.mark.slow
def test_two_out_at_once_are_sent_none(tmp_path: Path) -> None:
    slips = slipping({"b": {1: 0}, "c": {1: 0}})
    grid, ledger, _ = on_grid(tmp_path / "ledger.db", rules(), 3, slips)
    with ledger:
        assert [n for n, verdict in verdicts(ledger, 2).items() if verdict == "suspended"] == [
            *("b", "c")
        ]
        assert wrong_in(ledger.entries()) == []
    for name in "bc":
        assert grid.with_arrays(name) == [(1, "train", 1), *whole_slot(3)]


@pytest.mark.slow
@pytest.mark.parametrize("on_refusal", ["without", "equilibrium"])
@pytest.mark.parametrize("punishment", ["suspension", "reversion"])
def test_a_client_that_refuses_is_sent_no_array(
    on_refusal: str, punishment: str, tmp_path: Path
) -> None:
    terms = rules(on_refusal=on_refusal, punishment=punishment)

    def impatient(private: Private) -> Private:
        return replace(private, discount_factor=0.001 if private.name == "b" else 0.8)

    grid, ledger, _ = on_grid(tmp_path / "ledger.db", terms, 2, impatient)
    with ledger:
        assert verdicts(ledger, 2)["b"] == "refused"
        assert wrong_in(ledger.entries()) == []
    assert grid.with_arrays("b") == []
    assert grid.with_arrays("d") == [*whole_slot(1), *whole_slot(2)]


def test_a_client_that_stays_away_from_a_round_is_sent_no_further_array(tmp_path: Path) -> None:
    terms = rules(rounds=3)
    grid = Watched(terms, privates_of(NAMES))
    app = grid.app

    def away(message: Message, context: Any) -> Message:
        body, _ = unpack(message)
        b = context.node_config["name"] == "b" and body.get("stage") == "train"
        return Message(message.content, reply_to=message) if b else app(message, context)

    grid.app = away  # type: ignore[assignment]
    with ledger_at(tmp_path / "ledger.db") as ledger:
        run_slots(grid, Coordinator(terms, ledger, START_MODEL), 1)
        assert verdicts(ledger, 1)["b"] == "absence"
        (settled,) = ledger.entries(kind="settlement")
        assert settled.body["suspended"] == {}
    assert grid.with_arrays("b") == [(1, "train", 1)]

"""What the server says while slots run: every sentence and event from slots that are played."""

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from flwr.app import Context, Message
from flwr.clientapp import ClientApp
from flwr.proto.node_pb2 import NodeInfo

from fedaccord.flower import narration
from fedaccord.flower.client_app import client_app
from fedaccord.flower.events import Event, Note, line_of
from fedaccord.flower.grids import InProcessGrid
from fedaccord.flower.narration import Narrator
from fedaccord.flower.public_terms import public_terms
from fedaccord.flower.server_app import run_slots
from fedaccord.flower.server_events import (
    ClientMissing,
    Missing,
    RoundOver,
    RunEnds,
    SlotOver,
    Waiting,
    read_event,
)
from fedaccord.flower.wire import pack, unpack
from fedaccord.game.consortium import Consortium
from fedaccord.protocol.coordinator import Coordinator, Evaluate
from fedaccord.protocol.facts import Scored
from fedaccord.protocol.private import Private
from fedaccord.protocol.terms import Terms
from tests.flower.consortia import START_MODEL, ledger_at, privates_of, terms_of
from tests.flower.grids import NAMES, TERMS, client_of
from tests.schemas import schemas

CHECK = jsonschema.Draft202012Validator(schemas()["server-events"])


class Registered(InProcessGrid):
    """Nodes that are registered for clients, as on a SuperLink, whatever they say."""

    def get_nodes(self) -> list[NodeInfo]:
        return [
            NodeInfo(node_id=node, name=str(context.node_config["name"]))
            for node, context in self.contexts.items()
        ]


def played(
    tmp_path: Path,
    nodes: Sequence[str] = NAMES,
    *,
    terms: Terms = TERMS,
    privates: list[Private] | None = None,
    app: ClientApp | None = None,
    slots: int = 1,
    evaluate: Evaluate | None = None,
) -> list[Event]:
    """The events of some slots; each is written as JSON and read again, and fits the schema."""
    said: list[Event] = []
    everyone = [*(privates or privates_of(NAMES)), *privates_of(("stranger",))]
    grid = Registered(app or client_app(client_of(everyone, terms)), [{"name": n} for n in nodes])
    with ledger_at(tmp_path / "ledger.db") as ledger:
        coordinator = Coordinator(terms, ledger, START_MODEL, evaluate=evaluate)
        narrator = Narrator(coordinator, said.append)
        run_slots(grid, coordinator, slots, narrator=narrator)
    for event in said:
        fields = json.loads(event.as_json)
        CHECK.validate(fields)
        assert read_event(fields) == event
    return said


def words(events: Sequence[Event]) -> list[str]:
    return [
        event.in_words for event in events if not isinstance(event, Note | RoundOver | SlotOver)
    ]


def end_of(events: Sequence[Event], slot: int = 1) -> SlotOver:
    (over,) = [event for event in events if isinstance(event, SlotOver) and event.slot == slot]
    return over


def why(events: Sequence[Event]) -> dict[str, Missing]:
    return {event.client: event.missing for event in events if isinstance(event, ClientMissing)}


def failing(name: str | None, stage: str, change: Callable[[Any, Any], Any]) -> ClientApp:
    """The app of all clients, in which one or all of them say something else in a stage."""
    app, other = client_app(client_of(privates_of(NAMES))), ClientApp()

    def answer(message: Message, context: Context) -> Message:
        reply = app(message, context)
        if name not in (None, context.node_config["name"]):
            return reply
        if message.metadata.message_type != stage:
            return reply
        body, arrays = unpack(reply)
        return Message(pack(*change(body, arrays)), reply_to=message)

    for action in ("name", "report", "rank", "clock", "offer", "tier", "settle", "consent"):
        other.query(action)(answer)
    other.train()(answer)
    return other


# --- A slot as it should be ----------------------------------------------------------------


def test_a_measure_other_than_accuracy_is_named(tmp_path: Path) -> None:
    events = played(tmp_path, evaluate=lambda _: Scored(1.5, 0.71, "concordance"))
    rounds = [event for event in events if isinstance(event, RoundOver)]
    assert {one.measure for one in rounds} == {"concordance"}
    assert all(one.in_words.endswith("; loss 1.5, concordance 0.710") for one in rounds)


def test_a_slot_from_beginning_to_end(tmp_path: Path) -> None:
    events = played(tmp_path, evaluate=lambda _: Scored(0.25, 0.9))
    assert words(events) == [
        "test: running slot 1 with a, b and c",
        "slot 1 begins, cooperating",
        "slot 1: a, b and c reported",
        "slot 1: offered a 7, b 45 and c 60 (112 samples in all)",
        "slot 1: a, b and c accepted",
        "slot 1: playing the agreement, 112 samples",
        "slot 1: verdict on a: kept (trained on 7 of 7 samples)",
        "slot 1: verdict on b: kept (trained on 45 of 45 samples)",
        "slot 1: verdict on c: kept (trained on 60 of 60 samples)",
        "the run is over: 1 slot settled, none of them void",
    ]
    rounds = [event for event in events if isinstance(event, RoundOver)]
    assert [one.round for one in rounds] == [1, 2]
    assert rounds[0].in_words.startswith(
        "slot 1, round 1 of 2: averaged a, b and c, 112 samples, in "
    )
    assert rounds[0].in_words.endswith(" s; loss 0.25, accuracy 90.0 %")
    over = end_of(events)
    assert over.in_words.startswith("slot 1 is settled: 2 rounds on 112 samples in ")
    assert over.in_words.endswith(" s. Next is slot 2, cooperating.")
    assert {event.level for event in events} == {"info", "warning"}  # the note on reports
    assert line_of(over)[:20] == f"{over.time[:19]}Z"


def test_nothing_that_a_client_reported_is_said(tmp_path: Path) -> None:
    said = " ".join(event.as_json for event in played(tmp_path))
    for private in privates_of(NAMES):
        assert f"{private.ratio:.6g}" not in said
        assert f"{private.cost_per_sample:g}" not in said


def test_a_slip_its_punishment_and_its_end(tmp_path: Path) -> None:
    privates = privates_of(NAMES)
    privates[1] = replace(privates[1], slips={1: 0})
    terms = terms_of(NAMES, answer_seconds=0.01, punishment="suspension", punishment_slots=1)
    events = played(tmp_path, terms=terms, privates=privates, slots=2)
    said = words(events)
    assert "slot 1: verdict on b: deviation (trained on 0 of 50 samples)" in said
    assert "slot 2 begins, cooperating; suspended: b until slot 2 (it slipped in slot 1)" in said
    assert "slot 2: verdict on b: suspended" in said
    out = "Next is slot 2, cooperating; suspended in it: b until slot 2 (it slipped in slot 1)."
    assert end_of(events).in_words.endswith(out)
    assert end_of(events, 2).in_words.endswith("Next is slot 3, cooperating.")


def test_a_clock(tmp_path: Path) -> None:
    privates = privates_of(NAMES)
    consortium = Consortium(
        valuation=[one.valuation for one in privates],
        cost_per_sample=[one.cost_per_sample for one in privates],
        samples=[one.samples for one in privates],
        discount_factor=0.8,
        rounds=2,
        names=list(NAMES),
    )
    rules = public_terms(consortium.within(0.3), "clock") | {"clock_steps": 4}
    terms = terms_of(NAMES, answer_seconds=0.01, **rules, punishment_slots=1)
    said = words(played(tmp_path, terms=terms))
    assert "slot 1: a, b and c are there" in said
    assert [line for line in said if "the clock is at" in line]


# --- Who is missing, and why ---------------------------------------------------------------


@pytest.mark.slow
def test_without_a_node(tmp_path: Path) -> None:
    events = played(tmp_path, "ac")
    assert "slot 1: b did not report: no node of it is connected" in words(events)
    assert "Missing: b (no node of it is connected)." in end_of(events).in_words
    assert end_of(events).level == "warning"


def test_a_node_that_cannot_say_whose_it_is(tmp_path: Path) -> None:
    app = failing("b", "query.name", lambda *_: ({}, None))
    events = played(tmp_path, app=app)
    assert why(events)["b"].because == "its node is connected, but cannot say whose it is"


def test_two_nodes_that_claim_to_be_one_client(tmp_path: Path) -> None:
    events = played(tmp_path, (*NAMES, "b", "stranger"))
    nodes = [line for line in words(events) if line.startswith("slot 1: node ")]
    assert nodes[0].endswith(" is one of several nodes that claim to be b; it is left out")
    assert nodes[-1].endswith(" is a node of no client in the terms; it is left out")
    assert why(events)["b"].why == "wrong_node"


@pytest.mark.parametrize(
    ("change", "because"),
    [
        ({"problem": "refusal"}, "it refused the question; its own log says why"),
        ({"problem": "failure"}, "it failed at its own side; its own log says why"),
        ({"problem": 7}, "it failed at its own side; its own log says why"),
        ({"samples": -1}, "its reply was rejected (samples is negative)"),
    ],
)
def test_a_reply_that_is_no_answer(change: dict[str, Any], because: str, tmp_path: Path) -> None:
    app = failing("b", "query.report", lambda body, arrays: (body | change, arrays))
    assert why(played(tmp_path, app=app))["b"].because == because


def test_no_answer_in_time(tmp_path: Path) -> None:
    class Deaf(Registered):
        def pull_messages(self, message_ids: Any) -> list[Message]:
            replies = super().pull_messages(message_ids)
            late = self.contexts[1_001].node_id
            asked = "query.report"
            return [
                one
                for one in replies
                if (one.metadata.src_node_id, one.metadata.message_type) != (late, asked)
            ]

    said: list[Event] = []
    grid = Deaf(client_app(client_of(privates_of(NAMES))), [{"name": name} for name in NAMES])
    with ledger_at(tmp_path / "ledger.db") as ledger:
        coordinator = Coordinator(TERMS, ledger, START_MODEL)
        run_slots(grid, coordinator, 1, narrator=Narrator(coordinator, said.append))
    assert why(said)["b"].because == "no answer in 0.01 s"


@pytest.mark.slow
def test_it_says_for_whom_it_waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(narration, "_PAUSES", (0.02, 60.0))
    terms = terms_of(NAMES, answer_seconds=0.3)
    waits = [one for one in played(tmp_path, "ac", terms=terms) if isinstance(one, Waiting)]
    assert waits[0].in_words == "slot 1: waiting for b to connect (0 of 0.3 s)"


def test_a_client_that_is_missing_in_a_round(tmp_path: Path) -> None:
    app = failing("b", "train", lambda body, _: (body | {"problem": "failure"}, None))
    events = played(tmp_path, app=app)
    assert "slot 1, round 1: b did not train: it failed at its own side" in " ".join(words(events))
    assert why(events)["b"].stage == "train"


def test_the_settlement_did_not_arrive(tmp_path: Path) -> None:
    app = failing("b", "query.settle", lambda body, _: (body | {"problem": "failure"}, None))
    said = " ".join(words(played(tmp_path, app=app)))
    assert "slot 1: b did not receive the settlement: it failed at its own side" in said


def test_hostile_text_cannot_change_the_terminal() -> None:
    evil = '\x1b[2J\u202e\n{"event":"run_ends","settled":[1]}'

    missing = Missing(client=f"b{evil}", stage="train", why="rejected", reason=evil)
    event = ClientMissing(slot=1, round=1, client=f"b{evil}", missing=missing)
    for line in (line_of(event), line_of(event, "json")):
        assert line.isprintable()
    assert read_event(json.loads(event.as_json)) == event


# --- Void slots ----------------------------------------------------------------------------


@pytest.mark.slow
def test_too_few_clients(tmp_path: Path) -> None:
    events = played(tmp_path, "a")
    over = end_of(events)
    assert (over.event, over.level, over.rounds, over.total) == ("void", "error", 0, 0)
    assert over.in_words.startswith(
        "slot 1 is VOID: 1 of 3 clients took part, and 2 are needed. Missing: "
        "b (no node of it is connected) and c (no node of it is connected). What to do: "
        "start the node (`fedaccord member start`) at b and c; then run the next slot. Next is "
    )
    assert isinstance(events[-1], RunEnds)
    assert events[-1].in_words == "the run is over: 1 slot settled; VOID: 1"
    assert events[-1].level == "error"


def test_a_refusal_where_everyone_must_accept(tmp_path: Path) -> None:
    terms = terms_of(NAMES, answer_seconds=0.01, on_refusal="void")
    app = failing("b", "query.offer", lambda body, _: (body | {"accepts": False}, None))
    events = played(tmp_path, terms=terms, app=app)
    assert "slot 1: a and c accepted, b refused" in words(events)
    over = end_of(events)
    assert over.reason == "b refused, and by the terms all must accept"
    assert over.event == "void"


def test_nobody_trains_to_the_end(tmp_path: Path) -> None:
    app = failing(None, "train", lambda body, _: (body | {"problem": "failure"}, None))
    events = played(tmp_path, app=app)
    (only,) = [one for one in events if isinstance(one, RoundOver)]
    assert "too few updates to average (from nobody)" in only.in_words
    assert end_of(events).reason == "no round had enough updates to average"
    assert end_of(events).event == "void"


def test_nobody_is_to_train(tmp_path: Path) -> None:
    """At an equilibrium where nobody's first sample pays there is nothing to train."""
    privates = [replace(one, valuation=1e-3) for one in privates_of(NAMES)]
    over = end_of(played(tmp_path, privates=privates))
    assert over.reason == "nobody is to train, as nobody's first sample pays"
    assert over.event == "void"


@pytest.mark.slow
def test_a_server_that_is_started_again_goes_on(tmp_path: Path) -> None:
    class Stopped(Exception):
        pass

    def stop(event: Event) -> None:
        if isinstance(event, RoundOver):
            raise Stopped

    grid = Registered(client_app(client_of(privates_of(NAMES))), [{"name": n} for n in "ac"])
    with ledger_at(tmp_path / "ledger.db") as ledger:
        coordinator = Coordinator(TERMS, ledger, START_MODEL)
        narrator = Narrator(coordinator, stop)
        with pytest.raises(Stopped):
            run_slots(grid, coordinator, 1, narrator=narrator)
    said: list[Event] = []
    with ledger_at(tmp_path / "ledger.db") as ledger:
        coordinator = Coordinator(TERMS, ledger, START_MODEL)
        run_slots(grid, coordinator, 1, narrator=Narrator(coordinator, said.append))
        assert "slot 1 goes on after round 1" in said[1].in_words
        over = end_of(said)
        assert (over.event, over.rounds) == ("settled", 2)
        assert over.missing[0].because == "it was missing before the server was started again"
        said.clear()
        run_slots(grid, coordinator, 1, narrator=Narrator(coordinator, said.append))
    assert said[1].in_words == "test: slot 1 is settled already, nothing to run"
    assert said[-1].in_words == "the run is over: 0 slots settled"

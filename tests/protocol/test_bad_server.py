"""What a bad server can do to a client: be refused, or be found out by the client's copy."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedaccord.ledger.chain import GENESIS, Entry
from fedaccord.protocol.coordinator import Coordinator
from fedaccord.protocol.copies import contradictions
from fedaccord.protocol.envelopes import Ask, Reply
from fedaccord.protocol.messages import Refusal
from fedaccord.protocol.parameters import Arrays, digest
from fedaccord.protocol.participant import Participant
from fedaccord.protocol.verification import wrong_in
from tests.flower.consortia import START_MODEL, Clients, Notebook, ledger_at, nudge, privates_of
from tests.flower.stories import NAMES, TERMS, instead, rewritten, telling, told
from tests.lies import lie
from tests.protocol.test_participant import ASKED, ENVELOPE, OFFER, TRAIN

OTHER_MODEL: Arrays = {name: array + 1 for name, array in START_MODEL.items()}


def client() -> Participant:
    return Participant(privates_of(NAMES)[2], TERMS, Notebook(), nudge)


def put(
    participant: Participant,
    stage: str,
    content: dict[str, Any],
    *,
    slot: int = 1,
    turn: int = 1,
    model: Arrays | None = None,
) -> dict[str, Any]:
    place = ENVELOPE | {"stage": stage, "slot": slot, "turn": turn}
    return participant.answer(place | content, model)[0]


def written(participant: Participant) -> list[Entry]:
    assert isinstance(participant.copy, Notebook)
    return list(participant.copy.written)


# --- One model a round ---------------------------------------------------------------------


def asked_for(participant: Participant, model: Arrays, *, turn: int = 1, slot: int = 1) -> Any:
    content = TRAIN | {"model": digest(model)}
    return put(participant, "train", content, slot=slot, turn=turn, model=model)


@lie(
    "the server",
    "ask the same round with many models, to learn about a client's data",
    "the client trains one model in each round, and refuses every other",
)
def test_a_second_model_in_one_round_is_refused() -> None:
    participant = client()
    put(participant, "offer", OFFER)
    first = asked_for(participant, START_MODEL)
    before = written(participant)
    assert asked_for(participant, START_MODEL) == first  # asked again, it answers the same
    for n in range(50):
        with pytest.raises(Refusal, match="told something else before"):
            asked_for(participant, {k: v + n + 1 for k, v in START_MODEL.items()})
    assert written(participant) == before


def test_a_round_that_is_over_is_not_trained_again() -> None:
    participant = client()
    put(participant, "offer", OFFER)
    asked_for(participant, START_MODEL)
    asked_for(participant, OTHER_MODEL, turn=2)
    with pytest.raises(Refusal, match="round 1 is over: round 2 was trained"):
        asked_for(participant, START_MODEL)


@lie(
    "the server",
    "go back to an older slot, and ask about it again",
    "the client answers no question about a slot older than its newest",
)
@pytest.mark.parametrize("stage", ["report", "rank", "offer", "train", "settle"])
def test_nothing_of_an_older_slot_is_answered(stage: str) -> None:
    participant = client()
    put(participant, "offer", OFFER, slot=3)
    turn = int(stage in ("offer", "train"))
    with pytest.raises(Refusal, match="slot 2 is older than slot 3"):
        put(participant, stage, ASKED[stage], slot=2, turn=turn, model=START_MODEL)


def test_training_that_does_not_repeat_is_not_sent_twice() -> None:
    participant = client()
    put(participant, "offer", OFFER)
    asked_for(participant, START_MODEL)
    participant._train = lambda *_, **__: OTHER_MODEL
    with pytest.raises(Refusal, match="does not come out as it did"):
        asked_for(participant, START_MODEL)


# --- Other models --------------------------------------------------------------------------


def to_a(stage: str, model: Arrays, *, honest_digest: bool) -> Callable[[Ask, str], Ask]:
    """A server that sends a another model than the others, with its digest or the right one."""

    def lie(ask: Ask, name: str) -> Ask:
        if (ask.stage, name) != (stage, "a"):
            return ask
        ask = replace(ask, parameters=model)
        return ask if honest_digest else telling(ask, "a", model=digest(model))

    return lie


def slot_of(path: Path, lie: Callable[[Ask, str], Ask]) -> tuple[list[Entry], Clients]:
    clients = Clients(TERMS, privates_of(NAMES))

    def replies(ask: Ask) -> list[Reply]:
        given = []
        for name in ask.contents:
            with suppress(Refusal):
                given.append(clients.reply(name, lie(ask, name)))
        return given

    with ledger_at(path) as ledger:
        coordinator = Coordinator(TERMS, ledger, START_MODEL)
        while (ask := coordinator.next_ask(1)) is not None:
            coordinator.take(ask, replies(ask))
        return list(ledger.entries()), clients


@lie(
    "the server",
    "give one client another model to train than the others, or garbage at the settlement",
    "the client's copy has the digest of every model it was given: verify --against reveals it",
)
@pytest.mark.parametrize("stage", ["train", "settle"])
def test_another_model_for_one_client_shows_in_its_copy(stage: str, tmp_path: Path) -> None:
    entries, clients = slot_of(tmp_path / "l.db", to_a(stage, OTHER_MODEL, honest_digest=False))
    assert wrong_in(entries) == []
    found = contradictions(entries, clients.copies["a"].written)
    assert found
    assert all("the server told something else than its ledger says" in one for one in found)
    assert contradictions(entries, clients.copies["c"].written) == []


@lie(
    "the server",
    "send garbage with the digest of the right model",
    "the client refuses it, and does not confirm the settlement",
)
@pytest.mark.parametrize("stage", ["train", "settle"])
def test_a_model_that_is_not_the_one_that_was_told_is_refused(stage: str, tmp_path: Path) -> None:
    entries, clients = slot_of(tmp_path / "l.db", to_a(stage, OTHER_MODEL, honest_digest=True))
    kind = {"train": "contribution", "settle": "settlement"}[stage]
    assert kind not in {entry.kind for entry in clients.copies["a"].written}
    (heard,) = (e.body["clients"] for e in entries if e.kind == "told")
    assert ("a" in heard) == (stage == "train")


@lie(
    "the server",
    "record another update than a client sent, or a made-up digest",
    "the client's copy has the digest of every update that it sent: verify --against reveals it",
)
def test_a_made_up_update_shows_in_the_copy(tmp_path: Path) -> None:
    entries, clients = told(tmp_path / "ledger.db")
    forged = rewritten(entries, instead("contribution", 1, "a", update="f" * 64))
    assert wrong_in(forged) == []
    found = contradictions(forged, clients.copies["a"].written)
    assert any("the server wrote down something else" in problem for problem in found)


@lie(
    "the server",
    "reject a client's update as too large, though it is not",
    "verify recomputes the bound from the norms in the ledger",
)
def test_a_false_bound_does_not_verify(tmp_path: Path) -> None:
    entries, _ = slot_of(tmp_path / "ledger.db", lambda ask, _: ask)
    forged = rewritten(entries, instead("contribution", 1, "a", norm=1e9))
    (problem,) = wrong_in(forged)
    assert "was judged by another bound than the terms'" in problem


# --- Anything at all -----------------------------------------------------------------------


@lie(
    "the server",
    "fill a client's copy with huge texts, made-up heads or future slots",
    "the client refuses anything that does not have the form of a question, and stores none of it",
)
@pytest.mark.parametrize(
    ("stage", "content"),
    [
        ("rank", {"rank": "x" * 20_000_000}),
        ("rank", {"rank": 10**30}),
        ("rank", {"ledger": "garbage"}),
        ("rank", {"ledger": [9, "garbage"]}),
        ("rank", {"ledger": [-1, GENESIS]}),
        ("rank", {"ledger": [9, GENESIS, 1]}),
        ("rank", {"slot": 10**9}),
        ("rank", {"slot": 10}),  # of a ledger with 9 entries
        ("rank", {"token": "y" * 20_000_000}),
        ("rank", {"note": "more"}),
        ("rank", {"above": -1}),
        ("rank", {"above": 1.5}),
        ("offer", {"agreement": "z" * 1_000}),
        ("offer", {"equilibrium_total": float("inf")}),
        ("offer", {"equilibrium_total": float("nan")}),
        ("settle", {"deviated": ["nobody known"]}),
        ("settle", {"absent": ["a"] * 1_000}),
        ("settle", {"phase": "war"}),
        ("settle", {"verdict": "guilty"}),
        ("settle", {"model": "0" * 63}),
        ("consent", {"reason": "\x1b[2J"}),
        ("consent", {"reason": "r" * 501}),
    ],
)
def test_what_has_another_form_is_refused_and_not_stored(
    stage: str, content: dict[str, Any]
) -> None:
    participant = client()
    turn = int(stage in ("offer", "train", "consent"))
    with pytest.raises(Refusal) as refused:
        put(participant, stage, ASKED[stage] | content, turn=turn, model=START_MODEL)
    assert len(str(refused.value)) < 200
    assert written(participant) == []


@lie(
    "the server",
    "show a client a shorter ledger than before, or one with another end",
    "the client refuses to continue",
)
@pytest.mark.parametrize("head", [[8, GENESIS], [9, "f" * 64]])
def test_a_ledger_that_goes_back_is_refused(head: list[Any]) -> None:
    participant = client()
    put(participant, "rank", ASKED["rank"], turn=0)
    with pytest.raises(Refusal, match="the server's ledger"):
        put(participant, "offer", OFFER | {"ledger": head})
    assert len(written(participant)) == 1


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner),
    max_leaves=6,
)


@pytest.mark.slow
@settings(max_examples=80, deadline=None)
@given(stage=st.sampled_from(sorted(ASKED)), data=st.data())
def test_any_question_is_answered_or_refused(stage: str, data: st.DataObject) -> None:
    """Good questions with some fields replaced by anything: an answer, or a refusal."""
    place = ENVELOPE | {"stage": stage, "slot": 1, "turn": 1}
    asked = place | ASKED[stage]
    keys = data.draw(st.sets(st.sampled_from(sorted(asked)), max_size=3))
    asked |= {key: data.draw(JSON) for key in keys}
    asked |= data.draw(st.dictionaries(st.text(max_size=5), JSON, max_size=1))
    participant = client()
    model = data.draw(st.sampled_from([None, START_MODEL, {"w": np.zeros(2)}]))
    with suppress(Refusal):
        participant.answer(asked, model)

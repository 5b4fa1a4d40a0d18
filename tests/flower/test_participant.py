"""What a client does not go along with, whatever the server asks."""

from typing import Any

import pytest

from fedaccord.flower.ledger.chain import START
from fedaccord.flower.protocol.client import Participant, Refusal
from tests.flower.consortia import START_MODEL, Notebook, nudge, privates_of, terms_of

NAMES = ("a", "b", "c")
TERMS = terms_of(NAMES)
OFFER = {  # 20 more samples of its own, 40 more of the others
    "contribution": 20,
    "kind": "individual",
    "total": 180,
    "equilibrium_total": 120.0,
    "punishment_slots": TERMS.punishment_slots,
    "tolerance": TERMS.tolerance,
    "rounds": TERMS.rounds,
    "rank": 1,
    "clients": 3,
    "above": None,
    "tied": None,
}
TRAIN = {"basis": "agreement", "contribution": 20}
SETTLED = {
    "verdict": "kept",
    "agreed": 20,
    "contributed": 20,
    "rounds_absent": 0,
    "deviated": [],
    "absent": [],
    "phase": "cooperating",
    "slots_left": 0,
}


def client(look: Any = None) -> Participant:
    return Participant(privates_of(NAMES)[2], TERMS, Notebook(), nudge, look)


def ask(
    participant: Participant, stage: str, turn: int, content: dict[str, Any], slot: int = 1
) -> dict[str, Any]:
    place = {"stage": stage, "slot": slot, "turn": turn, "token": "t", "ledger": list(START)}
    body, _ = participant.answer(place | content, START_MODEL if stage == "train" else None)
    return body


def written(participant: Participant) -> int:
    copy = participant.copy
    assert isinstance(copy, Notebook)
    return len(copy.written)


def in_training() -> Participant:
    """A client that accepted an offer of 20 samples in slot 1."""
    participant = client()
    assert ask(participant, "offer", 1, OFFER)["accepts"]
    return participant


def test_it_trains_the_rounds_that_were_signed() -> None:
    participant = in_training()
    for turn in range(1, TERMS.rounds + 1):
        assert ask(participant, "train", turn, TRAIN)["samples"] == 20


@pytest.mark.parametrize("turn", [-1, 0, TERMS.rounds + 1, 99])
def test_it_trains_no_other_round(turn: int) -> None:
    participant = in_training()
    before = written(participant)
    with pytest.raises(Refusal, match=f"there is no turn {turn} of train in slot 1"):
        ask(participant, "train", turn, TRAIN)
    assert written(participant) == before


@pytest.mark.parametrize(
    ("stage", "turn", "slot"),
    [("report", 1, 1), ("report", 0, 0), ("rank", 2, 1), ("offer", 0, 1), ("offer", 4, 1)],
)
def test_what_is_no_question_of_a_slot(stage: str, turn: int, slot: int) -> None:
    participant = client()
    with pytest.raises(Refusal, match="there is no turn"):
        ask(participant, stage, turn, OFFER, slot)
    assert written(participant) == 0


@pytest.mark.parametrize("stage", ["report", "rank", "offer", "train"])
def test_what_is_settled_is_over(stage: str) -> None:
    participant = in_training()
    assert ask(participant, "settle", 0, SETTLED)["stage"] == "settle"
    assert ask(participant, "settle", 0, SETTLED)["stage"] == "settle"  # told twice is no matter
    before = written(participant)
    with pytest.raises(Refusal, match="slot 1 is settled"):
        ask(participant, stage, int(stage in ("offer", "train")), OFFER | TRAIN)
    assert written(participant) == before
    assert ask(participant, "offer", 1, OFFER, slot=2)["accepts"]


@pytest.mark.parametrize("amount", [20.0, 19.5, True, "20", None, -1, 61])
def test_it_accepts_whole_amounts_only(amount: Any) -> None:
    """It has 60 samples."""
    assert not ask(client(), "offer", 1, OFFER | {"contribution": amount})["accepts"]


@pytest.mark.parametrize(
    "change", [{"rounds": 1}, {"tolerance": 0.9}, {"punishment_slots": None}, {"total": 19}]
)
def test_it_accepts_nothing_but_the_terms(change: dict[str, Any]) -> None:
    assert not ask(client(), "offer", 1, OFFER | change)["accepts"]


def test_who_is_asked_again_answers_the_same_and_says_no_more() -> None:
    participant = client()
    first = ask(participant, "report", 0, {})
    assert ask(participant, "report", 0, {}) == first
    assert set(first) == {"stage", "slot", "turn", "token", "ratio", "samples"}
    assert written(participant) == 1


def test_it_looks_at_its_data_before_it_reports() -> None:
    def look() -> None:
        raise Refusal("there is no data")

    participant = client(look)
    with pytest.raises(Refusal, match="there is no data"):
        ask(participant, "report", 0, {})
    assert written(participant) == 0

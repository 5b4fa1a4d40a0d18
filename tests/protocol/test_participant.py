"""What a client does not go along with, whatever the server asks."""

from dataclasses import replace
from typing import Any

import pytest

from fedaccord.ledger.chain import GENESIS
from fedaccord.protocol.messages import FORMAT, Refusal
from fedaccord.protocol.parameters import Arrays, digest
from fedaccord.protocol.participant import Participant
from tests.flower.consortia import START_MODEL, Notebook, nudge, privates_of, terms_of

NAMES = ("a", "b", "c")
TERMS = terms_of(NAMES)
OFFER = {  # 20 more samples of its own, 40 more of the others
    "contribution": 20,
    "agreement": "individual",
    "total": 180,
    "equilibrium_total": 120.0,
    "punishment": "reversion",
    "punishment_slots": TERMS.punishment_slots,
    "tolerance": TERMS.tolerance,
    "rounds": TERMS.rounds,
    "rank": 1,
    "clients": 3,
    "above": None,
    "tied": None,
}
MODEL = digest(START_MODEL)
TRAIN = {"basis": "agreement", "contribution": 20, "model": MODEL}
HEAD = [9, GENESIS]
ENVELOPE = {"format": FORMAT, "token": "0" * 32, "ledger": HEAD}
PLACE = {"rank": 1, "clients": 3, "above": None, "tied": None}
SETTLED = {
    "verdict": "kept",
    "agreed": 20,
    "contributed": 20,
    "rounds_absent": 0,
    "deviated": [],
    "absent": [],
    "phase": "cooperating",
    "slots_left": 0,
    "suspended": {},
    "model": MODEL,
}
REPORT: dict[str, Any] = {"phase": "cooperating", "suspended": {}, "returned": []}


def client(look: Any = None) -> Participant:
    return Participant(privates_of(NAMES)[2], TERMS, Notebook(), nudge, look=look)


def ask(
    participant: Participant,
    stage: str,
    turn: int,
    content: dict[str, Any],
    slot: int = 1,
    *,
    model: Arrays | None = START_MODEL,
) -> dict[str, Any]:
    place = ENVELOPE | {"stage": stage, "slot": slot, "turn": turn}
    given = model if stage in ("train", "settle") else None
    body, _ = participant.answer(place | content, given)
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


def test_it_does_not_train_on_what_it_refused() -> None:
    participant = client()
    assert not ask(participant, "offer", 1, OFFER | {"total": 121})["accepts"]
    before = written(participant)
    with pytest.raises(Refusal, match="this is not what was agreed on"):
        ask(participant, "train", 1, TRAIN)
    assert written(participant) == before


@pytest.mark.parametrize("amount", [19, 21])
def test_it_trains_on_nothing_else_than_it_accepted(amount: int) -> None:
    for participant in (client(), in_training()):
        with pytest.raises(Refusal, match="this is not what was agreed on"):
            ask(participant, "train", 1, TRAIN | {"contribution": amount})


def test_with_less_data_than_it_agreed_to_it_is_absent() -> None:
    """Fewer samples than it accepted would be a deviation, which it did not mean."""
    participant = in_training()
    ask(participant, "train", 1, TRAIN)
    participant.private = replace(participant.private, samples=19)
    before = written(participant)
    for turn in (1, 2):  # the first one again, and one more
        with pytest.raises(Refusal, match="this takes 20 samples, and it has 19 now"):
            ask(participant, "train", turn, TRAIN)
    assert written(participant) == before


def test_a_slip_is_limited_by_the_samples() -> None:
    participant = in_training()
    participant.private = replace(participant.private, slips={1: 99})
    assert ask(participant, "train", 1, TRAIN)["samples"] == participant.private.samples


@pytest.mark.parametrize("basis", ["", "uniform", None, ["agreement"]])
def test_an_unknown_basis_is_refused(basis: Any) -> None:
    with pytest.raises(Refusal, match="only an agreement or the equilibrium can be played"):
        ask(in_training(), "train", 1, TRAIN | {"basis": basis})


def test_it_writes_down_what_it_was_told_to_train() -> None:
    participant = in_training()
    ask(participant, "train", 1, TRAIN)
    (entry,) = participant.copy.entries(slot=1, kind="contribution")
    trained = nudge(1, 1, 20, START_MODEL)
    said = {"samples": 20, "update": digest(trained), "norm": pytest.approx(2 * 20.11)}
    assert entry.body == TRAIN | said | {"turn": 1, "ledger": HEAD}


@pytest.mark.parametrize("turn", [1, 2])
@pytest.mark.parametrize(
    ("first", "then"),
    [(TRAIN, "equilibrium"), ("equilibrium", TRAIN), ("equilibrium", "other place")],
)
def test_all_rounds_of_a_slot_are_of_one_kind(first: Any, then: Any, turn: int) -> None:
    told = {
        "equilibrium": TRAIN | {"basis": "equilibrium"} | PLACE,
        "other place": TRAIN | {"basis": "equilibrium"} | PLACE | {"above": 100, "tied": 60},
    }
    first, then = (told.get(one, one) if isinstance(one, str) else one for one in (first, then))
    participant = in_training()
    ask(participant, "train", 1, first)
    before = written(participant)
    with pytest.raises(Refusal, match="told something else before"):
        ask(participant, "train", turn, then)
    assert written(participant) == before


@pytest.mark.parametrize(
    "change",
    [{"above": 0}, {"tied": 61}, {"rank": 1}, {"clients": 4}, {"rank": 3}, {"clients": 1}],
)
def test_a_place_that_the_rank_does_not_lead_to_is_refused(change: dict[str, Any]) -> None:
    """It was told that it is the second of three, with 70 samples above it."""
    participant = client()
    place = {"rank": 2, "clients": 3, "above": 70, "tied": 60}
    ask(participant, "rank", 0, place)
    told = TRAIN | {"basis": "equilibrium"} | place | change
    with pytest.raises(Refusal, match=r"does not fit the one that|no such place"):
        ask(participant, "train", 1, told)
    with pytest.raises(Refusal, match=r"does not fit the one that|no such place"):
        ask(participant, "offer", 1, OFFER | place | change)


@pytest.mark.parametrize(
    "change", [{}, {"clients": 2, "above": 0}, {"clients": 2, "rank": 1}, {"clients": 1, "rank": 1}]
)
def test_impossible_places_among_those_left_are_refused(change: dict[str, Any]) -> None:
    participant = client()
    place = {"rank": 2, "clients": 3, "above": 70, "tied": 60}
    ask(participant, "rank", 0, place)
    ask(participant, "train", 1, TRAIN | {"basis": "equilibrium"} | place | change)
    assert written(participant) == 2


@pytest.mark.parametrize("turn", [0, TERMS.rounds + 1, 99])
def test_it_trains_only_rounds_of_the_terms(turn: int) -> None:
    participant = in_training()
    before = written(participant)
    with pytest.raises(Refusal, match=f"there is no turn {turn} of train in slot 1"):
        ask(participant, "train", turn, TRAIN)
    assert written(participant) == before


ASKED: dict[str, dict[str, Any]] = {
    "report": REPORT,
    "rank": PLACE,
    "offer": OFFER,
    "train": TRAIN,
    "settle": SETTLED,
    "consent": {"to_slot": 1, "model": MODEL, "reason": "it was ruined", "terms": TERMS.digest},
}
"""A good question of each stage."""


@pytest.mark.parametrize(
    ("stage", "turn"), [("report", 1), ("rank", 2), ("offer", 0), ("offer", 4), ("consent", 0)]
)
def test_turns_that_a_slot_does_not_have_are_refused(stage: str, turn: int) -> None:
    participant = client()
    with pytest.raises(Refusal, match="there is no turn"):
        ask(participant, stage, turn, ASKED[stage])
    assert written(participant) == 0


@pytest.mark.parametrize("stage", ["report", "rank", "offer", "train"])
def test_a_settled_slot_is_over(stage: str) -> None:
    participant = in_training()
    assert ask(participant, "settle", 0, SETTLED)["stage"] == "settle"
    assert ask(participant, "settle", 0, SETTLED)["stage"] == "settle"  # told twice is no matter
    before = written(participant)
    with pytest.raises(Refusal, match="slot 1 is settled"):
        ask(participant, stage, int(stage in ("offer", "train")), ASKED[stage])
    assert written(participant) == before
    assert ask(participant, "offer", 1, OFFER, slot=2)["accepts"]


@pytest.mark.parametrize("amount", [19.5, True, "20", None, -1])
def test_only_whole_amounts_are_offers(amount: Any) -> None:
    with pytest.raises(Refusal, match="the question's 'contribution' is missing, or not"):
        ask(client(), "offer", 1, OFFER | {"contribution": amount})


def test_it_accepts_only_what_it_has() -> None:
    assert not ask(client(), "offer", 1, OFFER | {"contribution": 61})["accepts"]


@pytest.mark.parametrize(
    "change",
    [
        {"agreement": "uniform"},
        {"rounds": 1},
        {"tolerance": 0.9},
        {"punishment_slots": None},
        {"punishment": "suspension"},
        {"total": 19},
    ],
)
def test_it_accepts_nothing_but_the_terms(change: dict[str, Any]) -> None:
    assert not ask(client(), "offer", 1, OFFER | change)["accepts"]


def test_asked_again_it_gives_the_same_answer_and_no_more() -> None:
    participant = client()
    first = ask(participant, "report", 0, REPORT)
    assert ask(participant, "report", 0, REPORT) == first
    assert set(first) == {"stage", "slot", "turn", "token", "ratio", "samples"}
    assert written(participant) == 1


def test_it_looks_at_its_data_before_it_reports() -> None:
    def look() -> None:
        raise Refusal("there is no data")

    participant = client(look)
    with pytest.raises(Refusal, match="there is no data"):
        ask(participant, "report", 0, REPORT)
    assert written(participant) == 0


@pytest.mark.parametrize("other", [2, 4, None, "3", True])
def test_a_server_of_another_format_is_refused(other: Any) -> None:
    participant = client()
    with pytest.raises(Refusal, match="does not use format 3 of the protocol"):
        ask(participant, "report", 0, REPORT | {"format": other})
    assert written(participant) == 0

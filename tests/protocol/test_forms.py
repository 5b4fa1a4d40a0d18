"""Records and statements in the one form that is hashed: the quick way is the plain one."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from fedaccord.errors import InvalidInput
from fedaccord.protocol import messages
from fedaccord.signing.canonical import canonical
from fedaccord.signing.statement import PREFIX, Statement

TEXT = st.text(st.characters(exclude_categories=["Cs"]))
DIGESTS = st.text("0123456789abcdef", min_size=64, max_size=64)


@given(
    statement=st.builds(
        Statement,
        role=st.sampled_from(["server", "client"]),
        consortium=TEXT,
        terms=DIGESTS,
        slot=st.integers(0),
        stage=st.sampled_from(["report", "train"]),
        turn=st.integers(0),
        client=st.none() | TEXT,
        head=st.tuples(st.integers(0), DIGESTS),
        body=st.dictionaries(TEXT, TEXT | st.integers() | st.none()),
        previous=DIGESTS,
    )
)
def test_a_statement_is_canonical_json(statement: Statement) -> None:
    fields = statement._asdict() | {"head": list(statement.head)}
    assert statement.content.decode() == PREFIX + canonical(fields)


@given(contribution=st.integers(0, 10**12), above=st.none() | st.integers(0, 10**12))
def test_the_body_of_plain_records_is_their_json(contribution: int, above: int | None) -> None:
    training = messages.AskedTraining(basis="agreement", contribution=contribution, model="0" * 64)
    placed = messages.AskedRank(rank=1, clients=2, above=above, tied=None)
    for record in (training, placed):
        assert record.plain
        assert record.body == record.model_dump(mode="json", exclude_defaults=True)
    assert not messages.AskedReport.plain
    assert not messages.ReportAnswer.plain


# --- What each field of a message may be -----------------------------------------------------

HASH, MOST, SAMPLES, TOTAL = "a" * 64, 10**9, 10**12, 9_000 * 10**12
PLACED: dict[str, Any] = {"rank": 1, "clients": 1, "above": 0, "tied": None}
OFFERED: dict[str, Any] = {
    "contribution": 5,
    "agreement": "individual",
    "total": 9,
    "punishment": "reversion",
    "punishment_slots": None,
    "tolerance": 0.0,
    "rounds": 1,
}
SETTLED: dict[str, Any] = {
    "verdict": "kept",
    "agreed": None,
    "contributed": 5,
    "rounds_absent": 0,
    "deviated": [],
    "absent": [],
    "phase": "cooperating",
    "slots_left": None,
    "suspended": {},
    "model": None,
}
LATE: dict[str, Any] = {
    "terms": HASH,
    "slot": 0,
    "stage": "report",
    "turn": 0,
    "ledger": (0, HASH),
    "previous": HASH,
    "said": {},
}
CONSENT: dict[str, Any] = {"reason": "why", "terms": HASH, "returns": "a", "slipped_in": 1}
FIELDS: list[tuple[type[messages.Content], dict[str, Any], str, list[Any], list[Any]]] = [
    (messages.Suspended, {"slots_left": 1}, "slipped_in", [0, 10**6], [-1, 10**6 + 1, 1.0]),
    (messages.Suspended, {"slipped_in": 1}, "slots_left", [1, MOST, None], [0, MOST + 1, "1"]),
    (messages.AskedRank, PLACED, "rank", [1, MOST], [0, MOST + 1, 1.0]),
    (messages.AskedRank, PLACED, "above", [0, TOTAL, None], [-1, TOTAL + 1]),
    (messages.AskedClock, {"total": 0.0, "inside": 0}, "step", [1, MOST], [0, MOST + 1]),
    (
        messages.AskedClock,
        {"step": 1, "inside": 0},
        "total",
        [0.0, float(TOTAL)],
        [-1.0, 1.1 * TOTAL, np.nan, "0"],
    ),
    (messages.AskedPosted, OFFERED, "contribution", [0, SAMPLES], [-1, SAMPLES + 1, 1.0]),
    (messages.AskedPosted, OFFERED, "total", [0, TOTAL], [-1, TOTAL + 1]),
    (messages.AskedPosted, OFFERED, "tolerance", [0.0, 0.999], [-0.1, 1.0]),
    (messages.AskedSettlement, SETTLED, "rounds_absent", [0, MOST], [-1, MOST + 1]),
    (messages.AskedSettlement, SETTLED, "agreed", [0, SAMPLES, None], [-1, SAMPLES + 1]),
    (messages.AskedSettlement, SETTLED, "model", [HASH, None], [HASH[1:], HASH.encode()]),
    (messages.AskedConsent, CONSENT, "reason", ["a", "a" * 500], ["", "a" * 501, "a\nb"]),
    (messages.RankAnswer, {}, "contribution", [0, 0.0, 1e15], [-1e-9, np.inf, "0"]),
    (messages.TrainingAnswer, {}, "samples", [0, SAMPLES], [-1, SAMPLES + 1, True]),
    (messages.OfferAnswer, {}, "accepts", [True, False], [1, "yes"]),
    (
        messages.LateAnswer,
        LATE,
        "ledger",
        [(0, HASH), [2**53, HASH]],
        [(-1, HASH), (2**53 + 1, HASH), (0, "a")],
    ),
    (messages.LateAnswer, LATE, "turn", [0, MOST], [-1, MOST + 1]),
    (messages.LateAnswer, LATE, "slot", [0, 10**6], [-1, 10**6 + 1]),
]


@pytest.mark.parametrize(("form", "given", "field", "right", "wrong"), FIELDS)
def test_each_field_has_its_bounds_and_type(
    form: type[messages.Content],
    given: dict[str, Any],
    field: str,
    right: list[Any],
    wrong: list[Any],
) -> None:
    for value in right:
        form.model_validate(given | {field: value})
    for value in wrong:
        with pytest.raises(ValidationError, match=field):
            form.model_validate(given | {field: value})
    with pytest.raises(ValidationError, match="Extra inputs are not permitted"):
        form.model_validate(given | {field: right[0], "note": "hello"})


BACK: dict[str, Any] = {"to_slot": 0, "model": HASH}
EARLY: dict[str, Any] = {"returns": "a", "slipped_in": 3}


@pytest.mark.parametrize(
    "wrong",
    [{}, BACK | EARLY, *({k: v} for k, v in (BACK | EARLY).items()), BACK | {"returns": "a"}],
)
def test_a_proposal_proposes_one_thing(wrong: dict[str, Any]) -> None:
    assert messages.Motion(**BACK).in_words == "go back to the first model"
    assert messages.Motion(to_slot=2, model=HASH).in_words == "go back to the model of slot 2"
    assert messages.Motion(**EARLY).in_words == "let a return, which slipped in slot 3"
    with pytest.raises(ValidationError, match="proposes nothing, or several things"):
        messages.Motion(**wrong)


@pytest.mark.parametrize("reason", ["", "  ", "two\nlines", "a" * 501])
def test_a_proposal_has_a_reason_of_one_line(reason: str) -> None:
    assert messages.check_reason("a" * 500) == "a" * 500
    with pytest.raises(InvalidInput, match="one line of 1 to 500 characters"):
        messages.check_reason(reason)

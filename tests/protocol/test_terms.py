"""The rules about the punishment in the terms."""

from typing import Any

import pytest

import fedaccord as fa
from fedaccord.errors import InvalidInput
from fedaccord.protocol.terms import Terms, load_terms, read_terms, rules_of
from fedaccord.protocol.terms_text import terms_text
from tests.flower.consortia import TRAINING

GIVEN = {
    "name": "test",
    "clients": ["a", "b", "c", "d", "e"],
    "rounds": 2,
    "discount_factor": 0.8,
    "training": TRAINING,
}


def terms(**rules: Any) -> Terms:
    return read_terms(GIVEN | rules, "test")


@pytest.mark.parametrize(
    ("rules", "punishment", "objective"),
    [
        ({}, fa.Reversion(), "most data"),
        ({"punishment_slots": 4}, fa.Reversion(4), "most data"),
        ({"punishment": "suspension"}, fa.Suspension(1), "least total cost"),
        ({"punishment": "suspension", "punishment_slots": 3}, fa.Suspension(3), "least total cost"),
        (
            {"punishment": "suspension", "punishment_slots": "for ever", "objective": "fairest"},
            fa.Suspension(None),
            "fairest",
        ),
        (
            {"punishment": "suspension", "model_keeps": 0.25, "fees_saved": True},
            fa.Suspension(1, model_keeps=0.25, fees_saved=True),
            "least total cost",
        ),
    ],
)
def test_what_is_left_out_is_as_usual(
    rules: dict[str, Any], punishment: Any, objective: str, tmp_path: Any
) -> None:
    found = terms(**rules)
    assert (found.after_slip, found.objective) == (punishment, objective)
    assert terms(**(rules | rules_of(punishment))) == found
    file = tmp_path / "terms.toml"
    file.write_text(terms_text(found))  # which leaves nothing out
    assert load_terms(file) == found
    assert load_terms(file).digest == found.digest


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ({"punishment": "exile"}, "punishment: must be 'reversion' or 'suspension', got 'exile'"),
        ({"punishment_slots": "never"}, "punishment_slots: must be a whole number, got 'never'"),
        ({"punishment_slots": 0}, "punishment_slots: must be 1 or more, got 0"),
        ({"model_keeps": 0.5}, "model_keeps: is for suspension, but the punishment is reversion"),
        ({"fees_saved": True}, "fees_saved: is for suspension, but the punishment is reversion"),
        ({"nobody_worse": 1}, "nobody_worse: must be true or false, got 1"),
    ],
)
def test_what_does_not_go_together(rules: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        terms(**rules)


def test_the_harsher_of_two_punishments_is_no_rule() -> None:
    with pytest.raises(InvalidInput, match="or_reversion: cannot be a rule of the protocol"):
        rules_of(fa.Suspension(1, or_reversion=True))


@pytest.mark.parametrize(
    ("quorum", "clients", "needed"),
    [(0, 5, 3), (0, 4, 3), (0, 2, 2), (0, 1, 1), (0, 0, 1), (4, 5, 4), (4, 3, 3), (4, 0, 1)],
)
def test_a_quorum_is_of_those_who_are_not_suspended(quorum: int, clients: int, needed: int) -> None:
    assert terms(quorum=quorum).needed(clients) == needed


@pytest.mark.parametrize(
    ("longest", "slots", "left"),
    [(2, 1, 1), (2, 3, 2), (2, None, 2), ("for ever", 3, 3), ("for ever", None, None)],
)
def test_what_is_left_of_a_punishment_under_new_terms(
    longest: Any, slots: int | None, left: int | None
) -> None:
    suspending = terms(punishment="suspension", punishment_slots=longest)
    reverting = terms(punishment="reversion", punishment_slots=longest)
    assert suspending.still("suspension", slots) == reverting.still("reversion", slots) == left
    assert suspending.still("reversion", slots) == reverting.still("suspension", slots) == 0

"""The draw: a pure function of the head and the terms; what each field of an audit may be."""

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ValidationError
from scipy.stats import binom, chisquare

from fedaccord.audits.attestation import Attestation, SignedAttestation
from fedaccord.audits.commitment import Commitment, RoundInputs
from fedaccord.audits.draw import Trained, draw_audits
from fedaccord.audits.lots import Lots
from fedaccord.audits.settings import AuditTerms
from fedaccord.audits.software import Software
from fedaccord.audits.trace import TracedRound
from fedaccord.audits.verdict import SignedVerdict, Verdict
from tests.audits.cheats import AUDITORS, settlement_head

HEADS = [settlement_head(number) for number in range(4_000)]
IMPROBABLE = 1e-6
ROUNDS = [Trained(1, 7), Trained(2, 7), Trained(3, 7)]


def terms(**settings: object) -> AuditTerms:
    return AuditTerms.model_validate({"auditors": AUDITORS, **settings})


def test_each_client_is_drawn_with_its_own_probability() -> None:
    rules = terms(probabilities={"a": 0.05, "b": 0.5, "c": 1.0})
    trained = dict.fromkeys("abcd", ROUNDS)
    found = Counter(one.client for head in HEADS for one in draw_audits(head, 1, trained, rules))
    for client, probability in {"a": 0.05, "b": 0.5}.items():
        low, high = binom.interval(1 - IMPROBABLE, len(HEADS), probability)
        assert low <= found[client] <= high
    assert (found["c"], found["d"]) == (len(HEADS), 0)


def test_clients_are_drawn_independently() -> None:
    rules, trained = terms(probability=0.5), dict.fromkeys("ab", ROUNDS)
    both = sum(len(draw_audits(head, 1, trained, rules)) == 2 for head in HEADS)
    low, high = binom.interval(1 - IMPROBABLE, len(HEADS), 0.25)
    assert low <= both <= high


def test_so_many_a_slot_are_everyone_equally_often() -> None:
    rules, trained = terms(per_slot=2), dict.fromkeys("abcde", ROUNDS)
    drawn = [draw_audits(head, 1, trained, rules) for head in HEADS]
    assert {len(one) for one in drawn} == {2}
    found = Counter(one.client for each in drawn for one in each)
    assert chisquare(list(found.values())).pvalue > IMPROBABLE


def test_rounds_and_samples_are_equally_likely() -> None:
    rules = terms(probability=1.0, samples=2)
    drawn = [draw_audits(head, 1, {"a": ROUNDS}, rules)[0] for head in HEADS]
    assert chisquare(list(Counter(one.turn for one in drawn).values())).pvalue > IMPROBABLE
    samples = Counter(sample for one in drawn for sample in one.samples)
    assert set(samples) == set(range(7))
    assert chisquare(list(samples.values())).pvalue > IMPROBABLE


@given(st.integers(0, 50), st.integers(1, 50), st.integers())
def test_samples_are_distinct_and_inside(number: int, count: int, seed: int) -> None:
    found = Lots("test", [str(seed)]).distinct(number, count)
    assert len(set(found)) == len(found) == min(number, count)
    assert all(0 <= one < count for one in found)


def test_the_slot_the_head_and_the_client_all_matter() -> None:
    rules, trained = terms(probability=1.0, samples=3), {"a": [Trained(1, 1000)]}
    draws = {
        draw_audits(head, slot, {client: trained["a"]}, rules)[0].samples
        for head in HEADS[:2]
        for slot in (1, 2)
        for client in ("a", "b")
    }
    assert len(draws) == 8


def test_whoever_trained_on_nothing_is_not_drawn_and_later_tiers_begin_later() -> None:
    rules = terms(probability=1.0, samples=5)
    trained = {"a": [Trained(1, 0)], "b": [Trained(4, 5, first=100)]}
    (one,) = draw_audits(HEADS[0], 1, trained, rules)
    assert (one.client, one.turn, one.samples) == ("b", 4, (100, 101, 102, 103, 104))


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"probability": 0.1, "per_slot": 1},
        {"probability": 1.5},
        {"probability": 0.1, "level": 3},
        {"probability": 0.1, "auditors": {}},
        {"probability": 0.1, "auditors": {"A": AUDITORS["Notary"], "B": AUDITORS["Notary"]}},
        {"probability": 0.1, "auditors": {"A": "ed25519:" + "00" * 32}},
    ],
)
def test_unusable_settings_are_refused(settings: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        terms(**settings)


# --- What each field may be ------------------------------------------------------------------

DIGEST, SIGNED = "ab" * 32, "cd" * 64
ROUND: dict[str, Any] = {
    "client": "a",
    "position": 0,
    "slot": 1,
    "turn": 1,
    "head": DIGEST,
    "amount": 1,
}
FOUND: dict[str, Any] = {
    "terms": DIGEST,
    "draw": DIGEST,
    "client": "a",
    "slot": 1,
    "turn": 1,
    "level": 2,
    "outcome": "failed",
    "auditor": "Notary",
}
EVIDENCE: dict[str, Any] = {"kind": "notary", "about": DIGEST, "evidence": "", "digest": DIGEST}
PROGRAM: dict[str, Any] = {
    "task": "softmax",
    "source": DIGEST,
    "versions": {"torch": "2"},
    "machine": "one",
}
MODELS: dict[str, tuple[type[BaseModel], dict[str, Any]]] = {
    "terms": (AuditTerms, {"probability": 0.5, "auditors": AUDITORS}),
    "terms of so many": (AuditTerms, {"per_slot": 1, "auditors": AUDITORS}),
    "verdict": (Verdict, FOUND),
    "signed verdict": (SignedVerdict, {"verdict": Verdict(**FOUND), "signature": SIGNED}),
    "attestation": (Attestation, EVIDENCE),
    "signed attestation": (
        SignedAttestation,
        {"client": "a", "slot": 1, "attestation": Attestation(**EVIDENCE), "signature": SIGNED},
    ),
    "commitment": (Commitment, {"root": DIGEST, "records": 1, "code": DIGEST}),
    "round": (RoundInputs, ROUND),
    "software": (Software, PROGRAM),
    "traced round": (
        TracedRound,
        ROUND | {"model": DIGEST, "update": DIGEST, "software": Software(**PROGRAM)},
    ),
}
NUMBERS: list[tuple[str, str, list[Any], list[Any]]] = [
    ("terms", "probability", [0, 0.0, 1.0], [-0.01, 1.01, "0.5", np.nan]),
    ("terms of so many", "per_slot", [1, 1_000_000], [0, 1_000_001, 1.0, "1"]),
    ("terms", "level", [1, 2], [0, 3, "1"]),
    ("terms", "samples", [1, 1_000_000], [0, 1_000_001, 2.0, "2"]),
    ("terms", "steps", [True, False], [1, "true"]),
    ("terms", "near", [0.0, 0.999], [-0.001, 1.0, "0"]),
    ("terms", "copies", [0.0, 1.0], [-0.001, 1.001, "0"]),
    ("terms", "due", [1, 1_000_000], [0, 1_000_001, 1.0]),
    ("terms", "auditors", [AUDITORS], [{}, {"": next(iter(AUDITORS.values()))}]),
    ("verdict", "slot", [1, 10**6], [0, 1.0, "1"]),
    ("verdict", "turn", [1, 10**6], [0, 1.0, "1"]),
    ("verdict", "client", ["a"], ["", b"a"]),
    ("verdict", "auditor", ["a"], ["", b"a"]),
    ("verdict", "reason", ["", 300 * "a"], [301 * "a", "two\nlines"]),
    ("signed verdict", "signature", [SIGNED], [SIGNED[1:], SIGNED.encode()]),
    ("attestation", "kind", ["a", 100 * "a"], ["", 101 * "a", b"a"]),
    ("attestation", "evidence", ["", 1_000_000 * "a"], [1_000_001 * "a", b"a"]),
    ("signed attestation", "slot", [1], [0, "1"]),
    ("commitment", "records", [1, 10**9], [0, 1.0, "1"]),
    ("round", "position", [0, 5], [-1, "0"]),
    ("round", "slot", [1], [0, "1"]),
    ("round", "turn", [1], [0, "1"]),
    ("round", "first", [0, 5], [-1, "0"]),
    ("round", "amount", [1], [0, "1"]),
    ("software", "machine", ["one"], [b"one", None]),
    ("traced round", "steps", [[], (), [DIGEST]], [["ab"], DIGEST]),
    ("traced round", "update", [DIGEST], [DIGEST[1:], DIGEST.encode()]),
]


@pytest.mark.parametrize(("name", "field", "right", "wrong"), NUMBERS)
def test_each_field_has_its_bounds_and_type(
    name: str, field: str, right: list[Any], wrong: list[Any]
) -> None:
    model, fields = MODELS[name]
    for value in right:
        model.model_validate(fields | {field: value})
    for value in wrong:
        with pytest.raises(ValidationError):
            model.model_validate(fields | {field: value})


@pytest.mark.parametrize("name", MODELS)
def test_nothing_else_is_taken(name: str) -> None:
    model, fields = MODELS[name]
    with pytest.raises(ValidationError, match="Extra inputs are not permitted"):
        model.model_validate(fields | {"note": "hello"})


def test_what_is_not_said_about_audits() -> None:
    terms = AuditTerms(probability=0.5, auditors=AUDITORS)
    assert (terms.level, terms.samples, terms.due, terms.steps) == (2, 1, 1, False)
    assert (terms.near, terms.copies, terms.attestations) == (0.0, 0.0, {})
    assert RoundInputs(**ROUND).first == 0
    assert Verdict(**FOUND).reason == ""

"""The draw: a pure function of the head, with the probabilities of the terms."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from scipy.stats import binom, chisquare

from fedaccord.audits.draw import Trained, draw_audits
from fedaccord.audits.lots import Lots
from fedaccord.audits.settings import AuditTerms
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

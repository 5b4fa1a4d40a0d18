"""What an examination concludes from its findings, and the limits that are allowed, exactly."""

import hashlib

import numpy as np
import pytest
from pydantic import ValidationError

from fedaccord.audits import attestation as module
from fedaccord.audits.attestation import (
    Attestation,
    Attested,
    sign_attestation,
    wrong_attestation,
)
from fedaccord.audits.commitment import Commitment, RoundInputs
from fedaccord.audits.examination import Examination, Finding
from fedaccord.audits.lots import Lots, digest_for
from fedaccord.audits.opening import copies_of, shared_records
from fedaccord.audits.records import Records
from fedaccord.audits.replay import TOLERANCE, Replay, _first_difference
from fedaccord.errors import InvalidInput
from fedaccord.signing.keys import new_key
from fedaccord.signing.statement import NOTHING, Statement

GOOD = Finding("good")
DECIDED, OTHER = Finding("one", "it is wrong"), Finding("two", "it is wrong, too")
OPEN = Finding("three", "it cannot be told here", decided=False)


@pytest.mark.parametrize(
    ("findings", "outcome", "reason"),
    [
        ((), "passed", ""),
        ((GOOD, GOOD), "passed", ""),
        ((GOOD, DECIDED, OTHER), "failed", "it is wrong"),
        ((OPEN, GOOD, OTHER, DECIDED), "failed", "it is wrong, too"),
        ((GOOD, OPEN), None, "it cannot be told here"),
    ],
)
def test_what_is_decided_comes_before_what_is_not(
    findings: tuple[Finding, ...], outcome: str | None, reason: str
) -> None:
    found = Examination(findings)
    assert found.outcome == outcome
    assert found.reason == reason


@pytest.mark.parametrize(
    ("exact", "same_machine", "distance", "passed"),
    [
        (True, True, 0.0, True),
        (True, False, 0.0, True),
        (True, False, float("nan"), True),  # the same NaN has no distance
        (False, True, 0.0, False),  # not to the last bit, on the same kind of processor
        (False, True, 1.0, False),
        (False, False, 1e-4, True),
        (False, False, 1.001e-4, None),
    ],
)
def test_what_a_replay_decides(
    exact: bool, same_machine: bool, distance: float, passed: bool | None
) -> None:
    assert TOLERANCE == 1e-4
    assert Replay(exact, same_machine, distance).passed is passed


def test_the_first_step_that_differs_counts_from_1() -> None:
    noted = ("a", "b", "c")
    assert _first_difference(noted, ["a", "b", "c"]) is None
    assert _first_difference(noted, ["x", "b", "c"]) == 1
    assert _first_difference(noted, ["a", "b", "x"]) == 3
    assert _first_difference(noted, ["a", "b"]) == 3
    assert _first_difference(noted, ["a", "b", "c", "d"]) == 4


def test_lots_that_would_favour_some_numbers_are_drawn_again() -> None:
    """Of a number of 256 bits, nearly half are too large for a count of 2^255 + 1."""
    count = 2**255 + 1
    lots, redrawn = Lots("example", ["ab" * 32]), 0
    drawn = [int(digest_for("example", ["ab" * 32, n]), 16) for n in range(1, 100)]
    for _ in range(20):
        while drawn[0] >= count:
            drawn, redrawn = drawn[1:], redrawn + 1
        assert lots.below(count) == drawn[0]
        drawn = drawn[1:]
    assert 5 < redrawn < 50


def test_fractions_are_multiples_of_2_to_the_minus_53() -> None:
    lots = Lots("example", ["cd" * 32])
    for n in range(1, 20):
        whole = int(digest_for("example", ["cd" * 32, n]), 16) >> 203
        assert lots.fraction() == whole / 2**53


def test_copies_have_the_same_label_and_inputs_that_are_near_in_standard_deviations() -> None:
    inputs = np.array([[0.0, 0.0], [0.0, 0.0], [0.0, 0.0], [100.0, 1.0]])
    labels = np.array([1, 1, 2, 1])
    records = Records(inputs, labels)
    assert copies_of(records, [0, 1, 2, 3]).tolist() == [0, 1]
    assert copies_of(records, [0, 1, 2, 3], near=1e-6).tolist() == [0, 1]
    apart = np.sqrt(np.mean((inputs[3] - inputs[0]) ** 2 / inputs.var(axis=0)))
    assert copies_of(records, [3], near=apart * 1.000001).tolist() == [3]
    assert copies_of(records, [3], near=apart * 0.999999).tolist() == []
    assert copies_of(records, [], near=1.0).tolist() == []


def test_columns_that_do_not_vary_count_as_they_are() -> None:
    records = Records(np.array([[7.0, 0.0], [7.0, 1.0], [7.0, 1.0]]), np.array([0, 0, 0]))
    assert copies_of(records, [0, 1, 2], near=1e-9).tolist() == [1, 2]


def test_each_own_record_that_another_has_counts_once() -> None:
    assert shared_records(["a", "b", "c"], ["c", "c", "x", "a"]) == 2
    assert shared_records([], ["a"]) == 0


def test_evidence_has_a_longest(monkeypatch: pytest.MonkeyPatch) -> None:
    what = Attested("Six", "St Mary", 3, "ab" * 32)
    monkeypatch.setattr(module, "_LONGEST", 8)
    assert len(Attestation.of("notary", what, b"123456").evidence) == 8
    with pytest.raises(InvalidInput, match="at most 8 characters in base64"):
        Attestation.of("notary", what, b"1234567")


def test_an_attestation_is_signed_for_its_slot_and_client() -> None:
    what, key = Attested("Six", "St Mary", 3, "ab" * 32), new_key()
    attestation = Attestation.of("notary", what, b"00")
    signed = sign_attestation(attestation, what, "c" * 64, key)
    body = attestation.model_dump(mode="json")
    said = Statement("client", "Six", "c" * 64, 3, "attestation", 0, "St Mary", (0, NOTHING), body)
    assert signed.statement("Six", "c" * 64) == said
    assert (signed.client, signed.slot) == ("St Mary", 3)
    assert said.is_signed(key.public, signed.signature)


def test_each_part_of_an_attestation_is_checked_by_itself() -> None:
    what = Attested("Six", "St Mary", 3, "ab" * 32)
    good = Attestation.of("notary", what, b"00")
    accepted = {"notary": {"key": "ed25519:" + "ab" * 32}}
    for change, wrong in (
        ({"about": "cd" * 32}, "about another contribution"),
        ({"evidence": "MD*="}, "is not base64"),
        ({"digest": hashlib.sha256(b"01").hexdigest()}, "another digest than is noted"),
        ({"kind": "tee"}, "accept no attestation of the kind 'tee'"),
        ({}, "did not sign this contribution"),
    ):
        changed = good.model_copy(update=change)
        assert wrong in (wrong_attestation(changed, what, accepted) or "")
    assert wrong_attestation(good, what, {"notary": {}}) == "the terms do not have the notary's key"
    text = Attestation.of("notary", what, "é".encode())
    assert wrong_attestation(text, what, accepted) == "the evidence is not a signature"


def test_the_least_numbers_of_a_round_and_of_a_commitment() -> None:
    """No number of less, and none that is written as text."""
    least = {"position": 0, "slot": 1, "turn": 1, "first": 0, "amount": 1}
    given = {"client": "a", "head": "ab" * 32}
    RoundInputs.model_validate(given | least)
    Commitment.model_validate({"root": "ab" * 32, "code": "cd" * 32, "records": 1})
    for name, number in least.items():
        for wrong in (number - 1, str(number)):
            with pytest.raises(ValidationError, match=name):
                RoundInputs.model_validate(given | least | {name: wrong})
    for wrong in (0, "1"):
        with pytest.raises(ValidationError, match="records"):
            Commitment.model_validate({"root": "ab" * 32, "code": "cd" * 32, "records": wrong})

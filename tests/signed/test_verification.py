"""What `verify_agreement` accepts and refuses, apart from what the second verifier sees as well."""

import json
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest

from fedaccord.agreement.agreement import agreement_on
from fedaccord.agreement.certificate import certify
from fedaccord.errors import InvalidInput
from fedaccord.game.law import Law
from fedaccord.signed.drafting import draft_agreement
from fedaccord.signed.file import read_agreement_file
from fedaccord.signed.layout import Parts, digest_of_text, join, shell_text
from fedaccord.signed.page import escaped
from fedaccord.signed.signatures import merge_signatures, sign_agreement
from fedaccord.signed.verification import verify_agreement, verify_signatures
from tests.signed.damages import flip_a_bit
from tests.signed.examples import (
    KEYS,
    KINDS,
    NAMES,
    OTHER_KEYS,
    consortium,
    draft,
    forged,
    otherwise_signed,
    posted_terms,
    signed,
    terms_of,
)

GOLDEN = Path(__file__).parent / "agreement-1.json"
"""The parts of a file that was signed by all; the digest of its shell is among them."""
MADE = {"made_on": "2026-11-17", "made_with": "fedaccord 0.1.0"}


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_signed_by_all_is_complete(kind: str) -> None:
    found = verify_agreement(signed(kind))

    assert found.complete
    assert found.signed == (*NAMES, "the server")
    assert found.problems == found.missing == found.notes == ()


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_is_what_is_read_from_it(kind: str) -> None:
    assert read_agreement_file(signed(kind).content) == signed(kind)


def test_who_is_missing_is_named() -> None:
    found = verify_agreement(sign_agreement(draft(), KEYS[1]))

    assert not found.complete
    assert not found.problems
    assert found.signed == (NAMES[1],)
    assert found.missing == (NAMES[0], NAMES[2], "the server")


def refused(content: bytes) -> bool:
    """Already without the proof."""
    try:
        return bool(verify_signatures(read_agreement_file(content)).problems)
    except InvalidInput:
        return True


@pytest.mark.slow
def test_any_changed_bit_is_refused() -> None:
    for number in range(200):
        assert refused(flip_a_bit(signed("reversion").content, Random(number)))


@pytest.mark.slow
def test_every_changed_byte_is_refused() -> None:
    content = signed("reversion").content
    for at in range(len(content)):
        changed = content[:at] + bytes([content[at] ^ 1 << at % 8]) + content[at + 1 :]
        assert refused(changed), f"byte {at}"


# --- What not even all members together can sign -------------------------------------------


def test_a_forgery_without_changes_is_the_file_itself() -> None:
    assert forged(signed()) == signed()


def test_another_text_than_the_numbers_give() -> None:
    text = signed().parts.main.replace("200", "100")

    found = verify_agreement(forged(signed(), main=text))

    assert found.problems == ("the text of the page does not say what its numbers say",)


def test_another_shell() -> None:
    shell = signed().shell.replace("Participation", "Membership")
    page = {"main": "", "shell": digest_of_text(shell)}
    file = replace(signed(), shell=shell)

    found = verify_agreement(forged(file, page=page))

    assert found.problems == ("the page around the text is not the one of this format",)


def said_in(kind: str) -> dict[str, Any]:
    said: dict[str, Any] = json.loads(signed(kind).parts.agreement)
    return said


@pytest.mark.parametrize("kind", ["reversion", "ranges"])
def test_a_certificate_that_does_not_follow(kind: str) -> None:
    certificate = said_in(kind)["certificate"]
    certificate["clients"][0]["threshold"] /= 2

    found = verify_agreement(forged(signed(kind), certificate=certificate))

    assert found.problems == ("its certificate is not the one that its numbers give",)


def test_savings_that_do_not_follow() -> None:
    profile = said_in("reversion")["profile"]
    profile["clients"][0]["saving"] += 1.0

    found = verify_agreement(forged(signed("reversion"), profile=profile))

    assert found.problems == ("its savings and totals are not those that its numbers give",)


def test_amounts_that_would_not_be_kept() -> None:
    said = said_in("reversion")
    for row, numbers in zip(said["profile"]["clients"], said["numbers"]["clients"], strict=True):
        row["contribution"] = int(numbers["samples"])
    said["profile"]["total"] = 470

    found = verify_agreement(forged(signed("reversion"), profile=said["profile"]))

    assert len(found.problems) == 1
    assert "it cannot be proved: the amounts would not be kept" in found.problems[0]


def test_other_amounts_than_are_posted() -> None:
    profile = said_in("posted")["profile"]
    profile["clients"][0]["contribution"] -= 1
    profile["total"] -= 1

    found = verify_agreement(forged(signed(), profile=profile))

    assert "its amounts are not those that the terms post" in found.problems


def test_other_numbers_than_are_posted() -> None:
    numbers = said_in("without numbers")["numbers"]
    numbers["clients"][0]["valuation"] *= 2

    found = verify_agreement(forged(signed("without numbers"), numbers=numbers))

    assert "its numbers are not those that the terms post" in found.problems


def test_other_words_for_assumptions_are_noted() -> None:
    certificate = said_in("posted")["certificate"]
    certificate["assumptions"] = ["None at all."]

    found = verify_agreement(forged(signed(), certificate=certificate))

    assert found.complete
    assert found.notes == ("this version of fedaccord would state its assumptions in other words",)


# --- The format lasts ----------------------------------------------------------------------


def test_a_file_of_format_1_remains_valid() -> None:
    """If this fails, files that people have signed would be refused: make a new format instead."""
    parts = Parts(**json.loads(GOLDEN.read_text("utf-8")))
    found = verify_agreement(read_agreement_file(join(shell_text(), parts)))

    assert found.complete


# --- Making and signing --------------------------------------------------------------------


def test_the_certificate_in_the_file_is_that_of_the_agreement() -> None:
    said = said_in("reversion")
    amounts = [row["contribution"] for row in said["profile"]["clients"]]

    proof = certify(agreement_on(consortium(), amounts, "reversion"))

    rows = said["certificate"]["clients"]
    assert [row["threshold"] for row in rows] == pytest.approx(proof.threshold.tolist())
    assert [row["slack"] for row in rows] == pytest.approx(proof.slack.tolist())
    assert said["profile"]["total"] == proof.agreement.total


def test_a_file_without_numbers_reveals_none() -> None:
    content = draft("without numbers").content.decode()

    assert '"saving":null' in content
    assert "EUR" not in content
    for number in ("35.0", "52.0", "95.0", "0.05"):
        assert f":{number}," not in content


def test_whoever_pays_more_is_named_on_the_page() -> None:
    worse = [row.name for row in draft("posted").document.profile.clients if (row.saving or 0) < 0]

    assert worse
    assert f"Not everybody saves by it: {escaped(worse[0])}" in draft("posted").parts.main
    assert "Not everybody saves by it" not in draft("without numbers").parts.main


def test_terms_that_cannot_be_signed() -> None:
    exact = consortium()
    with pytest.raises(InvalidInput, match="no public keys"):
        draft_agreement(terms_of().model_copy(update={"keys": None}), exact, **MADE)
    public = {client.name: {"samples": int(client.samples)} for client in exact}
    clock = terms_of(agreement="clock", public=public)
    with pytest.raises(InvalidInput, match="a clock finds the amounts when it runs"):
        draft_agreement(clock, exact, **MADE)
    with pytest.raises(InvalidInput, match="the terms post no amounts"):
        draft_agreement(terms_of(), None, **MADE)
    hasty = exact.with_turnover(leaves=0.99)
    with pytest.raises(InvalidInput, match="there is no agreement to sign"):
        draft_agreement(terms_of(hasty, punishment="reversion"), hasty, **MADE)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"name": "Four"}, "differ in their name"),
        ({"rounds": 4}, "differ in their rounds"),
        ({"server_fee": 1.0}, "differ in their server_fee"),
        ({"law": {"kind": "power", "measure": "loss", "terms": [{"value": 1.0, "exponent": 0.5}]}},
         "differ in their law"),
    ],
)  # fmt: skip
def test_terms_of_another_consortium(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        draft_agreement(terms_of(**changed), consortium(), **MADE)


def test_a_measured_law_is_an_assumption() -> None:
    law = Law.power(scale=2.0, exponent=0.5, shift=1.0)
    described = consortium().with_law(replace(law, kind="measured"))
    file = draft_agreement(posted_terms(described), described, **MADE)

    assert "fitted to measurements" in file.document.certificate.assumptions[-1]
    assert not verify_agreement(file).problems


def test_text_with_a_tag_is_refused() -> None:
    described = consortium("<b>")
    with pytest.raises(InvalidInput, match="must not contain '<'"):
        draft_agreement(posted_terms(described), described, **MADE)


def test_only_keys_in_the_terms_sign() -> None:
    with pytest.raises(InvalidInput, match="the terms do not have the public key"):
        sign_agreement(draft(), OTHER_KEYS[0])


def test_signatures_are_collected_in_any_order() -> None:
    copies = [sign_agreement(draft(), key) for key in reversed(KEYS)]

    assert merge_signatures(draft(), copies) == signed()


def test_of_two_valid_signatures_of_a_client_the_files_own_stays() -> None:
    first, second = sign_agreement(draft(), KEYS[0]), otherwise_signed(draft(), 0)
    assert first.signatures != second.signatures
    assert verify_agreement(second).signed == (NAMES[0],)
    assert merge_signatures(first, [second]) == first
    assert merge_signatures(second, [first]) == second
    assert merge_signatures(draft(), [second, first]) == second


def test_a_false_signature_in_the_file_is_replaced_by_a_valid_one() -> None:
    false = draft().with_signatures(
        draft().signatures.model_copy(update={"server": signed().signatures.clients[NAMES[0]]})
    )
    assert merge_signatures(false, [signed()]) == signed()


def test_copies_that_are_refused() -> None:
    with pytest.raises(InvalidInput, match="is another agreement"):
        merge_signatures(draft(), [signed("reversion")])
    false = signed().with_signatures(
        signed().signatures.model_copy(update={"server": signed().signatures.clients[NAMES[0]]})
    )
    with pytest.raises(InvalidInput, match="the signature of the server is not its own"):
        merge_signatures(draft(), [false])

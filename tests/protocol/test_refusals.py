"""One forged input for each refusal, which nothing else refuses; and just inside and outside of
every number that decides one."""

from collections.abc import Callable
from dataclasses import replace
from math import inf, nextafter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fedaccord.agreement.solve import solve_agreement
from fedaccord.audits.attestation import Attestation, notarise, sign_attestation
from fedaccord.audits.commitment import Commitment
from fedaccord.ledger.chain import Entry
from fedaccord.protocol import coordinator as server_module
from fedaccord.protocol import facts, guards
from fedaccord.protocol.audited_slot import AuditedSlot
from fedaccord.protocol.coordinator import Coordinator
from fedaccord.protocol.envelopes import Ask, Reply
from fedaccord.protocol.guards import Update, check_commitment, check_equilibrium, check_report
from fedaccord.protocol.messages import FORMAT, LateAnswer, PresenceAnswer, ReportAnswer
from fedaccord.protocol.offers import consortium_of, flaw_in
from fedaccord.protocol.receiving import ReplyRefused, late_statement, read_late
from fedaccord.protocol.roster import Roster, Signer
from fedaccord.protocol.rounds import enough_to_average, fell_short
from fedaccord.protocol.state import Slot, State
from fedaccord.protocol.terms import Terms, load_terms
from fedaccord.protocol.verification import wrong_in
from tests.audits.consortium import NAMES as AUDITED
from tests.audits.consortium import SAMPLES, _terms
from tests.audits.consortium import key_of as audited_key
from tests.flower.consortia import (
    START_MODEL,
    Clients,
    key_of,
    keys_of,
    ledger_at,
    privates_of,
    run,
    server_key,
    terms_of,
)
from tests.flower.stories import NAMES, SIGNED, TERMS, instead, rewritten, told


@pytest.fixture
def audited(tmp_path: Path) -> Terms:
    """Terms with audits, and with a notary whose evidence is accepted."""
    attested = f'[audits.attestations.notary]\nkey = "{audited_key("Inspector").public}"\n'
    path = tmp_path / "terms.toml"
    path.write_text(_terms({"per_slot": 1}) + attested, encoding="utf-8")
    return load_terms(path)


# --- What a client says --------------------------------------------------------------------


@pytest.mark.parametrize(("records", "right"), [(59, False), (60, True), (61, True)])
def test_a_client_commits_to_as_many_records_as_it_has_samples(
    records: int, right: bool, audited: Terms
) -> None:
    assert SAMPLES == 60
    commitment = Commitment(root="0" * 64, records=records, code="0" * 64)
    answer = PresenceAnswer(commitment=commitment)
    if right:
        check_commitment(answer, SAMPLES, audited)
        return
    with pytest.raises(ReplyRefused, match="commit"):
        check_commitment(answer, SAMPLES, audited)


@pytest.mark.parametrize(
    ("given", "right"),
    [
        ({"fees": 1e100}, True),
        ({"fees": nextafter(1e100, inf)}, False),
        ({"fees": 0.0}, True),
        ({"fees": -5e-324}, False),
        ({"ratio": 1e100}, True),
        ({"ratio": nextafter(1e100, inf)}, False),
        ({"ratio": 1e-100}, True),
        ({"ratio": nextafter(1e-100, 0)}, False),
        ({"discount_factor": nextafter(1.0, 0)}, True),
        ({"discount_factor": 1.0}, False),
        ({"samples": 1}, True),
        ({"samples": 0}, False),
    ],
)
def test_the_ends_of_what_may_be_reported(given: dict[str, Any], right: bool) -> None:
    report = ReportAnswer(**({"ratio": 2.5, "samples": 10} | given))
    if right:
        assert check_report(report) is report
        return
    with pytest.raises(ReplyRefused, match=next(iter(given))):
        check_report(report)


def test_the_tolerance_of_an_equilibrium() -> None:
    """A millionth of the client's samples, either way."""
    for apart in (0.99e-6, -0.99e-6):
        check_equilibrium(20.0 + apart * 60, 20.0, 60)
    for apart in (1.01e-6, -1.01e-6):
        with pytest.raises(ReplyRefused, match="not the equilibrium contribution"):
            check_equilibrium(20.0 + apart * 60, 20.0, 60)


def late(slot: int) -> dict[str, Any]:
    """An earlier answer of b's, signed by b."""
    roster = Roster.of(SIGNED)
    assert roster is not None
    answer = LateAnswer(
        terms=roster.terms,
        slot=slot,
        stage="offer",
        turn=1,
        ledger=(7, "a" * 64),
        previous="0" * 64,
        said={"answer": {"accepts": True}},
    )
    return answer.body | {"signature": late_statement(roster, "b", answer).sign(key_of("b"))}


@pytest.mark.parametrize(
    ("stage", "given", "right"),
    [
        ("report", [late(2)], True),
        ("report", [late(3)], True),
        ("report", [late(4)], False),  # from the future
        ("offer", [late(2)], False),  # not when the slot begins
        ("report", [late(2)] * 20, True),
        ("report", [late(2)] * 21, False),  # more than a client sends
        ("report", {"0": late(2)}, False),
        ("report", [late(2) | {"more": 1}], False),
        ("report", [late(2) | {"turn": 2}], False),  # not what was signed
    ],
)
def test_late_answers_that_are_none(stage: Any, given: Any, right: bool) -> None:
    roster = Roster.of(SIGNED)
    assert roster is not None
    signer = Signer(roster, key_of("the server"))
    ask = Ask(stage, 3, 0, (9, "b" * 64), {}, signer=signer)  # type: ignore[arg-type]
    if right:
        found = read_late(ask, "b", {"late": given})
        assert len(found) == len(given)
        return
    with pytest.raises(ReplyRefused, match="earlier answers that are not its own"):
        read_late(ask, "b", {"late": given})


# --- What the server offers and takes ------------------------------------------------------


def reported(terms: Terms) -> Slot:
    """A slot in which everyone has reported."""
    slot = Slot(1, "cooperating")
    for one in privates_of(terms.clients):
        slot.reports[one.name] = facts.Report(
            slot=1, client=one.name, ratio=one.ratio, samples=one.samples
        )
        slot.here[one.name] = one.samples
    return slot


def test_offers_are_uniform_where_the_terms_say_so() -> None:
    """Individual amounts hold, and only that they are not uniform is wrong with them."""
    individual, uniform = (terms_of(agreement=one) for one in ("individual", "uniform"))
    amounts = {
        kind: solve_agreement(
            consortium_of(reported(uniform), uniform, uniform.clients),
            kind,
            margin=0.1,
            whole_samples=True,
            punishment=uniform.after_slip,
        ).profile.tolist()
        for kind in ("individual", "uniform")
    }
    assert flaw_in(reported(uniform), uniform, amounts["uniform"]) is None
    assert flaw_in(reported(individual), individual, amounts["individual"]) is None
    flaw = flaw_in(reported(uniform), uniform, amounts["individual"])
    assert flaw == "that are not uniform, as the terms say"


def test_an_offer_of_more_than_a_client_has_is_refused(tmp_path: Path) -> None:
    """Where it is made, before anything is computed from it."""
    entries, _ = told(tmp_path / "ledger.db", slots=1)
    forged = rewritten(entries, instead("offer", 1, "a", contribution=41))
    offer = next(e.number for e in forged if (e.kind, e.client) == ("offer", "a"))
    (problem,) = wrong_in(forged)
    assert problem == f"entry {offer} (offer of slot 1) asks for more samples than the client has"


def played(path: Path, terms: Terms, spoil: Callable[[Ask, Reply], Reply]) -> list[Entry]:
    """A slot of a server that takes what its clients say of themselves."""
    clients = Clients(terms, privates_of(terms.clients))

    def replies(ask: Ask) -> list[Reply]:
        return [spoil(ask, reply) for reply in clients(ask)]

    with ledger_at(path) as ledger:
        run(Coordinator(terms, ledger, START_MODEL, server_key(terms)), replies, 1)
        return list(ledger.entries())


@pytest.mark.parametrize(("samples", "right"), [(50, True), (51, False)])
def test_a_count_of_more_than_a_client_has_is_refused(
    samples: int, right: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if the server took it, and everything else in its ledger follows from it."""
    monkeypatch.setattr(server_module, "most_of", lambda *_: 10**9)

    def more(ask: Ask, reply: Reply) -> Reply:
        if (ask.stage, reply.client) != ("train", "b"):
            return reply
        return replace(reply, body=reply.body | {"samples": samples})

    problems = wrong_in(played(tmp_path / "ledger.db", TERMS, more))
    if right:
        assert problems == []
    else:
        (problem,) = problems
        assert problem.endswith("has more samples than the client has, or than its share")


def test_the_quorum_of_a_round_after_somebody_fell_short() -> None:
    """Who fell short is not asked any more, and is missed no more; who was absent still is."""
    terms = terms_of(("a", "b", "c", "d", "e", "f"))  # a quorum of 4
    slot = Slot(1, "cooperating", here=dict.fromkeys(terms.clients, 50), basis="agreement")
    slot.amounts = dict.fromkeys(terms.clients, 10)
    assert enough_to_average(slot, terms, terms.clients) == 4
    # e and f fell short: of the four that are left three are needed, as of any four
    assert enough_to_average(slot, terms, ("a", "b", "c", "d")) == 3
    slot.missed["f"] = 1  # f was absent instead, which makes no quorum smaller
    assert enough_to_average(slot, terms, ("a", "b", "c", "d")) == 3
    slot.missed["e"] = 1
    assert enough_to_average(slot, terms, ("a", "b", "c", "d")) == 4
    few = replace(slot, amounts={"a": 10, "b": 10, "c": 10}, missed={})
    assert enough_to_average(few, terms, ("a", "b", "c")) == 3  # all that are to train
    assert enough_to_average(few, terms, ("a", "b")) == 2  # c fell short


@pytest.mark.parametrize(
    ("trained", "short"), [(900_000_000, False), (899_999_999, False), (899_999_998, True)]
)
def test_the_tolerance_of_a_contribution(trained: int, short: bool) -> None:
    """That of the terms, and a billionth for rounding; without it nothing but the whole amount."""
    slot = Slot(1, "cooperating", here={"a": 10**9}, basis="agreement")
    slot.amounts, slot.least = {"a": 10**9}, {"a": {0: trained}}
    assert fell_short(slot, terms_of(tolerance=0.1), "a") is short
    slot.least = {"a": {0: 10**9 - 2}}
    assert fell_short(slot, terms_of(), "a")
    slot.amounts, slot.least = {"a": 50}, {"a": {0: 49}}
    assert fell_short(slot, terms_of(), "a")
    slot.least = {"a": {0: 50}}
    assert not fell_short(slot, terms_of(), "a")


@pytest.mark.parametrize(("norm", "right"), [(29.99, True), (30.01, False)])
def test_the_bound_of_an_update(norm: float, right: bool) -> None:
    """Thirty times what the others moved; the server's reader judges by it, and so does verify."""
    terms, model = terms_of(("a", "b", "c", "d")), {"w": np.zeros(1, np.float32)}
    updates = {n: Update(10, model, 1.0, "0" * 64) for n in "abc"}
    updates["d"] = Update(10, model, norm, "0" * 64)
    ask = Ask("train", 1, 1, (9, "b" * 64), dict.fromkeys("abcd"))  # type: ignore[arg-type]
    good, faults = guards._within_bounds(ask, updates, terms)
    assert ("d" in good, [one.client for one in faults]) == (right, [] if right else ["d"])
    assert {"a", "b", "c"} <= good.keys()


# --- Whose word it is ----------------------------------------------------------------------


def test_a_new_key_begins_new_statements() -> None:
    """What was signed with the old one is not what the next statement names."""
    state = State()
    state.apply(facts.Terms(slot=0, format=FORMAT, terms=SIGNED))
    state.received = {"a": "1" * 64, "b": "2" * 64, "c": "3" * 64}
    keys = keys_of(NAMES)
    keys["clients"] = keys["clients"] | {"b": key_of("b's new key").public}
    changed = terms_of(NAMES, keys=keys)
    state.apply(facts.Terms(slot=0, format=FORMAT, terms=changed))
    assert state.received == {"a": "1" * 64, "c": "3" * 64}


def test_the_same_evidence_counts_once(audited: Terms) -> None:
    """And nothing else is wrong with it: other evidence about the same is taken."""
    client = AUDITED[0]
    slot = AuditedSlot(1, audited, "0" * 64, [], {client: "ab" * 32})
    about = slot.contribution(client)
    notary, key = audited_key("Inspector"), audited_key(client)
    evidence = Attestation.of("notary", about, notarise(notary, about))
    signed = sign_attestation(evidence, about, audited.digest, key)
    assert slot.wrong_attestation(signed) is None
    slot.attested.add((client, "0" * 64))
    slot.attested.add(("another", evidence.digest))
    assert slot.wrong_attestation(signed) is None
    slot.attested.add((client, evidence.digest))
    assert slot.wrong_attestation(signed) == "is there already"

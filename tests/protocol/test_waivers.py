"""How a suspension ends early: by the consent of all others, or by new terms; and how not."""

from pathlib import Path
from typing import Any

import pytest

from fedaccord.errors import InvalidInput
from fedaccord.ledger.chain import Fact
from fedaccord.protocol.coordinator import Coordinator
from fedaccord.protocol.copies import contradictions
from fedaccord.protocol.messages import Refusal
from fedaccord.protocol.verification import wrong_in
from tests.flower.consortia import (
    START_MODEL,
    run,
    verdicts,
)
from tests.flower.stories import instead, rewritten, telling
from tests.lies import lie
from tests.protocol.suspensions import (
    NAMES,
    Sent,
    check,
    decisions,
    out,
    played,
    suspended_c,
    terms,
)

# --- A waiver ------------------------------------------------------------------------------


def test_all_others_may_waive_it(path: Path) -> None:
    ledger, coordinator, sent = suspended_c(path)
    with ledger:
        for name in "abde":
            sent.set(name, consents_to_return=("c", 1))
        coordinator.propose_return("c", "its disk was full")
        again = Coordinator(coordinator.state.rules, ledger, START_MODEL)  # a restarted server
        run(again, sent, 2)
        assert decisions(ledger) == [True]
        assert sent.to("c", 1)[-1] == ("settle", 0)  # it has no say in it
        assert verdicts(ledger, 2) == dict.fromkeys(NAMES, "kept")
        assert out(ledger) == [{"c": (1, 3)}, {}]
        (report,) = (
            e for e in sent.clients.copies["c"].written if (e.kind, e.slot) == ("report", 2)
        )
        assert report.body["returned"] == ["c"]
        check(ledger, sent)


@pytest.mark.parametrize("case", ["one refuses", "one is absent", "another client", "another slip"])
def test_one_other_is_enough_to_refuse_it(case: str, path: Path) -> None:
    ledger, coordinator, sent = suspended_c(path)
    with ledger:
        for name in "abde":
            sent.set(name, consents_to_return=("c", 1))
        if case == "one refuses":
            sent.set("b", consents_to_return=None)
        elif case == "one is absent":
            sent.clients.away = {"b"}
        else:
            sent.set("b", consents_to_return=("d", 1) if case == "another client" else ("c", 7))
        coordinator.propose_return("c", "its disk was full")
        run(coordinator, sent, 1)
        sent.clients.away = set()
        run(coordinator, sent, 2)
        assert decisions(ledger) == [False]
        assert verdicts(ledger, 2)["c"] == "suspended"
        check(ledger, sent)


def test_who_is_suspended_too_is_asked_and_counts(path: Path) -> None:
    rules = terms(punishment_slots="for ever")
    sent = Sent(rules, {"b": {1: 0}, "c": {1: 0}})
    with played(path, sent, rules, 1) as ledger:
        coordinator = Coordinator(rules, ledger, START_MODEL)
        for name in "ade":
            sent.set(name, consents_to_return=("c", 1))
        coordinator.propose_return("c", "without b")
        run(coordinator, sent, 1)
        sent.set("b", consents_to_return=("c", 1))
        coordinator.propose_return("c", "with b")
        run(coordinator, sent, 2)
        assert decisions(ledger) == [False, True]
        assert verdicts(ledger, 2)["b"] == "suspended"
        assert verdicts(ledger, 2)["c"] == "kept"
        check(ledger, sent)


def test_the_suspended_have_no_say_in_a_rollback(path: Path) -> None:
    ledger, coordinator, sent = suspended_c(path, rollback_consent="everyone")
    with ledger:
        for name in "abde":
            sent.set(name, consents_to_slot=0)
        coordinator.propose_rollback(0, "c ruined it")
        run(coordinator, sent, 2)
        assert decisions(ledger) == [True]
        check(ledger, sent)


def test_what_cannot_be_waived(path: Path) -> None:
    ledger, coordinator, _ = suspended_c(path)
    with ledger:
        with pytest.raises(InvalidInput, match="'a' is not suspended; suspended: c"):
            coordinator.propose_return("a", "why not")
        with pytest.raises(InvalidInput, match="the reason must be one line"):
            coordinator.propose_return("c", "")
        coordinator.propose_return("c", "once")
        with pytest.raises(InvalidInput, match="a proposal is under way"):
            coordinator.propose_return("c", "twice")


def test_a_client_consents_to_nothing_that_its_copy_does_not_know(path: Path) -> None:
    ledger, coordinator, sent = suspended_c(path)
    with ledger:
        coordinator.propose_return("c", "its disk was full")
        ask = coordinator.next_ask(2)
    assert ask is not None
    for other in ({"returns": "d"}, {"slipped_in": 7}):
        with pytest.raises(Refusal, match=r"[cd] is not suspended for that slip, as slot 1 was"):
            sent.clients.reply("a", telling(ask, "a", **other))


# --- New terms -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "left"),
    [
        ({"tolerance": 0.1}, {"c": (1, 3)}),
        ({"punishment_slots": 2}, {"c": (1, 2)}),
        ({"punishment_slots": "for ever"}, {"c": (1, 3)}),
        ({"punishment": "reversion"}, {}),
    ],
)
def test_new_terms_shorten_what_would_be_longer_than_they_say(
    change: dict[str, Any], left: dict[str, tuple[int, int]], path: Path
) -> None:
    ledger, _, sent = suspended_c(path)
    changed = terms(**({"punishment_slots": 3} | change))
    for participant in sent.clients.participants.values():
        participant.terms = changed
    with ledger:
        coordinator = Coordinator(changed, ledger, START_MODEL)
        coordinator.next_ask(2)
        slot = coordinator.state.current
        assert {n: (s.slipped_in, s.slots_left) for n, s in slot.out.items()} == left
        assert slot.returned == ([] if left else ["c"])
        run(coordinator, sent, 2)
        assert verdicts(ledger, 2)["c"] == ("suspended" if left else "kept")
        check(ledger, sent)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "to_come"),
    [
        ({"punishment": "suspension", "punishment_slots": 1}, ["cooperating"] * 2),
        ({"punishment_slots": 1}, ["punishing", "cooperating"]),
        ({"tolerance": 0.1}, ["punishing"] * 2),
    ],
)
def test_new_terms_end_or_shorten_reversion_as_well(
    change: dict[str, Any], to_come: list[str], path: Path
) -> None:
    reverting: dict[str, Any] = {"punishment": "reversion", "punishment_slots": "for ever"}
    rules = terms(**reverting)
    sent = Sent(rules, {"c": {1: 0}})
    with played(path, sent, rules, 2) as ledger:
        changed = terms(**(reverting | change))
        for participant in sent.clients.participants.values():
            participant.terms = changed
        run(Coordinator(changed, ledger, START_MODEL), sent, 4)
        assert [e.body["phase"] for e in ledger.entries(kind="slot")][2:] == to_come
        check(ledger, sent)


def test_whoever_is_no_longer_in_the_terms_is_not_suspended(path: Path) -> None:
    ledger, _, sent = suspended_c(path)
    with ledger:
        changed = terms(("a", "b", "d", "e"))
        coordinator = Coordinator(changed, ledger, START_MODEL)
        for name in changed.clients:
            sent.clients.participants[name].terms = changed
        run(coordinator, sent, 2)
        assert coordinator.state.out == {}
        assert verdicts(ledger, 2) == dict.fromkeys(changed.clients, "kept")


def test_whoever_was_let_back_may_be_left_out_of_new_terms(path: Path) -> None:
    ledger, coordinator, sent = suspended_c(path)
    with ledger:
        for name in "abde":
            sent.set(name, consents_to_return=("c", 1))
        coordinator.propose_return("c", "its disk was full")
        run(coordinator, sent, 1)
        changed = terms(("a", "b", "d", "e"))
        for name in changed.clients:
            sent.clients.participants[name].terms = changed
        run(Coordinator(changed, ledger, START_MODEL), sent, 2)
        assert verdicts(ledger, 2) == dict.fromkeys(changed.clients, "kept")
        check(ledger, sent)


# --- Lies ----------------------------------------------------------------------------------


@lie(
    "the server",
    "end a suspension without the consent of all others",
    "verify does not find the consents in the ledger",
)
def test_a_waiver_without_consent_does_not_verify(path: Path) -> None:
    ledger, coordinator, sent = suspended_c(path)
    with ledger:
        for name in "abd":
            sent.set(name, consents_to_return=("c", 1))
        coordinator.propose_return("c", "three are enough")
        run(coordinator, sent, 1)
        entries = list(ledger.entries())
    (problem,) = wrong_in(rewritten(entries, instead("decision", 1, accepted=True)))
    assert "does not follow from the entries before it" in problem


@lie(
    "the server",
    "claim that a client consented to the end of a suspension",
    "that client's copy does not have it",
)
def test_a_made_up_consent_shows_in_the_copy(path: Path) -> None:
    ledger, coordinator, sent = suspended_c(path)
    with ledger:
        for name in "abd":
            sent.set(name, consents_to_return=("c", 1))
        coordinator.propose_return("c", "e agrees as well")
        run(coordinator, sent, 1)
        entries = list(ledger.entries())

    def forge(fact: Fact) -> Fact:
        mine = (fact.kind, fact.client) == ("consent", "e")
        changed = {"agrees": True} if mine else {"accepted": True}
        decided = mine or fact.kind == "decision"
        return fact._replace(body={**fact.body, **changed}) if decided else fact

    forged = rewritten(entries, forge)
    assert wrong_in(forged) == []
    found = contradictions(forged, sent.clients.copies["e"].written)
    assert any("the server wrote down something else" in problem for problem in found)


@pytest.mark.slow
@lie(
    "the server",
    "end a suspension by terms that it replaces before a slot is played under them",
    "such terms have no effect, and consents name the terms by which they count",
)
def test_terms_that_nobody_sees_change_nothing(path: Path) -> None:
    ledger, _, sent = suspended_c(path)
    signed = terms(punishment_slots=3)
    unseen = [
        terms(punishment="reversion"),
        terms(("a", "b", "d", "e")),
        terms(punishment_slots=1),
    ]
    with ledger:
        for phantom in unseen:
            Coordinator(phantom, ledger, START_MODEL)
        run(Coordinator(signed, ledger, START_MODEL), sent, 4)
        assert [verdicts(ledger, slot)["c"] for slot in (2, 3, 4)] == ["suspended"] * 3
        check(ledger, sent)


def test_nothing_is_proposed_by_terms_that_nobody_sees(path: Path) -> None:
    """By them a alone could let c return, or the server go back to an older model by itself."""
    ledger, coordinator, sent = suspended_c(path)
    with ledger:
        for name in "abde":
            sent.set(name, consents_to_return=("c", 1))
        coordinator.propose_return("c", "its disk was full")
        run(coordinator, sent, 1)
        entries = list(ledger.entries())
        server = Coordinator(terms(("a", "c"), rollback_consent="nobody"), ledger, START_MODEL)
        new = next(reversed(list(ledger.entries(kind="terms")))).fact
        with pytest.raises(InvalidInput, match="the terms are new"):
            server.propose_return("c", "by other terms")
        with pytest.raises(InvalidInput, match="the terms are new"):
            server.propose_rollback(0, "by other terms")
    forged = rewritten(entries, lambda fact: [new, fact] if fact.kind == "proposal" else fact)
    (problem,) = wrong_in(forged)
    assert "is decided by terms under which no slot was begun yet" in problem


def test_a_vote_counts_by_terms_that_the_voters_signed(path: Path) -> None:
    ledger, coordinator, sent = suspended_c(path)
    sent.set("a", consents_to_return=("c", 1))
    with ledger:
        coordinator.propose_return("c", "its disk was full")
        ask = coordinator.next_ask(2)
    assert ask is not None
    with pytest.raises(Refusal, match="by other terms than this client signed"):
        sent.clients.reply("a", telling(ask, "a", terms=terms(("a", "c")).digest))


@pytest.mark.slow
@lie(
    "a client",
    "slip again and return by the consent that was given for its last slip",
    "consent is for one slip",
)
def test_consent_is_for_one_slip(path: Path) -> None:
    rules = terms()
    sent = Sent(rules, {"c": {1: 0, 3: 0}})
    for name in "abde":
        sent.set(name, consents_to_return=("c", 1))
    with played(path, sent, rules, 1) as ledger:
        coordinator = Coordinator(rules, ledger, START_MODEL)
        coordinator.propose_return("c", "its disk was full")
        run(coordinator, sent, 3)
        coordinator.propose_return("c", "and again")
        run(coordinator, sent, 4)
        assert decisions(ledger) == [True, False]
        assert verdicts(ledger, 4)["c"] == "suspended"
        check(ledger, sent)

"""Suspension: whoever slips is out and is sent no model, the others go on, and it returns."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fedaccord.errors import InvalidInput
from fedaccord.ledger.chain import Fact
from fedaccord.ledger.store import Ledger
from fedaccord.protocol import conclusions
from fedaccord.protocol.audit import audit, look_over
from fedaccord.protocol.coordinator import Coordinator
from fedaccord.protocol.copies import compare_copies, contradictions
from fedaccord.protocol.messages import Ask, Refusal, Reply
from fedaccord.protocol.parameters import digest
from fedaccord.protocol.terms import Terms
from tests.flower.consortia import (
    START_MODEL,
    Clients,
    ledger_at,
    phases,
    privates_of,
    run,
    terms_of,
    verdicts,
)
from tests.flower.stories import inserted, instead, rewritten, telling
from tests.lies import lie

NAMES = ("a", "b", "c", "d", "e")
Slips = dict[str, dict[int, int]]


def terms(names: tuple[str, ...] = NAMES, **rules: Any) -> Terms:
    return terms_of(names, **({"punishment": "suspension", "punishment_slots": 1} | rules))


class Sent:
    """Clients, and which of them was sent what: (slot, stage, turn, client, with a model)."""

    def __init__(self, rules: Terms, slips: Slips | None = None, **private: Any) -> None:
        privates = privates_of(rules.clients, **private)
        self.clients = Clients(
            rules, [replace(p, slips=(slips or {}).get(p.name, {})) for p in privates]
        )
        self.messages: list[tuple[int, str, int, str, bool]] = []

    def __call__(self, ask: Ask) -> list[Reply]:
        self.messages += [
            (ask.slot, ask.stage, ask.turn, name, ask.sends_model(name)) for name in ask.contents
        ]
        return self.clients(ask)

    def to(self, client: str, slot: int) -> list[tuple[str, int]]:
        """The questions of a slot that a client was asked."""
        return [(m[1], m[2]) for m in self.messages if (m[0], m[3]) == (slot, client)]

    def models_to(self, client: str) -> list[tuple[int, str, int]]:
        return [(m[0], m[1], m[2]) for m in self.messages if m[3] == client and m[4]]

    def set(self, client: str, **private: Any) -> None:
        participant = self.clients.participants[client]
        participant.private = replace(participant.private, **private)


def out(ledger: Ledger) -> list[dict[str, tuple[int, int | None]]]:
    """Who is suspended after each slot: the slot of the slip, and the slots that are left."""
    return [
        {name: (one["slipped_in"], one["slots_left"]) for name, one in e.body["suspended"].items()}
        for e in ledger.entries(kind="settlement")
    ]


def check(ledger: Ledger, sent: Sent) -> None:
    """The ledger verifies, against every copy, and the copies agree with one another."""
    entries = list(ledger.entries())
    assert look_over(entries, ledger.checkpoints()).problems == []
    copies = [copy.written for copy in sent.clients.copies.values() if copy.written]
    for copy in copies:
        assert contradictions(entries, copy) == []
    assert compare_copies(copies).contradictions == []


def played(path: Path, sent: Sent, rules: Terms, slots: int) -> Ledger:
    """The ledger after some slots; it is left open."""
    ledger = ledger_at(path)
    run(Coordinator(rules, ledger, START_MODEL), sent, slots)
    return ledger


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger.db"


# --- A slip, and what follows --------------------------------------------------------------


def test_a_slip_one_slot_out_and_back(path: Path) -> None:
    rules = terms()
    sent = Sent(rules, {"c": {2: 0}})
    with played(path, sent, rules, 4) as ledger:
        assert phases(ledger) == ["cooperating"] * 4
        assert out(ledger) == [{}, {"c": (2, 1)}, {}, {}]
        assert verdicts(ledger, 2) == {n: "deviation" if n == "c" else "kept" for n in NAMES}
        assert verdicts(ledger, 3) == {n: "suspended" if n == "c" else "kept" for n in NAMES}
        assert set(verdicts(ledger, 4).values()) == {"kept"}
        (basis,) = ledger.entries(slot=3, kind="basis")
        assert basis.body["basis"] == "agreement"  # of the others
        assert set(basis.body["contributions"]) == set("abde")
        check(ledger, sent)
    assert sent.to("c", 3) == [("settle", 0)]  # it is only told that it is out
    whole = [("train", 1), ("train", 2), ("settle", 0)]
    assert sent.models_to("c") == [  # withheld from the round after the slip until its return
        *[(1, *message) for message in whole],
        (2, "train", 1),
        *[(4, *message) for message in whole],
    ]


def test_its_own_copy_shows_from_when_until_when_and_why(path: Path) -> None:
    rules = terms(punishment_slots=3)
    sent = Sent(rules, {"c": {2: 0}})
    played(path, sent, rules, 5).close()
    told = {e.slot: e.body for e in sent.clients.copies["c"].written if e.kind == "settlement"}
    assert told[2]["verdict"] == "deviation"
    assert told[2]["contributed"] == 0 < told[2]["agreed"]
    assert [told[slot]["suspended"]["c"] for slot in (2, 3, 4)] == [
        {"slipped_in": 2, "slots_left": left} for left in (3, 2, 1)
    ]
    assert [told[slot]["verdict"] for slot in (3, 4)] == ["suspended"] * 2
    assert told[5]["suspended"] == {}
    assert all(told[slot]["model"] is None for slot in (2, 3, 4, 5))


def test_two_out_at_once_with_overlap(path: Path) -> None:
    rules = terms(punishment_slots=2)
    sent = Sent(rules, {"b": {1: 0}, "d": {1: 0}, "e": {2: 0}})
    with played(path, sent, rules, 5) as ledger:
        assert out(ledger) == [
            {"b": (1, 2), "d": (1, 2)},
            {"b": (1, 1), "d": (1, 1), "e": (2, 2)},
            {"e": (2, 1)},
            {},
            {},
        ]
        check(ledger, sent)


def test_whoever_slips_again_is_out_again(path: Path) -> None:
    rules = terms()
    sent = Sent(rules, {"c": {1: 0, 2: 0, 3: 0, 5: 0}})  # it is out in slots 2 and 4
    with played(path, sent, rules, 6) as ledger:
        assert out(ledger) == [{"c": (1, 1)}, {}, {"c": (3, 1)}, {}, {"c": (5, 1)}, {}]
        check(ledger, sent)


def test_for_ever(path: Path) -> None:
    rules = terms(punishment_slots="for ever")
    sent = Sent(rules, {"c": {1: 0}})
    with played(path, sent, rules, 4) as ledger:
        assert out(ledger) == [{"c": (1, None)}] * 4
        check(ledger, sent)


def test_within_the_tolerance_nobody_is_suspended(path: Path) -> None:
    rules = terms(tolerance=0.5)
    sent = Sent(rules, {"e": {1: 60}})
    with played(path, sent, rules, 1) as ledger:
        assert out(ledger) == [{}]


def test_absence_does_not_suspend_and_brings_no_model(path: Path) -> None:
    rules = terms()
    sent = Sent(rules)
    sent.clients.away = {"b"}
    with played(path, sent, rules, 2) as ledger:
        assert out(ledger) == [{}, {}]
        assert verdicts(ledger, 2)["b"] == "absence"
    assert sent.models_to("b") == []


@pytest.mark.parametrize("on_refusal", ["without", "equilibrium"])
@pytest.mark.parametrize("punishment", ["suspension", "reversion"])
def test_who_refuses_is_sent_no_model(on_refusal: str, punishment: str, path: Path) -> None:
    rules = terms(on_refusal=on_refusal, punishment=punishment)
    sent = Sent(rules)
    sent.set("b", discount_factor=0.001)
    with played(path, sent, rules, 1) as ledger:
        assert verdicts(ledger, 1)["b"] == "refused"
        (basis,) = ledger.entries(kind="basis")
        assert basis.body["basis"] == {"without": "agreement"}.get(on_refusal, on_refusal)
        check(ledger, sent)
    assert sent.models_to("b") == []
    assert sent.models_to("e")


def test_if_too_few_are_willing_the_slot_is_void(path: Path) -> None:
    """Or else refusing together would bring the model of an equilibrium."""
    rules = terms()
    sent = Sent(rules)
    for name in "abcde":
        sent.set(name, discount_factor=0.001)
    with played(path, sent, rules, 1) as ledger:
        (settled,) = ledger.entries(kind="settlement")
        assert settled.body["void"]
        assert list(verdicts(ledger, 1).values()).count("refused") >= 3
        check(ledger, sent)
    assert not any(message[4] for message in sent.messages)


# --- Quorum --------------------------------------------------------------------------------


def test_the_quorum_is_of_those_who_are_not_out(path: Path) -> None:
    """Three of five are out, and the two that are left go on, with an explicit quorum too."""
    for quorum in (0, 3):
        rules = terms(quorum=quorum, punishment_slots=2)
        sent = Sent(rules, {name: {1: 0} for name in "abc"})
        with played(path.with_name(f"{quorum}.db"), sent, rules, 4) as ledger:
            void = [e.body["void"] for e in ledger.entries(kind="settlement")]
            assert void == [False] * 4
            assert out(ledger)[2:] == [{}, {}]
            check(ledger, sent)


def test_if_everyone_is_out_everyone_returns(path: Path) -> None:
    rules = terms(punishment_slots=2)
    sent = Sent(rules, {name: {1: 0} for name in NAMES})
    with played(path, sent, rules, 4) as ledger:
        assert out(ledger)[0] == dict.fromkeys(NAMES, (1, 2))
        void = [e.body["void"] for e in ledger.entries(kind="settlement")]
        assert void == [False, True, True, False]
        assert set(verdicts(ledger, 4).values()) == {"kept"}
        check(ledger, sent)


def test_one_that_is_left_goes_on_alone(path: Path) -> None:
    rules = terms(("a", "d", "e"), margin=0.0)
    sent = Sent(rules, {"a": {1: 0}, "d": {1: 0}})
    with played(path, sent, rules, 3) as ledger:
        alone = verdicts(ledger, 2)
        assert alone["e"] == "kept"
        assert set(verdicts(ledger, 3).values()) == {"kept"}
        check(ledger, sent)


def test_a_void_slot_does_not_count(path: Path) -> None:
    """Of five one is out and three are away: with the one there would be no quorum either."""
    rules = terms()
    sent = Sent(rules, {"c": {1: 0}})
    ledger = played(path, sent, rules, 1)
    with ledger:
        coordinator = Coordinator(rules, ledger, START_MODEL)
        sent.clients.away = {"a", "b", "d"}
        run(coordinator, sent, 3)
        assert out(ledger) == [{"c": (1, 1)}] * 3
        assert verdicts(ledger, 3)["c"] == "suspended"
        sent.clients.away = set()
        run(coordinator, sent, 4)
        assert out(ledger)[-1] == {}
        check(ledger, sent)


def test_a_slot_that_is_void_because_of_the_suspension_counts(path: Path) -> None:
    """Of three one is out and one is away for good: without the one there is never a quorum."""
    rules = terms(("a", "d", "e"), margin=0.0)
    sent = Sent(rules, {"d": {1: 0}})
    with played(path, sent, rules, 1) as ledger:
        sent.clients.away = {"a"}
        run(Coordinator(rules, ledger, START_MODEL), sent, 3)
        void = [e.body["void"] for e in ledger.entries(kind="settlement")]
        assert void == [False, True, False]
        check(ledger, sent)


# --- A waiver ------------------------------------------------------------------------------


def suspended_c(path: Path, **rules: Any) -> tuple[Ledger, Coordinator, Sent]:
    """C slipped in slot 1, and is out for three slots."""
    signed = terms(punishment_slots=3, **rules)
    sent = Sent(signed, {"c": {1: 0}})
    ledger = ledger_at(path)
    return ledger, run(Coordinator(signed, ledger, START_MODEL), sent, 1), sent


def decisions(ledger: Ledger) -> list[bool]:
    return [entry.body["accepted"] for entry in ledger.entries(kind="decision")]


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


# --- The client's half ---------------------------------------------------------------------


def asked_in(path: Path, slot: int, stage: str) -> tuple[Sent, Ask]:
    """A question of a slot after c slipped in slot 1; it is out in slot 2 only."""
    rules = terms()
    sent = Sent(rules, {"c": {1: 0}})
    with ledger_at(path) as ledger:
        coordinator = Coordinator(rules, ledger, START_MODEL)
        while (ask := coordinator.next_ask(slot)) is not None:
            if (ask.slot, ask.stage) == (slot, stage):
                return sent, ask
            coordinator.take(ask, sent(ask))
    raise AssertionError("there is no such question")


@pytest.mark.parametrize("stage", ["report", "rank", "offer"])
def test_it_takes_no_part_while_its_own_copy_says_that_it_is_out(stage: str, path: Path) -> None:
    sent, ask = asked_in(path, 2, stage)
    told = dict(ask.contents)
    ask = replace(ask, contents=told | {"c": told["a"]})
    before = len(sent.clients.copies["c"].written)
    with pytest.raises(Refusal, match="it is suspended in slot 2"):
        sent.clients.reply("c", ask)
    if stage == "report":  # even if the server no longer says so
        with pytest.raises(Refusal, match="it is suspended in slot 2, as its own copy says"):
            sent.clients.reply("c", telling(ask, "c", suspended={}))
    assert len(sent.clients.copies["c"].written) == before


@pytest.mark.parametrize(
    "suspended",
    [
        {"c": {"slipped_in": 1, "slots_left": 2}},
        {"c": {"slipped_in": 1, "slots_left": None}},
        {"c": {"slipped_in": 1, "slots_left": 0}},
        {"c": {"slipped_in": 3, "slots_left": 1}},
        {"nobody known": {"slipped_in": 1, "slots_left": 1}},
        ["c"],
    ],
)
@pytest.mark.parametrize("stage", ["report", "settle"])
def test_a_suspension_that_the_terms_do_not_know_is_refused(
    suspended: Any, stage: str, path: Path
) -> None:
    sent, ask = asked_in(path, 2, stage)
    before = len(sent.clients.copies["a"].written)
    with pytest.raises(Refusal, match=r"'suspended|longer than the terms say"):
        sent.clients.reply("a", telling(ask, "a", suspended=suspended))
    assert len(sent.clients.copies["a"].written) == before


def test_two_stories_about_who_is_out_are_refused(path: Path) -> None:
    sent, ask = asked_in(path, 2, "report")
    sent.clients.reply("a", ask)
    with pytest.raises(Refusal, match=r"told something else before \(report\)"):
        sent.clients.reply("a", telling(ask, "a", phase="punishing"))


def told_in_slot_3(path: Path, **false: Any) -> tuple[Sent, Ask]:
    """C slipped in slot 1 and is out for three slots; d slipped in slot 2; slot 3 begins."""
    rules = terms(punishment_slots=3)
    sent = Sent(rules, {"c": {1: 0}, "d": {2: 0}})
    with played(path, sent, rules, 2) as ledger:
        ask = Coordinator(rules, ledger, START_MODEL).next_ask(3)
    assert ask is not None
    return sent, telling(ask, "a", "b", **false)


def left(slipped_in: int, slots: int | None) -> dict[str, int | None]:
    return {"slipped_in": slipped_in, "slots_left": slots}


@pytest.mark.parametrize(
    ("false", "problem"),
    [
        ({"suspended": {}}, "c is suspended in slot 3, as its own copy says"),
        ({"suspended": {}, "returned": ["c", "d"]}, "c is suspended in slot 3"),
        ({"suspended": {"c": left(1, 2)}, "returned": ["d"]}, "d is suspended in slot 3"),
        ({"suspended": {"c": left(1, 3), "d": left(2, 3)}}, "c is suspended for longer or shor"),
        ({"suspended": {"c": left(1, 1), "d": left(2, 3)}}, "c is suspended for longer or shor"),
        ({"suspended": {"c": left(2, 2), "d": left(2, 3)}}, "c is suspended for a slip that"),
        ({"suspended": {n: left(2, 3) for n in "cde"}}, "c is suspended for a slip that its"),
        (
            {"suspended": {"c": left(1, 2), "d": left(2, 3), "e": left(1, 2)}},
            "e is suspended for a slip that its own copy does not have",
        ),
    ],
)
def test_a_client_knows_who_must_be_out(false: dict[str, Any], problem: str, path: Path) -> None:
    sent, ask = told_in_slot_3(path, **false)
    before = len(sent.clients.copies["a"].written)
    with pytest.raises(Refusal, match=problem):
        sent.clients.reply("a", ask)
    assert len(sent.clients.copies["a"].written) == before


def test_a_client_that_missed_slots_takes_what_may_have_happened_meanwhile(path: Path) -> None:
    """B is away in slots 2 and 3; c is back in slot 3, slips again, and d slips."""
    rules = terms(punishment_slots=1)
    sent = Sent(rules, {"c": {1: 0, 3: 0}, "d": {3: 0}})
    with played(path, sent, rules, 1) as ledger:
        coordinator = Coordinator(rules, ledger, START_MODEL)
        sent.clients.away = {"b"}
        run(coordinator, sent, 3)
        sent.clients.away = set()
        run(coordinator, sent, 4)
        assert verdicts(ledger, 4)["b"] == "kept"
        check(ledger, sent)


# --- The slot of the slip ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("names", "slipping"), [(("a", "b"), "b"), (NAMES[:4], "cd"), (NAMES, "cde")]
)
def test_the_others_finish_the_slot_of_a_slip(
    names: tuple[str, ...], slipping: str, path: Path
) -> None:
    rules = terms(names, rounds=5)
    sent = Sent(rules, {name: {1: 0} for name in slipping})
    with played(path, sent, rules, 2) as ledger:
        for slot in (1, 2):
            turns = list(ledger.entries(slot=slot, kind="round"))
            assert [turn.body["turn"] for turn in turns] == [1, 2, 3, 4, 5]
            assert all(turn.body["averaged"] for turn in turns[1:])
        assert [m for m in sent.models_to(slipping[0]) if m[0] < 3] == [(1, "train", 1)]
        check(ledger, sent)


# --- The audit -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "forge",
    [
        instead("settlement", 1, suspended={}),
        instead("settlement", 1, suspended={"c": {"slipped_in": 1, "slots_left": 2}}),
        instead("settlement", 1, suspended={"a": {"slipped_in": 1, "slots_left": 1}}),
        instead("settlement", 2, suspended={"c": {"slipped_in": 1, "slots_left": 1}}),
        instead("settlement", 1, phase="punishing", slots_left=1),
        instead("verdict", 2, "c", verdict="absence"),
        instead("verdict", 2, "a", verdict="suspended"),
        instead("agreement", 1, punishment="reversion"),
        instead("told", 2, clients=["a", "b", "d", "e", "c"]),
    ],
)
def test_verify_works_it_out_again(forge: Callable[..., Any], path: Path) -> None:
    rules = terms()
    sent = Sent(rules, {"c": {1: 0}})
    with played(path, sent, rules, 3) as ledger:
        entries = list(ledger.entries())
    assert audit(entries) == []
    (problem,) = audit(rewritten(entries, forge))
    assert "entry" in problem


# --- Lies ----------------------------------------------------------------------------------


@lie(
    "the server",
    "suspend a client that trained as agreed",
    "verify recomputes every verdict from the contributions in the ledger",
)
def test_an_honest_client_is_not_suspended_by_a_verdict(path: Path) -> None:
    rules = terms()
    with played(path, Sent(rules), rules, 1) as ledger:
        entries = list(ledger.entries())
    slander = instead("verdict", 1, "a", verdict="deviation")
    (problem,) = audit(rewritten(entries, slander))
    assert "does not follow from the entries before it" in problem


@lie(
    "the server",
    "record that a client trained on less than it did, and suspend it for that",
    "the client's copy has what it trained on: verify --against reveals it",
)
def test_a_made_up_slip_shows_in_the_copy_of_the_accused(path: Path) -> None:
    rules = terms()
    sent = Sent(rules)

    def slandered(ask: Ask) -> list[Reply]:
        return [
            replace(reply, body=reply.body | {"samples": 0}, parameters=None)
            if (ask.stage, reply.client) == ("train", "a")
            else reply
            for reply in sent(ask)
        ]

    with ledger_at(path) as ledger:
        run(Coordinator(rules, ledger, START_MODEL), slandered, 2)
        assert out(ledger)[0] == {"a": (1, 1)}
        entries = list(ledger.entries())
    assert audit(entries) == []
    found = contradictions(entries, sent.clients.copies["a"].written)
    assert any("the server wrote down something else" in problem for problem in found)
    told = [e.body for e in sent.clients.copies["a"].written if e.kind == "settlement"]
    assert told[0]["verdict"] == "deviation"  # it keeps what it was told as evidence


@lie(
    "the server",
    "keep a client out for longer than the terms say",
    "the clients refuse the settlement, and verify finds it in the ledger",
)
def test_nobody_is_out_for_longer_than_the_terms_say(path: Path) -> None:
    sent, ask = asked_in(path, 1, "settle")
    longer = {"c": {"slipped_in": 1, "slots_left": 9}}
    for name in NAMES:
        with pytest.raises(Refusal, match="for longer than the terms say"):
            sent.clients.reply(name, telling(ask, name, suspended=longer))


@lie(
    "the server",
    "let a suspended client take part, or send it the model",
    "an honest client refuses; verify knows whom the server had to ask",
)
def test_a_suspended_client_takes_no_part_and_no_model(path: Path) -> None:
    rules = terms()
    sent = Sent(rules, {"c": {1: 0}})
    with played(path, sent, rules, 2) as ledger:
        entries = list(ledger.entries())
    (absent,) = (e.fact for e in entries if (e.kind, e.slot, e.client) == ("report", 1, "c"))
    extra = inserted(absent._replace(slot=2), after="report", slot=2, client="b")
    (problem,) = audit(rewritten(entries, extra))
    assert "comes from a client that was not asked" in problem
    sent, ask = asked_in(path.with_name("other.db"), 2, "settle")
    assert ask.parameters is not None
    with pytest.raises(Refusal, match="a suspended client is sent no model"):
        sent.clients.reply("c", telling(ask, "c", model=digest(ask.parameters)))


@lie(
    "the server",
    "tell some clients that a client is suspended, and others that it is not",
    "ledger compare finds it in their copies, without the server",
)
def test_two_stories_about_a_suspension_show_in_two_copies(path: Path) -> None:
    sent, ask = asked_in(path, 1, "settle")
    sent.clients.reply("a", ask)
    sent.clients.reply("b", telling(ask, "b", suspended={}))
    copies = [sent.clients.copies[name].written for name in "ab"]
    (problem,) = compare_copies(copies).contradictions
    assert "differ in the suspended clients: c and nobody" in problem


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
    (problem,) = audit(rewritten(entries, instead("decision", 1, accepted=True)))
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
    assert audit(forged) == []
    found = contradictions(forged, sent.clients.copies["e"].written)
    assert any("the server wrote down something else" in problem for problem in found)


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
    (problem,) = audit(forged)
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


# --- Fees ----------------------------------------------------------------------------------


def test_fees_that_are_saved_are_reported_and_counted(path: Path) -> None:
    """A server that did not know of them would offer what clients have to refuse."""
    totals = {}
    for fee in (0.0, 1.0, 1.5):
        rules = terms(fees_saved=True, server_fee=fee, objective="most data", margin=0.0)
        sent = Sent(rules)
        with played(path.with_name(f"{fee}.db"), sent, rules, 1) as ledger:
            price = sent.clients.participants["a"].private.cost_per_sample
            (told,) = (e.body["fees"] for e in ledger.entries(kind="report") if e.client == "a")
            assert told == pytest.approx(fee / price)
            assert {e.body["accepts"] for e in ledger.entries(kind="answer")} == {True}
            (settled,) = ledger.entries(kind="settlement")
            totals[fee] = settled.body["total"]
            check(ledger, sent)
    assert totals[0.0] > totals[1.0] > totals[1.5]


# --- Nobody worse off than at the equilibrium ----------------------------------------------


def test_nobody_worse_is_kept_by_the_server_and_checked_by_everyone(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rules: dict[str, Any] = {"objective": "most data", "margin": 0.0}
    signed = terms(nobody_worse=True, **rules)
    with played(path, Sent(signed), signed, 1) as ledger:
        assert set(verdicts(ledger, 1).values()) == {"kept"}
    solve = conclusions._solve
    monkeypatch.setattr(conclusions, "flaw_in", lambda *_: None)
    monkeypatch.setattr(conclusions, "_solve", lambda slot, _: solve(slot, terms(**rules)))
    with played(path.with_name("false.db"), Sent(signed), signed, 1) as ledger:
        answers = [e.body["accepts"] for e in ledger.entries(kind="answer")]
        entries = list(ledger.entries())
    assert not all(answers)  # whoever would pay more refuses
    (problem,) = audit(entries)
    assert "under which somebody would pay more than at the equilibrium" in problem

"""Suspension: whoever slips is out and is sent no model, the others go on, and it returns."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fedaccord.protocol import conclusions
from fedaccord.protocol.comparison import compare_copies
from fedaccord.protocol.coordinator import Coordinator
from fedaccord.protocol.copies import contradictions
from fedaccord.protocol.envelopes import Ask, Reply
from fedaccord.protocol.messages import Refusal
from fedaccord.protocol.parameters import digest
from fedaccord.protocol.verification import wrong_in
from tests.flower.consortia import (
    START_MODEL,
    ledger_at,
    phases,
    run,
    verdicts,
)
from tests.flower.stories import inserted, instead, rewritten, telling
from tests.lies import lie
from tests.protocol.suspensions import (
    NAMES,
    Sent,
    asked_in,
    check,
    out,
    played,
    terms,
)

# --- A slip, and what follows --------------------------------------------------------------


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.slow
def test_whoever_slips_again_is_out_again(path: Path) -> None:
    rules = terms()
    sent = Sent(rules, {"c": {1: 0, 2: 0, 3: 0, 5: 0}})  # it is out in slots 2 and 4
    with played(path, sent, rules, 6) as ledger:
        assert out(ledger) == [{"c": (1, 1)}, {}, {"c": (3, 1)}, {}, {"c": (5, 1)}, {}]
        check(ledger, sent)


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.slow
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


# --- The client's half ---------------------------------------------------------------------


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


@pytest.mark.slow
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


# --- Verification ---------------------------------------------------------------------------


@pytest.mark.slow
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
    assert wrong_in(entries) == []
    (problem,) = wrong_in(rewritten(entries, forge))
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
    (problem,) = wrong_in(rewritten(entries, slander))
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
    assert wrong_in(entries) == []
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


@pytest.mark.slow
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
    (problem,) = wrong_in(rewritten(entries, extra))
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


# --- Fees ----------------------------------------------------------------------------------


@pytest.mark.slow
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
    (problem,) = wrong_in(entries)
    assert "under which somebody would pay more than at the equilibrium" in problem

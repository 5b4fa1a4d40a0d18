"""Terms under which nobody reports: what the terms post is offered, and nothing else is asked."""

import json
import random
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedaccord.errors import InvalidInput
from fedaccord.ledger.store import Ledger
from fedaccord.protocol.coordinator import Coordinator
from fedaccord.protocol.copies import contradictions
from fedaccord.protocol.envelopes import Ask, Reply
from fedaccord.protocol.messages import Refusal
from fedaccord.protocol.parameters import digest
from fedaccord.protocol.terms import Terms
from fedaccord.protocol.verification import wrong_in
from tests.flower.consortia import (
    START_MODEL,
    Clients,
    kinds,
    ledger_at,
    privates_of,
    run,
    terms_of,
    verdicts,
)
from tests.flower.stories import inserted, instead, rewritten, telling
from tests.lies import lie
from tests.protocol.postings import KINDS, NAMES, public_of, unreported
from tests.protocol.suspensions import Sent, check, out, played
from tests.protocol.test_bad_server import JSON
from tests.protocol.test_participant import ENVELOPE, SETTLED

# --- A slot --------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_a_slip_one_slot_out_and_back(kind: str, path: Path) -> None:
    rules = unreported(kind)
    sent = Sent(rules, {"c": {2: 0}})
    with played(path, sent, rules, 4) as ledger:
        assert out(ledger) == [{}, {"c": (2, 1)}, {}, {}]
        assert set(verdicts(ledger, 1).values()) == {"kept"}
        assert verdicts(ledger, 2) == {n: "deviation" if n == "c" else "kept" for n in NAMES}
        assert verdicts(ledger, 3) == {n: "suspended" if n == "c" else "kept" for n in NAMES}
        assert set(verdicts(ledger, 4).values()) == {"kept"}
        assert not {"report", "rank"} & set(kinds(ledger, 1))
        check(ledger, sent)
    assert sent.to("c", 3) == [("settle", 0)]


@pytest.mark.parametrize("kind", ["posted", "everything"])
def test_everyone_is_offered_what_the_terms_say(kind: str, path: Path) -> None:
    rules = unreported(kind)
    with played(path, Sent(rules), rules, 1) as ledger:
        offers = {e.client: e.body["contribution"] for e in ledger.entries(kind="offer")}
        assert offers == {name: rules.posted_for(name) for name in NAMES}
        assert kinds(ledger, 1)[:6] == ["slot", *["presence"] * 5]


def numbers_in(value: Any) -> set[float]:
    if isinstance(value, dict):
        return set().union(*map(numbers_in, value.values()))
    if isinstance(value, list):
        return set().union(*map(numbers_in, value))
    return {value} if isinstance(value, float) else set()


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_of_a_clients_private_numbers_leaves_it(kind: str, path: Path) -> None:
    rules = unreported(kind)
    sent, replies = Sent(rules, tells_discount_factor=True), list[Reply]()

    def listen(ask: Ask) -> list[Reply]:
        given = sent(ask)
        replies.extend(given)
        return given

    with ledger_at(path) as ledger:
        run(Coordinator(rules, ledger, START_MODEL), listen, 2)
        written = [e.body for e in ledger.entries() if e.kind not in ("terms", "contribution")]
    assert not numbers_in(written)
    assert not numbers_in([reply.body for reply in replies])
    said = {key for reply in replies for key in reply.body}
    answers = {"stays"} if "clock" in kind else set()
    assert said == {"stage", "slot", "turn", "token", "accepts", "samples", *answers}


def test_a_ratio_that_a_client_sends_all_the_same_is_not_written_down(path: Path) -> None:
    rules = unreported("posted")
    sent = Sent(rules)

    def chatty(ask: Ask) -> list[Reply]:
        return [replace(reply, body=reply.body | {"ratio": 5.0}) for reply in sent(ask)]

    with ledger_at(path) as ledger:
        run(Coordinator(rules, ledger, START_MODEL), chatty, 1)
        assert [entry.body for entry in ledger.entries(kind="presence")] == [{}] * 5
        assert wrong_in(ledger.entries()) == []


@lie(
    "a client",
    "report a lower ratio, so that it is asked for less",
    'with `reports = "none"` nobody reports, and what it is offered does not depend on its numbers',
)
@pytest.mark.parametrize("kind", ["posted", "everything"])
def test_what_a_client_is_offered_does_not_depend_on_its_numbers(kind: str, path: Path) -> None:
    rules, offered = unreported(kind), []
    for factor in (1.0, 3.0):
        sent = Sent(rules)
        sent.set("b", valuation=34.0 * factor, discount_factor=0.8 + 0.05 * factor)
        place = path.with_name(f"{factor}.db")
        with played(place, sent, rules, 1) as ledger:
            offered.append([entry.body for entry in ledger.entries(kind="offer")])
    assert offered[0] == offered[1]


# --- Refusals ------------------------------------------------------------------------------


def with_impatient_b(path: Path, rules: Terms) -> tuple[Ledger, Sent]:
    sent = Sent(rules)
    sent.set("b", discount_factor=0.001, valuation=1.0)
    return played(path, sent, rules, 1), sent


@pytest.mark.parametrize("kind", KINDS[:2])
def test_who_refuses_takes_no_part_and_gets_no_model(kind: str, path: Path) -> None:
    """The others are asked again: the largest set that accepts is what is left."""
    ledger, sent = with_impatient_b(path, unreported(kind))
    with ledger:
        assert verdicts(ledger, 1) == {n: "refused" if n == "b" else "kept" for n in NAMES}
        assert [e.body["turn"] for e in ledger.entries(kind="agreement")] == [1, 2]
        check(ledger, sent)
    assert sent.models_to("b") == []


@pytest.mark.parametrize("reports", ["none", "ratio"])
def test_with_unanimity_a_refusal_voids_the_slot(reports: str, path: Path) -> None:
    rules = {
        "none": unreported("posted", on_refusal="void"),
        "ratio": terms_of(NAMES, punishment="suspension", on_refusal="void"),
    }
    ledger, sent = with_impatient_b(path, rules[reports])
    with ledger:
        (settled,) = ledger.entries(kind="settlement")
        assert settled.body["void"]
        assert verdicts(ledger, 1) == {n: "refused" if n == "b" else "kept" for n in NAMES}
        check(ledger, sent)
    assert not any(sent.models_to(name) for name in NAMES)


def test_a_client_that_is_better_than_its_range_accepts(path: Path) -> None:
    """It would like to train on more, which breaks nothing."""
    public = public_of("posted")
    public["e"] |= {"contribution": 70}
    rules = unreported("posted", public=public)
    sent = Sent(rules)
    sent.set("e", valuation=1e6)
    with played(path, sent, rules, 1) as ledger:
        assert set(verdicts(ledger, 1).values()) == {"kept"}
        check(ledger, sent)


def test_a_client_with_less_data_than_the_terms_say_stays_away(path: Path) -> None:
    rules = unreported("everything")
    clients = Clients(rules, privates_of(NAMES))
    clients.participants["b"].private = replace(privates_of(NAMES)[1], samples=49)
    with ledger_at(path) as ledger:
        ask = Coordinator(rules, ledger, START_MODEL).next_ask(1)
        assert ask is not None
        with pytest.raises(Refusal, match="it has 49 samples, and 50 by the terms"):
            clients.reply("b", ask)


# --- A server that does something else -----------------------------------------------------


def refused_by_b(path: Path, rules: Terms, change: dict[str, Any]) -> tuple[Ledger, Clients]:
    """B is told another offer than the ledger says."""
    clients = Clients(rules, privates_of(NAMES))
    ledger = ledger_at(path)

    def lies(ask: Ask) -> list[Reply]:
        return clients(
            telling(ask, "b", **change) if ask.stage == "offer" and "b" in ask.contents else ask
        )

    run(Coordinator(rules, ledger, START_MODEL), lies, 1)
    return ledger, clients


@lie(
    "the server",
    "offer another amount than the terms post",
    "the client refuses it, and its copy proves what it was told",
)
@pytest.mark.parametrize("change", [{"contribution": 49}, {"total": 10**6}, {"rounds": 3}])
def test_another_offer_than_posted_is_refused(change: dict[str, Any], path: Path) -> None:
    ledger, clients = refused_by_b(path, unreported("everything"), change)
    with ledger:
        assert verdicts(ledger, 1)["b"] == "refused"
        found = contradictions(ledger.entries(), clients.copies["b"].written)
        assert any("told something else than its ledger says" in one for one in found)


FORGED: dict[str, Callable[[Any], Any]] = {
    "another offer": instead("offer", 1, "b", contribution=49),
    "another total": instead("agreement", 1, total=299),
    "no agreement": instead("agreement", 1, exists=False, reason="why not", total=None),
    "an equilibrium that nobody knows": instead("agreement", 1, equilibrium_total=5.0),
    "another basis": instead("basis", 1, contributions=dict.fromkeys(NAMES, 40)),
    "a report": lambda fact: (
        fact._replace(kind="report", body={"ratio": 5.0, "samples": 50})
        if (fact.kind, fact.client) == ("presence", "b")
        else fact
    ),
}


@lie(
    "the server",
    "write down another offer, total or basis than the posted amounts lead to",
    "`ledger verify` finds it",
)
@pytest.mark.parametrize("forgery", FORGED)
def test_verify_finds_what_is_not_posted(forgery: str, path: Path) -> None:
    rules = unreported("everything")
    with played(path, Sent(rules), rules, 1) as ledger:
        assert wrong_in(rewritten(list(ledger.entries()), FORGED[forgery]))


def test_a_presence_where_reports_are_asked_for_is_found(path: Path) -> None:
    rules = terms_of(NAMES)
    with played(path, Sent(rules), rules, 1) as ledger:
        entries = list(ledger.entries())
    first = next(entry for entry in entries if entry.kind == "report")
    forged = rewritten(
        entries,
        lambda fact: fact._replace(kind="presence", body={}) if fact == first.fact else fact,
    )
    assert wrong_in(forged)


@lie(
    "the server",
    "change the public numbers from which the amounts are posted",
    "they are in the terms that every client signed; a copy has their digest",
)
def test_other_public_numbers_are_other_terms(path: Path) -> None:
    public = public_of("posted")
    public["b"] |= {"contribution": 49}
    rules, other = unreported("posted"), unreported("posted", public=public)
    assert rules.digest != other.digest
    sent = Sent(rules)  # what the clients signed
    with played(path, sent, other, 1) as ledger:
        assert wrong_in(ledger.entries()) == []
        assert verdicts(ledger, 1)["b"] == "refused"
        found = contradictions(ledger.entries(), sent.clients.copies["a"].written)
        assert found


@pytest.mark.slow
def test_new_terms_may_end_the_reports(path: Path) -> None:
    before, after = terms_of(NAMES, punishment="suspension"), unreported("posted")
    sent = Sent(before, {"c": {1: 0}})
    with played(path, sent, before, 1) as ledger:
        for participant in sent.clients.participants.values():
            participant.terms = after
        run(Coordinator(after, ledger, START_MODEL), sent, 3)
        assert verdicts(ledger, 2)["c"] == "suspended"
        assert set(verdicts(ledger, 3).values()) == {"kept"}
        check(ledger, sent)


def test_inserted_clock_entries_are_found(path: Path) -> None:
    rules = unreported("everything")
    with played(path, Sent(rules), rules, 1) as ledger:
        entries = list(ledger.entries())
    last = next(e for e in entries if (e.kind, e.client) == ("presence", "e")).fact
    stray = last._replace(kind="stay", body={"turn": 1, "stays": True})
    assert wrong_in(rewritten(entries, inserted(stray, after="presence", slot=1, client="e")))


@pytest.mark.slow
@settings(max_examples=80, deadline=None)
@given(
    stage=st.sampled_from(["report", "clock", "offer", "train", "tier", "settle"]), data=st.data()
)
def test_any_question_is_answered_or_refused(stage: str, data: st.DataObject) -> None:
    """Good questions with some fields replaced by anything: an answer, or a refusal."""
    asked: dict[str, Any] = ENVELOPE | {"stage": stage, "slot": 1, "turn": 0, **QUESTIONS[stage]}
    keys = data.draw(st.sets(st.sampled_from(sorted(asked)), max_size=3))
    asked |= {key: data.draw(JSON) for key in keys}
    participant = Clients(unreported("serial clock"), privates_of(NAMES)).participants["b"]
    with suppress(Refusal):
        participant.answer(asked, data.draw(st.sampled_from([None, START_MODEL])))


QUESTIONS: dict[str, dict[str, Any]] = {
    "report": {"phase": "cooperating", "suspended": {}, "returned": []},
    "clock": {"turn": 1, "step": 1, "total": 0.0, "inside": 300},
    "offer": {
        "turn": 1,
        "contribution": 43,
        "agreement": "serial clock",
        "total": 240,
        "punishment": "suspension",
        "punishment_slots": 1,
        "tolerance": 0.0,
        "rounds": 2,
    },
    "train": {"turn": 1, "basis": "agreement", "contribution": 3, "model": digest(START_MODEL)},
    "tier": {"turn": 1, "model": digest(START_MODEL)},
    "settle": {**SETTLED, "model": None},
}


# --- Terms ---------------------------------------------------------------------------------

WRONG = [
    ({"reports": "none", "agreement": "individual"}, "is computed from reports"),
    ({"reports": "ratio"}, "everything takes no reports"),
    ({"punishment": "reversion"}, "must be suspension without reports"),
    ({"on_refusal": "equilibrium"}, "must be without or void"),
    ({"nobody_worse": True}, "nobody_worse: needs reports"),
    ({"fees_saved": True}, "fees_saved: needs reports"),
    ({"clock_steps": 5}, "clock_steps: is for a clock"),
    ({"agreement": "clock", "clock_steps": 0}, "clock_steps: must be 1 or more, got 0"),
    ({"public": None}, "public: must be a table, got None"),
    ({"clock_steps": None}, "clock_steps: must be a whole number, got None"),
    ({"public": {"a": {"samples": 4}}}, "must have a table for each client"),
    ({"public": {key: {"samples": 0} for key in NAMES}}, "samples: must be 1 or more, got 0"),
    ({"agreement": "posted"}, "public.a: contribution, lowest_ratio and lowest_discount_factor"),
    (
        {"public": {key: {"samples": 4, "contribution": 3} for key in NAMES}},
        "public.a: samples alone are for everything",
    ),
]


@pytest.mark.parametrize(("change", "sentence"), WRONG)
def test_wrong_terms_get_one_sentence(change: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InvalidInput) as error:
        unreported("everything", **change)
    assert sentence in str(error.value)


def test_terms_with_reports_have_no_public_numbers() -> None:
    with pytest.raises(InvalidInput, match='public: is for reports = "none"'):
        terms_of(NAMES, public=public_of("everything"))


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"contribution": 41}, "public.a.contribution: is more than its samples"),
        ({"lowest_ratio": 0.1}, "would gain by breaking it"),
        ({"lowest_discount_factor": 0.001, "lowest_ratio": 90.0}, "would gain by breaking it"),
    ],
)
def test_amounts_that_do_not_hold_cannot_be_posted(change: dict[str, Any], sentence: str) -> None:
    public = public_of("posted")
    public["a"] |= change
    with pytest.raises(InvalidInput) as error:
        unreported("posted", public=public)
    assert sentence in str(error.value)


def test_what_is_usual_without_reports() -> None:
    rules = unreported("posted")
    short = terms_of(NAMES, reports="none", public=public_of("posted"), punishment_slots=1)
    assert short == rules
    assert short.punishment == "suspension"
    assert terms_of(NAMES, agreement="clock", public=public_of("clock")).clock_steps == 20


def test_terms_with_reports_are_written_as_before() -> None:
    """So their digests are those that clients noted before there were others."""
    rules = json.loads(terms_of(NAMES).model_dump_json())
    assert not {"reports", "clock_steps", "public", "law"} & rules.keys()


# --- Anything may happen -------------------------------------------------------------------


@pytest.mark.slow
@settings(max_examples=6, deadline=None)
@given(kind=st.sampled_from(KINDS), seed=st.integers(0, 10**6), restart=st.booleans())
def test_whoever_is_away_slips_or_refuses_the_ledger_verifies(
    kind: str, seed: int, restart: bool
) -> None:
    """Clients stay away at random, slip and refuse, and the server may be started again."""
    chance = random.Random(seed)
    steps: dict[str, Any] = {"clock_steps": 4} if "clock" in kind else {}
    rules = unreported(kind, **steps)
    slips = {
        name: {chance.randint(1, 3): chance.randint(0, 60)} for name in chance.sample(NAMES, 2)
    }
    sent = Sent(rules, slips)
    sent.set(chance.choice(NAMES), discount_factor=chance.random())
    with TemporaryDirectory() as folder, ledger_at(Path(folder, "ledger.db")) as ledger:
        coordinator = Coordinator(rules, ledger, START_MODEL)
        while (ask := coordinator.next_ask(3)) is not None:
            away = [name for name in NAMES if chance.random() < 0.06]
            sent.clients.away = set(away)
            coordinator.take(ask, sent(ask))
            if restart:
                coordinator = Coordinator(rules, ledger)
        check(ledger, sent)
        told = [entry.body for entry in ledger.entries(kind="told")]
    assert len(told) == 3

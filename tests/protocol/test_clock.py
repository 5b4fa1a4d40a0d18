"""The clock and the serial clock: shares rise until clients stop them, and nobody gains by lying.

The rules of the clocks are checked against every other answer that a client could give, and against
the mechanisms, in which shares rise without steps.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedaccord.game.consortium import Consortium
from fedaccord.ledger.chain import Fact
from fedaccord.mechanisms.clock import best_shares, serial_shares
from fedaccord.protocol import facts
from fedaccord.protocol.clock import goes_on
from fedaccord.protocol.conclusions import due
from fedaccord.protocol.coordinator import Coordinator
from fedaccord.protocol.copies import contradictions
from fedaccord.protocol.envelopes import Ask, Reply
from fedaccord.protocol.messages import FORMAT, AskedClock, Refusal, part
from fedaccord.protocol.notes import Settlement, Tier
from fedaccord.protocol.parameters import Arrays, digest
from fedaccord.protocol.questions import open_question
from fedaccord.protocol.state import State
from fedaccord.protocol.terms import Terms
from fedaccord.protocol.verification import wrong_in
from tests.flower.consortia import (
    START_MODEL,
    Clients,
    ledger_at,
    nudge,
    privates_of,
    run,
    terms_of,
    verdicts,
)
from tests.flower.stories import instead, left_out, rewritten, telling, twice
from tests.lies import lie
from tests.protocol.postings import NAMES, unreported
from tests.protocol.suspensions import Sent, check, out, played

CLOCKS = ("clock", "serial clock")

# --- What a client says to it --------------------------------------------------------------


def terms_for(consortium: Consortium, kind: str, steps: int) -> Terms:
    public = {
        n: {"samples": int(d)} for n, d in zip(consortium.names, consortium.samples, strict=False)
    }
    names = consortium.names
    return terms_of(names, agreement=kind, clock_steps=steps, public=public, punishment_slots=1)


def stopped_at(
    consortium: Consortium, terms: Terms, lies: Mapping[str, int] | None = None
) -> dict[str, int]:
    """Where each client ends, in steps; who lies stays until its share, whatever it is worth."""
    state, ratios = State(), dict(zip(consortium.names, consortium.ratio.tolist(), strict=True))
    state.apply(facts.Terms(slot=0, format=FORMAT, terms=terms))
    state.apply(facts.Slot(slot=1, phase="cooperating"))
    for name in consortium.names:
        state.apply(facts.Presence(slot=1, client=name))
    while not state.current.clock_over:
        stage, _, turn, contents = open_question(state)
        assert stage == "clock"
        for name in contents:
            asked = part(AskedClock, contents[name])
            steps, law = terms.clock_steps or 0, terms.law_of_loss
            stays = goes_on(ratios[name], terms.samples_of(name), law, asked, steps)
            if lies and name in lies:
                stays = asked.step <= lies[name]
            state.apply(facts.Stay(slot=1, client=name, turn=turn, stays=stays))
        (tick,) = due(state)
        state.apply(tick)
    return {name: state.current.step_of(name) for name in consortium.names}


def costs(consortium: Consortium, terms: Terms, steps: Mapping[str, int]) -> np.ndarray[Any, Any]:
    """What each client pays with its share, not rounded to whole samples, and its model."""
    share = np.array(list(steps.values())) / (terms.clock_steps or 1)
    totals = (consortium.samples * np.minimum.outer(share, share)).sum(axis=1)
    return consortium.ratio * terms.law_of_loss.loss(totals) + share * consortium.samples


@st.composite
def consortia(draw: st.DrawFn, steps: int) -> Consortium:
    size = draw(st.integers(2, 6))
    samples = [steps * draw(st.integers(1, 40)) for _ in range(size)]
    spread = [draw(st.floats(0.05, 20.0)) for _ in range(size)]
    return Consortium(
        valuation=[
            2.0 * k * d * np.sqrt(2 * sum(samples)) for k, d in zip(spread, samples, strict=False)
        ],
        cost_per_sample=1.0,
        samples=samples,
        rounds=2,
        discount_factor=0.8,
    )


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(consortium=consortia(steps=8), kind=st.sampled_from(CLOCKS))
def test_no_other_answer_costs_a_client_less(consortium: Consortium, kind: str) -> None:
    terms = terms_for(consortium, kind, 8)
    truth = costs(consortium, terms, stopped_at(consortium, terms))
    for n, name in enumerate(consortium.names):
        for step in range(9):
            lied = costs(consortium, terms, stopped_at(consortium, terms, {name: step}))
            assert lied[n] >= truth[n] * (1.0 - 1e-12)


@pytest.mark.slow
@settings(max_examples=15, deadline=None)
@given(consortium=consortia(steps=8))
def test_with_many_steps_they_are_the_mechanisms(consortium: Consortium) -> None:
    steps = 100
    clock, serial = (terms_for(consortium, kind, steps) for kind in CLOCKS)
    share = min(stopped_at(consortium, clock).values()) / steps
    assert share == pytest.approx(best_shares(consortium).min(), abs=1.0 / steps)
    shares = np.array(list(stopped_at(consortium, serial).values())) / steps
    assert shares == pytest.approx(serial_shares(consortium), abs=2.0 / steps)


@lie(
    "a client",
    "stop the clock later or earlier than it would like to",
    "it pays no less, whatever the others say",
)
@pytest.mark.parametrize("kind", CLOCKS)
def test_stopping_elsewhere_gains_nothing(kind: str) -> None:
    privates = privates_of(NAMES)
    consortium = Consortium(
        valuation=[private.ratio for private in privates],
        cost_per_sample=1.0,
        samples=[private.samples for private in privates],
        rounds=2,
        discount_factor=0.8,
        names=list(NAMES),
    )
    terms = unreported(kind)
    kept = stopped_at(consortium, terms)
    truth = costs(consortium, terms, kept)
    for n, name in enumerate(NAMES):
        for step in range(9):
            lied = costs(consortium, terms, stopped_at(consortium, terms, {name: step}))
            assert lied[n] >= truth[n] * (1.0 - 1e-12)
    with_less = stopped_at(consortium, terms, {"a": 0})
    assert set(with_less.values()) == {0} if kind == "clock" else with_less["e"] > 0


# --- Slots ---------------------------------------------------------------------------------


def test_the_clock_reveals_the_lowest_share_only(path: Path) -> None:
    rules = unreported("clock", clock_steps=20)
    with played(path, Sent(rules), rules, 1) as ledger:
        stops = [
            (e.client, e.body["turn"]) for e in ledger.entries(kind="stay") if not e.body["stays"]
        ]
        assert stops == [("a", 16)]
        (*_, last) = ledger.entries(kind="clock")
        assert last.body == {"turn": 16, "step": 15, "over": True}
        (basis,) = ledger.entries(kind="basis")
        assert basis.body["contributions"] == {"a": 30, "b": 37, "c": 45, "d": 52, "e": 60}


class Trained:
    """Remembers on which samples each client trained, by round."""

    def __init__(self) -> None:
        self.spans: list[tuple[int, int, int]] = []

    def __call__(
        self, slot: int, turn: int, amount: int, parameters: Arrays, *, first: int = 0
    ) -> Arrays:
        self.spans.append((turn, first, first + amount))
        return nudge(slot, turn, amount, parameters, first=first)


def in_tiers(path: Path, slips: dict[str, dict[int, int]] | None = None) -> tuple[Any, Sent, Any]:
    """A slot after a serial clock: a keeps 15 of 20 steps, the others 18."""
    rules = unreported("serial clock", clock_steps=20)
    sent = Sent(rules, slips)
    trained = {name: Trained() for name in NAMES}
    for name, participant in sent.clients.participants.items():
        participant._train = trained[name]
    return played(path, sent, rules, 1), sent, trained


def test_each_tier_has_its_model_and_each_sample_is_trained_on_in_one_tier(path: Path) -> None:
    ledger, sent, trained = in_tiers(path)
    with ledger:
        models = [entry.body["model"] for entry in ledger.entries(kind="round")]
        assert [e.body for e in ledger.entries(kind="handed")] == [{"turn": 1, "clients": ["a"]}]
        (settled,) = ledger.entries(kind="settlement")
        assert settled.body["total"] == 30 + 45 + 54 + 63 + 72
        check(ledger, sent)
    assert len(models) == 4  # two rounds for each of two tiers
    assert trained["a"].spans == [(1, 0, 30), (2, 0, 30)]
    assert trained["e"].spans == [(1, 0, 60), (2, 0, 60), (3, 60, 72), (4, 60, 72)]
    participants = sent.clients.participants
    handed = participants["a"]._notes.latest(Tier, 1)
    assert handed is not None
    assert handed.model == models[1]
    for name, model in (("a", None), ("b", models[3]), ("e", models[3])):
        told = participants[name]._notes.latest(Settlement, 1)
        assert told is not None
        assert told.model == model
    assert list(sent.models_to("a")) == [(1, "train", 1), (1, "train", 2), (1, "tier", 1)]


def test_a_slip_in_a_later_tier_ends_what_is_sent(path: Path) -> None:
    ledger, sent, _ = in_tiers(path, {"e": {1: 1}})
    with ledger:
        assert verdicts(ledger, 1) == {n: "deviation" if n == "e" else "kept" for n in NAMES}
        assert out(ledger) == [{"e": (1, 1)}]
        check(ledger, sent)
    assert sent.models_to("e") == [(1, "train", 1)]
    assert sent.models_to("d")[-1] == (1, "settle", 0)


def test_a_tier_without_enough_clients_ends_the_slot(path: Path) -> None:
    rules = unreported("serial clock", clock_steps=20)
    sent = Sent(rules)

    def away(ask: Ask) -> list[Reply]:
        sent.clients.away = {"c", "d", "e"} if ask.stage == "train" and ask.turn == 3 else set()
        return sent(ask)

    with ledger_at(path) as ledger:
        run(Coordinator(rules, ledger, START_MODEL), away, 1)
        assert verdicts(ledger, 1) == {n: "absence" if n in "cde" else "kept" for n in NAMES}
        check(ledger, sent)
    assert sent.models_to("b")[-1] == (1, "settle", 0)


@pytest.mark.parametrize("kind", CLOCKS)
def test_who_stays_away_in_the_middle_is_left_out(kind: str, path: Path) -> None:
    rules = unreported(kind)
    sent = Sent(rules)

    def away(ask: Ask) -> list[Reply]:
        sent.clients.away = {"d"} if (ask.stage, ask.turn) == ("clock", 3) else set()
        return sent(ask)

    with ledger_at(path) as ledger:
        run(Coordinator(rules, ledger, START_MODEL), away, 1)
        assert verdicts(ledger, 1) == {n: "absence" if n == "d" else "kept" for n in NAMES}
        check(ledger, sent)
    assert sent.models_to("d") == []


@pytest.mark.parametrize("kind", CLOCKS)
def test_a_clock_that_is_stopped_at_once_trains_nothing(kind: str, path: Path) -> None:
    rules = unreported(kind, law={"kind": "power", "measure": "error", "terms": [LOW]})
    sent = Sent(rules)
    with played(path, sent, rules, 2) as ledger:
        assert {e.body["step"] for e in ledger.entries(kind="clock")} == {0}
        assert not list(ledger.entries(kind="round"))
        assert set(verdicts(ledger, 2).values()) == {"kept"}
        check(ledger, sent)
    assert not any(sent.models_to(name) for name in NAMES)


LOW = {"value": 1e-9, "shift": 1e6, "exponent": 1.0}
"""A law that is almost 0 without any data: nobody's first sample pays."""


@pytest.mark.slow
@pytest.mark.parametrize("kind", CLOCKS)
def test_a_server_that_is_started_again_goes_on(kind: str, path: Path) -> None:
    """After every question there is another server, with the same ledger."""
    rules = unreported(kind)
    sent = Sent(rules, {"c": {1: 0}})
    with played(path.with_name("other.db"), Sent(rules, {"c": {1: 0}}), rules, 2) as ledger:
        wanted = [entry.fact for entry in ledger.entries()]
    with ledger_at(path) as ledger:
        while (ask := Coordinator(rules, ledger, START_MODEL).next_ask(2)) is not None:
            Coordinator(rules, ledger).take(replace(ask, head=ledger.head), sent(ask))
        assert [entry.fact for entry in ledger.entries()] == wanted
        check(ledger, sent)


# --- A bad server --------------------------------------------------------------------------


def story(path: Path, kind: str) -> tuple[list[Any], Sent]:
    rules = unreported(kind)
    sent = Sent(rules)
    with played(path, sent, rules, 1) as ledger:
        return list(ledger.entries()), sent


def at_turn(turn: int, forge: Callable[[Fact], Any]) -> Callable[[Fact], Any]:
    return lambda fact: forge(fact) if fact.body.get("turn") == turn else fact


FORGED: dict[str, Callable[[Fact], Any]] = {
    "a clock that ends before anyone stopped it": at_turn(3, instead("clock", 1, over=True)),
    "a clock that goes further": at_turn(3, instead("clock", 1, step=4)),
    "a clock that stands still": at_turn(3, instead("clock", 1, step=2)),
    "an answer that is missing": at_turn(3, left_out("stay", 1, "b")),
    "a second answer": at_turn(3, twice("stay", 1, "b")),
    "an answer to another step": at_turn(3, instead("stay", 1, "b", turn=4)),
    "an offer of another share": instead("offer", 1, "b", contribution=12),
}


@lie(
    "the server",
    "claim that the clock stopped earlier or later than the clients said, or offer another share",
    "`ledger verify` finds it",
)
@pytest.mark.parametrize("kind", CLOCKS)
@pytest.mark.parametrize("forgery", FORGED)
def test_verify_replays_the_clock(forgery: str, kind: str, path: Path) -> None:
    entries, _ = story(path, kind)
    assert wrong_in(entries) == []
    assert wrong_in(rewritten(entries, FORGED[forgery]))


@lie(
    "the server",
    "claim that a client stopped the clock, though it stayed",
    "the client's copy has what it said, and that it was asked no more",
)
def test_a_stop_that_nobody_said_is_exposed_by_a_copy(path: Path) -> None:
    rules = unreported("clock")
    sent = Sent(rules)

    def forges(ask: Ask) -> list[Reply]:
        return [
            replace(reply, body=reply.body | {"stays": False})
            if (ask.stage, ask.turn, reply.client) == ("clock", 3, "c")
            else reply
            for reply in sent(ask)
        ]

    with ledger_at(path) as ledger:
        run(Coordinator(rules, ledger, START_MODEL), forges, 1)
        entries = list(ledger.entries())
    assert wrong_in(entries) == []
    (found,) = contradictions(entries, sent.clients.copies["c"].written)
    assert "the server wrote down something else" in found


def in_the_middle(kind: str, turn: int) -> tuple[Clients, Ask]:
    """Clients that have answered some questions of a clock, and the next one."""
    from tempfile import TemporaryDirectory

    rules = unreported(kind)
    clients = Clients(rules, privates_of(NAMES))
    with TemporaryDirectory() as folder, ledger_at(Path(folder, "ledger.db")) as ledger:
        coordinator = Coordinator(rules, ledger, START_MODEL)
        while (ask := coordinator.next_ask(1)) is not None:
            if (ask.stage, ask.turn) == ("clock", turn):
                return clients, ask
            coordinator.take(ask, clients(ask))
    raise AssertionError("there is no such question")


STEPS = [
    ({"step": 6, "total": 5 / 8 * 300}, "does not follow the one before"),
    ({"step": 3}, "does not follow the one before|total is not that"),
    ({"step": 9}, "no such step"),
    ({"inside": 301}, "no such step|clients came back"),
    ({"inside": 1}, "no such step"),
    ({"total": 1e9}, "no such step"),
    ({"total": 0.0}, "total is not that"),
]


@lie(
    "the server",
    "skip steps of the clock, or tell a client another total than the steps lead to",
    "the client refuses to answer",
)
@pytest.mark.parametrize(("change", "sentence"), STEPS)
def test_a_step_that_does_not_follow_is_refused(change: dict[str, Any], sentence: str) -> None:
    clients, ask = in_the_middle("clock", 4)
    with pytest.raises(Refusal, match=sentence):
        clients.reply("b", telling(ask, "b", **change))
    assert clients.reply("b", ask).body["stays"]


def test_a_clock_that_does_not_begin_at_0_is_refused() -> None:
    _, ask = in_the_middle("clock", 4)
    fresh = Clients(unreported("clock"), privates_of(NAMES))
    with pytest.raises(Refusal, match="does not begin at its first step"):
        fresh.reply("b", ask)


@pytest.mark.parametrize("kind", CLOCKS)
def test_a_question_that_is_asked_again_is_answered_as_before(kind: str) -> None:
    clients, ask = in_the_middle(kind, 4)
    first = clients.reply("b", ask).body
    clients.participants["b"].private = replace(privates_of(NAMES)[1], valuation=1e-3)
    assert clients.reply("b", ask).body == first
    with pytest.raises(Refusal, match="told something else before"):
        clients.reply("b", telling(ask, "b", inside=290, total=290 * 3 / 8))


def test_who_stopped_is_not_asked_again() -> None:
    clients, ask = in_the_middle("serial clock", 4)
    clients.participants["b"].private = replace(privates_of(NAMES)[1], valuation=1e-3)
    assert not clients.reply("b", ask).body["stays"]
    with pytest.raises(Refusal, match="it stopped the clock"):
        clients.reply("b", replace(ask, turn=5))


def test_a_share_that_it_did_not_agree_to_is_refused(path: Path) -> None:
    """The server asks as it should, and then offers less than the clock came to."""
    rules = unreported("clock")
    sent = Sent(rules)

    def lies(ask: Ask) -> list[Reply]:
        offered = ask.stage == "offer" and "e" in ask.contents
        return sent(telling(ask, "e", contribution=40) if offered else ask)

    with ledger_at(path) as ledger:
        run(Coordinator(rules, ledger, START_MODEL), lies, 1)
        assert verdicts(ledger, 1)["e"] == "refused"


# --- A bad client --------------------------------------------------------------------------

BAD: dict[str, Callable[[list[Reply]], list[Reply]]] = {
    "no word": lambda replies: [replace(replies[1], body=_without(replies[1].body, "stays"))],
    "a number": lambda replies: [replace(replies[1], body=replies[1].body | {"stays": 1})],
    "another turn": lambda replies: [replace(replies[1], body=replies[1].body | {"turn": 2})],
    "another client's token": lambda replies: [replace(replies[0], client="b")],
}


def _without(body: dict[str, Any], key: str) -> dict[str, Any]:
    return {name: value for name, value in body.items() if name != key}


@lie(
    "a client",
    "answer the clock for another client, twice, late or with something else than yes or no",
    "the reply is refused and recorded as a fault; its client is left out of the slot",
)
@pytest.mark.parametrize("bad", BAD)
def test_a_bad_answer_to_the_clock_is_a_fault(bad: str, path: Path) -> None:
    rules = unreported("clock")
    sent = Sent(rules)

    def replies(ask: Ask) -> list[Reply]:
        honest = sent(ask)
        if (ask.stage, ask.turn) != ("clock", 3):
            return honest
        return [*(reply for reply in honest if reply.client != "b"), *BAD[bad](honest)]

    with ledger_at(path) as ledger:
        run(Coordinator(rules, ledger, START_MODEL), replies, 1)
        assert [e.client for e in ledger.entries(kind="fault")] == ["b"]
        assert verdicts(ledger, 1) == {n: "absence" if n == "b" else "kept" for n in NAMES}
        assert wrong_in(ledger.entries()) == []


def test_the_first_of_two_answers_counts(path: Path) -> None:
    rules = unreported("clock")
    sent = Sent(rules)

    def replies(ask: Ask) -> list[Reply]:
        honest = sent(ask)
        if (ask.stage, ask.turn) != ("clock", 3):
            return honest
        return [*honest, replace(honest[1], body=honest[1].body | {"stays": False})]

    with ledger_at(path) as ledger:
        run(Coordinator(rules, ledger, START_MODEL), replies, 1)
        (fault,) = ledger.entries(kind="fault")
        assert fault.body["reason"] == "is a duplicate"
        check(ledger, sent)


@lie(
    "a client",
    "stop the clock early and train on more than its share",
    "more than its share is refused, and it gets no model of the slot",
)
@pytest.mark.parametrize("kind", CLOCKS)
def test_more_than_the_share_does_not_count(kind: str, path: Path) -> None:
    rules = unreported(kind)
    sent = Sent(rules, {"b": {1: 50}})
    with played(path, sent, rules, 1) as ledger:
        assert verdicts(ledger, 1) == {n: "absence" if n == "b" else "kept" for n in NAMES}
        (fault,) = ledger.entries(kind="fault")
        assert fault.body["reason"].startswith("samples is above")
        check(ledger, sent)
        entries = list(ledger.entries())
    assert sent.models_to("b") == [(1, "train", 1)]
    forged = rewritten(entries, instead("contribution", 1, "a", samples=40))
    assert "than its share" in wrong_in(forged)[0]


def test_the_model_of_a_tier_must_be_the_one_that_was_told(path: Path) -> None:
    rules = unreported("serial clock", clock_steps=20)
    sent = Sent(rules)
    with ledger_at(path) as ledger:
        coordinator = Coordinator(rules, ledger, START_MODEL)
        while (ask := coordinator.next_ask(1)) is not None and ask.stage != "tier":
            coordinator.take(ask, sent(ask))
        assert ask is not None
        assert ask.parameters is not None
        with pytest.raises(Refusal, match="another one than was told"):
            sent.clients.reply("a", telling(ask, "a", model=digest(START_MODEL)))

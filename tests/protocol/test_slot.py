"""A slot as messages, from reports to the settlement, without Flower."""

import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fedaccord as fa
from fedaccord.errors import FedaccordError, InvalidInput
from fedaccord.protocol.coordinator import Coordinator
from fedaccord.protocol.envelopes import Ask, Reply
from fedaccord.protocol.messages import Refusal
from fedaccord.protocol.parameters import average, to_bytes
from tests.flower.consortia import (
    START_MODEL,
    Clients,
    kinds,
    ledger_at,
    nudge,
    phases,
    privates_of,
    run,
    terms_of,
    verdicts,
)
from tests.flower.stories import telling


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger.db"


@pytest.mark.slow
def test_all_keep_to_the_agreement(path: Path) -> None:
    terms, clients = terms_of(), Clients(terms_of(), privates_of())
    with ledger_at(path) as ledger:
        coordinator = run(Coordinator(terms, ledger, START_MODEL), clients, 3)
        assert phases(ledger) == ["cooperating"] * 3
        assert set(verdicts(ledger, 3).values()) == {"kept"}
        assert coordinator.next_ask(3) is None
        once = ["slot", *["report"] * 5, *["rank"] * 5, "agreement", *["offer"] * 5]
        once += [*["answer"] * 5, "basis", *[*["contribution"] * 5, "round"] * 2]
        assert kinds(ledger, 1) == [*once, *["verdict"] * 5, "settlement", "told"]


def test_the_offers_are_those_of_an_omniscient_solver(path: Path) -> None:
    """The server, which sees ratios only, offers what `solve_agreement` finds with everything."""
    privates = privates_of()
    consortium = fa.Consortium(
        valuation=[p.valuation for p in privates],
        cost_per_sample=[p.cost_per_sample for p in privates],
        samples=[p.samples for p in privates],
        discount_factor=0.8,
        rounds=2,
        names=[p.name for p in privates],
    )
    agreement = fa.solve_agreement(
        consortium, margin=0.1, punishment=fa.Reversion(2), whole_samples=True
    )
    with ledger_at(path) as ledger:
        run(Coordinator(terms_of(), ledger, START_MODEL), Clients(terms_of(), privates), 1)
        offers = {e.client: e.body["contribution"] for e in ledger.entries(kind="offer")}
    assert offers == dict(zip(consortium.names, agreement.profile.tolist(), strict=True))


def test_the_model_is_the_average_of_what_was_trained(path: Path) -> None:
    clients = Clients(terms_of(rounds=1), privates_of())
    with ledger_at(path) as ledger:
        coordinator = run(Coordinator(terms_of(rounds=1), ledger, START_MODEL), clients, 1)
        given = [e.body["samples"] for e in ledger.entries(kind="contribution")]
    expected = average((x, nudge(1, 1, x, START_MODEL)) for x in given)
    assert coordinator.model.keys() == expected.keys()
    for name, array in expected.items():
        np.testing.assert_array_equal(coordinator.model[name], array.astype(np.float32))


@pytest.mark.slow
def test_a_slip_is_punished_for_as_long_as_agreed_and_then_forgiven(path: Path) -> None:
    privates = privates_of()
    privates[2] = replace(privates[2], slips={2: 0})
    with ledger_at(path) as ledger:
        run(Coordinator(terms_of(), ledger, START_MODEL), Clients(terms_of(), privates), 6)
        assert phases(ledger) == ["cooperating"] * 2 + ["punishing"] * 2 + ["cooperating"] * 2
        assert verdicts(ledger, 2) == {n: "deviation" if n == "c" else "kept" for n in "abcde"}
        assert "offer" not in kinds(ledger, 3)
        (basis,) = ledger.entries(slot=3, kind="basis")
        assert (basis.body["basis"], basis.body["reason"]) == ("equilibrium", "punishing")


def test_for_ever_means_for_ever(path: Path) -> None:
    privates = privates_of()
    privates[0] = replace(privates[0], slips={1: 0})
    terms = terms_of(punishment_slots=None)
    with ledger_at(path) as ledger:
        run(Coordinator(terms, ledger, START_MODEL), Clients(terms, privates), 6)
        assert phases(ledger) == ["cooperating", *["punishing"] * 5]


def test_a_slip_within_the_tolerance_is_not_punished(path: Path) -> None:
    privates = privates_of()
    privates[4] = replace(privates[4], slips={1: 76})  # of 80
    for tolerance, verdict in ((0.0, "deviation"), (0.06, "kept")):
        terms = terms_of(tolerance=tolerance)
        with ledger_at(path.with_name(f"{tolerance}.db")) as ledger:
            run(Coordinator(terms, ledger, START_MODEL), Clients(terms, privates), 1)
            assert verdicts(ledger, 1)["e"] == verdict


@pytest.mark.parametrize("turn", [1, 2])
def test_a_slip_in_one_round_counts_for_the_slot(turn: int, path: Path) -> None:
    """A contribution is the least of all rounds, whichever it was given in."""
    clients = Clients(terms_of(), privates_of())

    def less_in_one(ask: Ask) -> list[Reply]:
        replies = clients(ask)
        if (ask.stage, ask.turn) != ("train", turn):
            return replies
        return [
            replace(reply, body=reply.body | {"samples": 3}) if reply.client == "c" else reply
            for reply in replies
        ]

    with ledger_at(path) as ledger:
        run(Coordinator(terms_of(), ledger, START_MODEL), less_in_one, 1)
        assert verdicts(ledger, 1) == {n: "deviation" if n == "c" else "kept" for n in "abcde"}
        (entry,) = (e for e in ledger.entries(kind="verdict") if e.client == "c")
        assert entry.body["contributed"] == 3
        assert entry.body["agreed"] > 3


def test_slipping_in_a_punishment_changes_nothing(path: Path) -> None:
    privates = privates_of()
    privates[4] = replace(privates[4], slips={1: 0, 2: 0, 3: 0})
    with ledger_at(path) as ledger:
        run(Coordinator(terms_of(), ledger, START_MODEL), Clients(terms_of(), privates), 4)
        assert phases(ledger) == ["cooperating", "punishing", "punishing", "cooperating"]


# --- Absence -------------------------------------------------------------------------------


@pytest.mark.parametrize("stage", ["report", "rank", "offer", "train"])
def test_an_absent_client_is_not_a_deviator(stage: str, path: Path) -> None:
    clients = Clients(terms_of(), privates_of())

    def without_b(ask: Ask) -> list[Reply]:
        if ask.stage == stage:
            clients.away = {"b"}
        return clients(ask)

    with ledger_at(path) as ledger:
        coordinator = Coordinator(terms_of(), ledger, START_MODEL)
        run(coordinator, without_b, 1)
        assert verdicts(ledger, 1) == {n: "absence" if n == "b" else "kept" for n in "abcde"}
        clients.away = set()
        run(coordinator, clients, 2)
        assert phases(ledger) == ["cooperating", "cooperating"]
        assert set(verdicts(ledger, 2).values()) == {"kept"}


def test_absent_from_one_round_of_two(path: Path) -> None:
    clients = Clients(terms_of(), privates_of())

    def sometimes(ask: Ask) -> list[Reply]:
        clients.away = {"b"} if (ask.stage, ask.turn) == ("train", 2) else set()
        return clients(ask)

    with ledger_at(path) as ledger:
        run(Coordinator(terms_of(), ledger, START_MODEL), sometimes, 1)
        (entry,) = (e for e in ledger.entries(kind="verdict") if e.client == "b")
        assert entry.body["verdict"] == "absence"
        assert entry.body["rounds_absent"] == 1
        assert entry.body["contributed"] == entry.body["agreed"]


@pytest.mark.slow
def test_a_slot_needs_a_quorum(path: Path) -> None:
    privates = privates_of()
    privates[0] = replace(privates[0], slips={1: 0})
    clients = Clients(terms_of(), privates)
    with ledger_at(path) as ledger:
        coordinator = run(Coordinator(terms_of(), ledger, START_MODEL), clients, 1)
        clients.away = {"c", "d", "e"}  # 2 of 5 are left, 3 are needed
        run(coordinator, clients, 2)
        (settled,) = ledger.entries(slot=2, kind="settlement")
        assert settled.body["void"]
        assert verdicts(ledger, 2) == {n: "kept" if n in "ab" else "absence" for n in "abcde"}
        clients.away = set()
        run(coordinator, clients, 5)
        # the punishment of two slots is not shortened by one that was not played
        assert phases(ledger) == ["cooperating", *["punishing"] * 3, "cooperating"]


def test_too_few_in_a_round_leave_the_model_as_it_is(path: Path) -> None:
    clients = Clients(terms_of(), privates_of())

    def one_is_left(ask: Ask) -> list[Reply]:
        clients.away = set("abcd") if ask.stage == "train" else set()
        return clients(ask)

    with ledger_at(path) as ledger:
        coordinator = run(Coordinator(terms_of(), ledger, START_MODEL), one_is_left, 1)
        assert [e.body["averaged"] for e in ledger.entries(kind="round")] == [
            False
        ]  # no use in another
    assert all((coordinator.model[k] == START_MODEL[k]).all() for k in START_MODEL)


# --- Refusal -------------------------------------------------------------------------------


def impatient() -> Clients:
    """One client is less patient than the server takes it to be."""
    privates = privates_of()
    privates[1] = replace(privates[1], discount_factor=0.01)
    return Clients(terms_of(), privates)


def test_a_client_refuses_what_it_would_break_and_the_others_agree(path: Path) -> None:
    with ledger_at(path) as ledger:
        run(Coordinator(terms_of(), ledger, START_MODEL), impatient(), 1)
        answers = [
            (e.client, e.body["turn"], e.body["accepts"]) for e in ledger.entries(kind="answer")
        ]
        assert ("b", 1, False) in answers
        assert [a for a in answers if a[1] == 2] == [(n, 2, True) for n in "acde"]
        assert verdicts(ledger, 1) == {n: "refused" if n == "b" else "kept" for n in "abcde"}
        (basis,) = ledger.entries(kind="basis")
        assert "b" not in basis.body["contributions"]


def test_with_a_refusal_the_slot_may_fall_back_to_the_equilibrium(path: Path) -> None:
    terms = terms_of(on_refusal="equilibrium")
    clients = impatient()
    for client in clients.participants.values():
        client.terms = terms
    with ledger_at(path) as ledger:
        run(Coordinator(terms, ledger, START_MODEL), clients, 2)
        (basis, _) = ledger.entries(kind="basis")
        assert (basis.body["basis"], basis.body["reason"]) == ("equilibrium", "refused")
        assert "b" not in basis.body["contributions"]
        assert phases(ledger) == ["cooperating", "cooperating"]


def test_without_an_agreement_there_is_no_deviation(path: Path) -> None:
    """Nobody agreed to anything: b refused, and all play the equilibrium, e less than that."""
    terms = terms_of(on_refusal="equilibrium")
    privates = privates_of()
    privates[1] = replace(privates[1], discount_factor=0.01)
    privates[4] = replace(privates[4], slips={1: 0})
    with ledger_at(path) as ledger:
        run(Coordinator(terms, ledger, START_MODEL), Clients(terms, privates), 2)
        (verdict,) = (e.body for e in ledger.entries(slot=1, kind="verdict") if e.client == "e")
        assert (verdict["agreed"], verdict["contributed"]) == (80, 0)
        assert verdict["verdict"] == "kept"
        assert phases(ledger) == ["cooperating", "cooperating"]


def test_absence_at_the_offer_is_not_a_refusal(path: Path) -> None:
    """The rule for refusals is the equilibrium, but nobody refused: the others agree again."""
    terms = terms_of(on_refusal="equilibrium")
    clients = Clients(terms, privates_of())

    def without_b(ask: Ask) -> list[Reply]:
        clients.away = {"b"} if ask.stage == "offer" else set()
        return clients(ask)

    with ledger_at(path) as ledger:
        run(Coordinator(terms, ledger, START_MODEL), without_b, 1)
        assert [e.body["turn"] for e in ledger.entries(kind="agreement")] == [1, 2]
        (basis,) = ledger.entries(kind="basis")
        assert basis.body["basis"] == "agreement"
        assert set(basis.body["contributions"]) == set("acde")


def test_a_client_that_tells_its_patience_is_offered_less(path: Path) -> None:
    privates = privates_of()
    privates[1] = replace(privates[1], discount_factor=0.2, tells_discount_factor=True)
    with ledger_at(path) as ledger:
        run(Coordinator(terms_of(), ledger, START_MODEL), Clients(terms_of(), privates), 1)
        assert all(e.body["accepts"] for e in ledger.entries(kind="answer"))
        offers = {e.client: e.body["contribution"] for e in ledger.entries(kind="offer")}
    assert 0 <= offers["b"] < 21  # what it is offered at 0.8


def test_no_agreement_is_an_answer(path: Path) -> None:
    terms = terms_of(discount_factor=0.0, margin=0.0)
    privates = [replace(p, discount_factor=0.0) for p in privates_of()]
    with ledger_at(path) as ledger:
        run(Coordinator(terms, ledger, START_MODEL), Clients(terms, privates), 1)
        (agreement,) = ledger.entries(kind="agreement")
        assert not agreement.body["exists"]
        assert "not patient enough" in agreement.body["reason"]
        (basis,) = ledger.entries(kind="basis")
        assert basis.body["basis"] == "equilibrium"


# --- Clients that do not believe everything ------------------------------------------------


def changed(ask: Ask, **content: Any) -> Ask:
    return telling(ask, *ask.contents, **content)


def ask_of(path: Path, stage: str) -> tuple[Clients, Ask]:
    """The first question of a stage, all before it answered."""
    clients = Clients(terms_of(), privates_of())
    with ledger_at(path) as ledger:
        coordinator = Coordinator(terms_of(), ledger, START_MODEL)
        while (ask := coordinator.next_ask(1)) is not None and ask.stage != stage:
            coordinator.take(ask, clients(ask))
    assert ask is not None
    return clients, ask


@pytest.mark.parametrize(
    "content",
    [{"rounds": 9}, {"punishment_slots": 50}, {"tolerance": 0.5}, {"contribution": 9_999}],
)
def test_an_offer_that_is_not_as_signed_is_refused(content: dict[str, Any], path: Path) -> None:
    clients, ask = ask_of(path, "offer")
    assert not clients.reply("c", changed(ask, **content)).body["accepts"]


def test_two_offers_in_one_turn_are_refused(path: Path) -> None:
    clients, ask = ask_of(path, "offer")
    clients.reply("c", ask)
    with pytest.raises(Refusal, match="told something else before"):
        clients.reply("c", changed(ask, contribution=1))


def test_more_than_was_agreed_is_not_trained(path: Path) -> None:
    clients, ask = ask_of(path, "train")
    with pytest.raises(Refusal, match="not what was agreed on"):
        clients.reply("c", changed(ask, contribution=60))


@pytest.mark.slow
def test_asked_twice_a_client_answers_the_same(path: Path) -> None:
    for stage in ("report", "rank", "offer", "train", "settle"):
        clients, ask = ask_of(path.with_name(stage), stage)
        first, written = clients.reply("e", ask), len(clients.copies["e"].written)
        again = clients.reply("e", ask)
        assert again.body == first.body
        assert len(clients.copies["e"].written) == written


@pytest.mark.parametrize(
    "asked",
    [{}, {"stage": "bye", "slot": 1, "turn": 0}, {"stage": ["rank"], "slot": 1, "turn": 0}],
)
def test_something_else_than_a_question_is_refused(asked: dict[str, Any]) -> None:
    clients = Clients(terms_of(), privates_of())
    with pytest.raises(Refusal, match="not a question of the protocol"):
        clients.participants["a"].answer(asked, None)


# --- Starting again ------------------------------------------------------------------------


def test_terms_may_change_between_slots_only(path: Path) -> None:
    other = terms_of(tolerance=0.5)
    clients = Clients(terms_of(), privates_of())
    with ledger_at(path) as ledger:
        run(Coordinator(terms_of(), ledger, START_MODEL), clients, 1)
        Coordinator(other, ledger, START_MODEL)
        coordinator = Coordinator(terms_of(), ledger, START_MODEL)
        assert [e.body["terms"]["tolerance"] for e in ledger.entries(kind="terms")] == [0, 0.5, 0]
        ask = coordinator.next_ask(2)
        assert ask is not None
        with pytest.raises(InvalidInput, match="slot 2 was begun under other terms"):
            Coordinator(other, ledger, START_MODEL)


def edited(path: Path, *statements: str, **values: Any) -> None:
    """Change a ledger as someone with the file in hand would."""
    with closing(sqlite3.connect(path)) as raw:
        raw.execute("DROP TRIGGER entries_no_update")
        raw.execute("DROP TRIGGER entries_no_delete")
        for statement in statements:
            raw.execute(statement, values)
        raw.commit()


OTHER = to_bytes({name: array + 1 for name, array in START_MODEL.items()})
NUMBER = "(SELECT max(number) FROM entries WHERE kind = '{}')"


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("UPDATE checkpoints SET parameters = :other", "is not the one that it names"),
        ("UPDATE checkpoints SET parameters = x'00'", "the model stored with it cannot be read"),
        ("DELETE FROM checkpoints", "the model that it names is not stored with it"),
        ("DELETE FROM entries", "it has no entries"),
        (
            "UPDATE entries SET text = replace(text, 'punishing', 'cooperating')",
            "its digest differs",
        ),
        ("UPDATE entries SET slot = 'x' WHERE number = 5", "entry 5 is not an entry: its slot"),
        ("DELETE FROM entries WHERE number = 5", "entry 5 is missing"),
        (
            f"DELETE FROM entries WHERE number > {NUMBER.format('verdict')}",
            "ends where settlement of slot 1 should follow",
        ),
        (
            f"DELETE FROM entries WHERE number > {NUMBER.format('round')}",
            "ends where verdict of slot 1 should follow",
        ),
        (
            f"DELETE FROM entries WHERE number >= {NUMBER.format('offer')}",
            "ends where offer of slot 1 should follow",
        ),
        (
            f"DELETE FROM entries WHERE number >= {NUMBER.format('report')}",
            "ends in the middle of the answers to report of slot 1",
        ),
        ("DELETE FROM entries WHERE number > 1", "ends before the model to begin with"),
    ],
)
def test_nothing_is_added_to_a_ledger_that_was_changed(
    statement: str, message: str, path: Path
) -> None:
    privates = privates_of()
    privates[2] = replace(privates[2], slips={1: 0})
    with ledger_at(path) as ledger:
        run(Coordinator(terms_of(), ledger, START_MODEL), Clients(terms_of(), privates), 1)
    edited(path, statement, other=OTHER)
    with ledger_at(path) as ledger:
        before = list(ledger.entries())
        with pytest.raises(FedaccordError, match=message):
            Coordinator(terms_of(), ledger, START_MODEL)
        assert list(ledger.entries()) == before


def test_another_model_than_the_ledger_s_is_refused(path: Path) -> None:
    with ledger_at(path) as ledger:
        Coordinator(terms_of(), ledger, START_MODEL)
        with pytest.raises(InvalidInput, match="has other parameters than this task"):
            Coordinator(terms_of(), ledger, {"w": np.zeros(9, np.float32)})

"""A law of the loss in the terms: everyone calculates with it, and nobody can replace it."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import fedaccord as fa
from fedaccord.errors import InvalidInput
from fedaccord.flower.shared_terms import shared_terms
from fedaccord.game.law import Law
from fedaccord.ledger.chain import Fact
from fedaccord.protocol.coordinator import Coordinator
from fedaccord.protocol.copies import contradictions
from fedaccord.protocol.envelopes import Ask, Reply
from fedaccord.protocol.law import MOST_TERMS, LawTerms, law_in_terms
from fedaccord.protocol.messages import Refusal
from fedaccord.protocol.private import Private
from fedaccord.protocol.standing import own_equilibrium, standings_of
from fedaccord.protocol.terms import Terms, load_terms
from fedaccord.protocol.terms_text import terms_text
from fedaccord.protocol.verification import wrong_in
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
from tests.flower.stories import rewritten
from tests.lies import lie
from tests.protocol.suspensions import Sent, check, out, played, terms

MIXTURE = Law.mixture([6.4555, 0.8714, 0.0232, 0.0434], [11.7, 21.1, 405.5, 732.2])
LAWS = {
    "power": Law.power(7.5, 1.0),
    "slow power": Law.power(1.5, 0.3, floor=0.05, measure="error"),
    "shifted": Law.power(20.0, 1.0, 50.0),
    "mixture": MIXTURE,
}
EMPTY = Law.power(60.0, 1.0, 600.0)
"""Even for the client with the highest ratio, e, the first sample is worth less than it costs."""


def under(law: Law, **rules: Any) -> Terms:
    return terms(law=law_in_terms(law), **rules)


# --- Slots ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["power", "slow power", "shifted"])
def test_a_slip_is_punished_by_reversion(name: str, path: Path) -> None:
    rules = under(LAWS[name], punishment="reversion", margin=0.05)
    sent = Sent(rules, {"d": {1: 0}})
    with played(path, sent, rules, 3) as ledger:
        assert phases(ledger) == ["cooperating", "punishing", "cooperating"]
        assert verdicts(ledger, 1) == {n: "deviation" if n == "d" else "kept" for n in "abcde"}
        assert {e.body["accepts"] for e in ledger.entries(kind="answer")} == {True}
        check(ledger, sent)


@pytest.mark.slow
@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
def test_a_slip_is_punished_by_suspension(law: Law, path: Path) -> None:
    rules = under(law)
    sent = Sent(rules, {"d": {1: 0}})
    with played(path, sent, rules, 3) as ledger:
        assert out(ledger) == [{"d": (1, 1)}, {}, {}]
        assert {e.body["basis"] for e in ledger.entries(kind="basis")} == {"agreement"}
        check(ledger, sent)


def reference() -> tuple[Terms, list[Private]]:
    """Six clients with a measured law; their equilibrium and agreement were computed elsewhere."""
    names, prices = "abcdef", np.linspace(0.01, 0.02, 6)
    ratios = (39_000, 30_300, 29_000, 22_500, 13_600, 19_800)
    samples, patience = (312, 223, 201, 245, 178, 134), (0.9, 0.85, 0.8, 0.8, 0.7, 0.75)
    rules = terms_of(names, law=law_in_terms(MIXTURE), margin=0.0, punishment_slots=None)
    rows = zip(names, ratios, prices.tolist(), samples, patience, strict=True)
    return rules, [
        Private(name, ratio * price, price, held, delta, tells_discount_factor=True)
        for name, ratio, price, held, delta in rows
    ]


def test_the_agreement_of_a_measured_law(path: Path) -> None:
    """The total is 1,164.169980 in real numbers, and the equilibrium's 632.869935."""
    rules, privates = reference()
    with ledger_at(path) as ledger:
        run(Coordinator(rules, ledger, START_MODEL), Clients(rules, privates), 1)
        (found,) = ledger.entries(kind="agreement")
        assert found.body["equilibrium_total"] == pytest.approx(632.869935, abs=1e-6)
        assert found.body["total"] == 1164
        offers = {e.client: e.body["contribution"] for e in ledger.entries(kind="offer")}
        assert offers == {"a": 312, "b": 223, "c": 201, "d": 193, "e": 101, "f": 134}
        assert set(verdicts(ledger, 1).values()) == {"kept"}
        assert wrong_in(ledger.entries()) == []


# --- A slot in which nobody trains ---------------------------------------------------------


@pytest.mark.slow
def test_after_a_slip_nobody_trains_and_nobody_is_sent_a_model(path: Path) -> None:
    """If d were sent the model of slot 1 again, it would have it without having trained for it."""
    rules = under(EMPTY, punishment="reversion", margin=0.05)
    sent = Sent(rules, {"d": {1: 0}})
    with played(path, sent, rules, 3) as ledger:
        assert phases(ledger) == ["cooperating", "punishing", "cooperating"]
        (_, basis, _) = ledger.entries(kind="basis")
        assert basis.body["reason"] == "punishing"
        assert set(basis.body["contributions"].values()) == {0}
        (_, settled, _) = ledger.entries(kind="settlement")
        assert (settled.body["total"], settled.body["void"]) == (0, False)
        assert set(verdicts(ledger, 2).values()) == {"kept"}
        assert list(ledger.entries(slot=2, kind="round")) == []
        check(ledger, sent)
    assert sent.to("d", 2) == [("report", 0), ("rank", 0), ("settle", 0)]
    assert {slot for client in "abcde" for slot, *_ in sent.models_to(client)} == {1, 3}
    assert sent.models_to("d")[:2] == [(1, "train", 1), (3, "train", 1)]


def test_without_an_agreement_nobody_trains_either(path: Path) -> None:
    rules = under(EMPTY, discount_factor=0.0, margin=0.0, punishment="reversion")
    sent = Sent(rules)
    with played(path, sent, rules, 2) as ledger:
        assert [e.body["exists"] for e in ledger.entries(kind="agreement")] == [False] * 2
        assert [e.body["total"] for e in ledger.entries(kind="settlement")] == [0, 0]
        check(ledger, sent)
    assert sent.models_to("e") == []


@pytest.mark.slow
def test_a_suspended_client_returns_though_it_would_train_on_nothing_alone(path: Path) -> None:
    rules = under(EMPTY)
    sent = Sent(rules, {"d": {1: 0}})
    with played(path, sent, rules, 3) as ledger:
        assert out(ledger) == [{"d": (1, 1)}, {}, {}]
        check(ledger, sent)


# --- Everyone calculates with the same numbers ---------------------------------------------

numbers = st.floats(1e-3, 1e3)
parts = st.builds(
    lambda value, shift, exponent: {"value": value, "shift": shift, "exponent": exponent},
    numbers,
    st.just(0.0) | st.floats(1.0, 1e3),
    st.sampled_from([0.5, 1.0, 2.0]) | st.floats(0.05, 5.0),
)
laws = st.builds(
    lambda floor, terms: {"kind": "mixture", "measure": "loss", "floor": floor, "terms": terms},
    st.floats(0.0, 1.0),
    st.lists(parts, min_size=1, max_size=4),
)


@given(laws)
def test_the_terms_hold_the_law_to_the_last_bit(told: dict[str, Any]) -> None:
    law = LawTerms.model_validate(told).law
    assert law_in_terms(law) == told
    found = LawTerms.model_validate(law_in_terms(law)).law
    for name in ("value", "unit", "shift", "exponent", "floor"):
        np.testing.assert_array_equal(getattr(found, name), getattr(law, name))


@given(told=laws)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_the_terms_file_holds_it_too(tmp_path: Path, told: dict[str, Any]) -> None:
    rules, file = terms(law=told), tmp_path / "terms.toml"
    file.write_text(terms_text(rules), encoding="utf-8")
    assert load_terms(file) == rules
    assert load_terms(file).digest == rules.digest != terms().digest


@given(laws, st.lists(st.tuples(numbers, st.integers(1, 300)), min_size=1, max_size=6))
def test_a_client_s_own_equilibrium_is_the_server_s(
    told: dict[str, Any], clients: list[tuple[float, int]]
) -> None:
    law, (ratios, samples) = LawTerms.model_validate(told).law, zip(*clients, strict=True)
    consortium = fa.Consortium(
        valuation=ratios, cost_per_sample=1.0, samples=samples, rounds=2, discount_factor=0.8,
        law=law,
    )  # fmt: skip
    equilibrium = fa.solve_equilibrium(consortium)
    places = standings_of(equilibrium)
    own = [
        own_equilibrium(*client, law, place) for client, place in zip(clients, places, strict=True)
    ]
    np.testing.assert_allclose(own, equilibrium.profile, rtol=0, atol=1e-9 * max(samples) + 1e-9)


def test_units_of_its_own_are_converted() -> None:
    value, unit, shift, exponent = np.array([[2, 0], [10, 1], [5, 1], [2, 1]], float)
    law = Law(value, unit, shift, exponent)
    told = law_in_terms(law)
    assert told["terms"] == [{"value": 8.0, "shift": 5.0, "exponent": 2.0}]  # 2 (10 / 5)^2
    found = LawTerms.model_validate(told).law
    np.testing.assert_allclose(found.loss([0.0, 7.0]), law.loss([0.0, 7.0]), rtol=1e-15)


# --- The paper's law -----------------------------------------------------------------------


def test_terms_with_the_paper_s_law_are_as_they_always_were() -> None:
    """These are the digests from before terms could have another law."""
    before = "31f2af4ebf2e8b538203b9f640c96e23923b44e45e7134776e9739f5bed946dc"
    suspending = "7abe1934bd110f08ac68c7526a843638bee9b60ba838f414bba1715e33ff90d9"
    assert terms_of("abc").digest == before
    assert terms_of("abc", punishment="suspension").digest == suspending
    assert "law" not in terms().model_dump(mode="json")
    assert "law" not in terms_text(terms())
    assert "law" not in shared_terms(fa.paper_consortium())
    assert terms_of("abc").law_of_loss.kind == "paper"


# --- What cannot be in the terms -----------------------------------------------------------

FINE = {"value": 1.0, "shift": 10.0, "exponent": 2.0}
LAW: dict[str, Any] = {"kind": "mixture", "measure": "loss", "floor": 0.1, "terms": [FINE]}
NAN, INFINITY = float("nan"), float("inf")


def but(**part: Any) -> dict[str, Any]:
    """A law with a term that is not fine."""
    return LAW | {"terms": [FINE, FINE | part]}


@pytest.mark.parametrize(
    ("law", "message"),
    [
        (3, "law: must be a table, got 3"),
        (None, "law: must be a table, got None"),
        ([], "law: must be a table, got a list"),
        (
            LAW | {"kind": "paper"},
            "law.kind: must be 'power', 'mixture' or 'measured', got 'paper'",
        ),
        (LAW | {"kind": "power", "terms": [FINE] * 2}, "law: a power law has one term; several"),
        (LAW | {"measure": "a\nb"}, "law.measure: must be printable and not empty"),
        (LAW | {"measure": "x" * 101}, "law.measure: must be 100 characters or fewer"),
        (LAW | {"floor": -0.1}, "law.floor: must be 0 or more, got -0.1"),
        (LAW | {"floor": NAN}, "law.floor: must be a finite number, got nan"),
        (LAW | {"floor": 10**400}, "law.floor: must be a number, got 1000"),
        (LAW | {"terms": 3}, "law.terms: must be a list, got 3"),
        (LAW | {"terms": []}, "law: needs at least one term"),
        (LAW | {"terms": [FINE] * (MOST_TERMS + 1)}, "law.terms: must be 64 or fewer"),
        (LAW | {"note": "hello"}, "law.note: unknown key"),
        (but(unit=1.0), "law.terms.1.unit: unknown key"),
        (but(value=-1.0), "law.terms.1.value: must be 1e-50 or more, got -1.0"),
        (but(value=1e51), r"law.terms.1.value: must be 1e\+50 or less, got 1e\+51"),
        (but(value="1"), "law.terms.1.value: must be a number, got '1'"),
        (but(shift=-1.0), "law.terms.1.shift: must be 0 or more, got -1.0"),
        (but(shift=1e-300), "law.terms.1.shift: must be 0, or 1e-09 or more, got 1e-300"),
        (but(shift=INFINITY), "law.terms.1.shift: must be a finite number, got inf"),
        (but(exponent=0.0), "law.terms.1.exponent: must be 0.001 or more, got 0.0"),
        (but(exponent=1e3), "law.terms.1.exponent: must be 100 or less, got 1000.0"),
        (
            but(exponent=6.0, shift=0.0),
            "law.terms.1: without a shift the exponent must be 5 or less",
        ),
        (but(exponent=True), "law.terms.1.exponent: must be a number, got true"),
    ],
)
def test_hostile_laws_are_refused_in_one_sentence(law: Any, message: str) -> None:
    with pytest.raises(InvalidInput, match=f"^test: {message}") as refused:
        terms(law=law)
    assert len(refused.value.problems) == 1


def anywhere(low: float, high: float) -> st.SearchStrategy[float]:
    """Any number of a range, on a logarithmic scale."""
    exponents = st.floats(float(np.log10(low)), float(np.log10(high)))
    return exponents.map(lambda power: min(max(10.0**power, low), high))


def wild(shift: st.SearchStrategy[float], steepest: float) -> st.SearchStrategy[dict[str, float]]:
    return st.builds(
        lambda value, shift, exponent: {"value": value, "shift": shift, "exponent": exponent},
        anywhere(1e-50, 1e50),
        shift,
        anywhere(1e-3, steepest),
    )


wild_parts = wild(st.just(0.0), 5.0) | wild(anywhere(1e-9, 1e16), 100.0)
wild_clients = st.tuples(
    anywhere(1e-100, 1e100), anywhere(1.0, 1e12).map(int), st.sampled_from([0.0, 0.5, 0.99])
)


@pytest.mark.slow
@settings(max_examples=30)
@given(
    parts=st.lists(wild_parts, min_size=1, max_size=4),
    clients=st.lists(wild_clients, min_size=1, max_size=4),
    punishment=st.sampled_from(["reversion", "suspension"]),
    kind=st.sampled_from(["individual", "uniform"]),
)
def test_whatever_the_terms_let_through_can_be_worked_with(
    tmp_path_factory: pytest.TempPathFactory,
    parts: list[dict[str, float]],
    clients: list[tuple[float, int, float]],
    punishment: str,
    kind: str,
) -> None:
    names = tuple("abcd"[: len(clients)])
    rules = terms_of(
        names, law=LAW | {"terms": parts}, punishment=punishment, agreement=kind, rounds=1,
        update_bound="off",
    )  # fmt: skip
    privates = [
        Private(name, ratio, 1.0, samples, delta, tells_discount_factor=True)
        for name, (ratio, samples, delta) in zip(names, clients, strict=True)
    ]
    with ledger_at(tmp_path_factory.mktemp("wild") / "ledger.db") as ledger:
        run(Coordinator(rules, ledger, START_MODEL), Clients(rules, privates), 1)
        assert list(ledger.entries(kind="fault")) == []
        assert wrong_in(ledger.entries()) == []


# --- Lies ----------------------------------------------------------------------------------


def with_value(value: float) -> Callable[[Fact], Fact]:
    """The same terms with another value of the law's last term."""

    def forge(fact: Fact) -> Fact:
        if fact.kind != "terms":
            return fact
        rules = fact.body["terms"]
        *others, last = rules["law"]["terms"]
        law = rules["law"] | {"terms": [*others, last | {"value": value}]}
        return fact._replace(body={**fact.body, "terms": rules | {"law": law}})

    return forge


@lie(
    "the server",
    "put another law of the loss into its ledger than the clients signed",
    "verify finds that ranks and agreements do not follow from it, and the clients' copies have "
    "the digest of the terms",
)
def test_another_law_in_the_ledger_is_found(path: Path) -> None:
    rules = under(LAWS["power"])
    sent = Sent(rules)
    with played(path, sent, rules, 1) as ledger:
        entries = list(ledger.entries())
    assert "(rank of slot 1)" in wrong_in(rewritten(entries, with_value(7.4)))[0]
    tiny = rewritten(entries, with_value(float(np.nextafter(7.5, 8.0))))
    assert wrong_in(tiny) == []  # nothing follows from the last bit
    copy = sent.clients.copies["a"].written
    assert contradictions(entries, copy) == []
    assert contradictions(tiny, copy) != []


@lie(
    "the server",
    "work out offers by another law of the loss than the clients signed",
    "a client's equilibrium comes out differently by its own terms, and it refuses an offer that "
    "does not pay by the law that it signed",
)
def test_a_server_with_another_law_comes_to_no_agreement(path: Path) -> None:
    signed, used = under(LAWS["power"]), under(LAWS["slow power"])
    clients = Clients(signed, privates_of())
    with ledger_at(path) as ledger:
        run(Coordinator(used, ledger, START_MODEL), clients, 1)
        faults = {e.client: e.body["reason"] for e in ledger.entries(kind="fault")}
        assert faults == {"c": "is not the equilibrium contribution"} | faults
        copy = clients.copies["a"].written
        assert contradictions(list(ledger.entries()), copy) != []


def test_a_client_refuses_what_does_not_pay_by_the_law_that_it_signed(path: Path) -> None:
    """By a law under which data is worth a tenth, every offer asks for too much."""
    signed, used = under(Law.power(0.75, 1.0)), under(LAWS["power"])
    honest, answers = Clients(used, privates_of()), dict[str, bool]()
    deceived = Clients(signed, privates_of())

    def replies(ask: Ask) -> list[Reply]:
        if ask.stage == "offer" and not answers:
            for name in ask.contents:
                try:
                    answers[name] = deceived.reply(name, ask).body["accepts"]
                except Refusal:
                    answers[name] = False
        return honest(ask)

    with ledger_at(path) as ledger:
        run(Coordinator(used, ledger, START_MODEL), replies, 1)
    assert set(answers.values()) == {False}


# --- What does not run on Flower -----------------------------------------------------------


def test_laws_and_weights_of_single_clients_are_refused() -> None:
    paper = fa.paper_consortium(clients=3)
    with pytest.raises(InvalidInput, match=r"^law: on Flower all clients have one law"):
        shared_terms(paper.with_law([MIXTURE] * 3))
    weighed = fa.Consortium(
        valuation=[1.0, 2.0], cost_per_sample=1.0, samples=10, rounds=2, discount_factor=0.8,
        quality=[1.0, 0.5],
    )  # fmt: skip
    with pytest.raises(InvalidInput, match=r"^quality: on Flower every sample counts as one"):
        shared_terms(weighed)


def test_another_law_belongs_to_its_rounds() -> None:
    paper = fa.paper_consortium(clients=3, rounds=50)
    assert shared_terms(paper, rounds=20)["rounds"] == 20
    own = paper.with_law(MIXTURE)
    assert shared_terms(own)["law"] == law_in_terms(MIXTURE)
    with pytest.raises(InvalidInput, match=r"^rounds: the law of this consortium is for 50 rounds"):
        shared_terms(own, rounds=20)
    with pytest.raises(InvalidInput, match=r"^law: the paper's law of this consortium is not"):
        shared_terms(paper.with_law(Law.paper(20)))


def test_evidence_stays_out_of_the_terms() -> None:
    measured = replace(MIXTURE, kind="measured", measure="error")
    told = law_in_terms(measured)
    assert told.keys() == {"kind", "measure", "floor", "terms"}
    assert (told["kind"], told["measure"]) == ("measured", "error")

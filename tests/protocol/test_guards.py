"""What the server refuses: each wrong reply is a fault, its client is absent, the round goes on."""

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedaccord.protocol.coordinator import Coordinator
from fedaccord.protocol.envelopes import Ask, Reply
from fedaccord.protocol.guards import read_rank, read_report
from fedaccord.protocol.parameters import as_type, average
from fedaccord.protocol.receiving import ReplyRefused
from tests.flower.consortia import START_MODEL, Clients, ledger_at, privates_of, run, terms_of

Spoil = Callable[[Reply, Ask], list[Reply]]


def with_body(**content: Any) -> Spoil:
    return lambda reply, ask: [replace(reply, body=reply.body | content)]


def with_arrays(change: Callable[[dict[str, Any]], Any]) -> Spoil:
    return lambda reply, ask: [replace(reply, parameters=change(dict(reply.parameters or {})))]


def without(key: str) -> Spoil:
    return lambda reply, ask: [
        replace(reply, body={k: v for k, v in reply.body.items() if k != key})
    ]


COUNTS = [
    (float("nan"), "samples is not a whole number"),
    (float("inf"), "samples is not a whole number"),
    (-9, "samples is negative"),
    (10.5, "samples is not a whole number"),
    (10.0, "samples is not a whole number"),
    (True, "samples is not a whole number"),
    ("10", "samples is not a whole number"),
    (None, "samples is not a whole number"),
    ([10], "samples is not a whole number"),
    (10**400, "samples is above 60"),
    (61, "samples is above 60"),
]
ARRAYS = [
    (lambda a: a | {"w": np.full(3, np.nan, np.float32)}, "w has NaN or infinite values"),
    (lambda a: a | {"w": np.full(3, np.inf, np.float32)}, "w has NaN or infinite values"),
    (lambda a: a | {"w": np.zeros(4, np.float32)}, r"w is float32 (4,), not float32 (3,)"),
    (lambda a: a | {"w": np.zeros((3, 1), np.float32)}, "w is float32 (3, 1), not float32 (3,)"),
    (lambda a: a | {"w": np.zeros(3, np.float64)}, "w is float64 (3,), not float32 (3,)"),
    (lambda a: a | {"w": np.zeros(3, np.int32)}, "w is int32 (3,), not float32 (3,)"),
    (lambda a: a | {"w": np.array(["x"] * 3)}, "w is <U1 (3,), not float32 (3,)"),
    (lambda a: a | {"w": [1.0, 2.0, 3.0]}, "has a parameter that is not an array"),
    (lambda a: a | {"more": np.zeros(1, np.float32)}, "has other parameters than were asked for"),
    (lambda a: {"w": a["w"]}, "has other parameters than were asked for"),
    (lambda a: None, "has no parameters"),
]
PLACES: list[tuple[dict[str, Any], str]] = [
    ({"slot": 2}, "is for another slot"),
    ({"slot": True}, "is for another slot"),
    ({"turn": 2}, "is for another turn"),
    ({"stage": "report"}, "is for another stage"),
    ({"token": "0" * 32}, "is replayed: it answers another question"),
    ({"problem": "failure"}, "says that it failed"),
    ({"problem": "refusal"}, "says that it refuses the question"),
    ({"problem": "my valuation is 51"}, "says that something went wrong"),
]
CASES: list[Any] = [
    *(pytest.param("train", with_body(samples=n), why, id=f"count {n}"[:20]) for n, why in COUNTS),
    *(
        pytest.param("train", with_arrays(change), why, id=f"{n} {why}")
        for n, (change, why) in enumerate(ARRAYS)
    ),
    *(pytest.param("train", with_body(**content), why, id=f"{content}") for content, why in PLACES),
    ("train", without("samples"), "samples is not a whole number"),
    ("train", lambda r, a: [replace(r, body="hello")], "has no content"),
    ("train", lambda r, a: [replace(r, body=None)], "has no content"),
    (
        "train",
        lambda r, a: [replace(r, problem="failed (Flower's error 2)")],
        "failed (Flower's error 2)",
    ),
    ("report", with_body(ratio=float("nan")), "ratio is not finite"),
    ("report", with_body(ratio=float("inf")), "ratio is not finite"),
    ("report", with_body(ratio=10**400), "ratio is too large for a float"),
    ("report", with_body(ratio=0), "ratio is not from 1e-100 to 1e+100"),
    ("report", with_body(ratio=-1.0), "ratio is not from 1e-100 to 1e+100"),
    ("report", with_body(ratio=1e290), "ratio is not from 1e-100 to 1e+100"),
    ("report", with_body(ratio=True), "ratio is not a number"),
    ("report", with_body(samples=0), "samples is 0"),
    ("report", with_body(samples=10**12 + 1), "samples is above 1000000000000"),
    ("report", with_body(discount_factor=1.0), "discount_factor is not from 0 to 1"),
    ("report", without("ratio"), "ratio is not a number"),
    ("rank", with_body(contribution=5.0), "contribution is not the equilibrium contribution"),
    ("rank", with_body(contribution=None), "contribution is not a number"),
    ("offer", with_body(accepts=1), "accepts is neither true nor false"),
    ("offer", with_body(accepts="yes"), "accepts is neither true nor false"),
]


@pytest.mark.parametrize(("stage", "spoil", "why"), CASES)
def test_a_wrong_reply_is_a_fault_and_its_client_absent(
    stage: str, spoil: Spoil, why: str, tmp_path: Path
) -> None:
    terms = terms_of(rounds=1)
    clients = Clients(terms, privates_of())

    def spoiled(ask: Ask) -> list[Reply]:
        replies = clients(ask)
        if ask.stage != stage:
            return replies
        return [
            r for reply in replies for r in (spoil(reply, ask) if reply.client == "c" else [reply])
        ]

    with ledger_at(tmp_path / "ledger.db") as ledger:
        coordinator = run(Coordinator(terms, ledger, START_MODEL), spoiled, 1)
        faults = [
            (e.client, e.body["stage"], e.body["reason"]) for e in ledger.entries(kind="fault")
        ]
        assert faults == [("c", stage, why)]
        absent = [e.client for e in ledger.entries(kind="absence")]
        assert absent == ["c"]
        given = {e.client: e.body["verdict"] for e in ledger.entries(kind="verdict")}
        assert given == {n: "absence" if n == "c" else "kept" for n in "abcde"}
        assert [e.body["averaged"] for e in ledger.entries(kind="round")] == [True]
    assert all(np.isfinite(array).all() for array in coordinator.model.values())


def test_of_two_replies_the_first_counts(tmp_path: Path) -> None:
    terms = terms_of(rounds=1)
    clients = Clients(terms, privates_of())

    def twice(ask: Ask) -> list[Reply]:
        replies = clients(ask)
        if ask.stage != "train":
            return replies
        other = replace(replies[0], body=replies[0].body | {"samples": 1})
        return [*replies, other, replies[0]]

    with ledger_at(tmp_path / "ledger.db") as ledger:
        run(Coordinator(terms, ledger, START_MODEL), twice, 1)
        faults = [(e.client, e.body["reason"]) for e in ledger.entries(kind="fault")]
        assert faults == [("a", "is a duplicate")] * 2
        assert {e.body["verdict"] for e in ledger.entries(kind="verdict")} == {"kept"}


def test_a_good_reply_after_a_bad_one_counts(tmp_path: Path) -> None:
    terms = terms_of(rounds=1)
    clients = Clients(terms, privates_of())

    def corrected(ask: Ask) -> list[Reply]:
        replies = clients(ask)
        return [replace(replies[0], body=None), *replies] if ask.stage == "train" else replies

    with ledger_at(tmp_path / "ledger.db") as ledger:
        run(Coordinator(terms, ledger, START_MODEL), corrected, 1)
        assert [e.body["reason"] for e in ledger.entries(kind="fault")] == ["has no content"]
        assert {e.body["verdict"] for e in ledger.entries(kind="verdict")} == {"kept"}


@pytest.mark.slow
def test_replayed_replies_of_earlier_rounds_are_refused(tmp_path: Path) -> None:
    """Everything that was ever said is said again, each time: it never counts."""
    terms = terms_of(rounds=3)
    clients = Clients(terms, privates_of())
    said: list[Reply] = []

    def again(ask: Ask) -> list[Reply]:
        fresh = clients(ask)
        replies = [*said, *fresh]
        said.extend(fresh)
        return replies

    def final(path: Path, replies: Callable[[Ask], list[Reply]]) -> tuple[dict[str, Any], set[str]]:
        with ledger_at(path) as ledger:
            coordinator = run(Coordinator(terms, ledger, START_MODEL), replies, 2)
            return coordinator.model, {e.body["reason"] for e in ledger.entries(kind="fault")}

    model, faults = final(tmp_path / "replayed.db", again)
    honest, none = final(tmp_path / "honest.db", Clients(terms, privates_of()))
    assert all((model[name] == honest[name]).all() for name in honest)
    assert none == set()
    assert faults == {"is for another slot", "is for another turn", "is for another stage"}


def test_replies_of_unknown_nodes_are_ignored(tmp_path: Path) -> None:
    terms = terms_of(("a", "b", "c"))
    clients = Clients(terms, privates_of(("a", "b", "c")))
    stranger = Reply(77, None, {"slot": 1}, None)

    def and_a_stranger(ask: Ask) -> list[Reply]:
        # who is not asked in this round answers nevertheless
        idle = [replace(clients(ask)[-1], client=n) for n in terms.clients if n not in ask.contents]
        return [stranger, *clients(ask), *idle, replace(stranger, client="z")]

    with ledger_at(tmp_path / "ledger.db") as ledger:
        run(Coordinator(terms, ledger, START_MODEL), and_a_stranger, 1)
        faults = {
            (e.client, e.body.get("node"), e.body["reason"]) for e in ledger.entries(kind="fault")
        }
        assert (None, 77, "comes from an unknown node") in faults
        assert ("z", None, "comes from a client that was not asked") in faults
        assert {e.body["verdict"] for e in ledger.entries(kind="verdict")} == {"kept"}


def test_a_round_without_samples_keeps_the_model(tmp_path: Path) -> None:
    terms = terms_of(rounds=1)
    privates = [replace(p, slips={1: 0}) for p in privates_of()]
    with ledger_at(tmp_path / "ledger.db") as ledger:
        coordinator = run(Coordinator(terms, ledger, START_MODEL), Clients(terms, privates), 1)
        assert [e.body["averaged"] for e in ledger.entries(kind="round")] == [False]
        assert {e.body["verdict"] for e in ledger.entries(kind="verdict")} == {"deviation"}
    assert all((coordinator.model[k] == START_MODEL[k]).all() for k in START_MODEL)


@given(
    st.lists(st.integers(1, 2**53), min_size=1, max_size=8),
    st.sampled_from([np.float16, np.float32, np.float64]),
    st.sampled_from([-1.0, 1.0]),
)
def test_the_average_of_finite_parameters_is_finite(
    counts: list[int], dtype: type[np.floating[Any]], sign: float
) -> None:
    """Also of the largest that there are: then it is that number, but for rounding."""
    most = np.full(2, sign * np.finfo(dtype).max, dtype)
    averaged = as_type(average([(count, {"w": most}) for count in counts])["w"], most.dtype)
    assert averaged.dtype == dtype
    np.testing.assert_allclose(averaged, most, rtol=1e-14)  # of float64, as it is added up


def test_the_average_of_whole_parameters_is_whole() -> None:
    updates = [(1, {"n": np.array([0, 4, -9])}), (2, {"n": np.array([2, 4, 9])})]
    averaged = as_type(average(updates)["n"], updates[0][1]["n"].dtype)
    assert averaged.dtype == updates[0][1]["n"].dtype
    assert averaged.tolist() == [1, 4, 3]


def test_an_answer_to_an_old_question_is_not_taken(tmp_path: Path) -> None:
    terms = terms_of()
    clients = Clients(terms, privates_of())
    with ledger_at(tmp_path / "ledger.db") as ledger:
        coordinator = Coordinator(terms, ledger, START_MODEL)
        ask = coordinator.next_ask(1)
        assert ask is not None
        coordinator.take(ask, clients(ask))
        with pytest.raises(Exception, match="asked before something else happened"):
            coordinator.take(ask, clients(ask))


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"ratio": 1e-100, "samples": 1, "discount_factor": 0.0, "fees": 0.0}, None),
        ({"ratio": 1e100, "samples": 10**12, "discount_factor": 0.999, "fees": 1e100}, None),
        ({"ratio": 5, "samples": 1}, None),
        ({"ratio": 0.9e-100}, "ratio is not from 1e-100 to 1e+100"),
        ({"ratio": 1.1e100}, "ratio is not from 1e-100 to 1e+100"),
        ({"samples": -1}, "samples is negative"),
        ({"samples": 5.0}, "samples is not a whole number"),
        ({"discount_factor": -0.01}, "discount_factor is not from 0 to 1"),
        ({"discount_factor": 1.0}, "discount_factor is not from 0 to 1"),
        ({"fees": -0.01}, "fees is not from 0 to 1e+100"),
        ({"fees": 1.1e100}, "fees is not from 0 to 1e+100"),
        ({"fees": "1"}, "fees is not a number"),
    ],
)
def test_what_may_be_reported(given: dict[str, Any], why: str | None) -> None:
    body: dict[str, Any] = {"ratio": 2.0, "samples": 3} | given
    if why is None:
        report = read_report(body)
        assert (report.ratio, report.samples) == (given["ratio"], given["samples"])
        assert (report.discount_factor, report.fees) == (
            given.get("discount_factor"),
            given.get("fees"),
        )
    else:
        with pytest.raises(ReplyRefused, match=re.escape(why)):
            read_report(body)


@pytest.mark.parametrize("off", [-1.01e-6, -0.99e-6, 0.0, 0.99e-6, 1.01e-6])
def test_an_equilibrium_contribution_is_the_server_s_to_a_millionth_of_all_samples(
    off: float,
) -> None:
    body = {"contribution": 100.0 + 500.0 * off}
    if abs(off) < 1e-6:
        assert read_rank(body, 100.0, 500).contribution == body["contribution"]
    else:
        with pytest.raises(ReplyRefused, match="is not the equilibrium contribution"):
            read_rank(body, 100.0, 500)

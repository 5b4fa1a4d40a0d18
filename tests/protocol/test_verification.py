"""A server that writes something false, in a chain that is whole, is found out."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedaccord.errors import InvalidInput
from fedaccord.ledger.chain import GENESIS, Checkpoint, Entry, Fact, broken_links
from fedaccord.ledger.store import Moment
from fedaccord.protocol import conclusions as steps
from fedaccord.protocol.coordinator import Coordinator
from fedaccord.protocol.copies import contradictions
from fedaccord.protocol.envelopes import Ask, Reply
from fedaccord.protocol.messages import FORMAT
from fedaccord.protocol.parameters import to_bytes
from fedaccord.protocol.private import Private
from fedaccord.protocol.terms import Terms, read_terms
from fedaccord.protocol.verification import look_over, wrong_in
from tests.flower.consortia import START_MODEL, Clients, ledger_at, privates_of, run, terms_of
from tests.flower.stories import NAMES, TERMS, inserted, instead, left_out, rewritten, twice


def test_the_truth_passes(story: tuple[list[Entry], Clients]) -> None:
    entries, clients = story
    assert wrong_in(entries) == []
    assert wrong_in([]) == ["it has no entries"]
    for copy in clients.copies.values():
        assert contradictions(entries, copy.written) == []


@pytest.mark.parametrize(
    "forge",
    [
        instead("verdict", 1, "b", verdict="kept"),
        instead("verdict", 1, "a", verdict="deviation"),
        instead("verdict", 1, "b", contributed=21),
        instead("settlement", 1, phase="cooperating"),
        instead("settlement", 1, slots_left=9),
        instead("settlement", 1, total=999),
        instead("slot", 2, phase="cooperating"),
        instead("basis", 2, basis="agreement"),
        instead("basis", 1, contributions={"a": 1, "b": 1, "c": 1}),
        instead("offer", 1, "a", contribution=40),
        instead("offer", 1, "c", contribution=1),
        instead("agreement", 1, total=1),
        instead("agreement", 1, equilibrium_total=1.0),
        instead("round", 1, total=5),
        instead("report", 1, "a", ratio=1e9),
        instead("contribution", 1, "b", samples=21),
        instead("contribution", 1, "b", samples=999),
        instead("contribution", 1, "b", turn=2),
        instead("round", 1, turn=2),
        instead("round", 1, averaged=False, total=0),
        instead("answer", 1, "a", accepts=False),
        instead("answer", 1, "a", accepts=1),
        instead("answer", 1, "a", turn=2),
        instead("rank", 1, "a", rank=3),
        instead("rank", 1, "a", above=7),
        instead("rank", 2, "b", tied=3),
        instead("rank", 1, "c", contribution=1.0),
        instead("agreement", 1, turn=2),
        instead("agreement", 1, kind="uniform"),
        instead("agreement", 1, punishment_slots=9),
        instead("offer", 1, "a", turn=2),
        instead("offer", 1, "a", contribution=7.5),
        instead("report", 1, "a", samples=-1),
        instead("report", 1, "a", valuation=17.0),
        instead("contribution", 1, "b", samples=-1),
        instead("told", 1, clients=["a", "z"]),
        left_out("verdict", 1, "b"),
        left_out("settlement", 1),
        left_out("slot", 2),
        left_out("agreement", 1),
        left_out("answer", 1, "a"),
        left_out("terms", 0),
        left_out("model", 0),
        left_out("rank", 1, "a"),
        left_out("contribution", 1, "a"),
        twice("model", 0),
        twice("slot", 1),
        twice("report", 1, "a"),
        twice("rank", 1, "a"),
        twice("answer", 1, "a"),
        twice("contribution", 1, "a"),
        twice("verdict", 1, "b"),
        twice("told", 1),
        inserted(Fact("model", 1, None, {"model": GENESIS}), after="told", slot=1),
        inserted(Fact("told", 1, None, {"clients": []}), after="round", slot=1),
        inserted(Fact("slot", 2, None, {"phase": "cooperating"}), after="settlement", slot=1),
        inserted(
            Fact("absence", 1, "a", {"stage": "report", "turn": 0}),
            after="report",
            slot=1,
            client="a",
        ),
        inserted(
            Fact("absence", 1, "c", {"stage": "train", "turn": 2}),
            after="contribution",
            slot=1,
            client="b",
        ),
        inserted(Fact("fault", 2, "a", {"stage": "report", "turn": 0}), after="told", slot=1),
        instead("settlement", 1, slots_left=10**400),
        instead("report", 1, "a", ratio=10**400),
        lambda fact: fact._replace(kind="hello") if fact.kind == "told" else fact,
        lambda fact: fact._replace(body={}) if fact.kind == "report" else fact,
    ],
)
def test_what_does_not_follow_is_found(
    forge: Callable[[Fact], Fact | list[Fact] | None], story: tuple[list[Entry], Clients]
) -> None:
    forged = rewritten(story[0], forge)
    assert forged != story[0]
    assert broken_links(forged) == []
    assert len(wrong_in(forged)) == 1


@pytest.mark.parametrize("rule", ["rounds", "punishment_slots"])
def test_terms_out_of_range_are_rejected(rule: str, story: tuple[list[Entry], Clients]) -> None:
    terms = TERMS.model_dump(mode="json") | {rule: 10**400}
    (problem,) = wrong_in(rewritten(story[0], instead("terms", 0, terms=terms)))
    assert problem.endswith(f"has something else for terms.{rule} than belongs there")
    with pytest.raises(InvalidInput, match=f"{rule}: "):
        read_terms(terms, "test")


def test_terms_cannot_change_within_a_slot(tmp_path: Path) -> None:
    """Everything follows from the terms as they would be then; but a slot goes by its own."""
    forgiving = TERMS.model_dump(mode="json") | {"tolerance": 0.99}
    privates = privates_of(NAMES)
    privates[1] = replace(privates[1], slips={1: 1})
    with ledger_at(tmp_path / "ledger.db") as ledger:
        run(Coordinator(TERMS, ledger, START_MODEL), Clients(TERMS, privates), 1)
        entries = list(ledger.entries())

    def forge(fact: Fact) -> Fact | list[Fact]:
        if fact.kind == "basis":
            return [fact, Fact("terms", 1, None, {"format": FORMAT, "terms": forgiving})]
        if fact.kind == "settlement":
            return fact._replace(body={**fact.body, "phase": "cooperating", "slots_left": 0})
        return instead("verdict", 1, "b", verdict="kept")(fact)

    (problem,) = wrong_in(rewritten(entries, forge))
    assert problem.endswith("changes the terms of a slot that was begun")


def test_an_agreement_that_is_kept_from_the_clients_is_found(
    story: tuple[list[Entry], Clients],
) -> None:
    none = instead("agreement", 1, exists=False, total=None, reason="not patient enough")
    (problem,) = wrong_in(rewritten(story[0], none))
    assert problem.endswith("says that there is no agreement, but there is one")


def offering(
    path: Path, monkeypatch: pytest.MonkeyPatch, signed: Terms, solved: Terms
) -> list[Entry]:
    """The ledger of a server that solves by other terms than its clients signed, and is silent."""
    solve = steps._solve
    kind: Any = signed.agreement
    monkeypatch.setattr(steps, "flaw_in", lambda *_: None)
    monkeypatch.setattr(
        steps,
        "_solve",
        lambda slot, _: replace(solve(slot, solved), kind=kind),
    )
    with ledger_at(path) as ledger:
        run(Coordinator(signed, ledger, START_MODEL), Clients(signed, privates_of()), 1)
        entries = list(ledger.entries())
    monkeypatch.undo()
    assert all(entry.body["accepts"] for entry in entries if entry.kind == "answer")
    return entries


@pytest.mark.parametrize(
    ("signed", "solved", "problem"),
    [
        (
            {"margin": 0.3},
            {"margin": 0.0},
            "completes offers that somebody would gain by breaking if less patient by the margin",
        ),
        (
            {"margin": 0.0, "agreement": "uniform"},
            {"margin": 0.0, "agreement": "individual"},
            "completes offers that are not uniform, as the terms say",
        ),
    ],
)
def test_offers_by_other_terms_than_were_signed_are_found(
    signed: dict[str, Any],
    solved: dict[str, Any],
    problem: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    path, terms = tmp_path / "ledger.db", terms_of(**signed)
    (found,) = wrong_in(offering(path, monkeypatch, terms, terms_of(**solved)))
    assert found.endswith(problem)
    assert wrong_in(offering(tmp_path / "honest.db", monkeypatch, terms, terms)) == []


@pytest.mark.slow
@settings(max_examples=15, deadline=None)
@given(
    kind=st.sampled_from(["uniform", "individual"]),
    margin=st.sampled_from([0.0, 0.05, 0.3]),
    punishment=st.sampled_from(["reversion", "suspension"]),
    punishment_slots=st.sampled_from([None, 1, 5]),
    ratios=st.lists(st.sampled_from([0.2, 0.6, 0.8, 1.0, 1.1]), min_size=3, max_size=7),
    sizes=st.lists(st.integers(5, 400), min_size=7, max_size=7),
    reach=st.floats(0.3, 4.0),
)
def test_an_honest_server_is_never_accused(
    *,
    kind: str,
    margin: float,
    punishment: str,
    punishment_slots: int | None,
    ratios: list[float],
    sizes: list[int],
    reach: float,
) -> None:
    """With ties, free riders or none; whatever its solver finds it may offer."""
    names = [f"client-{n}" for n in range(len(ratios))]
    rules = {"punishment": punishment, "punishment_slots": punishment_slots}
    terms = terms_of(names, agreement=kind, margin=margin, rounds=1, **rules)
    most = 2.0 * (reach * max(sizes)) ** 1.5  # whose satiation point is so many samples
    privates = [
        Private(name, ratio * most, 1.0, size, discount_factor=0.8)
        for name, ratio, size in zip(names, ratios, sizes, strict=False)
    ]
    clients = Clients(terms, privates)
    with TemporaryDirectory() as folder, ledger_at(Path(folder, "ledger.db")) as ledger:
        run(Coordinator(terms, ledger, START_MODEL), clients, 1)
        entries = list(ledger.entries())
    assert wrong_in(entries) == []
    for copy in clients.copies.values():
        assert contradictions(entries, copy.written) == []
    (agreement,) = (entry.body for entry in entries if entry.kind == "agreement")
    assert agreement["reason"] != "the certificate does not hold"


@pytest.mark.slow
def test_a_cut_within_what_is_written_at_once_is_found(tmp_path: Path) -> None:
    """A ledger may end where a server may be ended, and nowhere else."""
    whole: set[int] = set()
    clients = Clients(TERMS, privates_of(NAMES))

    def spoilt(ask: Ask) -> list[Reply]:
        clients.away = {"c"} if (ask.slot, ask.stage) == (1, "report") else set()
        return [Reply(7, "b", None), *clients(ask)]

    with ledger_at(tmp_path / "ledger.db") as ledger:

        def watch(moment: Moment) -> None:
            if moment == "after":
                whole.add(ledger.head.number)

        ledger.watch(watch)
        run(Coordinator(TERMS, ledger, START_MODEL), spoilt, 2)
        entries = list(ledger.entries())
    assert {"fault", "absence", "offer", "round"} <= {entry.kind for entry in entries}
    for end in range(1, len(entries) + 1):
        assert (wrong_in(entries[:end]) == []) == (end in whole), entries[end - 1]


def test_a_model_that_changes_without_an_average_is_found(tmp_path: Path) -> None:
    clients = Clients(TERMS, privates_of(NAMES))

    def nobody_trains(ask: Ask) -> list[Reply]:
        return [] if ask.stage == "train" else clients(ask)

    with ledger_at(tmp_path / "ledger.db") as ledger:
        run(Coordinator(TERMS, ledger, START_MODEL), nobody_trains, 1)
        entries = list(ledger.entries())
    assert wrong_in(entries) == []
    (problem,) = wrong_in(rewritten(entries, instead("round", 1, model=GENESIS)))
    assert problem.endswith("has another model, though nothing was averaged")


def test_faults_of_unknown_nodes_have_no_consequences(tmp_path: Path) -> None:
    """Who is not asked comes last in what is written: nothing is wrong with that."""
    clients = Clients(TERMS, privates_of(NAMES))

    def and_a_stranger(ask: Ask) -> list[Reply]:
        return [*clients(ask), Reply(77, None, {})]

    with ledger_at(tmp_path / "ledger.db") as ledger:
        run(Coordinator(TERMS, ledger, START_MODEL), and_a_stranger, 2)
        entries = list(ledger.entries())
    assert sum(entry.kind == "fault" for entry in entries) >= 5
    assert wrong_in(entries) == []


def test_the_model_beside_the_ledger(story: tuple[list[Entry], Clients]) -> None:
    entries, _ = story
    start = to_bytes(START_MODEL)
    first = Checkpoint(2, 0, start)
    other = "the model stored with it is not the one that it names"

    def wrong_model(entries: list[Entry], models: list[Checkpoint]) -> list[str]:
        return look_over(entries, models).problems

    assert wrong_model(entries[:2], [first]) == []
    assert wrong_model([], []) == ["it has no entries"]
    assert wrong_model(entries, []) == ["the model that it names is not stored with it"]
    assert wrong_model(entries, [first]) == ["the model that it names is not stored with it"]
    assert wrong_model(entries[:2], [first, Checkpoint(1_000, 9, start)]) == [other]
    for number in (0, 1, 3, 99):
        assert wrong_model(entries[:2], [Checkpoint(number, 0, start)]) == [other]
    assert wrong_model(entries[:2], [Checkpoint(2, 1, start)]) == [other]
    for stored in (b"", b"\0", start[:-9], b"\x93NUMPY\x01\0", b"PK\x03\x04"):
        assert wrong_model(entries, [Checkpoint(2, 0, stored)]) == [
            "the model stored with it cannot be read"
        ]

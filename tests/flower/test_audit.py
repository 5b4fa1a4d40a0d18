"""A server that writes something false, in a chain that is whole, is found out."""

import json
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
from fedaccord.flower.ledger.chain import (
    GENESIS,
    START,
    Checkpoint,
    Entry,
    Fact,
    Head,
    broken_links,
    extend,
)
from fedaccord.flower.ledger.store import Moment
from fedaccord.flower.protocol import steps
from fedaccord.flower.protocol.audit import audit, contradictions, wrong_model
from fedaccord.flower.protocol.client import Private, Refusal
from fedaccord.flower.protocol.coordinator import Coordinator
from fedaccord.flower.protocol.messages import Ask, Reply
from fedaccord.flower.protocol.parameters import to_bytes
from fedaccord.flower.protocol.terms import Terms, read_terms
from tests.flower.consortia import NOON, START_MODEL, Clients, ledger_at, privates_of, run, terms_of

NAMES = ("a", "b", "c")
TERMS = terms_of(NAMES)


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[Entry], Clients]:
    """Three slots; b slips in the first."""
    return told(tmp_path_factory.mktemp("story") / "ledger.db", slots=3)


def told(
    path: Path, slots: int = 1, lie: Callable[[Ask], Ask] = lambda ask: ask
) -> tuple[list[Entry], Clients]:
    """Some slots, b slips in the first; the clients are asked what `lie` makes of the question."""
    privates = privates_of(NAMES)
    privates[1] = replace(privates[1], slips={1: 0})
    clients = Clients(TERMS, privates)

    def replies(ask: Ask) -> list[Reply]:
        given = []
        for name in ask.bodies:
            with suppress(Refusal):
                given.append(clients.reply(name, lie(ask)))
        return given

    with ledger_at(path) as ledger:
        run(Coordinator(TERMS, ledger, START_MODEL), replies, slots)
        return list(ledger.entries()), clients


def rewritten(
    entries: list[Entry], forge: Callable[[Fact], Fact | list[Fact] | None]
) -> list[Entry]:
    """The whole chain made anew, with other facts: no digest is wrong in it."""
    facts: list[Fact] = []
    for entry in entries:
        forged = forge(entry.fact)
        facts += forged if isinstance(forged, list) else [forged] if forged else []
    return list(extend(START, facts, NOON))


def instead(
    kind: str, slot: int, client: str | None = None, /, **content: Any
) -> Callable[[Fact], Fact]:
    def forge(fact: Fact) -> Fact:
        if (fact.kind, fact.slot) == (kind, slot) and client in (None, fact.client):
            return fact._replace(body={**fact.body, **content})
        return fact

    return forge


def left_out(kind: str, slot: int, client: str | None = None) -> Callable[[Fact], Fact | None]:
    def forge(fact: Fact) -> Fact | None:
        gone = (fact.kind, fact.slot) == (kind, slot) and client in (None, fact.client)
        return None if gone else fact

    return forge


def inserted(
    *facts: Fact, after: str, slot: int, client: str | None = None, turn: int = 1
) -> Callable[[Fact], list[Fact]]:
    def forge(fact: Fact) -> list[Fact]:
        here = (fact.kind, fact.slot, fact.client) == (after, slot, client)
        return [fact, *facts] if here and fact.body.get("round", turn) == turn else [fact]

    return forge


def twice(kind: str, slot: int, client: str | None = None) -> Callable[[Fact], list[Fact]]:
    def forge(fact: Fact) -> list[Fact]:
        return [fact] * (2 if (fact.kind, fact.slot, fact.client) == (kind, slot, client) else 1)

    return forge


def test_the_truth_passes(story: tuple[list[Entry], Clients]) -> None:
    entries, clients = story
    assert audit(entries) == []
    assert audit([]) == ["it has no entries"]
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
        instead("contribution", 1, "b", round=2),
        instead("round", 1, round=2),
        instead("round", 1, averaged=False, total=0),
        instead("answer", 1, "a", accepts=False),
        instead("answer", 1, "a", accepts=1),
        instead("answer", 1, "a", attempt=2),
        instead("rank", 1, "a", rank=3),
        instead("rank", 1, "a", above=7),
        instead("rank", 2, "b", tied=3),
        instead("rank", 1, "c", contribution=1.0),
        instead("agreement", 1, attempt=2),
        instead("agreement", 1, kind="uniform"),
        instead("agreement", 1, punishment_slots=9),
        instead("offer", 1, "a", attempt=2),
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
        inserted(Fact("model", 1, None, {"digest": GENESIS}), after="told", slot=1),
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
    assert len(audit(forged)) == 1


@pytest.mark.parametrize("rule", ["rounds", "punishment_slots"])
def test_terms_beyond_all_numbers_make_no_sense(
    rule: str, story: tuple[list[Entry], Clients]
) -> None:
    terms = TERMS.model_dump(mode="json") | {rule: 10**400}
    (problem,) = audit(rewritten(story[0], instead("terms", 0, terms=terms)))
    assert f"makes no sense: the ledger's terms: {rule}: " in problem
    with pytest.raises(InvalidInput, match=f"{rule}: "):
        read_terms(terms, "test")


def test_terms_that_change_within_a_slot_forgive_nobody(tmp_path: Path) -> None:
    """Everything follows from the terms as they would be then; but a slot goes by its own."""
    forgiving = TERMS.model_dump(mode="json") | {"tolerance": 0.99}
    privates = privates_of(NAMES)
    privates[1] = replace(privates[1], slips={1: 1})
    with ledger_at(tmp_path / "ledger.db") as ledger:
        run(Coordinator(TERMS, ledger, START_MODEL), Clients(TERMS, privates), 1)
        entries = list(ledger.entries())

    def forge(fact: Fact) -> Fact | list[Fact]:
        if fact.kind == "basis":
            return [fact, Fact("terms", 1, None, {"terms": forgiving})]
        if fact.kind == "settlement":
            return fact._replace(body={**fact.body, "phase": "cooperating", "slots_left": 0})
        return instead("verdict", 1, "b", verdict="kept")(fact)

    (problem,) = audit(rewritten(entries, forge))
    assert problem.endswith("changes the terms of a slot that was begun")


def test_an_agreement_that_is_kept_from_the_clients_is_found(
    story: tuple[list[Entry], Clients],
) -> None:
    none = instead("agreement", 1, exists=False, total=None, reason="not patient enough")
    (problem,) = audit(rewritten(story[0], none))
    assert problem.endswith("says that there is no agreement, but there is one")


def offering(
    path: Path, monkeypatch: pytest.MonkeyPatch, signed: Terms, solved: Terms
) -> list[Entry]:
    """The ledger of a server that solves by other terms than its clients signed, and is silent."""
    solve = steps._solve
    monkeypatch.setattr(steps, "flaw_in", lambda *_: None)
    monkeypatch.setattr(
        steps,
        "_solve",
        lambda slot, _: replace(solve(slot, solved), kind=signed.agreement),
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
    (found,) = audit(offering(path, monkeypatch, terms, terms_of(**solved)))
    assert found.endswith(problem)
    assert audit(offering(tmp_path / "honest.db", monkeypatch, terms, terms)) == []


@settings(max_examples=15, deadline=None)
@given(
    kind=st.sampled_from(["uniform", "individual"]),
    margin=st.sampled_from([0.0, 0.05, 0.3]),
    punishment_slots=st.sampled_from([None, 1, 5]),
    ratios=st.lists(st.sampled_from([0.2, 0.6, 0.8, 1.0, 1.1]), min_size=3, max_size=7),
    sizes=st.lists(st.integers(5, 400), min_size=7, max_size=7),
    reach=st.floats(0.3, 4.0),
)
def test_an_honest_server_is_never_accused(
    *,
    kind: str,
    margin: float,
    punishment_slots: int | None,
    ratios: list[float],
    sizes: list[int],
    reach: float,
) -> None:
    """With ties, free riders or none; whatever its solver finds it may offer."""
    names = [f"client-{n}" for n in range(len(ratios))]
    terms = terms_of(
        names, agreement=kind, margin=margin, punishment_slots=punishment_slots, rounds=1
    )
    most = 2.0 * (reach * max(sizes)) ** 1.5  # whose satiation point is so many samples
    privates = [
        Private(name, ratio * most, 1.0, size, discount_factor=0.8)
        for name, ratio, size in zip(names, ratios, sizes, strict=False)
    ]
    clients = Clients(terms, privates)
    with TemporaryDirectory() as folder, ledger_at(Path(folder, "ledger.db")) as ledger:
        run(Coordinator(terms, ledger, START_MODEL), clients, 1)
        entries = list(ledger.entries())
    assert audit(entries) == []
    for copy in clients.copies.values():
        assert contradictions(entries, copy.written) == []
    (agreement,) = (entry.body for entry in entries if entry.kind == "agreement")
    assert agreement["reason"] != "the certificate does not hold"


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
        assert (audit(entries[:end]) == []) == (end in whole), entries[end - 1]


def test_a_model_that_changes_without_an_average_is_found(tmp_path: Path) -> None:
    clients = Clients(TERMS, privates_of(NAMES))

    def nobody_trains(ask: Ask) -> list[Reply]:
        return [] if ask.stage == "train" else clients(ask)

    with ledger_at(tmp_path / "ledger.db") as ledger:
        run(Coordinator(TERMS, ledger, START_MODEL), nobody_trains, 1)
        entries = list(ledger.entries())
    assert audit(entries) == []
    (problem,) = audit(rewritten(entries, instead("round", 1, digest=GENESIS)))
    assert problem.endswith("has another model, though nothing was averaged")


def test_replies_of_strangers_are_no_conclusions(tmp_path: Path) -> None:
    """Who is not asked comes last in what is written: nothing is wrong with that."""
    clients = Clients(TERMS, privates_of(NAMES))

    def and_a_stranger(ask: Ask) -> list[Reply]:
        return [*clients(ask), Reply(77, None, {})]

    with ledger_at(tmp_path / "ledger.db") as ledger:
        run(Coordinator(TERMS, ledger, START_MODEL), and_a_stranger, 2)
        entries = list(ledger.entries())
    assert sum(entry.kind == "fault" for entry in entries) >= 5
    assert audit(entries) == []


def test_the_model_beside_the_ledger(story: tuple[list[Entry], Clients]) -> None:
    entries, _ = story
    start = to_bytes(START_MODEL)
    first = Checkpoint(2, start)
    assert wrong_model(entries[:2], [first]) == []
    assert wrong_model([], []) == []
    assert wrong_model(entries, [first]) == ["the model beside it is not the one that it speaks of"]
    assert wrong_model(entries, []) == ["the model that it speaks of is not beside it"]
    assert wrong_model([], [first]) == ["the model beside it is not the one that it speaks of"]
    (problem,) = wrong_model(entries[:2], [first, Checkpoint(1_000, start)])
    assert problem == "there are 2 models beside it, and it speaks of one"
    for number in (0, 1, 3, 99):
        (problem,) = wrong_model(entries[:2], [Checkpoint(number, start)])
        assert problem == "the model beside it has another number than the entry that it came with"
    for stored in (b"", b"\0", start[:-9], b"\x93NUMPY\x01\0", b"PK\x03\x04"):
        assert wrong_model(entries, [Checkpoint(2, stored)]) == [
            "the model beside it cannot be read"
        ]


def test_a_past_that_was_made_anew_contradicts_the_clients(
    story: tuple[list[Entry], Clients],
) -> None:
    """Consistent in itself, as if b had slipped only in the second round; b's copy knows better."""
    entries, clients = story

    def as_if(fact: Fact) -> Fact:
        if fact.kind == "contribution" and (fact.slot, fact.client, fact.body["round"]) == (
            1,
            "a",
            1,
        ):
            return fact._replace(body={"round": 1, "samples": fact.body["samples"] + 1})
        if fact.kind == "round" and (fact.slot, fact.body["round"]) == (1, 1):
            return fact._replace(body={**fact.body, "total": fact.body["total"] + 1})
        return fact

    forged = rewritten(entries, as_if)
    assert audit(forged) == []
    found = contradictions(forged, clients.copies["a"].written)
    assert any("the server wrote something else down" in problem for problem in found)
    found = contradictions(forged, clients.copies["c"].written)
    assert any("of the server's ledger was another one then" in problem for problem in found)


def lying(stage: str, **content: Any) -> Callable[[Ask], Ask]:
    """What a is told in a stage is another thing than what the ledger says."""

    def lie(ask: Ask) -> Ask:
        if ask.stage != stage:
            return ask
        return replace(ask, bodies={**ask.bodies, "a": {**ask.bodies["a"], **content}})

    return lie


AT_EQUILIBRIUM = {"contribution": 0, "rank": 1, "clients": 3, "above": 110, "tied": 40}
"""a's true place among the three."""


@pytest.mark.parametrize(
    "lie",
    [
        lying("offer", total=999),
        lying("offer", equilibrium_total=22.0),
        lying("offer", contribution=6),
        lying("offer", kind="uniform"),
        lying("offer", punishment_slots=50),
        lying("offer", tolerance=0.5),
        lying("offer", rounds=9),
        lying("offer", rank=2),
        lying("offer", above=0),
        lying("train", basis="equilibrium", **AT_EQUILIBRIUM),
        lying("rank", rank=3),
        lying("rank", clients=9),
        lying("rank", above=111),
        lying("rank", tied=41),
        lying("settle", verdict="deviation"),
        lying("settle", agreed=1),
        lying("settle", contributed=1),
        lying("settle", rounds_absent=1),
        lying("settle", deviated=[]),
        lying("settle", deviated=["b", "c"]),
        lying("settle", absent=["c"]),
        lying("settle", phase="cooperating"),
        lying("settle", slots_left=1),
        lying("rank", ledger=[0, GENESIS]),
        lying("report", ledger=[2, GENESIS]),
    ],
)
def test_a_server_that_tells_a_client_something_else_than_it_wrote_is_found(
    lie: Callable[[Ask], Ask], tmp_path: Path
) -> None:
    entries, clients = told(tmp_path / "ledger.db", lie=lie)
    assert audit(entries) == []
    found = contradictions(entries, clients.copies["a"].written)
    assert found
    assert all(problem.startswith("a's entry ") for problem in found)
    assert contradictions(entries, clients.copies["c"].written) == []


def test_a_client_that_is_framed_can_show_it(tmp_path: Path) -> None:
    """It accepted; then it alone was told that the equilibrium is played, and so gave nothing."""
    lie = lying("train", basis="equilibrium", **AT_EQUILIBRIUM)
    entries, clients = told(tmp_path / "ledger.db", lie=lie)
    (verdict,) = (e.body for e in entries if (e.kind, e.client) == ("verdict", "a"))
    assert (verdict["verdict"], verdict["contributed"]) == ("deviation", 0)
    found = contradictions(entries, clients.copies["a"].written)
    assert [problem.partition(" (")[2] for problem in found] == [
        "contribution of slot 1): the server told something else than its ledger says"
    ] * TERMS.rounds


@pytest.mark.parametrize("content", [{"contribution": 1}, {"rank": 2, "clients": 2}])
def test_a_false_place_in_a_punishment_is_found(content: dict[str, Any], tmp_path: Path) -> None:
    """A place that c cannot know to be false: someone might have dropped out."""

    def lie(ask: Ask) -> Ask:
        about_c = {**ask.bodies.get("c", {}), **content}
        in_punishment = (ask.slot, ask.stage) == (2, "train")
        return replace(ask, bodies={**ask.bodies, "c": about_c}) if in_punishment else ask

    entries, clients = told(tmp_path / "ledger.db", slots=2, lie=lie)
    assert audit(entries) == []
    found = contradictions(entries, clients.copies["c"].written)
    assert len(found) == TERMS.rounds
    assert all("(contribution of slot 2)" in problem for problem in found)


def test_an_older_end_of_the_ledger_than_the_last_is_found(tmp_path: Path) -> None:
    """A server that shows a client less than there is could go on from there in two ways."""

    heads: list[Head] = []

    def lie(ask: Ask) -> Ask:
        heads.append(ask.head)
        return lying("offer", ledger=list(heads[0]))(ask)

    entries, clients = told(tmp_path / "ledger.db", lie=lie)
    found = contradictions(entries, clients.copies["a"].written)
    assert [problem.rpartition(": ")[2] for problem in found] == [
        "the server told something else than its ledger says"
    ] * 2  # the offer, and the answer to it


def test_a_client_under_other_terms_is_found(tmp_path: Path) -> None:
    """Terms that no offer speaks of: the copy has their digest."""
    clients = Clients(terms_of(NAMES, quorum=3), privates_of(NAMES))
    with ledger_at(tmp_path / "ledger.db") as ledger:
        run(Coordinator(TERMS, ledger, START_MODEL), clients, 1)
        (found,) = contradictions(ledger.entries(), clients.copies["a"].written)
    assert found.startswith("a's entry 1 (report of slot 1)")


def test_any_end_cut_off_from_a_copy_is_found(story: tuple[list[Entry], Clients]) -> None:
    entries, clients = story
    for copy in clients.copies.values():
        assert contradictions(entries, []) == ["it has no entries"]
        for end in range(1, len(copy.written)):
            assert contradictions(entries, copy.written[:end])


@pytest.mark.parametrize(
    "content", [{"ledger": 5}, {"ledger": []}, {"ledger": [[], {}]}, {"turn": [1]}, {"turn": "1"}]
)
def test_a_copy_that_makes_no_sense_contradicts(
    content: dict[str, Any], story: tuple[list[Entry], Clients]
) -> None:
    entries, clients = story
    forge = instead("rank", 1, **content)
    assert contradictions(entries, rewritten(clients.copies["a"].written, forge))


def test_what_the_server_invents_contradicts_the_clients(
    story: tuple[list[Entry], Clients],
) -> None:
    """The server puts words into a's mouth, before or instead of what a said."""
    entries, clients = story
    copy = clients.copies["a"].written
    about_a = [n for n, e in enumerate(entries) if (e.kind, e.client) == ("contribution", "a")]
    first = entries[about_a[0]]
    false = first._replace(text='{"round":1,"samples":0}')
    both = [*entries[: about_a[0]], false, *entries[about_a[0] :]]
    assert any("wrote something else" in problem for problem in contradictions(both, copy))
    assert audit(list(extend(START, [entry.fact for entry in both], NOON)))

    unsaid = [e for e in copy if (e.kind, e.slot) != ("contribution", 1)]
    found = contradictions(entries, unsaid)
    assert len(found) == TERMS.rounds
    assert all("a knows nothing of the server's entry" in problem for problem in found)


def test_a_server_s_ledger_is_no_copy(story: tuple[list[Entry], Clients]) -> None:
    entries, _ = story
    assert contradictions(entries, entries) == ["is no copy of a client's"]


def test_an_end_that_was_cut_off_contradicts_the_clients(
    story: tuple[list[Entry], Clients],
) -> None:
    entries, clients = story
    cut = [entry for entry in entries if entry.slot < 3]
    assert audit(cut) == []
    assert contradictions(cut, clients.copies["a"].written)


def test_an_answer_that_never_arrived_contradicts_nobody(tmp_path: Path) -> None:
    clients = Clients(TERMS, privates_of(NAMES))

    def one_is_lost(ask: Any) -> Any:
        return [r for r in clients(ask) if (ask.stage, r.client) != ("train", "b")]

    with ledger_at(tmp_path / "ledger.db") as ledger:
        run(Coordinator(TERMS, ledger, START_MODEL), one_is_lost, 1)
        assert contradictions(ledger.entries(), clients.copies["b"].written) == []
        assert json.loads(clients.copies["b"].written[-1].text)["verdict"] == "absence"

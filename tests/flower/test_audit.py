"""A server that writes something false, in a chain that is whole, is found out."""

import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fedaccord.flower.ledger.chain import GENESIS, START, Entry, Fact, Head, broken_links, extend
from fedaccord.flower.ledger.store import Moment
from fedaccord.flower.protocol.audit import audit, contradictions, wrong_model
from fedaccord.flower.protocol.client import Refusal
from fedaccord.flower.protocol.coordinator import Coordinator
from fedaccord.flower.protocol.messages import Ask, Reply
from fedaccord.flower.protocol.parameters import to_bytes
from tests.flower.consortia import NOON, START_MODEL, Members, ledger_at, privates_of, run, terms_of

NAMES = ("a", "b", "c")
TERMS = terms_of(NAMES)


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[Entry], Members]:
    """Three slots; b slips in the first."""
    return told(tmp_path_factory.mktemp("story") / "ledger.db", slots=3)


def told(
    path: Path, slots: int = 1, lie: Callable[[Ask], Ask] = lambda ask: ask
) -> tuple[list[Entry], Members]:
    """Some slots, b slips in the first; the clients are asked what `lie` makes of the question."""
    privates = privates_of(NAMES)
    privates[1] = replace(privates[1], slips={1: 0})
    members = Members(TERMS, privates)

    def replies(ask: Ask) -> list[Reply]:
        given = []
        for name in ask.bodies:
            with suppress(Refusal):
                given.append(members.reply(name, lie(ask)))
        return given

    with ledger_at(path) as ledger:
        run(Coordinator(TERMS, ledger, START_MODEL), replies, slots)
        return list(ledger.entries()), members


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


def test_the_truth_passes(story: tuple[list[Entry], Members]) -> None:
    entries, members = story
    assert audit(entries) == []
    assert audit([]) == ["it has no entries"]
    for copy in members.copies.values():
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
        lambda fact: fact._replace(kind="hello") if fact.kind == "told" else fact,
        lambda fact: fact._replace(body={}) if fact.kind == "report" else fact,
    ],
)
def test_what_does_not_follow_is_found(
    forge: Callable[[Fact], Fact | list[Fact] | None], story: tuple[list[Entry], Members]
) -> None:
    forged = rewritten(story[0], forge)
    assert forged != story[0]
    assert broken_links(forged) == []
    assert len(audit(forged)) == 1


def test_terms_that_change_within_a_slot_forgive_nobody(tmp_path: Path) -> None:
    """Everything follows from the terms as they would be then; but a slot goes by its own."""
    forgiving = TERMS.model_dump(mode="json") | {"tolerance": 0.99}
    privates = privates_of(NAMES)
    privates[1] = replace(privates[1], slips={1: 1})
    with ledger_at(tmp_path / "ledger.db") as ledger:
        run(Coordinator(TERMS, ledger, START_MODEL), Members(TERMS, privates), 1)
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
    story: tuple[list[Entry], Members],
) -> None:
    none = instead("agreement", 1, exists=False, total=None, reason="not patient enough")
    (problem,) = audit(rewritten(story[0], none))
    assert problem.endswith("says that there is no agreement, but there is one")


def test_a_cut_within_what_is_written_at_once_is_found(tmp_path: Path) -> None:
    """A ledger may end where a server may be ended, and nowhere else."""
    whole: set[int] = set()
    members = Members(TERMS, privates_of(NAMES))

    def spoilt(ask: Ask) -> list[Reply]:
        members.away = {"c"} if (ask.slot, ask.stage) == (1, "report") else set()
        return [Reply(7, "b", None), *members(ask)]

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
    members = Members(TERMS, privates_of(NAMES))

    def nobody_trains(ask: Ask) -> list[Reply]:
        return [] if ask.stage == "train" else members(ask)

    with ledger_at(tmp_path / "ledger.db") as ledger:
        run(Coordinator(TERMS, ledger, START_MODEL), nobody_trains, 1)
        entries = list(ledger.entries())
    assert audit(entries) == []
    (problem,) = audit(rewritten(entries, instead("round", 1, digest=GENESIS)))
    assert problem.endswith("has another model, though nothing was averaged")


def test_replies_of_strangers_are_no_conclusions(tmp_path: Path) -> None:
    """Who is not asked comes last in what is written: nothing is wrong with that."""
    members = Members(TERMS, privates_of(NAMES))

    def and_a_stranger(ask: Ask) -> list[Reply]:
        return [*members(ask), Reply(77, None, {})]

    with ledger_at(tmp_path / "ledger.db") as ledger:
        run(Coordinator(TERMS, ledger, START_MODEL), and_a_stranger, 2)
        entries = list(ledger.entries())
    assert sum(entry.kind == "fault" for entry in entries) >= 5
    assert audit(entries) == []


def test_the_model_beside_the_ledger(story: tuple[list[Entry], Members]) -> None:
    entries, _ = story
    start = to_bytes(START_MODEL)
    assert wrong_model(entries[:2], start) == []
    assert wrong_model([], None) == []
    assert wrong_model(entries, start) == ["the model beside it is not the one that it speaks of"]
    assert wrong_model(entries, None) == ["the model that it speaks of is not beside it"]
    assert wrong_model([], start) == ["the model beside it is not the one that it speaks of"]
    for stored in (b"", b"\0", start[:-9], b"\x93NUMPY\x01\0", b"PK\x03\x04"):
        assert wrong_model(entries, stored) == ["the model beside it cannot be read"]


def test_a_past_that_was_made_anew_contradicts_the_clients(
    story: tuple[list[Entry], Members],
) -> None:
    """Consistent in itself, as if b had slipped only in the second round; b's copy knows better."""
    entries, members = story

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
    found = contradictions(forged, members.copies["a"].written)
    assert any("the server wrote something else down" in problem for problem in found)
    found = contradictions(forged, members.copies["c"].written)
    assert any("of the server's ledger was another one then" in problem for problem in found)


def lying(stage: str, **content: Any) -> Callable[[Ask], Ask]:
    """What a is told in a stage is another thing than what the ledger says."""

    def lie(ask: Ask) -> Ask:
        if ask.stage != stage:
            return ask
        return replace(ask, bodies={**ask.bodies, "a": {**ask.bodies["a"], **content}})

    return lie


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
    entries, members = told(tmp_path / "ledger.db", lie=lie)
    assert audit(entries) == []
    found = contradictions(entries, members.copies["a"].written)
    assert found
    assert all(problem.startswith("a's entry ") for problem in found)
    assert contradictions(entries, members.copies["c"].written) == []


def test_an_older_end_of_the_ledger_than_the_last_is_found(tmp_path: Path) -> None:
    """A server that shows a client less than there is could go on from there in two ways."""

    heads: list[Head] = []

    def lie(ask: Ask) -> Ask:
        heads.append(ask.head)
        return lying("offer", ledger=list(heads[0]))(ask)

    entries, members = told(tmp_path / "ledger.db", lie=lie)
    found = contradictions(entries, members.copies["a"].written)
    assert [problem.rpartition(": ")[2] for problem in found] == [
        "the server told something else than its ledger says"
    ] * 2  # the offer, and the answer to it


def test_a_client_under_other_terms_is_found(tmp_path: Path) -> None:
    """Terms that no offer speaks of: the copy has their digest."""
    members = Members(terms_of(NAMES, quorum=3), privates_of(NAMES))
    with ledger_at(tmp_path / "ledger.db") as ledger:
        run(Coordinator(TERMS, ledger, START_MODEL), members, 1)
        (found,) = contradictions(ledger.entries(), members.copies["a"].written)
    assert found.startswith("a's entry 1 (report of slot 1)")


def test_any_end_cut_off_from_a_copy_is_found(story: tuple[list[Entry], Members]) -> None:
    entries, members = story
    for copy in members.copies.values():
        assert contradictions(entries, []) == ["it has no entries"]
        for end in range(1, len(copy.written)):
            assert contradictions(entries, copy.written[:end])


@pytest.mark.parametrize(
    "content", [{"ledger": 5}, {"ledger": []}, {"ledger": [[], {}]}, {"turn": [1]}, {"turn": "1"}]
)
def test_a_copy_that_makes_no_sense_contradicts(
    content: dict[str, Any], story: tuple[list[Entry], Members]
) -> None:
    entries, members = story
    forge = instead("rank", 1, **content)
    assert contradictions(entries, rewritten(members.copies["a"].written, forge))


def test_what_the_server_invents_contradicts_the_clients(
    story: tuple[list[Entry], Members],
) -> None:
    """The server puts words into a's mouth, before or instead of what a said."""
    entries, members = story
    copy = members.copies["a"].written
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


def test_a_server_s_ledger_is_no_copy(story: tuple[list[Entry], Members]) -> None:
    entries, _ = story
    assert contradictions(entries, entries) == ["is no copy of a client's"]


def test_an_end_that_was_cut_off_contradicts_the_clients(
    story: tuple[list[Entry], Members],
) -> None:
    entries, members = story
    cut = [entry for entry in entries if entry.slot < 3]
    assert audit(cut) == []
    assert contradictions(cut, members.copies["a"].written)


def test_an_answer_that_never_arrived_contradicts_nobody(tmp_path: Path) -> None:
    members = Members(TERMS, privates_of(NAMES))

    def one_is_lost(ask: Any) -> Any:
        return [r for r in members(ask) if (ask.stage, r.client) != ("train", "b")]

    with ledger_at(tmp_path / "ledger.db") as ledger:
        run(Coordinator(TERMS, ledger, START_MODEL), one_is_lost, 1)
        assert contradictions(ledger.entries(), members.copies["b"].written) == []
        assert json.loads(members.copies["b"].written[-1].text)["verdict"] == "absence"

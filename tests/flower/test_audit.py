"""A server that writes something false, in a chain that is whole, is found out."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fedaccord.flower.ledger.chain import START, Entry, Fact, broken_links, extend
from fedaccord.flower.protocol.audit import audit, contradictions
from fedaccord.flower.protocol.coordinator import Coordinator
from tests.flower.consortia import NOON, START_MODEL, Members, ledger_at, privates_of, run, terms_of

TERMS = terms_of(("a", "b", "c"))


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[Entry], Members]:
    """Three slots; b slips in the first."""
    privates = privates_of(("a", "b", "c"))
    privates[1] = replace(privates[1], slips={1: 0})
    members = Members(TERMS, privates)
    with ledger_at(tmp_path_factory.mktemp("story") / "ledger.db") as ledger:
        run(Coordinator(TERMS, ledger, START_MODEL), members, 3)
        return list(ledger.entries()), members


def rewritten(entries: list[Entry], forge: Callable[[Fact], Fact | None]) -> list[Entry]:
    """The whole chain made anew, with other facts: no digest is wrong in it."""
    facts = [forged for entry in entries if (forged := forge(entry.fact)) is not None]
    return list(extend(START, facts, NOON))


def instead(
    kind: str, slot: int, client: str | None = None, **content: Any
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


def test_the_truth_passes(story: tuple[list[Entry], Members]) -> None:
    entries, members = story
    assert audit(entries) == []
    assert audit([]) == []
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
        left_out("verdict", 1, "b"),
        left_out("settlement", 1),
        left_out("slot", 2),
        left_out("agreement", 1),
        left_out("answer", 1, "a"),
        left_out("terms", 0),
        lambda fact: fact._replace(kind="hello") if fact.kind == "told" else fact,
        lambda fact: fact._replace(body={}) if fact.kind == "report" else fact,
    ],
)
def test_what_does_not_follow_is_found(
    forge: Callable[[Fact], Fact | None], story: tuple[list[Entry], Members]
) -> None:
    forged = rewritten(story[0], forge)
    assert broken_links(forged) == []
    assert len(audit(forged)) == 1


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


def test_what_the_server_invents_contradicts_the_clients(
    story: tuple[list[Entry], Members],
) -> None:
    """The server puts words into a's mouth, before or instead of what a said."""
    entries, members = story
    copy = members.copies["a"].written
    about_a = [n for n, e in enumerate(entries) if (e.kind, e.client) == ("contribution", "a")]
    first = entries[about_a[0]]
    false = first._replace(text='{"round":1,"samples":0}')
    twice = [*entries[: about_a[0]], false, *entries[about_a[0] :]]
    assert any("wrote something else" in problem for problem in contradictions(twice, copy))
    assert audit(list(extend(START, [entry.fact for entry in twice], NOON)))

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
    members = Members(TERMS, privates_of(("a", "b", "c")))

    def one_is_lost(ask: Any) -> Any:
        return [r for r in members(ask) if (ask.stage, r.client) != ("train", "b")]

    with ledger_at(tmp_path / "ledger.db") as ledger:
        run(Coordinator(TERMS, ledger, START_MODEL), one_is_lost, 1)
        assert contradictions(ledger.entries(), members.copies["b"].written) == []
        assert json.loads(members.copies["b"].written[-1].text)["verdict"] == "absence"

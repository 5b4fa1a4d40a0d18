"""A server that tells a client something else than it writes is found out by the client's copy."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fedaccord.ledger.chain import GENESIS, START, Entry, Fact, Head, extend
from fedaccord.protocol.coordinator import Coordinator
from fedaccord.protocol.copies import contradictions
from fedaccord.protocol.envelopes import Ask
from fedaccord.protocol.notes import CopyFile, CopyInMemory
from fedaccord.protocol.verification import wrong_in
from fedaccord.signing.canonical import canonical
from tests.flower.consortia import NOON, START_MODEL, Clients, ledger_at, privates_of, run, terms_of
from tests.flower.stories import NAMES, TERMS, instead, rewritten, telling, told


def test_a_rewritten_past_contradicts_the_copies(
    story: tuple[list[Entry], Clients],
) -> None:
    """Consistent in itself, as if b had slipped only in the second round; b's copy knows better."""
    entries, clients = story

    def as_if(fact: Fact) -> Fact:
        if fact.kind == "contribution" and (fact.slot, fact.client, fact.body["turn"]) == (
            1,
            "a",
            1,
        ):
            return fact._replace(body={**fact.body, "samples": fact.body["samples"] + 1})
        if fact.kind == "round" and (fact.slot, fact.body["turn"]) == (1, 1):
            return fact._replace(body={**fact.body, "total": fact.body["total"] + 1})
        return fact

    forged = rewritten(entries, as_if)
    assert wrong_in(forged) == []
    found = contradictions(forged, clients.copies["a"].written)
    assert any("the server wrote down something else" in problem for problem in found)
    found = contradictions(forged, clients.copies["c"].written)
    assert any("of the server's ledger was another one then" in problem for problem in found)


def lying(stage: str, **content: Any) -> Callable[[Ask], Ask]:
    """What a is told in a stage is another thing than what the ledger says."""

    def lie(ask: Ask) -> Ask:
        if ask.stage != stage or "a" not in ask.contents:
            return ask
        return telling(ask, "a", **content)

    return lie


AT_EQUILIBRIUM = {"contribution": 0, "rank": 1, "clients": 3, "above": 110, "tied": 40}
"""a's true place among the three."""


@pytest.mark.parametrize(
    "lie",
    [
        lying("offer", total=999),
        lying("offer", equilibrium_total=22.0),
        lying("offer", contribution=6),
        lying("offer", agreement="uniform"),
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
        lying("rank", ledger=[9, GENESIS]),
        lying("report", ledger=[2, GENESIS]),
    ],
)
def test_a_server_that_tells_a_client_something_else_than_it_wrote_is_found(
    lie: Callable[[Ask], Ask], tmp_path: Path
) -> None:
    entries, clients = told(tmp_path / "ledger.db", lie=lie)
    assert wrong_in(entries) == []
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
    ]  # in one round: after that it was asked no more


@pytest.mark.parametrize("content", [{"contribution": 1}, {"rank": 2, "clients": 2}])
def test_a_false_place_in_a_punishment_is_found(content: dict[str, Any], tmp_path: Path) -> None:
    """A place that c cannot know to be false: someone might have dropped out."""

    def lie(ask: Ask) -> Ask:
        in_punishment = (ask.slot, ask.stage) == (2, "train")
        return telling(ask, "c", **content) if in_punishment else ask

    entries, clients = told(tmp_path / "ledger.db", slots=2, lie=lie)
    assert wrong_in(entries) == []
    found = contradictions(entries, clients.copies["c"].written)
    assert len(found) == TERMS.rounds
    assert all("(contribution of slot 2)" in problem for problem in found)


def test_an_older_end_of_the_ledger_than_the_last_is_not_believed(tmp_path: Path) -> None:
    """A server that shows a client less than there is could go on from there in two ways."""

    heads: list[Head] = []

    def lie(ask: Ask) -> Ask:
        heads.append(ask.head)
        return lying("offer", ledger=list(heads[0]))(ask)

    entries, clients = told(tmp_path / "ledger.db", lie=lie)
    assert "offer" not in {entry.kind for entry in clients.copies["a"].written}
    assert ("absence", "a") in {(entry.kind, entry.client) for entry in entries}


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
    false = first._replace(text=canonical({**first.body, "samples": 0}))
    both = [*entries[: about_a[0]], false, *entries[about_a[0] :]]
    assert any("wrote down something else" in problem for problem in contradictions(both, copy))
    assert wrong_in(list(extend(START, [entry.fact for entry in both], NOON)))

    unsaid = [e for e in copy if (e.kind, e.slot) != ("contribution", 1)]
    found = contradictions(entries, unsaid)
    assert len(found) == TERMS.rounds
    assert all("a knows nothing of the server's entry" in problem for problem in found)


def test_a_server_s_ledger_is_not_a_copy(story: tuple[list[Entry], Clients]) -> None:
    entries, _ = story
    assert contradictions(entries, entries) == ["is not a client's copy"]


def test_an_end_that_was_cut_off_contradicts_the_clients(
    story: tuple[list[Entry], Clients],
) -> None:
    entries, clients = story
    cut = [entry for entry in entries if entry.slot < 3]
    assert wrong_in(cut) == []
    assert contradictions(cut, clients.copies["a"].written)


def test_an_answer_that_never_arrived_is_not_a_contradiction(tmp_path: Path) -> None:
    clients = Clients(TERMS, privates_of(NAMES))

    def one_is_lost(ask: Any) -> Any:
        return [r for r in clients(ask) if (ask.stage, r.client) != ("train", "b")]

    with ledger_at(tmp_path / "ledger.db") as ledger:
        run(Coordinator(TERMS, ledger, START_MODEL), one_is_lost, 1)
        assert contradictions(ledger.entries(), clients.copies["b"].written) == []
        assert json.loads(clients.copies["b"].written[-1].text)["verdict"] == "absence"


def test_a_copy_in_memory_is_read_like_one_in_a_file(tmp_path: Path) -> None:
    """By slot, by kind, by both, or all of it; and it continues where it ended."""
    facts = [
        Fact(kind, slot, "a", {"count": slot, "about": other})
        for slot in (1, 2, 3)
        for kind, other in (("asked", "signed"), ("signed", "asked"), ("asked", "x"))
    ]
    texts: dict[str, Any] = {}
    memory, file = CopyInMemory(texts), CopyFile(tmp_path / "copy.db", 5.0)
    assert memory.last() is None
    assert file.last() is None
    for copy in (memory, file):
        copy.append(facts[:4])
    for copy in (CopyInMemory(texts), file):
        copy.append(facts[4:])
    everything = list(memory.entries())
    assert [entry.fact for entry in everything] == facts
    assert memory.last() == everything[-1]
    assert [entry.number for entry in everything] == list(range(1, 10))
    for slot in (1, 2, 3, 4):
        assert list(memory.entries(slot=slot)) == [e for e in everything if e.slot == slot]
        for kind in ("asked", "signed", "x"):
            wanted = [e for e in everything if e.slot == slot and e.kind == kind]
            assert list(memory.entries(slot=slot, kind=kind)) == wanted
            assert [e.fact for e in file.entries(slot=slot, kind=kind)] == [e.fact for e in wanted]
    assert list(memory.entries(kind="signed")) == [e for e in everything if e.kind == "signed"]

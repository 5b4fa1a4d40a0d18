"""Answers that the server did not take: claimed absences, receipts, and what is undecided."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fedaccord.ledger.chain import Entry, Fact
from fedaccord.protocol.coordinator import Coordinator
from fedaccord.protocol.copies import Compared, compare_with_server
from fedaccord.protocol.envelopes import Ask, Reply
from fedaccord.protocol.messages import Refusal, Stage
from fedaccord.protocol.verification import Findings, look_over, wrong_in
from tests.flower.consortia import START_MODEL, Clients, ledger_at, privates_of, run, server_key
from tests.flower.stories import NAMES, SIGNED, resealed
from tests.lies import lie

Answers = Callable[[Ask], list[Reply]]


def played(path: Path, answers: Callable[[Clients], Answers], slots: int = 2) -> "Story":
    clients = Clients(SIGNED, privates_of(NAMES))
    with ledger_at(path) as ledger:
        coordinator = Coordinator(SIGNED, ledger, START_MODEL, server_key(SIGNED))
        run(coordinator, answers(clients), slots)
        return list(ledger.entries()), clients


Story = tuple[list[Entry], Clients]


def dropping(stage: Stage, slot: int = 1) -> Callable[[Clients], Answers]:
    """The server throws away what b answers in a stage, and says that b was absent."""

    def answers(clients: Clients) -> Answers:
        def replies(ask: Ask) -> list[Reply]:
            given = clients(ask)
            if (ask.stage, ask.slot) != (stage, slot):
                return given
            return [reply for reply in given if reply.client != "b"]

        return replies

    return answers


def both(story: Story) -> tuple[Findings, Compared]:
    """What the ledger shows by itself, and against b's copy."""
    entries, clients = story
    (compared,) = compare_with_server(entries, [clients.copies["b"].written])
    return look_over(entries, every_signature=True), compared


@lie(
    "the server",
    "say that a client was absent, in any stage of a slot",
    "the client's next report brings its signed answer, which the server has to publish: verify "
    "says that the absence is undecided, and it costs no more than a slot without a model",
)
@pytest.mark.parametrize("stage", ["report", "rank", "offer", "train"])
def test_a_claimed_absence_is_disputed(stage: Stage, tmp_path: Path) -> None:
    story = played(tmp_path / "ledger.db", dropping(stage))
    alone, compared = both(story)
    assert alone.problems == []
    (late,) = [entry for entry in story[0] if entry.kind == "late"]
    assert (late.client, late.slot, late.body["answers"]["stage"]) == ("b", 2, stage)
    (undecided,) = alone.signatures.undecided
    assert f"says that b was absent ({stage} of slot 1), but b signed an answer" in undecided
    assert compared.problems == []
    (undecided,) = compared.undecided
    assert "whether it came in time cannot be decided" in undecided


def test_an_absence_that_nobody_disputes_rests_on_the_servers_word(tmp_path: Path) -> None:
    def away(clients: Clients) -> Answers:
        def replies(ask: Ask) -> list[Reply]:
            clients.away = {"b"} if ask.slot == 1 else set()
            return clients(ask)

        return replies

    alone, compared = both(played(tmp_path / "ledger.db", away))
    assert (alone.problems, alone.signatures.undecided) == ([], [])
    assert alone.signatures.unproved == {"absence": 1}
    assert (compared.problems, compared.undecided) == ([], [])


@lie(
    "the server",
    "give a client a receipt for its answer, and write that it was absent",
    "verify --against finds the receipt in the client's copy, with the server's signature",
)
def test_who_has_a_receipt_was_not_absent(tmp_path: Path) -> None:
    """In slot 2 the server acknowledges what it says in its ledger that it never got."""
    heard: dict[str, str] = {}

    def answers(clients: Clients) -> Answers:
        def replies(ask: Ask) -> list[Reply]:
            shown = ask
            if ask.slot == 2 and ask.stage == "report":
                shown = replace(ask, received=dict(ask.received) | heard)
            given = [clients.reply(name, shown) for name in ask.contents]
            if ask.slot == 1 and ask.stage == "train":
                copy = clients.copies["b"].written
                heard["b"] = copy[-1].body["statement"]
                given = [reply for reply in given if reply.client != "b"]
            return given

        return replies

    _, compared = both(played(tmp_path / "ledger.db", answers))
    assert any("but the server signed a receipt for its answer" in one for one in compared.problems)


def without_late(fact: Fact) -> Fact | None:
    if fact.kind == "late":
        return None
    return fact._replace(body={key: value for key, value in fact.body.items() if key != "late"})


@lie(
    "the server",
    "keep the answer to itself with which a client disputes its absence",
    "the client's report names it, and verify finds that it is missing",
)
@pytest.mark.parametrize(
    ("forge", "told"),
    [
        (lambda fact: None if fact.kind == "late" else fact, "an earlier answer of a client"),
        (without_late, "is not what b signed"),
    ],
)
def test_what_a_client_sends_along_is_published(
    forge: Callable[[Fact], Any], told: str, tmp_path: Path
) -> None:
    entries, _ = played(tmp_path / "ledger.db", dropping("rank"))
    (problem,) = wrong_in(resealed(entries, forge))
    assert told in problem


@lie(
    "a client",
    "dispute an absence with an answer that it never sent, or that is not its own",
    "the first is undecided and gains it nothing; the second is a fault",
)
@pytest.mark.parametrize("own", [True, False])
def test_what_was_never_sent_stays_undecided(own: bool, tmp_path: Path) -> None:
    """b signs an answer in slot 1 and does not send it."""

    def answers(clients: Clients) -> Answers:
        def replies(ask: Ask) -> list[Reply]:
            given = clients(ask)
            if ask.slot == 1 and ask.stage == "offer":
                return [reply for reply in given if reply.client != "b"]
            if own:
                return given
            return [replace(reply, body=someone_elses(reply.body)) for reply in given]

        return replies

    entries, _ = played(tmp_path / "ledger.db", answers)
    found = look_over(entries)
    assert found.problems == []
    assert len(found.signatures.undecided) == (1 if own else 0)
    reasons = {entry.body["reason"] for entry in entries if entry.kind == "fault"}
    assert reasons == (set() if own else {"brings earlier answers that are not its own"})


def someone_elses(body: dict[str, Any]) -> dict[str, Any]:
    if "late" not in body:
        return body
    return body | {"late": [one | {"turn": one["turn"] + 1} for one in body["late"]]}


def test_a_client_without_its_copy_does_not_vouch_for_anything(tmp_path: Path) -> None:
    """It cannot know what it said, and needs a new key."""
    clients = Clients(SIGNED, privates_of(NAMES))
    with ledger_at(tmp_path / "ledger.db") as ledger:
        coordinator = Coordinator(SIGNED, ledger, START_MODEL, server_key(SIGNED))
        run(coordinator, clients, 1)
        clients.copies["b"].written.clear()
        ask = coordinator.next_ask(2)
        assert ask is not None
        with pytest.raises(Refusal, match="needs a new key"):
            clients.reply("b", ask)


@pytest.mark.slow
def test_an_answer_given_twice_is_no_dispute(tmp_path: Path) -> None:
    """The server was stopped after it asked, and asks again: the first answer got lost."""
    clients = Clients(SIGNED, privates_of(NAMES))
    with ledger_at(tmp_path / "ledger.db") as ledger:
        for _ in range(40):
            coordinator = Coordinator(SIGNED, ledger, START_MODEL, server_key(SIGNED))
            ask = coordinator.next_ask(2)
            if ask is None:
                break
            clients(ask)
            again = Coordinator(SIGNED, ledger, START_MODEL, server_key(SIGNED))
            second = again.next_ask(2)
            assert second is not None
            again.take(second, clients(second))
        entries = list(ledger.entries())
    found = look_over(entries, every_signature=True)
    assert (found.problems, found.signatures.undecided) == ([], [])
    assert not [entry for entry in entries if entry.kind == "late"]
    for name in NAMES:
        (compared,) = compare_with_server(entries, [clients.copies[name].written])
        assert compared == ([], [], [])

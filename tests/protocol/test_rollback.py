"""Going back to the model of an earlier slot: proposed, consented to, written down."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fedaccord.errors import InvalidInput
from fedaccord.ledger.chain import Entry
from fedaccord.ledger.store import Ledger
from fedaccord.protocol.coordinator import Coordinator
from fedaccord.protocol.copies import contradictions
from fedaccord.protocol.envelopes import Ask, Reply
from fedaccord.protocol.messages import Refusal
from fedaccord.protocol.parameters import digest
from fedaccord.protocol.verification import look_over, wrong_in
from tests.flower.consortia import (
    START_MODEL,
    Clients,
    kinds,
    ledger_at,
    privates_of,
    run,
    terms_of,
)
from tests.flower.stories import instead, rewritten, telling
from tests.lies import lie

NAMES = ("a", "b", "c")


def clients_of(consenting: Sequence[str], to_slot: int = 1, **rules: Any) -> Clients:
    privates = [
        replace(private, consents_to_slot=to_slot if private.name in consenting else None)
        for private in privates_of(NAMES)
    ]
    return Clients(terms_of(NAMES, **rules), privates)


def after(
    ledger: Ledger, clients: Clients, slots: int = 3, **rules: Any
) -> tuple[Coordinator, list[str]]:
    """A ledger of some slots, and the digest of the model after each; the start is the first."""
    coordinator = Coordinator(terms_of(NAMES, **rules), ledger, START_MODEL)
    digests = [digest(START_MODEL)]
    for slot in range(1, slots + 1):
        run(coordinator, clients, slot)
        digests.append(digest(coordinator.model))
    return coordinator, digests


def decisions(ledger: Ledger) -> list[bool]:
    return [entry.body["accepted"] for entry in ledger.entries(kind="decision")]


def healthy(ledger: Ledger, clients: Clients) -> bool:
    entries = list(ledger.entries())
    assert look_over(entries, ledger.checkpoints()).problems == []
    return not any(contradictions(entries, clients.copies[name].written) for name in NAMES)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("consent", "consenting", "accepted"),
    [
        ("majority", "ab", True),
        ("majority", "a", False),
        ("everyone", "abc", True),
        ("everyone", "ab", False),
        ("nobody", "", True),
    ],
)
def test_it_takes_the_consent_that_the_terms_ask_for(
    consent: str, consenting: str, accepted: bool, tmp_path: Path
) -> None:
    rules: dict[str, Any] = {"rollback_consent": consent}
    clients = clients_of(consenting, **rules)
    with ledger_at(tmp_path / "ledger.db") as ledger:
        coordinator, digests = after(ledger, clients, **rules)
        coordinator.propose_rollback(1, "slot 2 ruined it")
        run(coordinator, clients, 3)
        assert decisions(ledger) == [accepted]
        assert digest(coordinator.model) == digests[1 if accepted else 3]
        assert healthy(ledger, clients)
        run(coordinator, clients, 4)  # which begins with that model
        assert healthy(ledger, clients)


def test_the_model_comes_back_number_by_number(tmp_path: Path) -> None:
    clients = clients_of("abc")
    with ledger_at(tmp_path / "ledger.db") as ledger:
        coordinator = Coordinator(terms_of(NAMES), ledger, START_MODEL)
        run(coordinator, clients, 1)
        good = {name: array.copy() for name, array in coordinator.model.items()}
        run(coordinator, clients, 2)
        coordinator.propose_rollback(1, "slot 2 ruined it")
        run(coordinator, clients, 2)
        assert all(np.array_equal(coordinator.model[name], good[name]) for name in good)


@pytest.mark.slow
def test_a_server_that_is_started_again_goes_on_with_it(tmp_path: Path) -> None:
    """Before the clients are asked, and after the decision."""
    clients, rules = clients_of("bc"), terms_of(NAMES)
    with ledger_at(tmp_path / "ledger.db") as ledger:
        coordinator, digests = after(ledger, clients)
        coordinator.propose_rollback(1, "slot 2 ruined it")
        again = Coordinator(rules, ledger, START_MODEL)
        run(again, clients, 3)
        assert digest(Coordinator(rules, ledger, START_MODEL).model) == digests[1]
        assert healthy(ledger, clients)


@pytest.mark.slow
def test_an_absent_client_does_not_consent(tmp_path: Path) -> None:
    clients = clients_of("ab")
    with ledger_at(tmp_path / "ledger.db") as ledger:
        coordinator, _ = after(ledger, clients)
        clients.away = {"a"}
        coordinator.propose_rollback(1, "slot 2 ruined it")
        run(coordinator, clients, 3)
        assert decisions(ledger) == [False]
        clients.away = set()
        coordinator.propose_rollback(1, "the same again, with a")
        run(coordinator, clients, 3)
        assert decisions(ledger) == [False, True]
        assert healthy(ledger, clients)


@pytest.mark.slow
def test_consent_to_another_slot_does_not_count(tmp_path: Path) -> None:
    clients = clients_of("abc", to_slot=2)
    with ledger_at(tmp_path / "ledger.db") as ledger:
        coordinator, _ = after(ledger, clients)
        coordinator.propose_rollback(1, "slot 2 ruined it")
        run(coordinator, clients, 3)
        assert decisions(ledger) == [False]


@pytest.mark.slow
def test_models_of_the_latest_slots_are_kept(tmp_path: Path) -> None:
    rules: dict[str, Any] = {"models_kept": 2, "rollback_consent": "nobody"}
    clients = clients_of("", **rules)
    with ledger_at(tmp_path / "ledger.db") as ledger:
        coordinator, digests = after(ledger, clients, slots=5, **rules)
        assert [c.slot for c in ledger.checkpoints()] == [3, 4, 5]
        with pytest.raises(InvalidInput, match="those of these slots are: 3, 4"):
            coordinator.propose_rollback(2, "too late")
        coordinator.propose_rollback(3, "just in time")
        assert digest(coordinator.model) == digests[3]


@pytest.mark.parametrize("reason", ["", " ", "two\nlines", "\x1b[2J", "x" * 501])
def test_a_reason_is_a_line_that_people_can_read(reason: str, tmp_path: Path) -> None:
    with ledger_at(tmp_path / "ledger.db") as ledger:
        coordinator, _ = after(ledger, clients_of(""), slots=2)
        with pytest.raises(InvalidInput, match="the reason must be one line"):
            coordinator.propose_rollback(1, reason)


@pytest.mark.slow
def test_nothing_is_proposed_within_a_slot_or_twice(tmp_path: Path) -> None:
    clients = clients_of("abc")
    with ledger_at(tmp_path / "ledger.db") as ledger:
        coordinator, _ = after(ledger, clients)
        ask = coordinator.next_ask(4)
        assert ask is not None
        coordinator.take(ask, clients(ask))
        with pytest.raises(InvalidInput, match="slot 4 is under way"):
            coordinator.propose_rollback(1, "too early")
        run(coordinator, clients, 4)
        coordinator.propose_rollback(2, "now")
        with pytest.raises(InvalidInput, match="a proposal is under way"):
            coordinator.propose_rollback(1, "and another")


@pytest.mark.slow
@lie(
    "the server",
    "go back to an older model without the consent that the terms require",
    "verify does not find the consents in the ledger",
)
def test_a_rollback_without_consent_does_not_verify(tmp_path: Path) -> None:
    clients = clients_of("a")
    with ledger_at(tmp_path / "ledger.db") as ledger:
        coordinator, _ = after(ledger, clients)
        coordinator.propose_rollback(1, "slot 2 ruined it")
        run(coordinator, clients, 3)
        entries = list(ledger.entries())
    forged = rewritten(entries, instead("decision", 3, None, accepted=True))
    assert any("does not follow from the entries before it" in p for p in wrong_in(forged))


@pytest.mark.slow
@lie(
    "the server",
    "record that a client consented to a rollback, though it did not",
    "the client's copy has its answer: verify --against reveals it",
)
def test_a_made_up_consent_shows_in_the_copy(tmp_path: Path) -> None:
    clients = clients_of("a")

    def flattering(ask: Ask) -> list[Reply]:
        replies = clients(ask)
        if ask.stage != "consent":
            return replies
        return [replace(reply, body={**reply.body, "agrees": True}) for reply in replies]

    with ledger_at(tmp_path / "ledger.db") as ledger:
        coordinator, _ = after(ledger, clients)
        coordinator.propose_rollback(1, "slot 2 ruined it")
        run_with(coordinator, flattering)
        entries: list[Entry] = list(ledger.entries())
        assert kinds(ledger, 3)[-1] == "decision"
    assert wrong_in(entries) == []
    (problem,) = contradictions(entries, clients.copies["b"].written)
    assert "the server wrote down something else" in problem
    assert contradictions(entries, clients.copies["a"].written) == []


def run_with(coordinator: Coordinator, answers: Any) -> None:
    while (ask := coordinator.next_ask(3)) is not None:
        coordinator.take(ask, answers(ask))


@pytest.mark.slow
@lie(
    "the server",
    "ask for consent to go back to one model, and mean another",
    "the client knows the digest of every model that it was given, and refuses",
)
def test_a_client_consents_to_the_model_that_it_knows(tmp_path: Path) -> None:
    clients = clients_of("abc")
    with ledger_at(tmp_path / "ledger.db") as ledger:
        coordinator, _ = after(ledger, clients)
        coordinator.propose_rollback(1, "slot 2 ruined it")
        ask = coordinator.next_ask(3)
        assert ask is not None
        other = telling(ask, *ask.contents, model="f" * 64)
        with pytest.raises(Refusal, match="not the model that slot 1 ended with"):
            clients.reply("c", other)

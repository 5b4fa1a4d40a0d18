"""Slots with suspensions, and which client was sent what in them."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from fedaccord.ledger.store import Ledger
from fedaccord.protocol.comparison import compare_copies
from fedaccord.protocol.coordinator import Coordinator
from fedaccord.protocol.copies import contradictions
from fedaccord.protocol.envelopes import Ask, Reply
from fedaccord.protocol.terms import Terms
from fedaccord.protocol.verification import look_over
from tests.flower.consortia import (
    START_MODEL,
    Clients,
    ledger_at,
    privates_of,
    run,
    terms_of,
)

NAMES = ("a", "b", "c", "d", "e")
Slips = dict[str, dict[int, int]]


def terms(names: tuple[str, ...] = NAMES, **rules: Any) -> Terms:
    return terms_of(names, **({"punishment": "suspension", "punishment_slots": 1} | rules))


class Sent:
    """Clients, and which of them was sent what: (slot, stage, turn, client, with a model)."""

    def __init__(self, rules: Terms, slips: Slips | None = None, **private: Any) -> None:
        privates = privates_of(rules.clients, **private)
        self.clients = Clients(
            rules, [replace(p, slips=(slips or {}).get(p.name, {})) for p in privates]
        )
        self.messages: list[tuple[int, str, int, str, bool]] = []

    def __call__(self, ask: Ask) -> list[Reply]:
        self.messages += [
            (ask.slot, ask.stage, ask.turn, name, ask.sends_model(name)) for name in ask.contents
        ]
        return self.clients(ask)

    def to(self, client: str, slot: int) -> list[tuple[str, int]]:
        """The questions of a slot that a client was asked."""
        return [(m[1], m[2]) for m in self.messages if (m[0], m[3]) == (slot, client)]

    def models_to(self, client: str) -> list[tuple[int, str, int]]:
        return [(m[0], m[1], m[2]) for m in self.messages if m[3] == client and m[4]]

    def set(self, client: str, **private: Any) -> None:
        participant = self.clients.participants[client]
        participant.private = replace(participant.private, **private)


def out(ledger: Ledger) -> list[dict[str, tuple[int, int | None]]]:
    """Who is suspended after each slot: the slot of the slip, and the slots that are left."""
    return [
        {name: (one["slipped_in"], one["slots_left"]) for name, one in e.body["suspended"].items()}
        for e in ledger.entries(kind="settlement")
    ]


def check(ledger: Ledger, sent: Sent) -> None:
    """The ledger verifies, against every copy, and the copies agree with one another."""
    entries = list(ledger.entries())
    assert look_over(entries, ledger.checkpoints()).problems == []
    copies = [copy.written for copy in sent.clients.copies.values() if copy.written]
    for copy in copies:
        assert contradictions(entries, copy) == []
    assert compare_copies(copies).contradictions == []


def played(path: Path, sent: Sent, rules: Terms, slots: int) -> Ledger:
    """The ledger after some slots; it is left open."""
    ledger = ledger_at(path)
    run(Coordinator(rules, ledger, START_MODEL), sent, slots)
    return ledger


def suspended_c(path: Path, **rules: Any) -> tuple[Ledger, Coordinator, Sent]:
    """C slipped in slot 1, and is out for three slots."""
    signed = terms(punishment_slots=3, **rules)
    sent = Sent(signed, {"c": {1: 0}})
    ledger = ledger_at(path)
    return ledger, run(Coordinator(signed, ledger, START_MODEL), sent, 1), sent


def decisions(ledger: Ledger) -> list[bool]:
    return [entry.body["accepted"] for entry in ledger.entries(kind="decision")]


def asked_in(path: Path, slot: int, stage: str) -> tuple[Sent, Ask]:
    """A question of a slot after c slipped in slot 1; it is out in slot 2 only."""
    rules = terms()
    sent = Sent(rules, {"c": {1: 0}})
    with ledger_at(path) as ledger:
        coordinator = Coordinator(rules, ledger, START_MODEL)
        while (ask := coordinator.next_ask(slot)) is not None:
            if (ask.slot, ask.stage) == (slot, stage):
                return sent, ask
            coordinator.take(ask, sent(ask))
    raise AssertionError("there is no such question")
